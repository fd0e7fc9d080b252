"""Whether two hints can match the same value, with an example that does.

An example is checked against both hints before it counts. Where no example is found the two are
taken as disjoint, except for two classes that a third one could derive from.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from plum_freeze import _decisions, _jax, _jaxtyping, _layout, _plum
from plum_freeze._decisions import Abstract, Value
from plum_freeze._key_parts import checks_types, is_union, unwrapped

MOST_SUBCLASSES = 2000
"""Subclasses that are looked through for one that derives from both classes."""
MOST_EXAMPLES = 3
"""Examples that are tried for each argument: a more specific method may take some of them."""


@dataclass(frozen=True, slots=True)
class Example:
    """A value that matches, or its type.

    Attributes:
        cls: Its type; for a class that does not exist yet, `object`.
        witness: What stands for the value where the type does not decide.
        both: The two classes that a class would have to derive from, if it does not exist yet.
    """

    cls: type
    witness: Any = None
    both: tuple[type, type] | None = None

    def matches(self, hint: Any) -> bool:
        """Whether it surely matches a hint."""
        if self.both is not None:
            return any(_decisions._matches(each, None, hint) is True for each in self.both)
        return _decisions._matches(self.cls, self.witness, hint) is True

    def __str__(self) -> str:
        if self.both is not None:
            return f"class Both({', '.join(map(_plum.hint_text, self.both))})"
        if isinstance(self.witness, Abstract):
            return f"{self.witness.dtype}[{','.join(map(str, self.witness.shape))}]"
        if isinstance(self.witness, Value):
            value = self.witness.value
            return value.__qualname__ if isinstance(value, type) else repr(value)
        return "Any" if self.cls is object else _plum.hint_text(self.cls)


def members(hint: Any) -> list[Any]:
    """The hint; or the members of a union, at any depth."""
    while (inner := unwrapped(hint)) is not hint:
        hint = inner
    if is_union(hint):
        return [each for member in get_args(hint) for each in members(member)]
    return [types.NoneType if hint is None else hint]


def representatives(hint: Any) -> list[type]:
    """Classes whose instances a hint that is no union may match."""
    if hint is Any or hint is object:
        return []
    origin = get_origin(hint)
    if origin is Literal:
        return list(dict.fromkeys(map(type, get_args(hint))))
    if origin is Annotated:
        return [c for member in members(hint.__origin__) for c in representatives(member)] or [
            object
        ]
    if isinstance(hint, type) and origin is None:
        array = _jaxtyping.array_hint(hint)
        if array is None:
            return [_jax.concrete_array_class() if _jax.is_aval_hint(hint) else hint]
        found = [c for member in members(array.array_type) for c in representatives(member)]
        return found or [_jax.concrete_array_class() if _jax.loaded() else object]
    if origin is type:
        return [type]
    return [origin] if isinstance(origin, type) else [object]


def overlap(left: Any, right: Any) -> list[Example]:
    """Examples that match both hints: certain ones, or one that is possible, or none."""
    found: list[Example] = []
    possible: list[Example] = []
    for one in members(left):
        for other in members(right):
            for example in _candidates(one, other):
                if example.matches(left) and example.matches(right):
                    (found if example.both is None else possible).append(example)
                    if len(found) >= MOST_EXAMPLES:
                        return found
    return found or possible[:1]


def _candidates(left: Any, right: Any) -> list[Example]:
    if _is_anything(left) and _is_anything(right):
        return [Example(object)]
    arrays = [hint for hint in (left, right) if _jaxtyping.array_hint(hint) is not None]
    found = _of_arrays(arrays) if arrays else []
    for hint in (left, right):
        found.extend(_of_hint(hint))
    if _is_plain_class(left) and _is_plain_class(right) and left is not right:
        common = _common_subclass(left, right)
        if common is not None:
            found.append(Example(common))
        elif not _are_related(left, right) and _layout.can_combine(left, right):
            found.append(Example(object, both=(left, right)))
    return found


def _is_anything(hint: Any) -> bool:
    return hint is Any or hint is object


def _is_plain_class(hint: Any) -> bool:
    return isinstance(hint, type) and get_origin(hint) is None and checks_types(hint)


def _are_related(left: type, right: type) -> bool:
    return left in right.__mro__ or right in left.__mro__


def _of_arrays(hints: list[Any]) -> list[Example]:
    """Arrays that jaxtyping hints may take; of JAX's own class, or there are no examples."""
    if not _jax.loaded():
        return []
    cls = _jax.concrete_array_class()
    left, right = hints[0], hints[-1]
    avals = _jaxtyping.sample_avals(left, right)
    return [Example(cls, Abstract(dtype, shape)) for dtype, shape in avals]


def _of_hint(hint: Any) -> list[Example]:
    if _is_anything(hint):
        return []
    origin = get_origin(hint)
    if origin is Literal:
        return [Example(type(value), Value(value)) for value in get_args(hint)]
    if origin is type:
        bound = get_args(hint)[0]
        values = (
            [bound]
            if isinstance(bound, type)
            else [c for c in get_args(bound) if isinstance(c, type)]
        )
        return [Example(type(value), Value(value)) for value in values]
    if origin in (list, set, frozenset, dict):
        return [Example(origin, Value(origin()))]  # an empty one matches whatever the items are
    found: list[type] = representatives(hint)
    return [Example(cls) for cls in found]


def _common_subclass(left: type, right: type) -> type | None:
    """A class that exists and derives from both."""
    waiting, seen = [left], {left}
    while waiting and len(seen) < MOST_SUBCLASSES:
        subclasses: list[type] = type.__subclasses__(waiting.pop())
        for cls in subclasses:
            if right in cls.__mro__:
                return cls
            if cls not in seen:
                seen.add(cls)
                waiting.append(cls)
    return None


class Overlaps:
    """`overlap` for many pairs: a function has few different hints and many methods."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Example]] = {}
        self._kept: list[Any] = []  # so that no identity is used twice

    def of(self, left: Any, right: Any) -> list[Example]:
        """Examples that match both hints."""
        key = (id(left), id(right))
        found = self._known.get(key)
        if found is None:
            self._kept += [left, right]
            found = self._known[key] = self._known[key[::-1]] = overlap(left, right)
        return found
