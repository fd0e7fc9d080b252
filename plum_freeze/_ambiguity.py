"""Methods that plum cannot tell apart, and methods that it can never choose.

At freeze the method table is closed, so both can be known before any call. The first is Julia's
`Test.detect_ambiguities`, for plum: a pair is reported with a call for which plum raises.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plum_freeze import _compare, _facts, _overlap, _plum
from plum_freeze._overlap import Example, Overlaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plum_freeze._plum import Entry, Function, Method

MOST_PAIRS = 5000
"""Overlapping pairs that are compared for one function: 30 µs each, beartype compares the hints."""
MOST_POSSIBLE = 50
"""The same for pairs that only a class which does not exist yet could match: they are one line."""
MOST_COMBINATIONS = 16
"""Examples that are tried for one pair, and parts that one union is split into."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at in a closed method table.

    Attributes:
        kind: "ambiguous" or "unreachable".
        signatures: Of the methods that it is about; for "unreachable" the first is the one.
        text: What is the matter with them; "" where the kind says it.
        example: Types of a call that shows it; "" if there is none.
        possible: Whether it needs a class that does not exist yet.
        count: How many pairs it stands for.
        places: The methods that it is about, as `core.py:12`.
    """

    kind: str
    signatures: list[str]
    text: str
    example: str
    possible: bool
    count: int
    places: list[str]


def findings(function: Function, methods: Sequence[Method]) -> list[Finding]:
    """Ambiguous pairs and methods that are never chosen, in a function with these methods.

    Nothing is found where two hints cannot be compared. What beartype once raised for them it
    keeps, also after the class that they refer to is there; plum raises it at each call.
    """
    table = _Table(methods)
    try:
        return [*table.ambiguous(), *table.unreachable(), *_replaced(function, methods)]
    except Exception:  # noqa: BLE001  whatever a hint does when it is compared
        return []


def place_of(implementation: Any) -> str:
    """Where a method is, shortly: `core.py:12`."""
    file, line = _facts.place_of(implementation)
    return f"{Path(file).name}:{line}"


class _Table:
    """The methods of one function, with what is known of their hints.

    A function may have a thousand methods, and so half a million pairs, but few different hints:
    what two hints have in common, and which methods an example reaches, is found out once.
    """

    def __init__(self, methods: Sequence[Method]) -> None:
        self.methods = list(methods)
        self.overlaps = Overlaps()
        self.matches: dict[tuple[int, int], bool] = {}
        self.last: dict[tuple[int, ...], list[Method]] = {}
        self.preferred: dict[int, list[Method]] = {}  # by id of a method: those that beat it
        self.checked = 0

    # -- ambiguous pairs -------------------------------------------------------------------------

    def ambiguous(self) -> Iterator[Finding]:
        """Pairs that plum cannot decide between; those that need a new class are taken together."""
        possible: dict[tuple[int, int], Finding] = {}
        told: set[tuple[int, int]] = set()
        for left, right, shared in self._overlapping():
            key = (id(left.implementation), id(right.implementation))
            if not all(any(each.both is None for each in examples) for examples in shared):
                if len(possible) == MOST_POSSIBLE:
                    continue
            elif self.checked == MOST_PAIRS:
                text = f"only the first {MOST_PAIRS} overlapping pairs were compared"
                yield Finding("ambiguous", [], text, "", possible=True, count=0, places=[])
                break
            else:
                self.checked += 1
            if self._is_decided(left, right) or key in told or key[0] == key[1]:
                continue
            example = self._undecided(left, right, shared)
            if example is None:
                continue
            found = _pair(left, right, example)
            if found.possible:
                possible.setdefault(key, found)
            else:
                told.add(key)
                yield found
        left_over = [found for key, found in possible.items() if key not in told]
        if left_over:
            text = "once a class derives from both"
            yield dataclasses.replace(left_over[0], text=text, count=len(left_over))

    def _overlapping(self) -> Iterator[tuple[Method, Method, list[list[Example]]]]:
        """Pairs that can match the same call, with examples for each argument."""
        facts = [(m, tuple(m.signature.types), m.signature.has_varargs) for m in self.methods]
        for (left, one, grows), (right, other, grows_too) in itertools.combinations(facts, 2):
            if len(one) != len(other) and not (grows or grows_too):
                continue
            for count in _counts(len(one), len(other), grows and grows_too):
                first, second = (
                    _compare.expanded(left, count),
                    _compare.expanded(right, count),
                )
                if first is None or second is None:
                    continue
                shared = list(
                    itertools.takewhile(bool, map(self.overlaps.of, first or (), second or ()))
                )
                if len(shared) == count:
                    yield left, right, shared

    def _is_decided(self, left: Method, right: Method) -> bool:
        """Whether plum prefers one of two methods wherever both apply."""
        below, above = _compare.compare(left, right)
        if below and above:  # the same types: the higher precedence wins
            first, second = left.signature.precedence, right.signature.precedence
            below, above = first > second, second > first
        if below:
            self.preferred.setdefault(id(right), []).append(left)
        if above:
            self.preferred.setdefault(id(left), []).append(right)
        return below or above

    def _undecided(
        self, left: Method, right: Method, shared: list[list[Example]]
    ) -> list[Example] | None:
        """A call for which both stay in the running; None if something decides each."""
        for combination in itertools.islice(itertools.product(*shared), MOST_COMBINATIONS):
            key = tuple(map(id, combination))  # the examples live as long as `overlaps`
            last = self.last.get(key)
            if last is None:
                applicable = [m for m in self.methods if self._applies(m, combination)]
                last = self.last[key] = _compare.contenders(applicable)
            if len(last) > 1 and left in last and right in last:
                return list(combination)
        return None

    def _applies(self, method: Method, examples: tuple[Example, ...]) -> bool:
        hints = _compare.expanded(method, len(examples))
        return hints is not None and all(map(self._matches, examples, hints))

    def _matches(self, example: Example, hint: Any) -> bool:
        key = (id(example), id(hint))
        found = self.matches.get(key)
        if found is None:
            found = self.matches[key] = example.matches(hint)
        return found

    # -- never chosen ----------------------------------------------------------------------------

    def unreachable(self) -> Iterator[Finding]:
        """Methods in whose place another one is chosen, whatever the call. After `ambiguous`."""
        for method in self.methods:
            covering = self._covering(method)
            if covering:
                others = list({id(m.implementation): m for m in covering}.values())
                yield _never(method, "everything that it takes goes to the other", others)

    def _covering(self, method: Method) -> list[Method]:
        """The methods that together take all that this one could; none if something is left."""
        if method.signature.has_varargs:
            return []
        split = [_overlap.members(hint) for hint in method.signature.types]
        rivals = self.preferred.get(id(method), [])
        if not rivals:
            return []
        parts = list(itertools.islice(itertools.product(*split), MOST_COMBINATIONS + 1))
        if len(parts) > MOST_COMBINATIONS:
            return []
        found = []
        for part in parts:
            taking = next((m for m in rivals if _compare.takes_all(m, part)), None)
            if taking is None:
                return []
            found.append(taking)
        return found


def _counts(one: int, other: int, both_grow: bool) -> list[int]:
    """The numbers of arguments for which two methods are compared."""
    most = max(one, other)
    return [most, most + 1] if both_grow else [most]


def _pair(left: Method, right: Method, example: list[Example]) -> Finding:
    return Finding(
        "ambiguous",
        [_compare.method_text(left), _compare.method_text(right)],
        "",
        f"({', '.join(map(str, example))})",
        possible=any(each.both for each in example),
        count=1,
        places=_places(left, right),
    )


def _never(method: Method, why: str, others: list[Method]) -> Finding:
    signatures = [_compare.method_text(each) for each in (method, *others)]
    places = _places(method, *others)
    return Finding("unreachable", signatures, why, "", possible=False, count=1, places=places)


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
        own, later = _with_same_signature(function, entry, methods)
        if not later:
            continue
        places.add(place)
        yield _never(own[0], "a later registration has the same signature", later)


def _with_same_signature(
    function: Function, entry: Entry, methods: Sequence[Method]
) -> tuple[list[Method], list[Method]]:
    """The methods that a registration gave, and those that have a signature of theirs now."""
    try:
        own = _plum.methods_of(entry, function.__name__)
        return own, [m for m in methods if any(m.signature == each.signature for each in own)]
    except Exception:  # noqa: BLE001  an annotation that cannot be resolved replaces nothing
        return [], []
