"""Late registrations: what they change, what is said, and what is refused.

Every registration in the process comes by `registering`. On a function that is only watched it is
free; on a sealed one the policy decides. Whatever the policy, decisions that change are
invalidated, so that no result compiled with them comes back.
"""

from __future__ import annotations

import collections
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _changes,
    _convert,
    _invalidation,
    _messages,
    _origin,
    _plum,
    _record,
    _table,
    _waiting,
)
from plum_freeze._errors import LateRegistrationError, LateRegistrationWarning
from plum_freeze._invalidation import Forecast
from plum_freeze._waiting import Body

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from plum_freeze._origin import Origin
    from plum_freeze._plum import Entry, Function
    from plum_freeze._table import Seal, Table

log = logging.getLogger("plum_freeze")


@dataclass(frozen=True, slots=True)
class Late:
    """One late registration on a sealed function, before or after it happened."""

    function: Function
    entries: tuple[Entry, ...]
    origin: Origin
    seal: Seal
    changes: tuple[str, ...]
    forecast: Forecast


# Set by the first `install` or `freeze`. Before, registrations pass by and leave nothing.
watching = threading.Event()


def registering(function: Function | None, entries: list[Entry], proceed: Callable[[], Any]) -> Any:
    """Around each registration: see `_ways_in`.

    Raises:
        LateRegistrationError: The function is frozen with `on_late="raise"`.
        LateRegistrationWarning: The same with "warn", where warnings are errors.
    """
    __tracebackhide__ = True
    _waiting.settle()
    origin = _origin.find(entries[0].implementation if entries else None)
    table = None if function is None else _table.table_of(function)
    if table is None or function is None:
        return _new(function, entries, proceed, origin)
    if not _matters(table):
        result = _make(table, entries, proceed)
        table.landed()
        _note(function, entries, origin)
        return result
    known = _changes.known(function, entries)
    late = None if known is not None else _late(function, table, entries, origin)
    waiting = None if late is None else _apply_policy(late)
    result = _make(table, entries, proceed)
    if known is None:
        _landed(function, table, entries)
    again = [pair for pair in known or () if pair[0] is not pair[1]]
    for (old, new), times in collections.Counter(again).items():
        table.redefine(old, new, times)
    _note(function, entries, origin, "" if late is None else "late")
    if late is not None and waiting is not None:
        waiting.append(late)
    return result


def _make(table: Table, entries: list[Entry], proceed: Callable[[], Any]) -> Any:
    """Make registrations. They are known before they are there, since other threads may look."""
    new = {entry.key for entry in entries} - table.known
    table.known.update(new)
    try:
        return proceed()
    except BaseException:
        table.known.difference_update(new)
        raise


def _matters(table: Table) -> bool:
    """Whether a registration can be late or change anything. At most imports it cannot."""
    return table.seal is not None or bool(table.decisions) or table.blind


def _note(function: Function, entries: list[Entry], origin: Origin, phase: str = "") -> None:
    phase = phase or ("import" if origin.executing else "call")
    execution = _waiting.execution(origin)
    for entry in entries:
        _record.add(function, entry, origin, phase, execution)


def _new(
    function: Function | None, entries: list[Entry], proceed: Callable[[], Any], origin: Origin
) -> Any:
    """A registration on a function that is new to us: it is watched from now on."""
    if function is not None and watching.is_set():
        _record.adopt(function)  # what was registered in a way that is older than the patches
    result = proceed()
    function = function or (result if _plum.is_function(result) else None)
    if function is not None and watching.is_set():
        _table.watch(function)
        _note(function, entries, origin)
    return result


def _landed(function: Function, table: Table, entries: list[Entry]) -> None:
    """Registrations have happened: invalidate the decisions that they change."""
    # A thread that resolves now and stores later must see that it was overtaken. The record is
    # read after that, so each decision is either in it or made with the new methods.
    table.landed()
    changed = _changes.decisions(function, table, entries)
    if changed or table.blind:
        log.info("%s: %d decisions change", _plum.name_of(function), len(changed))
        table.invalidate(changed)
    if function is _plum.rules_of_conversion():
        _convert.forget_all()


# -- the policies --------------------------------------------------------------------------------


