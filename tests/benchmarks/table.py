"""The table: ratios first, then each column; and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from .columns import COLUMNS, FLOOR, FROZEN, HAND, PLAIN, Absent
from .rows import verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from .measure import Figure
    from .rows import Row

RATIOS = ((FROZEN, HAND), (FROZEN, FLOOR), (PLAIN, FROZEN))
PACKAGES = ("plum-dispatch", "jax", "jaxtyping", "equinox", "ovld", "multipledispatch")


def text(figure: Figure | Absent | None) -> str:
    """One cell: the median with its unit, and the spread behind it."""
    if figure is None or isinstance(figure, Absent):
        return ""
    if figure.unit != "s":
        return f"{figure.value:,.0f}"
    return f"{duration(figure.value)} ±{figure.spread:.0%}"


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            value = seconds / size
            return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def ratio(value: float | None) -> str:
    """Two or three digits."""
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def show(rows: list[Row], console: Console | None = None) -> None:
    """Print the table, the reasons for what is empty, and the targets."""
    console = console or Console()
    table = Table(title=f"plum_freeze: what dispatch costs ({', '.join(versions().values())})")
    table.add_column("row")
    for above, below in RATIOS:
        table.add_column(f"{above}\n/ {below}", justify="right", style="bold")
    for name in COLUMNS:
        table.add_column(name.replace(" ", "\n"), justify="right")
    for row in rows:
        ratios = [ratio(row.ratio(*pair)) for pair in RATIOS]
        table.add_row(row.name, *ratios, *(text(row.cells.get(name)) for name in COLUMNS))
    console.print(table)
    for name, meaning in COLUMNS.items():
        console.print(f"  {name}: {meaning}", highlight=False)
    console.print(NOTE, highlight=False)
    for column, reasons in _reasons(rows).items():
        for why, names in reasons.items():
            console.print(f"  {column} is empty for {', '.join(names)}: {why}", highlight=False)
    for line, met in verdicts(rows):
        console.print(f"  {'met   ' if met else 'MISSED'}  {line}", highlight=False)


NOTE = """\
  Times are CPU times of the process. ± is the distance of the quartiles as a share of the median. In rows about late registrations, \
plum stands for plain plum and jax.clear_caches(); in rows about freeze(), for resolving the \
methods; in rows about import, for no hook."""


def _reasons(rows: list[Row]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        for column, cell in row.cells.items():
            if isinstance(cell, Absent):
                found.setdefault(column, {}).setdefault(cell.why, []).append(row.name)
    return found


def versions() -> dict[str, str]:
    """Python and the packages that are measured, with their versions."""
    found = {"python": f"Python {platform.python_version()}"}
    for package in PACKAGES:
        try:
            found[package] = f"{package} {version(package)}"
        except PackageNotFoundError:
            found[package] = f"no {package}"
    return found


def as_data(rows: list[Row]) -> dict[str, Any]:
    """Everything as plain data."""
    return {
        "versions": versions(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "columns": COLUMNS,
        "rows": [
            {
                "name": row.name,
                "ratios": {f"{a} / {b}": row.ratio(a, b) for a, b in RATIOS},
                "cells": {name: _cell(cell) for name, cell in row.cells.items()},
            }
            for row in rows
        ],
        "targets": [{"target": line, "met": met} for line, met in verdicts(rows)],
    }


def _cell(cell: Figure | Absent) -> dict[str, Any]:
    if isinstance(cell, Absent):
        return {"absent": cell.why}
    return {"value": cell.value, "spread": cell.spread, "unit": cell.unit}


def write_json(rows: list[Row], path: Path) -> None:
    """Write everything to a file."""
    path.write_text(json.dumps(as_data(rows), indent=2, ensure_ascii=False) + "\n", "utf-8")
