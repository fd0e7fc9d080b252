"""The record of registrations: which module made which, where, and when."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import _plum
from plum_freeze._origin import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """A registration as it is kept: no function and no method lives on for being in the record."""

    function: Callable[[], Any]
    method: Callable[[], Any]
    facts: tuple[Any, ...]


# By function, text of the signature and place: what runs again and again takes one row.
_rows: dict[tuple[Any, ...], _Row] = {}
_order = itertools.count()
_lock = threading.Lock()
# Told of each registration, after it happened.
listeners: list[Callable[[Function, Entry, Origin, str], None]] = []


def add(function: Function, entry: Entry, origin: Origin, phase: str) -> None:
    """Take note of a registration."""
    signature = _plum.signature_text(entry)
    key = (id(function), signature, entry.precedence, origin.file, origin.line)
    facts = (signature, entry.precedence, origin.module, origin.file, origin.line, phase)

    def gone(_: Any) -> None:
        _rows.pop(key, None)

    method: Callable[[], Any]
    try:
        method = weakref.ref(entry.implementation)
    except TypeError:
        method = functools.partial(_itself, entry.implementation)
    with _lock:
        _rows.pop(key, None)  # the newest comes last
        _rows[key] = _Row(weakref.ref(function, gone), method, (*facts, next(_order)))
    for listener in tuple(listeners):
        listener(function, entry, origin, phase)


def adopt(function: Function) -> None:
    """Take note of what was registered before anybody looked."""
    if any(row.function() is function for row in _rows.values()):
        return
    for entry in _plum.entries(function):
        code = getattr(entry.implementation, "__code__", None)
        file, line = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)
        module = getattr(entry.implementation, "__module__", None) or "<unknown>"
        add(function, entry, Origin(module, file, line, executing=False), "adopted")


def _itself(value: Any) -> Any:
    return value


def all_of(functions: set[int] | None = None) -> list[Registration]:
    """The record, in order; of these functions (by id) only, if they are given."""
    with _lock:
        rows = list(_rows.values())
    found = [(row.function(), row.method(), row.facts) for row in rows]
    return [
        Registration(function, method, *facts)
        for function, method, facts in found
        if function is not None
        and method is not None
        and (functions is None or id(function) in functions)
    ]


def remove(methods: set[int]) -> None:
    """Take registrations out that were refused after all (by id of the method)."""
    with _lock:
        for key, row in list(_rows.items()):
            if id(row.method()) in methods:
                del _rows[key]
