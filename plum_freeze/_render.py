"""The report for people: rich tables for a terminal, a string, a notebook."""

from __future__ import annotations

import html
import io
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plum_freeze._ambiguity import Finding
    from plum_freeze._report import FunctionFacts

NARROWEST, WIDEST = 60, 200
FEW = 5
"""With so few functions every method is listed; with more only those with something to say."""
MOST_LINES = 40
"""Of each kind, in print. `as_dict()` has all."""


def text(facts: list[FunctionFacts], footer: dict[str, Any]) -> str:
    """The report as a string without colours, as wide as the terminal (80 columns in a pipe)."""
    from rich.console import Console

    width = min(max(shutil.get_terminal_size((80, 24)).columns, NARROWEST), WIDEST)
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, color_system=None, force_jupyter=False)
    console.print(*parts(facts, footer, width), sep="\n", end="")
    lines = (line.rstrip() for line in buffer.getvalue().splitlines())
    return "\n".join(lines).rstrip()


def parts(facts: list[FunctionFacts], footer: dict[str, Any], width: int) -> Iterator[Any]:
    """What rich prints, one after the other."""
    from rich.text import Text

    yield Text(heading(facts, footer))
    if not facts:
        return
    yield _summary(facts, width)
    yield from _failures(facts)
    yield from _methods(facts)
    for kind, title in _FINDINGS.items():
        yield from _section(title, list(_finding_rows(facts, kind)))
    yield from _section("Hints that plum has to resolve at each call", list(_slow_rows(facts)))
    yield from _section("Annotations that cannot be resolved yet", list(_unresolved_rows(facts)))
    yield from _section("Compiled into", list(_compiled_rows(facts)))
    yield from _section("Late registrations", list(_late_rows(facts)))
    unseen = footer["unseen_modules"]
    rows = [(each["module"], "loaded by " + each["loader"], "") for each in unseen]
    yield from _section("Modules that the import hook did not see", rows)


_FINDINGS = {
    "ambiguous": "Ambiguous: plum raises AmbiguousLookupError for the example",
    "unreachable": "Never chosen",
}


def heading(facts: list[FunctionFacts], footer: dict[str, Any]) -> str:
    """How many functions and methods, where they are frozen, and what invalidates."""
    if not facts:
        return "plum_freeze: no dispatched functions."
    methods = [method for each in facts for method in each.methods]
    counts = Counter(method.runs for method in methods)
    ahead = sum(m.runs == "not called yet" and bool(m.reasons) for m in methods)
    words = [f"{n} {runs}" for runs, n in counts.most_common()]
    if ahead:
        words = [w + f" ({ahead} will run plainly)" * w.endswith("yet") for w in words]
    wheres = Counter((each.where, each.on_late) for each in facts if each.frozen)
    frozen = sum(each.frozen for each in facts)
    functions, all_methods = _count(len(facts), "function"), _count(len(methods), "method")
    lines = [
        f"plum_freeze: {functions}, {frozen} frozen; {all_methods}: {', '.join(words) or 'none'}.",
        *(
            f"Frozen at {_short(where)} with on_late={on_late!r}"
            + (f" ({n})." if len(wheres) > 1 else ".")
            for (where, on_late), n in wheres.most_common(FEW)
        ),
        _invalidation(footer["invalidation"]),
    ]
    return "\n".join(lines)


def _invalidation(facts: dict[str, Any]) -> str:
    if not facts["jax"]:
        return "JAX is not imported: nothing is compiled, and nothing can be stale."
    moves, exact = _count(facts["moves"], "time"), _count(facts["exact"], "time")
    asked = facts["asked"]
    asking = (
        f" Each call of a jitted function asks whether {_count(asked, 'inherited method')} still"
        f" {'holds' if asked == 1 else 'hold'}, since nobody tells of an assignment to a class."
        if asked
        else ""
    )
    if facts["by"] == "epoch":
        return (
            f"What a change outdates is invalidated by JAX's epoch, {moves} so far: everything is"
            f" compiled again. It cannot be exact here: {facts['why']}.{asking}"
        )
    return (
        f"What a change outdates is invalidated exactly, {exact} so far; everything was, {moves}."
        f"{asking}"
    )


_QUOTED_OR_DOTTED = re.compile(r"""('[^']*'|"[^"]*")|\b(?:[^\W\d]\w*\.)+(?=[^\W\d])""")


LONGEST = 200


def brief(words: str) -> str:
    """Without the modules in front of names: `Float[Array, 'n']`. What is in quotes stays."""
    found = _QUOTED_OR_DOTTED.sub(lambda match: match.group(1) or "", words)
    return found if len(found) <= LONGEST else found[: LONGEST - 4] + " ..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(place: str) -> str:
    """The path below the working folder, or the last three parts of it."""
    path, _, line = place.rpartition(":")
    if Path(path).parent == Path(__file__).parent:
        return "the command line"
    below = os.path.relpath(path) if os.path.isabs(path) else path  # noqa: PTH117
    if below.startswith(".."):
        below = str(Path("...", *Path(path).parts[-3:]))
    return f"{below}:{line}"


def _table(*columns: tuple[str, dict[str, Any]], title: str | None = None) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heading = None if title is None else Text(title, style="bold")
    table = Table(
        box=box.SIMPLE_HEAD if columns[0][0] else None,
        show_header=bool(columns[0][0]),
        title=heading,
        title_justify="left",
        pad_edge=False,
        padding=(0, 1),
    )
    for name, options in columns:
        table.add_column(name, overflow="fold", **options)
    return table


