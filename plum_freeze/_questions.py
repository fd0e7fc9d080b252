"""`Function.invoke` and `Function.resolve_method`: decisions that are taken outside of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plum_freeze import _dependencies, _plum, _store, _table
from plum_freeze._decisions import UNKNOWN, Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from plum_freeze._plum import Function


def invoke(function: Function, types: tuple[Any, ...]) -> tuple[Callable[..., Any], Any]:
    """The method and return type for these hints, from plum's resolver.

    Plum keeps the answer in the cache that calls use, but its keys are hints: `f.invoke(object)(3)`
    must run the `object` method, where `f(3)` may not.

    Raises:
        LookupError: What plum raises where no method applies, or several.
    """
    table = _table.table_of(function)
    if table is None:
        return _plum.choose_any(function, _plum.signature(types))
    if _plum.has_pending(function):
        _plum.resolve_pending(function)
    key = ("invoke", types)
    generation = table.generation
    try:
        known = table.invoked.get(key)
    except TypeError:  # a hint that cannot be hashed
        table.blind = True
        return _plum.choose_any(function, _plum.signature(types))
    if known is not None:
        if _dependencies.anywhere:
            table.note(generation, key)
        return known
    _table.before_miss(table)
    generation = table.generation
    answer = None
    try:
        answer = _plum.choose_any(function, _plum.signature(types))
    finally:
        found = None if answer is None else answer[0]
        table.record(key, Decision(types, (), found, invoked=True), generation)
    # `-> tuple[Stats, dict]` comes by here at every call: plum converts the result by `invoke`.
    if all(map(_plum.is_settled, types)):
        if len(table.invoked) >= _store.MOST_DECISIONS:
            table.invoked.clear()
        table.keep(table.invoked, key, answer, generation)
    return answer


def asked(function: Function, target: Any) -> None:
    """Take note that `Function.resolve_method` was asked, as quax does in its traces."""
    table = _table.table_of(function)
    if table is None:
        return
    if _plum.has_pending(function):
        _plum.resolve_pending(function)
    if isinstance(target, tuple):
        types = tuple(map(type, target))
        table.record(types, Decision(types, (None,) * len(types), UNKNOWN))
    else:
        table.blind = True  # a signature, with hints of any kind
