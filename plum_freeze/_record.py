"""The record of registrations: which module made which, where, and when."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from plum_freeze import _origin, _plum

if TYPE_CHECKING:
    from collections.abc import Callable

    from plum_freeze._origin import Origin
    from plum_freeze._plum import Entry, Function


@dataclass(frozen=True, slots=True)
class Registration:
    """One method that was registered on a dispatched function.

    Attributes:
        function: The function.
        method: What was registered: the implementation.
        signature: Its positional signature as text, `(x: int, y: "Later")`.
        precedence: Its precedence; None where the signature says it.
        module: The module that made the registration.
        file: File of the method, or of the call that registered it.
        line: Line there.
        phase: "import" while a module's body ran, "call" from elsewhere, "late" on a function that
            was frozen, "adopted" if it was there before plum_freeze looked.
        order: Counts up, over all functions.
    """

    function: Function
    method: Callable[..., Any]
    signature: str
    precedence: int | None
    module: str
    file: str
    line: int
    phase: str
    order: int

    def __str__(self) -> str:
        name = _plum.name_of(self.function)
        return f"{name}{self.signature}  {self.module} ({self.file}:{self.line}), {self.phase}"


@dataclass(frozen=True, slots=True)
class _Row:
    """A registration as it is kept: no method lives on for being in the record.

    Attributes:
        function: The function. Plum keeps each for good, and a weak reference is no choice: the
            compiled plum frees a function without telling it, and then it crashes the process.
        method: The implementation, while it lives.
        facts: The other fields of `Registration`.
        execution: Stands for the one run of a module's body that made it; None for other code.
        before: The rows whose place it took, for when it is taken back.
    """

    function: Function
    method: Callable[[], Any]
    facts: tuple[Any, ...]
    execution: object
    before: tuple[_Row, ...] = ()


# By function, signature and place. What runs again (a cell, a module that is reloaded, a closure)
# takes the place of what it registered before. What a loop in a module's body registers does not.
_rows: dict[tuple[Any, ...], tuple[_Row, ...]] = {}
_recorded: set[int] = set()  # functions that have rows, by id
_order = itertools.count()
_lock = threading.Lock()
# Told of each registration, after it happened.
listeners: list[Callable[[Function, Entry, Origin, str], None]] = []


def add(
    function: Function, entry: Entry, origin: Origin, phase: str, execution: object = None
) -> None:
    """Take note of a registration, made by this run of a module's body (None: by other code)."""
    signature = _plum.signature_text(entry)
    source = _origin.source_of(origin.file)
    key = (id(function), signature, entry.precedence, source, origin.line)
    facts = (signature, entry.precedence, origin.module, origin.file, origin.line, phase)
    method: Callable[[], Any]
    try:
        method = weakref.ref(entry.implementation)
    except TypeError:
        method = functools.partial(_itself, entry.implementation)
    with _lock:
        row = _Row(function, method, (*facts, next(_order)), execution)
        before = _rows.get(key, ())
        if before and execution is not None and before[-1].execution is execution:
            _rows[key] = (*before, row)
        else:
            before = tuple(replace(each, before=()) for each in before)  # one step back, no chain
            _rows[key] = (replace(row, before=before),)
        _recorded.add(id(function))
    for listener in tuple(listeners):
        listener(function, entry, origin, phase)


def adopt(function: Function) -> None:
    """Take note of what was registered before anybody looked."""
    if id(function) in _recorded:
        return
    for entry in _plum.entries(function):
        add(function, entry, _origin.written(entry.implementation), "adopted")


def _itself(value: Any) -> Any:
    return value


def all_of(functions: set[int] | None = None) -> list[Registration]:
    """The record, in order; of these functions (by id) only, if they are given."""
    with _lock:
        rows = [row for same in list(_rows.values()) for row in same]
    found = [(row.function, row.method(), row.facts) for row in rows]
    registrations = [
        Registration(function, method, *facts)
        for function, method, facts in found
        if method is not None and (functions is None or id(function) in functions)
    ]
    return sorted(registrations, key=lambda registration: registration.order)


def remove(methods: set[int]) -> None:
    """Take registrations out that were refused after all (by id of the method)."""

    def kept(rows: tuple[_Row, ...]) -> tuple[_Row, ...]:
        return tuple(row for row in rows if id(row.method()) not in methods)

    with _lock:
        for key, rows in list(_rows.items()):
            left = kept(rows)
            if len(left) == len(rows):
                continue
            left = left or kept(rows[0].before)
            if left:
                _rows[key] = left
            else:
                del _rows[key]
