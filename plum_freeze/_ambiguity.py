"""Methods that plum cannot tell apart, and methods that it can never choose.

At freeze the method table is closed, so both can be known before any call. The first is Julia's
`Test.detect_ambiguities`, for plum: a pair is reported with a call for which plum raises.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plum_freeze import _facts, _overlap, _plum
from plum_freeze._overlap import Example, Overlaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plum_freeze._plum import Function, Method

MOST_PAIRS = 5000
"""Overlapping pairs that are compared for one function: 30 µs each, beartype compares the hints."""
MOST_COMBINATIONS = 16
"""Examples that are tried for one pair, and parts that one union is split into."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at in a closed method table.

    Attributes:
        kind: "ambiguous" or "unreachable".
        text: What it is.
        example: Types of a call that shows it; "" if there is none.
        possible: Whether it needs a class that does not exist yet.
        count: How many pairs it stands for.
        places: The methods that it is about, as `core.py:12`.
    """

    kind: str
    text: str
    example: str
    possible: bool
    count: int
    places: list[str]


def findings(function: Function, methods: Sequence[Method]) -> list[Finding]:
    """Ambiguous pairs and methods that are never chosen, in a function with these methods."""
    table = _Table(methods)
    return [*table.ambiguous(), *table.unreachable(), *_replaced(function, methods)]


def place_of(implementation: Any) -> str:
    """Where a method is, shortly: `core.py:12`."""
    file, line = _facts.place_of(implementation)
    return f"{Path(file).name}:{line}"


class _Table:
    """The methods of one function, with what is known of their hints."""

    def __init__(self, methods: Sequence[Method]) -> None:
        self.methods = list(methods)
        self.overlaps = Overlaps()
        self.matches: dict[tuple[int, int, int], bool] = {}
        self.checked = 0

    # -- ambiguous pairs -------------------------------------------------------------------------

    def ambiguous(self) -> Iterator[Finding]:
        """Pairs that plum cannot decide between; those that need a new class are taken together."""
        possible: list[tuple[Method, Method, list[Example]]] = []
        told: set[tuple[int, int]] = set()
        for left, right, shared in self._overlapping():
            key = (id(left.implementation), id(right.implementation))
            if key in told or left.implementation is right.implementation:
                continue
            if self.checked == MOST_PAIRS:
                yield Finding(
                    "ambiguous", f"only the first {MOST_PAIRS} overlapping pairs were compared", "",
                    possible=True, count=0, places=[],
                )  # fmt: skip
                break
            self.checked += 1
            if _is_comparable(left, right):
                continue
            example = self._undecided(left, right, shared)
            if example is None:
                continue
            told.add(key)
            if any(each.both for each in example):
                possible.append((left, right, example))
                continue
            yield Finding(
                "ambiguous",
                f"{_plum.method_text(left)} and {_plum.method_text(right)}",
                _text(example), possible=False, count=1, places=_places(left, right),
            )  # fmt: skip
        if possible:
            left, right, example = possible[0]
            yield Finding(
                "ambiguous",
                f"{_plum.method_text(left)} and {_plum.method_text(right)}, once a class derives from both",
                _text(example), possible=True, count=len(possible), places=_places(left, right),
            )  # fmt: skip

    def _overlapping(self) -> Iterator[tuple[Method, Method, list[list[Example]]]]:
        """Pairs that can match the same call, with examples for each argument."""
        for left, right in itertools.combinations(self.methods, 2):
            for count in _counts(left, right):
                one, other = _plum.expanded(left, count), _plum.expanded(right, count)
                if one is None or other is None:
                    continue
                shared = []
                for hints in zip(one, other, strict=True):
                    examples = self.overlaps.of(*hints)
                    if not examples:
                        break
                    shared.append(examples)
                else:
                    yield left, right, shared

    def _undecided(
        self, left: Method, right: Method, shared: list[list[Example]]
    ) -> list[Example] | None:
        """A call for which both stay in the running; None if something decides each."""
        for combination in itertools.islice(itertools.product(*shared), MOST_COMBINATIONS):
            applicable = [m for m in self.methods if self._applies(m, combination)]
            last = _plum.contenders(applicable)
            if len(last) > 1 and left in last and right in last:
                return list(combination)
        return None

    def _applies(self, method: Method, examples: tuple[Example, ...]) -> bool:
        hints = _plum.expanded(method, len(examples))
        return hints is not None and all(map(self._matches, examples, hints))

    def _matches(self, example: Example, hint: Any) -> bool:
        key = (id(example), id(hint), 0)  # the examples live as long as `overlaps`
        found = self.matches.get(key)
        if found is None:
            found = self.matches[key] = example.matches(hint)
        return found

    # -- never chosen ----------------------------------------------------------------------------

    def unreachable(self) -> Iterator[Finding]:
        """Methods in whose place another one is chosen, whatever the call."""
        for method in self.methods:
            covering = self._covering(method)
            if not covering:
                continue
            others = list({id(m.implementation): m for m in covering}.values())
            texts = " and ".join(_plum.method_text(other) for other in others)
            yield Finding(
                "unreachable",
                f"{_plum.method_text(method)}: everything that it takes goes to {texts}",
                "", possible=False, count=1, places=_places(method, *others),
            )  # fmt: skip

    def _covering(self, method: Method) -> list[Method]:
        """The methods that together take all that this one could; none if something is left."""
        if _plum.has_varargs(method):
            return []
        split = [_overlap.members(hint) for hint in _plum.expanded(method, _plum.least_count(method)) or ()]
        rivals = [m for m in self.methods if m is not method and _beats(m, method)]
        if not rivals:
            return []
        parts = list(itertools.islice(itertools.product(*split), MOST_COMBINATIONS + 1))
        if len(parts) > MOST_COMBINATIONS:
            return []
        found = []
        for part in parts:
            taking = next((m for m in rivals if _plum.takes_all(m, part)), None)
            if taking is None:
                return []
            found.append(taking)
        return found


def _counts(left: Method, right: Method) -> list[int]:
    """The numbers of arguments for which two methods are compared."""
    most = max(_plum.least_count(left), _plum.least_count(right))
    return [most, most + 1] if _plum.has_varargs(left) and _plum.has_varargs(right) else [most]


def _is_comparable(left: Method, right: Method) -> bool:
    return _plum.is_more_specific(left, right) or _plum.is_more_specific(right, left)


def _beats(left: Method, right: Method) -> bool:
    """Whether plum chooses `left` wherever both apply."""
    if _plum.is_more_specific(left, right):
        return True
    return left.signature.precedence > right.signature.precedence and _plum.has_same_types(left, right)


def _text(examples: list[Example]) -> str:
    return f"({', '.join(map(str, examples))})"


def _places(*methods: Method) -> list[str]:
    return list(dict.fromkeys(place_of(method.implementation) for method in methods))


def _replaced(function: Function, methods: Sequence[Method]) -> Iterator[Finding]:
    """Registrations that a later one with the same signature has replaced."""
    alive = {id(method.implementation) for method in methods}
    places = {place_of(method.implementation) for method in methods}
    for entry in _plum.entries(function):
        place = place_of(entry.implementation)
        if id(entry.implementation) in alive or place in places:
            continue  # the same place: a cell or a module that ran again
        try:
            own = _plum.methods_of(entry, function.__name__)
        except Exception:  # noqa: BLE001, S112  an annotation that cannot be resolved replaces nothing
            continue
        later = [m for m in methods if any(m.signature == each.signature for each in own)]
        if not later:
            continue
        places.add(place)
        yield Finding(
            "unreachable",
            f"{_plum.method_text(own[0])}: a later registration has the same signature",
            "", possible=False, count=1,
            places=[place, *_places(*later)],
        )  # fmt: skip
