"""`python -m tests.benchmarks [--quick] [--json FILE] [--svg FILE] [WORD ...]`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the table. Returns 1 where a target is missed and `--strict` was given."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows whose names contain one of these words")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--tiny", action="store_true", help="for tests: the figures mean nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--strict", action="store_true", help="fail where a target is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the chart for the README")
    options = parser.parse_args(arguments)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

    from rich.console import Console

    from . import chart, measure, rows, table

    if options.list:
        print("\n".join(rows.ROWS))
        return 0
    effort = measure.TINY if options.tiny else measure.QUICK if options.quick else measure.FULL
    found = []
    try:
        for row in rows.measure(options.words, effort):
            print(row.name, file=sys.stderr)
            found.append(row)
    except LookupError as error:
        parser.error(str(error))
    console = Console(width=None if sys.stdout.isatty() else 200)
    table.show(found, console)
    if options.json:
        table.write_json(found, options.json)
    if options.svg:
        chart.write_svg(found, options.svg)
    return int(options.strict and not all(met for _, met in rows.verdicts(found)))


if __name__ == "__main__":
    raise SystemExit(main())