def _late(function: Function, table: Table, entries: list[Entry], origin: Origin) -> Late | None:
    """What is late about a registration; None if the function is free."""
    seal = table.seal
    if seal is None and _plum.is_plums_own(function):
        seal = latest_seal()  # conversions and promotions belong to every frozen function
    if seal is None:
        return None
    changed = _changes.decisions(function, table, entries)
    if table.seal is None and not changed:
        return None
    texts = tuple(f"{function.__name__}{each} (was {each.chosen})" for each in changed)
    forecast = _invalidation.forecast(changed, blind=table.blind)
    return Late(function, tuple(entries), origin, seal, texts, forecast)


def _no_seal() -> Seal | None:
    return None


# Set by `_freeze`: the seal that speaks for plum's own functions.
latest_seal: Callable[[], Seal | None] = _no_seal


def _apply_policy(late: Late) -> list[Late] | None:
    """Refuse, or warn before anything changes; or say where it has to wait for a module's end.

    Raises:
        LateRegistrationError: The policy is "raise".
        LateRegistrationWarning: The policy is "warn", and warnings are errors.
    """
    __tracebackhide__ = True
    policy = late.seal.on_late
    if policy == "raise":
        log.info("refused: %s", _messages.first_line(late))
        raise _messages.refusal(late)
    if policy == "accept":
        log.info("%s", _messages.first_line(late))
        return None
    waiting = _waiting.list_for(late)
    if waiting is None:
        _waiting.warn([late])
    return waiting


# -- the ends of modules -------------------------------------------------------------------------


class Listener:
    """What the import hook tells."""

    def started(self, name: str) -> None:
        """A module's body is about to run."""
        __tracebackhide__ = True
        if _waiting.unwatched:
            _waiting.settle()
        _waiting.bodies().append(Body(name))

    def ended(
        self,
        name: str,
        module: ModuleType | None,  # noqa: ARG002
        error: BaseException | None,
    ) -> None:
        """Warn once for all that the module registered late.

        Raises:
            LateRegistrationWarning: Where warnings are errors. What the module registered late is
                taken back before.
        """
        __tracebackhide__ = True
        bodies = _waiting.bodies()
        if not bodies or bodies[-1].name != name:
            # It started before we were listening, or one above it has never ended.
            if all(body.name != name for body in bodies):
                return
            while bodies[-1].name != name:
                bodies.pop()
        body = bodies.pop()
        if body.late:
            try:
                _waiting.warn(body.late)
            except LateRegistrationWarning:
                take_back(body.late)
                if error is None:
                    raise
        if _waiting.unwatched:
            _waiting.settle()


LISTENER = Listener()


def take_back(found: list[Late]) -> None:
    """Undo late registrations: the functions have the methods that they had."""
    for late in found:
        table = _table.table_of(late.function)
        _plum.forget_entries(late.function, late.entries)
        if table is not None:
            table.known.difference_update(entry.key for entry in late.entries)
            table.invalidate()
    _record.remove({id(e.implementation) for late in found for e in late.entries})


# -- what no patch saw ---------------------------------------------------------------------------


def find_unseen(table: Table) -> None:
    """At a miss: registrations by decorators that are older than the patches.

    Raises:
        LateRegistrationError: The function is frozen with "raise". They are taken back before.
    """
    __tracebackhide__ = True
    function = table.function
    entries = _plum.entries(function)
    if len(entries) == len(table.known):
        return
    unseen = [entry for entry in entries if entry.key not in table.known]
    table.known.update(entry.key for entry in unseen)
    if not unseen:
        return
    table.invalidate()  # who knows since when they are there
    seal = table.seal
    for entry in unseen:
        phase = "late" if seal else "adopted"
        _record.add(function, entry, _origin.written(entry.implementation), phase)
    if seal is None:
        return
    origin = _origin.written(unseen[0].implementation)
    changes = ("any: the registration was not seen when it was made",)
    forecast = Forecast((), changes[0])
    late = Late(function, tuple(unseen), origin, seal, changes, forecast)
    try:
        _apply_policy(late)
    except (LateRegistrationError, LateRegistrationWarning):
        take_back([late])
        raise
