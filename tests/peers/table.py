"""What the runs of a suite show: differences, who answered calls, and one row of the table.

Seconds in the table are seconds of the processor.
"""

from __future__ import annotations

from typing import Any

from tests.peers.expected import EXPECTED
from tests.peers.run import Run

COLUMNS = (
    "suite", "version", "plain", "dispatch", "jit", "raise", "differ", "s plain", "s dispatch", "s jit",
    "functions", "methods", "late", "decisions/s plain", "frozen", "answered by the table",
)  # fmt: skip

Runs = dict[str, Run]


def row(name: str, runs: Runs) -> tuple[str, ...]:
    """One row of the table, with `-` for what was not run."""
    # the run that counts is one with dispatch only
    runs = ({"dispatch": runs["counts"]} if "counts" in runs else {}) | runs
    facts: dict[str, Any] = next((run.facts for run in runs.values() if run.facts), {})
    counted = runs["counts"].facts if "counts" in runs else {}
    speed, calls = counted.get("decisions", {}), counted.get("counts", {})
    has_speed = bool(speed.get("samples"))
    return (
        name,
        next((run.version for run in runs.values() if run.version), "-"),
        *(_passed(runs.get(mode)) for mode in ("plain", "dispatch", "jit")),
        "not tried: late ones" if facts.get("late") else _passed(runs.get("raise")),
        str(len({test for _, test, *_ in differences(name, runs)})),
        *(f"{runs[m].processor:.0f}" if m in runs else "-" for m in ("plain", "dispatch", "jit")),
        str(facts.get("functions", "-")),
        str(facts.get("methods", "-")),
        str(len(facts["late"])) if facts else "-",
        *(f"{speed[way]:,.0f}" if has_speed else "-" for way in ("plain", "frozen")),
        f"{answered(calls):.2%} of {calls['calls']}" if calls.get("calls") else "-",
    )


def _passed(run: Run | None) -> str:
    if run is None:
        return "-"
    failed = run.count("failed", "error")
    return f"{run.count('passed')}" + (f" ({failed} failed)" if failed else "")


def answered(counts: dict[str, int]) -> float:
    """The share of calls that a sealed table answered without plum's resolver."""
    others = sum(n for what, n in counts.items() if what.startswith(("resolved", "not frozen")))
    return 1 - others / counts["calls"]


def differences(name: str, runs: Runs) -> list[tuple[str, str, str, str, str | None]]:
    """Mode, test, outcome plain and frozen, and the reason where there is a known one."""
    plain = runs.get("plain")
    if plain is None:
        return []
    return [
        (mode, test, was, now, EXPECTED.get(name, {}).get(test))
        for mode, run in runs.items()
        for test in sorted(plain.outcomes | run.outcomes)
        if (was := plain.outcomes.get(test, "missing"))
        != (now := run.outcomes.get(test, "missing"))
    ]


def show_counts(name: str, run: Run | None) -> None:
    """Who answered calls, and what the rest are."""
    if run is None or not run.facts:
        return
    counts = run.facts["counts"]
    calls = counts.get("calls", 0)
    for what, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        share = f" ({count / calls:.2%})" if calls else ""
        print(f"  {name}: {what}: {count}{share}")


def show(rows: list[tuple[str, ...]]) -> None:
    """The table, as Markdown."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, cells in enumerate(rows):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print("|", " | ".join(padded), "|")
        if number == 0:
            print("|", " | ".join("-" * width for width in widths), "|")
