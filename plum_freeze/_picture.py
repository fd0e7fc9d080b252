"""Two pictures for the page, as SVG: who registers on whose functions, and the import in time."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

WIDTH, ROW, BAR, LABEL = 1100, 26, 14, 330
MOST_ROWS = 28
"""Modules and functions that get a row of their own; the rest share one for each package."""


def registrations(rows: list[dict[str, Any]], packages: list[str]) -> str:
    """Modules that register on the left, functions on the right, a band for each pair.

    Args:
        rows: The registrations of the report.
        packages: The packages that are reported on; the others are drawn in another colour.
    """
    if not rows:
        return "<p>No registration was recorded.</p>"
    rows = [
        row
        for row in rows
        if _top(row["module"]) in packages or _top(row["defined_in"]) in packages
    ]
    left = _grouped(Counter(row["module"] for row in rows))
    right = _grouped(Counter(row["function"] for row in rows))
    flows = Counter((left[row["module"]], right[row["function"]]) for row in rows)
    modules = sorted(set(left.values()), key=lambda name: (_is_rest(name), name))
    ends = [modules, _untangled(modules, flows)]
    heights = [_heights(names, flows, side) for side, names in enumerate(ends)]
    tall = max(sum(column.values()) for column in heights)
    parts = [_opening(tall + 10, "Who registers methods on whose functions")]
    starts = [_starts(column, tall) for column in heights]
    parts += _bands(flows, ends, heights, starts, packages)
    for side, names in enumerate(ends):
        for name in names:
            count = sum(n for pair, n in flows.items() if pair[side] == name)
            y, height = starts[side][name], heights[side][name] - 8
            parts.append(_node(side, name, count, y=y, height=height, packages=packages))
    return "".join([*parts, "</svg>"])


def _is_rest(name: str) -> bool:
    return ":" in name


def _top(module: str) -> str:
    return module.partition(":")[0].partition(".")[0]


def _grouped(counts: Counter[str]) -> dict[str, str]:
    """Each name with its row: its own for those with most methods."""
    kept = {
        name for name, _ in counts.most_common(MOST_ROWS if len(counts) > MOST_ROWS + 1 else None)
    }
    rest = Counter(_top(name) for name in counts if name not in kept)
    return {n: n if n in kept else f"{_top(n)}: {rest[_top(n)]} others" for n in counts}


def _untangled(modules: list[str], flows: Counter[tuple[str, str]]) -> list[str]:
    """The functions, each about as high up as the modules that register on it."""
    sums, totals = Counter[str](), Counter[str]()
    for (module, function), count in flows.items():
        sums[function] += count * modules.index(module)
        totals[function] += count
    return sorted(totals, key=lambda name: (_is_rest(name), sums[name] / totals[name], name))


def _heights(names: list[str], flows: Counter[tuple[str, str]], side: int) -> dict[str, float]:
    total = sum(flows.values())
    unit = min(6.0, 500 / total)
    sums = {name: sum(n for pair, n in flows.items() if pair[side] == name) for name in names}
    return {name: max(ROW, unit * count + 8) for name, count in sums.items()}


def _starts(heights: dict[str, float], tall: float) -> dict[str, float]:
    y = (tall - sum(heights.values())) / 2 + 5
    found = {}
    for name, height in heights.items():
        found[name] = y
        y += height
    return found


def _bands(
    flows: Counter[tuple[str, str]],
    ends: list[list[str]],
    heights: list[dict[str, float]],
    starts: list[dict[str, float]],
    packages: list[str],
) -> list[str]:
    """One curve for each pair, as thick as it has methods."""
    used: list[dict[str, float]] = [dict(starts[0]), dict(starts[1])]
    totals = [Counter[str](), Counter[str]()]
    for pair, count in flows.items():
        totals[0][pair[0]] += count
        totals[1][pair[1]] += count
    place = [{name: i for i, name in enumerate(names)} for names in ends]
    ordered = sorted(flows.items(), key=lambda item: (place[0][item[0][0]], place[1][item[0][1]]))
    found = []
    for (module, function), count in ordered:
        thick = [
            (heights[side][name] - 8) * count / totals[side][name]
            for side, name in enumerate((module, function))
        ]
        a, b = used[0][module], used[1][function]
        used[0][module] += thick[0]
        used[1][function] += thick[1]
        x, z, middle = LABEL, WIDTH - LABEL, WIDTH / 2
        kind = _kind(module, packages)
        words = f"{module} registers {count} on {function}"
        ends_of = f'data-left="{escape(module)}" data-right="{escape(function)}"'
        path = (
            f"M{x} {a:.1f}C{middle} {a:.1f} {middle} {b:.1f} {z} {b:.1f}L{z} {b + thick[1]:.1f}"
            f"C{middle} {b + thick[1]:.1f} {middle} {a + thick[0]:.1f} {x} {a + thick[0]:.1f}Z"
        )
        found.append(
            f'<path class="band {kind}" {ends_of} d="{path}"><title>{escape(words)}</title></path>'
        )
    return found


def _node(side: int, name: str, count: int, *, y: float, height: float, packages: list[str]) -> str:
    x = WIDTH - LABEL if side else LABEL - 6
    at, anchor, text_x = (
        ("right", "start", WIDTH - LABEL + 12) if side else ("left", "end", LABEL - 12)
    )
    shown = name if len(name) < 46 else "…" + name[-44:]  # noqa: PLR2004  what fits beside it
    return (
        f'<g class="node {_kind(name, packages)}" data-{at}="{escape(name)}" tabindex="0">'
        f"<title>{escape(name)}</title>"
        f'<rect x="{x}" y="{y:.1f}" width="6" height="{max(height, 3):.1f}"/>'
        f'<text x="{text_x}" y="{y + max(height, 3) / 2 + 4:.1f}" text-anchor="{anchor}">'
        f'{escape(shown)} <tspan class="count">{count}</tspan></text></g>'
    )


def _kind(name: str, packages: list[str]) -> str:
    return "own" if _top(name) in packages else "foreign"


def _opening(height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>"
    )


# -- the import in time --------------------------------------------------------------------------

SHORTEST = 0.0015
"""Share of the whole import below which a module gets no bar: it would not be seen."""
HOW_MANY_TICKS = 8


def timeline(spans: list[list[Any]], methods: Counter[str]) -> str:
    """Each module's body as a bar over time; a module that another one imports lies below it.

    Args:
        spans: Module, start, end, depth.
        methods: How many methods each module registered.
    """
    if not spans:
        return "<p>The import was not timed: only the command line does that.</p>"
    whole = max(end for _, _, end, _ in spans) or 1.0
    seen = [span for span in spans if (span[2] - span[1]) / whole >= SHORTEST or methods[span[0]]]
    deepest = max((span[3] for span in seen), default=0)
    height = (deepest + 1) * (BAR + 3) + 30
    parts = [_opening(height, "The import in time")]
    for i in range(HOW_MANY_TICKS + 1):
        x = 5 + i / HOW_MANY_TICKS * (WIDTH - 10)
        anchor = "end" if i == HOW_MANY_TICKS else "start" if i == 0 else "middle"
        parts.append(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 18}"/>'
            f'<text class="tick" x="{x:.1f}" y="{height - 4}" text-anchor="{anchor}">'
            f"{whole * i / HOW_MANY_TICKS:.2f} s</text>"
        )
    for module, start, end, depth in seen:
        x, wide = 5 + start / whole * (WIDTH - 10), max((end - start) / whole * (WIDTH - 10), 1.5)
        y = depth * (BAR + 3)
        kind = "registers" if methods[module] else "quiet"
        label = module if wide > 6.2 * len(module) + 8 else module.rpartition(".")[2]
        fits = wide > 6.2 * len(label) + 8
        words = f"{module}: {(end - start) * 1000:.0f} ms, {methods[module]} methods"
        parts.append(
            f'<g class="{kind}"><title>{escape(words)}</title>'
            f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{BAR}" rx="2"/>'
            + (f'<text x="{x + 4:.1f}" y="{y + 10.5}">{escape(label)}</text>' if fits else "")
            + "</g>"
        )
    return "".join([*parts, "</svg>"])
