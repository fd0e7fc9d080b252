"""The command line: import a package under the recorder, freeze it, and print the report."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from plum_freeze import _freeze, _install, _policy, _report, _targets, _timeline, _watch
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plum_freeze._report import FunctionFacts, Report
    from plum_freeze._timeline import Span

KINDS = ("ambiguous", "unreachable", "late", "slow")
MANY_FUNCTIONS = 50
"""From so many functions on a terminal shows how far it is."""
FOUND, WRONG = 1, 2  # exit codes


class _Wrong(Exception):  # noqa: N818  (control flow: it becomes one line)
    """What ends the command with exit code 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: all is well. 1: `--fail-on` names something that was found. 2: a wrong option or name, or
    the package cannot be imported or frozen.
    """
    options = _parse(arguments)
    try:
        return _run(options)
    except _Wrong as wrong:
        print(f"plum-freeze: {wrong}", file=sys.stderr)  # noqa: T201
        if options.traceback and wrong.__cause__ is not None:
            traceback.print_exception(wrong.__cause__)
        return WRONG
    except BrokenPipeError:  # `plum-freeze x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="plum-freeze",
        description="Import packages, freeze their plum functions, and report: how each method"
        " runs and why, what decides, ambiguous and unreachable methods, late registrations.",
        epilog="Exit codes: 0 all is well, 1 --fail-on found something, 2 a wrong name or option,"
        " or a package that cannot be imported.",
    )
    parser.add_argument("package", nargs="+", help="a package or module, as for import")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write it as one self-contained page, too")
    parser.add_argument(
        "--fail-on", metavar="KINDS", type=_kinds, default=(),
        help=f"exit with 1 if there is any of these, with commas: {', '.join(KINDS)}",
    )  # fmt: skip
    parser.add_argument(
        "--on-late", choices=_policy.POLICIES, default="accept",
        help="what a registration after the freeze does (default: accept)",
    )  # fmt: skip
    parser.add_argument("--no-jit", action="store_true", help="freeze with jit=False")
    parser.add_argument(
        "--plain-import-time", action="store_true",
        help="import it in another process as well, without the recorder, to compare",
    )  # fmt: skip
    parser.add_argument(
        "--traceback", action="store_true", help="show the traceback of a failing import"
    )
    return parser.parse_args(arguments)


def _kinds(text: str) -> tuple[str, ...]:
    found = tuple(filter(None, (part.strip() for part in text.split(","))))
    wrong = [kind for kind in found if kind not in KINDS]
    if wrong or not found:
        raise argparse.ArgumentTypeError(
            f"{', '.join(wrong) or 'nothing'} is none of {', '.join(KINDS)}"
        )
    return found


def _run(options: argparse.Namespace) -> int:
    if _watch.is_off():
        raise _Wrong("PLUM_FREEZE=0 is set, so nothing would be frozen: unset it")
    if "" not in sys.path and os.getcwd() not in sys.path:  # noqa: PTH109
        sys.path.insert(0, os.getcwd())  # noqa: PTH109  as `python -m` does
    with contextlib.redirect_stdout(sys.stderr):  # what a package prints is not the report
        took, spans = _import(options.package)
        report = _freeze_all(options)
    plain = _plain_import_time(options.package) if options.plain_import_time else None
    facts = _gather(report)
    data = _report.plain_data(facts, report._functions)
    data["import"] = {
        "packages": options.package,
        "seconds": round(took, 4),
        "plain_seconds": plain,
    }
    data["timeline"] = [[s.module, round(s.start, 5), round(s.end, 5), s.depth] for s in spans]
    if options.html:
        _write(options.html, data)
    if options.json:
        print(json.dumps(data, indent=2))  # noqa: T201
    else:
        _print(report, facts, data)
    return _verdict(facts, options.fail_on)


# -- importing -----------------------------------------------------------------------------------


def _import(names: list[str]) -> tuple[float, list[Span]]:
    """Import the packages under the recorder, and say how long that took.

    Raises:
        _Wrong: A name is none, or its import fails.
    """
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise _Wrong(f"{name!r} is no name of a package; write it as for import: a.b")
    for name in names:
        _install.install(_targets.package_of(name))
    with _timeline.recording() as spans:
        start = time.perf_counter()
        for name in names:
            try:
                importlib.import_module(name)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  also SystemExit: it is said in one line
                _fail(name, error)
        took = time.perf_counter() - start
    return took, spans


def _fail(name: str, error: BaseException) -> NoReturn:
    missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and (name + ".").startswith(missing + "."):
        raise _Wrong(f"there is no module {missing!r} here{_did_you_mean(name)}") from error
    text = str(error).strip().splitlines() or [""]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen", str(Path(__file__).parent)))
    ]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    raise _Wrong(
        f"importing {name!r} failed: {type(error).__name__}: {text[0]}{where}; see --traceback"
    ) from error


def _did_you_mean(name: str) -> str:
    import difflib
    import importlib.metadata

    known = importlib.metadata.packages_distributions()
    close = difflib.get_close_matches(name.partition(".")[0], known, n=1)
    return f"; did you mean {close[0]!r}?" if close and close[0] != name.partition(".")[0] else ""


_TIMED_IMPORT = """
import importlib, sys, time
sys.stdout = sys.stderr
start = time.perf_counter()
for name in sys.argv[1:]:
    importlib.import_module(name)
