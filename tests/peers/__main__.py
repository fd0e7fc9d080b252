"""Run the suites of packages that are built on plum, plain and frozen, and show what differs.

    python -m tests.peers                 every suite
    python -m tests.peers quax unxt       these
    python -m tests.peers --ci            a selection for continuous integration
    python -m tests.peers --kept          the table again, and only what has not been run before

Each runs plain, then with every function frozen: dispatch only, with jit, and with
on_late="raise" where nothing was registered late; and once more, dispatch only, to count who
answers calls and to time decisions. A test that passes plain and not frozen is named, and makes
the exit status 1; so does one that does the opposite, which is a swap.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.peers import table
from tests.peers.run import PeerError, Run, UnavailableError, Workshop
from tests.peers.suites import CI, SUITES

MODES = ("plain", "dispatch", "jit", "raise", "counts")


def main() -> int:
    """Run what the command line asks for."""
    arguments = _parse()
    names = arguments.names or (CI if arguments.ci else tuple(SUITES))
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    rows: list[tuple[str, ...]] = [table.COLUMNS]
    status = 0
    shop = Workshop(
        arguments.work, arguments.python, arguments.given, arguments.limit, arguments.instead
    )
    for name in names:
        runs, failed = _run(name, shop, arguments)
        status |= failed
        for mode, test, was, now, reason in table.differences(name, runs):
            known = "" if reason is None else f" ({reason})"
            print(f"! {name}, {mode}: {test}: plain {was}, frozen {now}{known}")
            status |= reason is None
        table.show_counts(name, runs.get("counts"))
        rows.append(table.row(name, runs))
    table.show(rows)
    return status


def _run(name: str, shop: Workshop, arguments: argparse.Namespace) -> tuple[dict[str, Run], int]:
    """The runs of a suite, and whether one that could be made was not."""
    runs: dict[str, Run] = {}
    for mode in arguments.modes:
        if mode == "raise" and any(run.facts.get("late") for run in runs.values()):
            continue
        found = shop.kept(name, mode) if arguments.kept else None
        try:
            runs[mode] = found or shop.run(name, SUITES[name], mode, arguments.pytest or [])
        except UnavailableError as error:
            print(f"SKIPPED: {name}: could not be fetched: {error}", flush=True)
            return runs, 0
        except PeerError as error:
            print(f"FAILED: {error}", flush=True)
            return runs, 1
        passed, seconds = runs[mode].count("passed"), runs[mode].seconds
        print(f"# {name}, {mode}: {passed} passed, {seconds:.0f} s", flush=True)
    return runs, 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.peers", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SUITES))
    parser.add_argument("--ci", action="store_true", help=f"only {', '.join(CI)}")
    parser.add_argument("--kept", action="store_true", help="take earlier runs where there are any")
    parser.add_argument("--modes", help=f"comma-separated: {', '.join(MODES)}")
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
    found.modes = (found.modes or ",".join(MODES)).split(",")
    if found.ci and "counts" in found.modes:
        found.modes.remove("counts")
    return found


if __name__ == "__main__":
    sys.exit(main())
