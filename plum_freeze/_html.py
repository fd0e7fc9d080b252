"""The report as one page that needs nothing else: no network, no library, light and dark."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from plum_freeze import _picture, _targets
from plum_freeze._page import PAGE, SCRIPT, STYLE
from plum_freeze._render import brief


def page(data: dict[str, Any]) -> str:
    """The page for what `Report.as_dict()` gives, with `import` and `timeline` from the command."""
    functions = data["functions"]
    packages = list(dict.fromkeys(_targets.package_of(each["module"]) for each in functions))
    registered = Counter(row["module"] for row in data["registrations"])
    sections = [
        (
            "Who registers on whose functions",
            _picture.registrations(data["registrations"], packages),
        ),
        ("The import in time", _picture.timeline(data.get("timeline", []), registered)),
        ("Findings", _findings(functions)),
        ("Functions", _functions(functions)),
        ("Methods", _methods(functions)),
        *_unseen(data["unseen_modules"]),
    ]
    body = "".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in sections)
    title = escape(", ".join(packages) or "no functions")
    return PAGE.format(
        title=title, style=STYLE, script=SCRIPT, numbers=_numbers(data, functions), body=body
    )


def _numbers(data: dict[str, Any], functions: list[dict[str, Any]]) -> str:
    """The line of figures at the top."""
    methods = [method for each in functions for method in each["methods"]]
    by_others = sum(
        _targets.package_of(row["module"]) != _targets.package_of(row["defined_in"])
        for row in data["registrations"]
    )
    figures = [
        (len(functions), "functions"),
        (len(methods), "methods"),
        (sum(_will_be_plain(method) for method in methods), "run plainly, or will"),
        (by_others, "registered on another package's function"),
        (sum(_certain(each, "ambiguous") for each in functions), "ambiguous pairs"),
        (sum(_certain(each, "unreachable") for each in functions), "never chosen"),
        (
            sum(d["on"] == "not cacheable" for each in functions for d in each["decides"]),
            "slow hints",
        ),
        (sum(len(each["late"]) for each in functions), "late"),
    ]
    found = "".join(f"<li><b>{number}</b> {words}</li>" for number, words in figures)
    timing = data.get("import")
    if timing:
        plain = timing["plain_seconds"]
        against = "" if plain is None else f" ({plain:.2f} s without the recorder)"
        found += f"<li><b>{timing['seconds']:.2f} s</b> to import{against}</li>"
    return found


def _will_be_plain(method: dict[str, Any]) -> bool:
    return not method["compiled"] and bool(method["reasons"])


def _certain(function: dict[str, Any], kind: str) -> int:
    return sum(f["count"] for f in function["findings"] if f["kind"] == kind and not f["possible"])


def _own_name(function: dict[str, Any]) -> str:
    return str(function["name"]).removeprefix(function["module"] + ".")


# -- tables --------------------------------------------------------------------------------------


def _table(name: str, columns: list[str], rows: list[list[str]]) -> str:
    """A table that can be sorted and searched. The cells are HTML already."""
    if not rows:
        return "<p>None.</p>"
    head = "".join(f'<th><button type="button">{column}</button></th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<label class="search">Search <input type="search" data-table="{name}"></label>'
        f'<span class="shown" data-for="{name}">{len(rows)} rows</span>'
        f'<div class="scroll"><table id="{name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _findings(functions: list[dict[str, Any]]) -> str:
    rows = []
    for each in functions:
        name = _code(_own_name(each))
        for found in each["findings"]:
            kind = ("possibly " if found["possible"] else "") + found["kind"]
            what = "<br>".join(_code(brief(signature)) for signature in found["signatures"])
            notes = [found["text"], f"{found['count']} pairs" if found["count"] > 1 else ""]
            if found["example"]:
                notes.append(f"for example {_own_name(each)}{found['example']}")
            note = "; ".join(filter(None, notes))
            rows.append([_tight(kind), name, what, escape(note), _tight(*found["places"])])
        for found in each["decides"]:
            if found["on"] == "not cacheable":
                where = "*args" if found["argument"] == 0 else f"argument {found['argument']}"
                what = f"{where}: {_code(brief(found['hint']))}"
                places = _tight(*found["places"])
                rows.append(["slow", name, what, escape(found["why"]), places])
        for found in each["unresolved"]:
            place = f"{Path(found['file']).name}:{found['line']}"
            what = _code(brief(found["signature"]))
            rows.append(["unresolved", name, what, escape(found["error"]), escape(place)])
        for found in each["late"]:
            place = f"{found['file']}:{found['line']}"
            what = _code(brief(found["signature"]))
            rows.append(["late", name, what, escape(f"by {found['module']}"), escape(place)])
        if each["failed"]:
            rows.append(["not frozen", name, "", escape(each["failed"]), ""])
    kinds = ("ambiguous", "unreachable", "slow", "late", "not frozen", "unresolved")
    order = {_tight(kind): i for i, kind in enumerate(kinds)} | {k: i for i, k in enumerate(kinds)}
    rows.sort(key=lambda row: order.get(row[0], len(kinds)))
    return _table("findings", ["What", "Function", "Which", "Why, and what to do", "Where"], rows)


def _tight(*lines: str) -> str:
    return f'<span class="tight">{"<br>".join(map(escape, lines))}</span>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _functions(functions: list[dict[str, Any]]) -> str:
    rows = []
    for each in functions:
        methods = each["methods"]
        decides = sorted({found["on"] for found in each["decides"]}) or ["type"]
        rows.append(
            [
                _code(_own_name(each)),
                escape(each["module"]),
                str(len(methods)),
                str(sum(m["compiled"] > 0 or m["runs"] == "jitted by its author" for m in methods)),
                str(sum(map(_will_be_plain, methods))),
                str(len(each["late"])),
                escape(", ".join(decides)),
                escape(each["on_late"] or "not frozen"),
            ]
        )
    columns = ["Function", "Module", "Methods", "Jitted", "Plain", "Late", "Decided by", "On late"]
    return _table("functions", columns, rows)


def _methods(functions: list[dict[str, Any]]) -> str:
    rows = []
    for each in functions:
        for method in each["methods"]:
            reasons = "; ".join(reason["text"] for reason in method["reasons"])
            remedies = "; ".join(filter(None, (r["remedy"] for r in method["reasons"])))
            place = f"{Path(method['file']).name}:{method['line']}"
            rows.append(
                [
                    _code(_own_name(each) + brief(method["signatures"][0])),
                    escape(method["module"]),
                    f'<span class="tight" title="{escape(method["file"])}">{escape(place)}</span>',
                    _tight(method["runs"]),
                    escape(reasons) + (f"<br><i>{escape(remedies)}</i>" if remedies else ""),
                ]
            )
    return _table("methods", ["Method", "Module", "Where", "Runs", "Why, and what to do"], rows)


def _unseen(modules: list[dict[str, str]]) -> list[tuple[str, str]]:
    """A section where there is something to say."""
    if not modules:
        return []
    rows = [[_code(each["module"]), escape(each["loader"])] for each in modules]
    table = _table("unseen", ["Module", "Loader"], rows)
    return [("Modules that the import hook did not see", table)]