sys.__stdout__.write(repr(time.perf_counter() - start))
"""


def _plain_import_time(names: list[str]) -> float | None:
    """How long the import takes in a process of its own without us; None if it fails there."""
    done = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-c", _TIMED_IMPORT, *names], capture_output=True, text=True, check=False
    )
    try:
        return round(float(done.stdout), 4)
    except ValueError:
        return None


# -- freezing ------------------------------------------------------------------------------------


def _freeze_all(options: argparse.Namespace) -> Report:
    """Freeze what the packages define; what they have frozen themselves stays as it is.

    Raises:
        _Wrong: They define no function.
    """
    try:
        functions = _targets.find(tuple(options.package), "plum-freeze")
        if not all(map(_report._is_frozen, functions)):
            _freeze.freeze(*options.package, jit=not options.no_jit, on_late=options.on_late)
    except FreezeError as error:
        raise _Wrong(" ".join(str(error).splitlines())) from error
    return _report.Report(functions)


def _gather(report: Report) -> list[FunctionFacts]:
    with _progress(len(report)) as done:
        return report.facts(done)


@contextlib.contextmanager
def _progress(number: int) -> Iterator[Callable[[], None]]:
    """Show how far it is, if there is much to do and somebody looks."""
    if number < MANY_FUNCTIONS or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Looking at functions", total=number)
        yield lambda: progress.advance(task)


# -- telling -------------------------------------------------------------------------------------


def _print(report: Report, facts: list[FunctionFacts], data: dict[str, Any]) -> None:
    from rich.console import Console

    from plum_freeze import _render

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with code 1

    console = Quiet(highlight=False)
    seconds, plain = data["import"]["seconds"], data["import"]["plain_seconds"]
    against = "" if plain is None else f", {plain:.2f} s without the recorder"
    names = ", ".join(data["import"]["packages"])
    console.print(f"Imported {names} in {seconds:.2f} s{against}.", markup=False)
    for part in _render.parts(facts, _report.footer(report._functions), console.width):
        console.print(part)


def _write(file: str, data: dict[str, Any]) -> None:
    from plum_freeze import _html

    try:
        Path(file).write_text(_html.page(data), encoding="utf-8")
    except OSError as error:
        raise _Wrong(f"cannot write {file}: {error.strerror}") from error
    print(f"plum-freeze: wrote {file}", file=sys.stderr)  # noqa: T201


def _verdict(facts: list[FunctionFacts], fail_on: tuple[str, ...]) -> int:
    found = Counter[str]()
    for each in facts:
        found["late"] += len(each.late)
        found["slow"] += sum(depends.is_slow for depends in each.decides)
        for finding in each.findings:
            found[finding.kind] += 0 if finding.possible else finding.count
    counted = [f"{found[kind]} {kind}" for kind in fail_on if found[kind]]
    if not counted:
        return 0
    print(f"plum-freeze: --fail-on found {', '.join(counted)}", file=sys.stderr)  # noqa: T201
    return FOUND
