"""The chart for the README: plain plum, frozen, its floor and by hand, on a logarithmic scale.

Written by hand, so that it depends on nothing. Its colours are chosen to be read on white and on
black, and its text follows the colour scheme of the reader where the viewer tells it.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from .columns import FLOOR, FROZEN, HAND, PLAIN
from .measure import Figure
from .table import duration

if TYPE_CHECKING:
    from pathlib import Path

    from .rows import Row

WIDTH, LEFT, RIGHT = 860, 190, 130
BAR, GAP, TOP = 11, 14, 64
BARS = {PLAIN: "#d97706", FROZEN: "#0891b2", FLOOR: "#7dbccb", HAND: "#8b8b94"}
LABELS = {
    PLAIN: "plain plum",
    FROZEN: "frozen",
    FLOOR: "plum's own call, nothing else",
    HAND: "no dispatch, jitted by hand",
}
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.small { font-size: 10px; fill: #57606a }
.title { font-size: 14px; font-weight: 600 }
.grid { stroke: #8b8b94; stroke-opacity: .3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9ea7b3 }
}"""


def chart(rows: list[Row]) -> str:
    """An SVG picture of the rows that time something."""
    shown = [row for row in rows if _is_timed(row)]
    times = [_value(row, name) for row in shown for name in BARS]
    known = [value for value in times if value]
    low = math.floor(math.log10(min(known, default=1e-7)))
    high = math.ceil(math.log10(max(known, default=1.0)))
    high = max(high, low + 1)

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    height = TOP + len(shown) * (len(BARS) * BAR + GAP) + 30
    parts = [_legend()]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{height - 24}"/>'
            f'<text class="small" x="{at:.1f}" y="{height - 10}" text-anchor="middle">'
            f"{_power(power)}</text>"
        )
    for number, row in enumerate(shown):
        parts.append(_bars(row, TOP + number * (len(BARS) * BAR + GAP), x, x(10.0**low)))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{_described(shown)}">\n'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def write_svg(rows: list[Row], path: Path) -> None:
    """Write the chart to a file."""
    path.write_text(chart(rows), "utf-8")


def _is_timed(row: Row) -> bool:
    """Whether it is about calls: for imports and the like there is nothing by hand."""
    cells = [row.cells.get(name) for name in (PLAIN, FROZEN, HAND)]
    return all(isinstance(cell, Figure) and cell.unit == "s" for cell in cells)


def _value(row: Row, name: str) -> float | None:
    cell = row.cells.get(name)
    return cell.value if isinstance(cell, Figure) and cell.unit == "s" and cell.value else None


def _legend() -> str:
    parts = ['<text class="title" x="12" y="22">CPU time of one call, logarithmic</text>']
    at = LEFT
    for name, colour in BARS.items():
        parts.append(
            f'<rect x="{at}" y="34" width="{BAR}" height="{BAR}" rx="2" fill="{colour}"/>'
            f'<text x="{at + BAR + 6}" y="44">{LABELS[name]}</text>'
        )
        at += 40 + 7 * len(LABELS[name])
    return "".join(parts)


def _bars(row: Row, top: int, x, start: float) -> str:
    middle = top + len(BARS) * BAR / 2 + 4
    parts = [f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end">{escape(row.name)}</text>']
    for number, (name, colour) in enumerate(BARS.items()):
        value = _value(row, name)
        if value is None:
            continue
        y, width = top + number * BAR, max(2.0, x(value) - start)
        times = row.ratio(PLAIN, name)
        factor = f", {times:.1f}× faster" if name == FROZEN and times and times >= 1 else ""
        parts.append(
            f'<rect x="{start:.1f}" y="{y}" width="{width:.1f}" height="{BAR - 2}" rx="2" '
            f'fill="{colour}"/>'
            f'<text class="small" x="{start + width + 5:.1f}" y="{y + 8}">'
            f"{escape(duration(value))}{factor}</text>"
        )
    return "".join(parts)


def _power(power: int) -> str:
    units = {0: "1 s", -3: "1 ms", -6: "1 µs", -9: "1 ns"}
    base = 3 * (power // 3)
    unit = units.get(base, f"1e{base} s").split(" ")[1]
    return f"{10 ** (power - base)} {unit}"


def _described(rows: list[Row]) -> str:
    """The picture in words, for those who cannot see it."""
    parts = []
    for row in rows:
        times = row.ratio(PLAIN, FROZEN)
        if times is not None:
            parts.append(f"{row.name}: frozen is {times:.1f} times as fast as plain plum")
    return escape("; ".join(parts), quote=True)