def _summary(facts: list[FunctionFacts], width: int) -> Any:
    from rich.text import Text

    right = {"justify": "right", "no_wrap": True}
    table = _table(
        ("Function", {"ratio": 3}), ("Methods", right), ("Jitted", right), ("Plain", right),
        ("Late", right), ("Decided by", {"ratio": 2}),
    )  # fmt: skip
    table.width = min(width, 120)  # without a width rich cuts the last column off
    for each in facts:
        numbers = (len(each.methods), each.jitted, each.plain, len(each.late))
        cells = [
            Text(str(number), style=style if number else "dim")
            for number, style in zip(numbers, ("", "green", "", "yellow"), strict=True)
        ]
        name = Text(_own_name(each), style="bold" if each.frozen else "dim")
        name.append(f"\n{each.module}", style="not bold dim")
        table.add_row(name, *cells, Text(each.keys))
    return table


def _own_name(facts: FunctionFacts) -> str:
    return facts.name.removeprefix(facts.module + ".")


def _methods(facts: list[FunctionFacts]) -> Iterator[Any]:
    """Every method of a few functions; of many, those that run plainly."""
    everything = len(facts) <= FEW
    shown = 0
    from rich.text import Text

    table = _table(
        ("Method", {"ratio": 3}), ("Where", {"ratio": 2}), ("How it runs", {"ratio": 4}),
        title="Methods" if everything else "Methods that run plainly",
    )  # fmt: skip
    left = 0
    told: set[str] = set()
    for each in facts:
        rows = [m for m in each.methods if everything or m.reasons]
        for method in rows:
            if shown == MOST_LINES:
                left += 1
                continue
            shown += 1
            how = Text(method.words)
            for reason in method.reasons:
                if reason.remedy and reason.remedy not in told:
                    told.add(reason.remedy)
                    how.append(f"\n{reason.remedy}", style="dim italic")
            name = _own_name(each) + brief(method.signatures[0])
            table.add_row(Text(name), Text(method.place, style="cyan"), how)
    if shown:
        yield table
    if left:
        yield _more(left)


def _more(left: int) -> Any:
    from rich.text import Text

    return Text(f"and {left} more: as_dict(), --json and --html have all of them\n", style="dim")


def _section(title: str, rows: list[tuple[str, str, str]]) -> Iterator[Any]:
    """A table with a title: what, which, and what to do about it."""
    from rich.text import Text

    if not rows:
        return
    table = _table(("", {"ratio": 2}), ("", {"ratio": 3}), title=title)
    for what, which, advice in rows[:MOST_LINES]:
        cell = Text(which)
        if advice:
            cell.append(f"\n{advice}", style="dim italic")
        table.add_row(Text(what), cell)
    yield Text("")
    yield table
    if len(rows) > MOST_LINES:
        yield _more(len(rows) - MOST_LINES)


def _failures(facts: list[FunctionFacts]) -> Iterator[Any]:
    rows = [(each.name, each.failed, "") for each in facts if each.failed]
    yield from _section("Could not be frozen, and run as plain plum", rows)


def _finding_rows(facts: list[FunctionFacts], kind: str) -> Iterator[tuple[str, str, str]]:
    for each in facts:
        for finding in each.findings:
            if finding.kind == kind and not finding.possible:
                example = f"for example {_own_name(each)}{finding.example}"
                which = f"{_finding_text(finding)} ({', '.join(finding.places)})"
                yield _own_name(each), which, example if finding.example else ""


def _finding_text(finding: Finding) -> str:
    signatures = " and ".join(map(brief, finding.signatures))
    return f"{signatures}: {finding.text}" if finding.text else signatures


def _slow_rows(facts: list[FunctionFacts]) -> Iterator[tuple[str, str, str]]:
    for each in facts:
        for found in each.decides:
            if found.is_slow:
                where = "*args" if found.argument == 0 else f"argument {found.argument}"
                shown = found.places[:FEW]
                places = ", ".join([*shown, *["..."][: len(found.places) - len(shown)]])
                yield _own_name(each), f"{where}: {brief(found.hint)} ({places})", found.why


def _unresolved_rows(facts: list[FunctionFacts]) -> Iterator[tuple[str, str, str]]:
    for each in facts:
        for found in each.unresolved:
            place = _short(f"{found.file}:{found.line}")
            yield _own_name(each) + brief(found.signature), f"{found.error} ({place})", ""


def _compiled_rows(facts: list[FunctionFacts]) -> Iterator[tuple[str, str, str]]:
    for each in facts:
        if each.compiled_in:
            shown = each.compiled_in[:FEW]
            more = len(each.compiled_in) - len(shown)
            yield _own_name(each), ", ".join(shown) + f", and {more} more" * bool(more), ""


def _late_rows(facts: list[FunctionFacts]) -> Iterator[tuple[str, str, str]]:
    for each in facts:
        for found in each.late:
            place = _short(f"{found.file}:{found.line}")
            yield _own_name(each) + brief(found.signature), f"by {found.module} ({place})", ""


def notebook(facts: list[FunctionFacts], footer: dict[str, Any]) -> str:
    """The report as a notebook shows it: the summary, and the rest as text below."""
    return f"<pre style='white-space:pre-wrap'>{html.escape(text(facts, footer))}</pre>"
