"""The table that takes the place of plum's method cache, for every function that is watched.

Plum looks `tuple(map(type, args))` up in `Function._cache` and calls what it finds. So a function
is sealed by putting a `dict` subclass there whose values are entries of ours; the function object
stays what it is. A miss calls `__missing__`, a registration that is resolved calls `clear`.

Two states: *watched* (plum resolves and stores, the table takes note of what was asked) and
*sealed* (the table resolves, and keeps every decision under a key that is sound).
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _decisions,
    _dependencies,
    _entries,
    _invalidation,
    _jax,
    _plum,
    _slots,
    _store,
)
from plum_freeze._decisions import UNKNOWN, Decision
from plum_freeze._jit import Compiled
from plum_freeze._store import MOST_DECISIONS, Store, Types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from plum_freeze._plum import Function, Method


@dataclass(frozen=True, slots=True)
class Seal:
    """How a function was frozen.

    Attributes:
        on_late: What happens to late registrations: "warn", "raise" or "accept".
        jits: Whether a method may be jitted.
        verify: Whether each newly compiled call is compared with a plain one.
        where: File and line of the `freeze()`.
        order: Counts up.
    """

    on_late: str
    jits: Callable[[Callable[..., Any]], bool]
    verify: bool
    where: str
    order: int


class Table(Store):
    """The method cache of one function.

    Attributes:
        seal: How the function is frozen; None while it is only watched.
        decisions: The record: what was decided, and may be baked into compiled code.
        has_dropped: Whether it was thawed or frozen anew after methods were called. Other frozen
            methods may have those inlined, and watch what they read.
        blind: Whether decisions were taken that are not in the record.
        methods: The methods that were called, with how they run.
        known: The registrations that the patches saw.
        unsure: Decisions since a registration that plum has not resolved yet; None without one.
    """

    __slots__ = ("blind", "decisions", "has_dropped", "known", "methods", "seal", "unsure")

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.seal: Seal | None = None
        self.decisions: dict[Hashable, Decision] = {}
        self.blind = False
        self.methods: dict[int, Compiled] = {}
        self.has_dropped = False
        self.unsure: list[Decision] | None = None
        self.known = {entry.key for entry in _plum.entries(function)}

    # -- what plum calls -------------------------------------------------------------------------

    def __missing__(self, types: Types) -> tuple[Any, Any]:
        before_miss(self)
        if self.seal is None:
            self.record(types, Decision(types, (None,) * len(types), UNKNOWN))
            raise KeyError(types)
        return _entries.make(self, types), Any

    def __setitem__(self, types: Types, value: tuple[Any, Any]) -> None:
        """Plum stores a decision that it took, while the function is only watched."""
        if self.seal is not None:
            return
        self.record(types, Decision(types, (None,) * len(types), value[0]))
        decision = self.decisions.get(types)
        if decision is not None and decision.implementation is UNKNOWN:
            decision.implementation = value[0]
        with _store.storing:
            if self.seal is None:  # another thread may have sealed it
                super().__setitem__(types, value)
                self.does_not_tell()

    def does_not_tell(self) -> None:
        """Something is stored whose look-ups are watched while JAX traces."""
        if type(self) is Table:
            self.__class__ = kind

    def clear(self) -> None:
        """Forget every entry. Plum calls it after it resolved registrations, under its own lock."""
        self.forget()
        unsure, self.unsure = self.unsure, None
        if unsure:
            self.invalidate(unsure)
        after_clear(self)

    def landed(self) -> None:
        """A registration has happened, and plum resolves it at the next call.

        Until it has, another thread may still decide by the old methods: plum takes registrations
        from its list before it is done with them, and whoever looks then sees nothing pending.
        """
        self.generation = object()
        self.unsure = []

    # -- sealing ---------------------------------------------------------------------------------

    def change_seal(self, seal: Seal | None) -> None:
        """Seal the function, or go back to watching it."""
        with _store.storing:
            self.seal = seal
            self.has_dropped = self.has_dropped or bool(self.methods)
            self.methods = {}
        self.clear()

    def jit_methods(self, seal: Seal) -> None:
        """Another package was frozen: its methods on this function may be jitted from now on."""
        for compiled in list(self.methods.values()):
            if not compiled.jits:
                compiled.jits = seal.jits(compiled.implementation) and compiled.why_never() is None
                if compiled.jits:
                    self.refresh(compiled)

    # -- entries ---------------------------------------------------------------------------------

    def overflow(self) -> None:
        """Start again; what the record still says is not all that was decided."""
        self.blind = True
        self.clear()

    def compiled(self, method: Method) -> Compiled:
        """How a method runs; one for good, also when the same source registers it again."""
        implementation, methods = method.implementation, self.methods
        found = methods.get(id(implementation))
        if found is not None and found.implementation is implementation:
            return found
        current = [method.implementation for method in _plum.resolved_methods(self.function)]
        for key, known in list(methods.items()):
            # Two methods that are both there can be alike, and differ later: they share nothing.
            is_superseded = not any(known.implementation is each for each in current)
            is_alike = is_superseded and known.return_type == method.return_type
            if is_alike and known.become(implementation):
                return self._rename(key, known)
        self._forget_superseded(current)
        seal = self.seal
        found = Compiled(
            implementation,
            method.return_type,
            jit=seal is not None and seal.jits(implementation),
            verify=seal is not None and seal.verify,
        )
        reference = weakref.ref(found)

        def refresh(classes: Collection[type] = ()) -> None:
            alive = reference()
            if alive is not None:
                self.refresh(alive, classes)

        found.refresh = refresh
        return methods.setdefault(id(implementation), found)

    def redefine(self, old: Any, new: Any, times: int) -> None:
        """The same source was registered again: what has the old function in it reads the new.

        Args:
            old: What implemented so many methods of the function.
            new: What implements them now.
            times: How many, since each default makes one more.
        """
        compiled = self.methods.get(id(old))
        if compiled is None or compiled.implementation is not old:
            if self.has_dropped:
                self.invalidate()
            return
        uses = [each.implementation is old for each in _plum.resolved_methods(self.function)]
        if sum(uses) > times:  # it stays under another signature
            self.invalidate()
        elif compiled.become(new):
            self._rename(id(old), compiled)

    def _rename(self, key: int, compiled: Compiled) -> Compiled:
        """A method has become another function: from now on it is found by that."""
        self.methods.pop(key, None)
        return self.methods.setdefault(id(compiled.implementation), compiled)

    def _forget_superseded(self, current: list[Callable[..., Any]]) -> None:
        """Drop methods that others have replaced, with all that they compiled.

        A cell that is edited again and again leaves one version of what it defines.
        """
        if len(self.methods) < len(current):
            return
        for key, compiled in list(self.methods.items()):
            if not any(_decisions.is_same_code(compiled.implementation, each) for each in current):
                self.methods.pop(key, None)

    # -- the record ------------------------------------------------------------------------------

    def record(self, key: Hashable, decision: Decision, generation: object = None) -> Decision:
        """Take note of a decision, before anything is traced with it; the one in the record."""
        known = self.decisions.get(key)
        if known is None:
            if len(self.decisions) >= MOST_DECISIONS:
                self.decisions.clear()
                self.blind = True
            self.decisions[key] = decision
            unsure = self.unsure
            if unsure is not None:
                unsure.append(decision)
        if _dependencies.anywhere:
            self.note(self.generation, key)
        overtaken = generation is not None and generation is not self.generation
        # What is pending was registered after plum had begun with this call, and whoever registered
        # it may have looked at the record before this decision was in it.
        if overtaken or _plum.has_pending(self.function):
            if known is None:  # otherwise whoever registered it has seen it, and traces have it
                self.decisions.pop(key, None)
            if _jax.tracing():
                _invalidation.everything()  # the trace that is under way may be half old
        return known or decision

    def note(self, generation: object, *keys: Hashable) -> None:
        """Decisions under these keys are taken again, and something is traced meanwhile.

        Args:
            generation: What it was before they were taken. A change forgets its decisions under a
                new one: then they cannot be noted, and the trace that has them must not be kept.
            keys: Those of them that are not in the record are none.
        """
        for key in keys:
            decision = self.decisions.get(key)
            if decision is not None:
                _dependencies.note(decision, depth=3)  # this one, and who calls it
        if generation is not self.generation:
            _invalidation.everything()

    def invalidate(self, changed: Collection[Decision] | None = None) -> None:
        """Decisions have changed: whatever was compiled with them is compiled again.

        Args:
            changed: Those in the record that have changed; all of them if left out.
        """
        self.clear()  # before they are forgotten: see `note`
        gone = set(self.decisions.values() if changed is None else changed)
        for key, decision in list(self.decisions.items()):
            if decision in gone:
                self.decisions.pop(key, None)
        blind, self.blind = self.blind, False
        for method in _plum.resolved_methods(self.function):
            # jitted by its author, no matter with what: it may have decisions baked in as well
            implementation: Any = method.implementation
            if _jax.is_jitted(implementation):
                implementation.clear_cache()
        _invalidation.invalidate(gone, blind=blind)


_slots.subscript_as_dict(Table)  # plum looks each call up here


def _ignore(table: Table) -> None:
    pass


before_miss: Callable[[Table], None] = _ignore
after_clear: Callable[[Table], None] = _ignore


def listen(miss: Callable[[Table], None], cleared: Callable[[Table], None]) -> None:
    """Have each miss told before it is answered, and each time that a table was cleared.

    At a miss registrations are found that no patch saw. A table is cleared when plum has resolved
    signatures, as the last that plum does for it, and when a function is sealed.
    """
    global before_miss, after_clear
    before_miss, after_clear = miss, cleared


def table_of(function: Function) -> Table | None:
    """The table of a function that is watched or sealed."""
    cache = _plum.cache_of(function)
    return cache if isinstance(cache, Table) else None


# The class of new tables, and of those whose entries do not tell what is decided. While JAX traces,
# and while a `Cache` is active, it is one that sees every look-up.
kind: type[Table] = Table


def watch(function: Function) -> Table:
    """Put a table in place of plum's cache, if there is none yet.

    What plum decided before is not in the record. Nothing that was compiled before survives the
    start of the epoch; but a function that is met later may have been called unseen.
    """
    table = table_of(function)
    if table is None:
        table = kind(function)
        table.blind = bool(_plum.resolved_methods(function))
        _plum.set_cache(function, table)
    return table
