"""What a registration changes: which of the recorded decisions, or nothing if it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plum_freeze import _decisions, _plum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plum_freeze._decisions import Decision
    from plum_freeze._plum import Entry, Function, Method
    from plum_freeze._table import Table


def methods_of(function: Function, entries: list[Entry]) -> list[Method] | None:
    """The methods that registrations will give; None where an annotation is not resolvable yet."""
    try:
        found = [m for e in entries for m in _plum.methods_of(e, function.__name__)]
    except Exception:  # noqa: BLE001  plum will raise it at the next call, to the user
        return None
    return [*found, *_swapped(function, found)]


def _swapped(function: Function, methods: list[Method]) -> list[Method]:
    """A promotion rule comes in both orders. The first must not land if the second is refused."""
    if function is not _plum.rules_of_promotion():
        return []
    return [_plum.with_types_swapped(method) for method in methods]


def known(function: Function, entries: list[Entry]) -> list[tuple[Any, Any]] | None:
    """Whether the function has these very methods: a cell or a doctest that runs again.

    Returns what implements each of them now, and what will; None if one of them is new.
    """
    waiting = _plum.pending_entries(function)
    olds = [each.implementation for each in _plum.resolved_methods(function)]
    olds += [each.implementation for each in waiting]
    for entry in entries:  # most are new, and this shows it before any annotation is resolved
        if not any(_is_written_alike(old, entry.implementation) for old in olds):
            return None
    new, pending = methods_of(function, entries), methods_of(function, waiting)
    if new is None or pending is None:
        return None
    methods = [*_plum.resolved_methods(function), *pending]
    found = [_in_force(each, methods) for each in new]
    if None in found:
        return None
    return [
        (old.implementation, each.implementation)
        for old, each in zip(found, new, strict=True)
        if old is not None
    ]


def _is_written_alike(old: Any, new: Any) -> bool:
    """Whether two functions have the same code, and annotations that may well be the same."""
    if not _decisions.is_same_code(old, new):
        return False
    hints, others = (getattr(f, "__annotations__", None) or {} for f in (old, new))
    try:
        return old is new or all(
            hint is other or isinstance(hint, str) or isinstance(other, str) or hint == other
            for hint, other in zip(hints.values(), others.values(), strict=True)
        )
    except Exception:  # noqa: BLE001  whatever a hint does when it is compared
        return True


def _in_force(new: Method, methods: list[Method]) -> Method | None:
    """The last of the methods with this signature, if it has the code of `new`."""
    same = [_decisions.is_same_code(old.implementation, new.implementation) for old in methods]
    if True not in same or any(map(_plum.waits_for_a_name, _hints(new, *methods))):
        return None  # without any comparison of hints, see `Decision.changes`
    try:
        last = max(i for i, old in enumerate(methods) if old.signature == new.signature)
        is_same = same[last] and bool(methods[last].return_type == new.return_type)
    except Exception:  # noqa: BLE001  whatever a hint does when it is compared
        return None
    return methods[last] if is_same else None


def _hints(*methods: Method) -> Iterator[Any]:
    for method in methods:
        yield from method.signature.types
        yield method.signature.varargs


def decisions(function: Function, table: Table, entries: list[Entry]) -> list[Decision]:
    """The recorded decisions that may be taken differently with `entries`.

    Others that are pending were compared when they came. They have not displaced what was chosen:
    then neither do they once there are more.
    """
    recorded = list(table.decisions.values())
    if not recorded:
        return []
    new = methods_of(function, entries)
    if new is None:
        return recorded
    methods = _plum.resolved_methods(function)
    return [decision for decision in recorded if decision.changes(methods, new)]
