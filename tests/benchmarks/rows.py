"""All rows of the benchmark, and what each must reach."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import arrays, objects, once, scalars, scale
from .columns import FROZEN, HAND, PLAIN, Absent
from .measure import Call, Figure, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .columns import Program
    from .measure import Effort


CALLS = {**arrays.ROWS, **scalars.ROWS, **objects.ROWS}
"""What builds the program of each row that times one call."""


@dataclass
class Row:
    """One line of the table."""

    name: str
    cells: dict[str, Figure | Absent] = field(default_factory=dict)

    def ratio(self, above: str, below: str) -> float | None:
        """The ratio of two columns' medians, where both are there."""
        upper, lower = self.cells.get(above), self.cells.get(below)
        if not isinstance(upper, Figure) or not isinstance(lower, Figure) or not lower.value:
            return None
        return upper.value / lower.value


def _of_call(name: str, build: Callable[[], Program]) -> Callable[[Effort], list[Row]]:
    def run(effort: Effort) -> list[Row]:
        cells: dict[str, Figure | Absent] = {}
        ways = {}
        for column, way in build().columns().items():
            if isinstance(way, Call):
                ways[column] = way
            else:
                cells[column] = way
        cells.update(interleaved(ways, effort))
        return [Row(name, cells)]

    return run


def _once(name: str, measure: Callable[[Effort], once.Cells]) -> Callable[[Effort], list[Row]]:
    return lambda effort: [Row(name, measure(effort))]


def _late(name: str, *, changes: bool) -> Callable[[Effort], list[Row]]:
    def run(effort: Effort) -> list[Row]:
        rows = once.late_rows(effort, changes=changes)
        return [Row(f"{name}: {part}", cells) for part, cells in rows.items()]

    return run


def _freezing(methods: int) -> Callable[[Effort], once.Cells]:
    return lambda effort: scale.freezing(methods, effort)


def _importing(*, methods: bool) -> Callable[[Effort], once.Cells]:
    return lambda effort: scale.importing(effort, methods=methods)


ROWS: dict[str, Callable[[Effort], list[Row]]] = {
    **{name: _of_call(name, build) for name, build in CALLS.items()},
    "trace 1,000 nested calls": _once("trace 1,000 nested calls", once.nested),
    "trace 1,000 nested calls of new functions": _once(
        "trace 1,000 nested calls of new functions", functools.partial(once.nested, new=True)
    ),
    "first two calls": _once("first two calls", once.first_calls),
    "freeze 100 methods": _once("freeze 100 methods", _freezing(100)),
    "freeze 1,000 methods": _once("freeze 1,000 methods", _freezing(1_000)),
    "freeze 10,000 methods": _once("freeze 10,000 methods", _freezing(10_000)),
    "import 200 modules": _once("import 200 modules", _importing(methods=False)),
    "import 600 methods": _once("import 600 methods", _importing(methods=True)),
    "bytes per decision": _once("bytes per decision", scale.memory),
    # Last: they have the whole process compile again.
    "late, changes nothing": _late("late, changes nothing", changes=False),
    "late, changes one": _late("late, changes one", changes=True),
}


def measure(wanted: list[str], effort: Effort) -> Iterator[Row]:
    """The rows whose names contain one of these words; all if there are none.

    Raises:
        LookupError: There is no such row.
    """
    names = [name for name in ROWS if not wanted or any(word in name for word in wanted)]
    if not names:
        raise LookupError(f"no row contains {wanted}; there are: {', '.join(ROWS)}")
    for name in names:
        yield from ROWS[name](effort)


@dataclass(frozen=True)
class Target:
    """What a row must reach: the ratio of two columns."""

    row: str
    above: str
    below: str
    limit: float
    at_most: bool = True

    def verdict(self, rows: dict[str, Row]) -> tuple[str, bool] | None:
        """The target in words with what was measured, and whether it is met."""
        row = rows.get(self.row)
        ratio = None if row is None else row.ratio(self.above, self.below)
        if ratio is None:
            return None
        bound = "at most" if self.at_most else "at least"
        met = ratio <= self.limit if self.at_most else ratio >= self.limit
        text = f"{self.row}: {self.above} / {self.below} = {ratio:.2f}, {bound} {self.limit:g}"
        return text, met


def _times_faster(row: str, limit: float) -> Target:
    return Target(row, PLAIN, FROZEN, limit, at_most=False)


TARGETS = [
    Target("array method", FROZEN, HAND, 1.25),
    Target("six jaxtyping methods", FROZEN, HAND, 1.35),
    _times_faster("six jaxtyping methods", 7),
    _times_faster("int -> int", 5),
    _times_faster("type[X]", 5),
    _times_faster("Literal", 5),
    _times_faster("class method -> int", 3),
    _times_faster("trace 1,000 nested calls", 5),
    Target("freeze 10,000 methods", FROZEN, PLAIN, 1.5),
    Target("import 200 modules", FROZEN, PLAIN, 1.03),
    *(_times_faster(name, 1) for name in CALLS),
]


def verdicts(rows: list[Row]) -> list[tuple[str, bool]]:
    """Every target that these rows are about, and whether it is met."""
    by_name = {row.name: row for row in rows}
    found = [v for target in TARGETS if (v := target.verdict(by_name)) is not None]
    small, large = (by_name.get(f"freeze {n} methods") for n in ("1,000", "10,000"))
    if small is not None and large is not None:
        times = large.cells[FROZEN].value / small.cells[FROZEN].value  # type: ignore[union-attr]
        found.append((f"freeze: 10,000 / 1,000 methods = {times:.1f}, at most 12", times <= 12))
    nothing = [row for row in rows if row.name.startswith("late, changes nothing")]
    for row in nothing[:2]:
        value = row.cells[FROZEN].value  # type: ignore[union-attr]
        found.append((f"{row.name} = {value:.0f}, at most 0", value == 0))
    return found
