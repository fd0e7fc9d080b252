"""Taking back what a test registered on functions that were there before it."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from plum_freeze import _changes, _convert, _plum, _record, _table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plum_freeze._origin import Origin
    from plum_freeze._plum import Entry, Function
    from plum_freeze._table import Table


class Isolation:
    """Collects registrations from `start` on, and takes them back at the `end`."""

    def __init__(self) -> None:
        self._found: list[tuple[Function, Entry]] | None = None
        self._modules: set[str] = set()
        self._keeping = 0

    def start(self) -> None:
        """A test begins."""
        self._found = []
        self._modules = set(sys.modules)

    def registered(self, function: Function, entry: Entry, origin: Origin) -> None:
        """A method was registered. Modules register once and for all: theirs is kept."""
        is_import = origin.executing or origin.module not in self._modules
        if self._found is not None and not self._keeping and not is_import:
            self._found.append((function, entry))

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """What is registered inside stays."""
        self._keeping += 1
        try:
            yield
        finally:
            self._keeping -= 1

    def end(self, *, take_back: bool) -> None:
        """The test has ended."""
        found, self._found = self._found or [], None
        if not take_back:
            return
        by_function: dict[int, tuple[Function, list[Entry]]] = {}
        for function, entry in found:
            by_function.setdefault(id(function), (function, []))[1].append(entry)
        for function, entries in by_function.values():
            keys = {entry.key for entry in entries}
            if all(entry.key in keys for entry in _plum.entries(function)):
                continue  # the test made the function: nobody else had it
            _take_back(function, entries)


def _take_back(function: Function, entries: list[Entry]) -> None:
    table = _table.table_of(function)
    changes = table is not None and _changes_decisions(function, table, entries)
    _plum.forget_entries(function, entries)
    _record.remove({id(entry.implementation) for entry in entries})
    if table is not None and changes:
        table.invalidate()
    if function is _plum.rules_of_conversion():
        _convert.forget_all()


def _changes_decisions(function: Function, table: Table, entries: list[Entry]) -> bool:
    """Whether a decision may be another one without these methods. Else nothing is retraced."""
    methods = _changes.methods_of(function, entries)
    if methods is None or table.blind:
        return True
    return any(
        decision.applies(method) is not False
        for decision in list(table.decisions.values())
        for method in methods
    )
