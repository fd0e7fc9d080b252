"""What was found out about a function since its methods last changed, and where that is kept.

Finding something may run foreign code, and meanwhile another thread may register a method. So what
is found belongs to the *generation* in which the search began, and is kept only while that lasts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeAlias

from plum_freeze import _jax, _keys, _plum

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Collection, Hashable

    from plum_freeze._decisions import Decision
    from plum_freeze._jit import Compiled
    from plum_freeze._keys import KeyPart
    from plum_freeze._plum import Function
    from plum_freeze._runners import Runner
    from plum_freeze._variant import Variant

MOST_DECISIONS = 4096
"""Decisions that one function keeps. Beyond them it starts again, and any change counts as one."""

Types = tuple[type, ...]
Entry: TypeAlias = "tuple[Callable[..., Any], Variant | Callable[..., Any] | None, Decision | None]"
"""What is kept under a key: the two of a `Runner`, and the decision."""

# Held where something is stored and where all is forgotten, so that nothing that was found before
# a change is stored after it. Nothing is searched for under it.
storing = threading.RLock()


class Store(dict[Any, Any]):
    """The entries of one function, by the types of a call, and what belongs to them.

    Attributes:
        function: The function.
        generation: A new object after each change of methods. What was found under an older one is
            not stored: plum's own race (its pull request 316) ends there.
        parts: What a decision depends on, by the types of a call.
        telling: Types whose entry notes itself what is decided, since more than they decides.
        placed: Where the runners of a method are, by its id.
        anchors: The classes whose end drops an entry.
        invoked: The answers of `Function.invoke`.
    """

    __slots__ = (
        "__weakref__", "anchors", "function", "generation", "invoked", "parts", "placed", "telling",
    )  # fmt: skip

    def __init__(self, function: Function) -> None:
        super().__init__()
        # Not weakly: the compiled plum crashes in the garbage collector where a cycle that a
        # function is in holds a weak reference to it.
        self.function = function
        self.generation = object()
        self.parts: dict[Types, tuple[KeyPart, ...]] = {}
        self.telling: set[Types] = set()
        self.placed: dict[int, list[tuple[dict[Any, Any], Any, Types]]] = {}
        self.anchors: dict[Hashable, weakref.ref[type]] = {}
        self.invoked: dict[Hashable, tuple[Callable[..., Any], Any]] = {}

    def forget(self) -> None:
        """Forget all of it: a new generation begins."""
        with storing:
            self.generation = object()
            self.parts.clear()
            self.telling.clear()
            self.placed.clear()
            self.anchors.clear()
            self.invoked.clear()
            super().clear()

    def overflow(self) -> None:
        """There are more entries than are kept: start again."""
        self.forget()

    def keep(self, where: dict[Any, Any], key: Hashable, value: Any, generation: object) -> bool:
        """Store what was found in a generation, unless that has passed; whether it was stored."""
        with storing:
            is_current = generation is self.generation
            if is_current:
                dict.__setitem__(where, key, value)
                if where is self and key not in self.telling:
                    self.does_not_tell()
            return is_current

    def does_not_tell(self) -> None:
        """There is an entry now that does not note itself what is decided."""

    def parts_of(self, types: Types, generation: object) -> tuple[KeyPart, ...]:
        """What a decision for these types depends on, with the methods of this generation."""
        parts = self.parts.get(types)
        if parts is None:
            methods = _plum.resolved_methods(self.function)
            hints = [
                (m.signature.types, m.signature.varargs if m.signature.has_varargs else None)
                for m in methods
            ]
            parts = _keys.plan(hints, types)
            # Off the hot path, so that the record says which arrays a trace was about.
            parts = tuple(
                part | _keys.KeyPart.AVAL if _jax.is_tracer_class(cls) else part
                for part, cls in zip(parts, types, strict=True)
            )
            self.keep(self.parts, types, parts, generation)
        return parts

    def put(self, types: Types, entry: Callable[..., Any], generation: object) -> None:
        """Keep an entry that looks further than the types, and notes itself what is decided."""
        with storing:
            if generation is self.generation:
                self.telling.add(types)
                self.keep(self, types, (entry, Any), generation)

    def entry(
        self, runner: Runner, where: dict[Any, Any], decision: Decision | None
    ) -> tuple[Any, Any] | Entry:
        """What to keep of a runner. Plum finds it with a return type: ours convert themselves."""
        return (runner[0], Any) if where is self else (*runner, decision)

    def place(
        self,
        compiled: Compiled,
        runner: Runner,
        where: dict[Any, Any],
        key: Any,
        *,
        types: Types,
        decision: Decision | None,
        generation: object,
    ) -> bool:
        """Keep a runner of a method under `key` in `where`: the store itself, or a dict of it."""
        if len(where) >= MOST_DECISIONS:
            self.overflow()
            return False
        with storing:
            is_kept = self.keep(where, key, self.entry(runner, where, decision), generation)
            if is_kept:
                self.placed.setdefault(id(compiled), []).append((where, key, types))
            return is_kept

    def refresh(self, compiled: Compiled, classes: Collection[type] = ()) -> None:
        """A method runs differently from now on: give its entries the runner that is best now.

        With `classes`, only the entries for arguments of one of them.
        """
        generation = self.generation
        for where, key, types in self.placed.get(id(compiled), []):
            found = where.get(key)
            if found is not None and (not classes or any(cls in classes for cls in types)):
                runner = compiled.runner(types, is_watched=where is self)
                self.keep(where, key, self.entry(runner, where, found[-1]), generation)
