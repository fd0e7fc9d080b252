"""Run the suites of packages that are built on plum, plain and frozen, and show what differs.

    python -m tests.peers                 every suite
    python -m tests.peers quax unxt       these
    python -m tests.peers --ci            a selection for continuous integration
    python -m tests.peers --counts NAME   also: who answers calls, and decisions per second

Each runs plain, then with every function frozen: dispatch only, with jit, and with
on_late="raise" where nothing was registered late. A test that passes plain and not frozen is
named, and makes the exit status 1; so does one that does the opposite, which is a swap.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.peers.expected import EXPECTED
from tests.peers.run import PeerError, Run, Workshop
from tests.peers.suites import CI, SUITES

COLUMNS = (
    "suite",
    "plain",
    "dispatch",
    "jit",
    "raise",
    "late",
    "functions",
    "methods",
    "seconds plain, dispatch, jit",
)


def main() -> int:
    """Run what the command line asks for."""
    arguments = _parse()
    names = arguments.names or (CI if arguments.ci else tuple(SUITES))
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    shop = Workshop(
        arguments.work, arguments.python, arguments.given, arguments.limit, arguments.instead
    )
    rows, status, extra = [COLUMNS], 0, arguments.pytest or []
    for name in names:
        runs: dict[str, Run] = {}
        try:
            for mode in _modes(arguments):
                if mode == "raise" and runs["dispatch"].facts.get("late"):
                    continue
                runs[mode] = shop.run(name, SUITES[name], mode, extra)
                print(
                    f"# {name}, {mode}: {runs[mode].count('passed')} passed, {runs[mode].seconds:.0f} s",
                    flush=True,
                )
        except PeerError as error:
            print(f"# {error}", flush=True)
            status = 1
        rows.append(_row(name, runs))
        status |= _show_differences(name, runs)
        _show_counts(name, runs.get("counts"))
        (arguments.work / "out" / name / "summary.json").write_text(
            json.dumps(
                {mode: [run.count("passed"), run.seconds, run.facts] for mode, run in runs.items()}
            )
        )
    _show_table(rows)
    return status


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.peers", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SUITES))
    parser.add_argument("--ci", action="store_true", help=f"only {', '.join(CI)}")
    parser.add_argument("--counts", action="store_true", help="a run more, which counts calls")
    parser.add_argument("--modes", help="comma-separated: plain, dispatch, jit, raise, counts")
    default = Path(os.environ.get("PEERS_WORK", Path(tempfile.gettempdir()) / "plum_freeze_peers"))
    parser.add_argument(
        "--work", type=Path, default=default, help="where everything is kept (%(default)s)"
    )
    parser.add_argument("--python", default=sys.executable, help="makes the environments")
    parser.add_argument(
        "--given", help="a Python that has the packages, instead of new environments"
    )
    parser.add_argument(
        "--instead",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="test the plum_freeze in this folder",
    )
    parser.add_argument(
        "--limit", type=float, default=900, help="seconds for one run (%(default)s)"
    )
    parser.add_argument("--pytest", nargs=argparse.REMAINDER, help="the rest goes to pytest")
    found = parser.parse_args()
    found.work = found.work.resolve()
    return found


def _modes(arguments: argparse.Namespace) -> list[str]:
    if arguments.modes:
        return [mode for mode in arguments.modes.split(",") if mode]
    return ["plain", "dispatch", "jit", "raise", *(["counts"] if arguments.counts else [])]


def _row(name: str, runs: dict[str, Run]) -> tuple[str, ...]:
    def passed(mode: str) -> str:
        run = runs.get(mode)
        if run is None:
            return "-"
        failed = run.count("failed", "error")
        return f"{run.count('passed')}" + (f" ({failed} failed)" if failed else "")

    facts: dict[str, Any] = next((run.facts for run in runs.values() if run.facts), {})
    seconds = ", ".join(
        f"{runs[m].seconds:.0f}" if m in runs else "-" for m in ("plain", "dispatch", "jit")
    )
    return (
        name, *map(passed, ("plain", "dispatch", "jit", "raise")), str(len(facts.get("late", []))),
        str(facts.get("functions", "-")), str(facts.get("methods", "-")), seconds,
    )  # fmt: skip


def _show_differences(name: str, runs: dict[str, Run]) -> int:
    plain, status = runs.get("plain"), 0
    if plain is None:
        return 0
    for mode, run in runs.items():
        for test in sorted(plain.outcomes | run.outcomes):
            was, now = plain.outcomes.get(test, "missing"), run.outcomes.get(test, "missing")
            if was == now:
                continue
            reason = EXPECTED.get(name, {}).get(test)
            print(
                f"! {name}, {mode}: {test}: plain {was}, frozen {now}"
                + (f" ({reason})" if reason else "")
            )
            status |= reason is None
    return status


def _show_counts(name: str, run: Run | None) -> None:
    if run is None or not run.facts:
        return
    counts = run.facts["counts"]
    calls = counts.get("calls", 0)
    for what, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(
            f"  {name}: {what}: {count} ({count / calls:.2%})"
            if calls
            else f"  {name}: {what}: {count}"
        )
    decisions = run.facts["decisions"]
    if decisions["samples"]:
        print(
            f"  {name}: decisions per second: {decisions['plain']:,.0f} plain,"
            f" {decisions['frozen']:,.0f} frozen ({decisions['samples']} kinds of calls)"
        )


def _show_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


if __name__ == "__main__":
    sys.exit(main())
