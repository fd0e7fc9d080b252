"""How a resolved method runs: compiled where that gives the same result, plainly where it may not.

A `Compiled` is one method. Its calls are told apart by their static values (see `_static.py`); each
such *variant* has one `jax.jit` of its own for good, which takes the arrays of the call and nothing
else. DESIGN, section 6, has the rules; the numbers in the comments are theirs.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _apart,
    _decisions,
    _jax,
    _marks,
    _runners,
    _running,
    _screen,
    _static,
    _tracing,
    _why,
)
from plum_freeze._apart import Traced
from plum_freeze._convert import conversion
from plum_freeze._opaque import Opaque
from plum_freeze._static import Plain
from plum_freeze._variant import Variant, jitted, looked_into

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

log = logging.getLogger("plum_freeze")

MOST_VARIANTS = 16
"""Sets of static values that a method is compiled for (rule 7)."""

MOST_CHANGES = 16
"""How often what a method reads may change before it is no longer compiled."""


class Compiled:
    """One method of a sealed function.

    Attributes:
        reasons: Why calls ran plainly, with the number of variants, for the report.
        compiled: How many variants run compiled.
        opaque: Types of arguments that make a call run plainly, whatever their value.
        fast: For each tuple of types, variants by static values that a `dict` tells apart.
    """

    def __init__(
        self,
        implementation: Callable[..., Any],
        return_type: Any,
        *,
        jit: bool,
        verify: bool = False,
        refresh: Callable[..., None] = lambda _=(): None,
    ) -> None:
        self.implementation = implementation
        self.return_type = return_type
        self.convert = conversion(return_type)
        self.verify = verify
        self.refresh = refresh
        self.reasons: Counter[str] = Counter()
        self.compiled = 0
        self.variants: dict[Hashable, Variant] = {}
        self.fast: dict[tuple[type, ...], dict[Hashable, Variant]] = {}
        self.static_keys: list[Any] = []
        self.opaque = Opaque()
        self.marks = _marks.marks_of(implementation)
        self.changes = 0
        self.unstable: str | None = None
        self.jits = jit and self.why_never() is None

    def __getattr__(self, name: str) -> Any:
        """`effect`, `guard`, `changed` take milliseconds: only what may be traced is screened."""
        if name not in ("effect", "guard", "changed"):
            raise AttributeError(name)
        self.screen()
        return vars(self)[name]

    def screen(self) -> None:
        """Look at the method's code: why it must not be jitted, and what it reads."""
        self.effect, self.guard = _screen.examine(self.implementation)
        self.changed = self.guard.changed

    def become(self, implementation: Callable[..., Any]) -> bool:
        """Be the method that running the same source again has made; say False if it is another.

        What is compiled stays, as long as the new function reads what the old one has read.
        """
        old, guard = self.implementation, vars(self).get("guard")
        if not _decisions.is_same_code(old, implementation):
            return False
        if _marks.marks_of(implementation) != self.marks:
            return False
        self.implementation = implementation
        if guard is not None:
            self.screen()
            # After the new guard was made: either sees what changes from now on.
            if guard.changed() or not _decisions.is_same_code(old, implementation):
                self.variants.clear()
                self.fast.clear()
                self.static_keys.clear()
            else:
                for variant in list(guard.dependents):  # this method is inlined in others as well
                    variant.depend_instead(guard, self.guard)
        return True

    @property
    def title(self) -> str:
        """The module and the name, for the log."""
        of = self.implementation
        return f"{getattr(of, '__module__', '?')}.{getattr(of, '__qualname__', '?')}"

    def why_never(self) -> str | None:
        """Why the method is not jitted, whatever it is called with."""
        if self.marks.eager:
            return "marked with @eager"
        if _jax.is_jitted(self.implementation):
            return "is jitted already"
        return self.unstable if self.effect is None else str(self.effect)

    # -- plainly ---------------------------------------------------------------------------------

    def plain(self, *args: Any, **kwargs: Any) -> Any:
        """Run the method as its author wrote it."""
        __tracebackhide__ = True
        if _tracing.anywhere:
            self.note(args, kwargs)
        result = self.implementation(*args, **kwargs)
        return result if self.convert is None else self.convert(result)

    def note(self, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> None:
        """The method is about to be inlined in the trace that is open on this thread, if one is.

        Raises:
            Stop: It must not be.
        """
        frame = _tracing.current()
        if frame is None:
            return
        if self.changed():
            self.guard_again()
        why = self.why_never()
        if why is not None and why != "is jitted already":
            name = getattr(self.implementation, "__qualname__", "a method")
            frame.effect = f"calls {name}, which {'is ' * self.marks.eager}{why}"
            raise _tracing.Stop(frame.effect)
        frame.add(self.guard)
        for value in (*args, *(kwargs or {}).values()):
            for given in _apart.functions_in(value):
                effect, guards = looked_into(given)
                if effect is not None:
                    frame.effect = effect
                    raise _tracing.Stop(effect)
                frame.add(*guards)

    # -- compiled --------------------------------------------------------------------------------

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the method for any arguments."""
        __tracebackhide__ = True
        arrays: list[Any] = []
        variant = self.variant(args, kwargs, arrays)
        if variant is None:
            return self.plain(*args, **kwargs)
        return _running.run(variant, arrays, args, kwargs)

    def variant(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[Any]
    ) -> Variant | None:
        """The variant of this call, whose arrays go to `arrays`; None if it runs plainly."""
        if self.jits and self.changed():
            self.guard_again()
        if not self.jits:
            return None
        try:
            key = self.key(args, kwargs, arrays)
        except Traced:
            return None
        except Plain as plain:
            self.reasons[str(plain)] += 1
            new = self.opaque.learn(args, self.variants)
            if new:
                self.refresh(new)
            return None
        if not _apart.array_classes.issuperset(map(type, arrays)):
            if not any(map(_jax.is_array, arrays)):  # rule 1
                return None
            tracers = list(filter(_jax.is_tracer, arrays))
            if tracers and not _jax.transforms_eagerly(tracers):  # rule 8
                return None
        elif not arrays:
            return None
        variant = self.variants.get(key)
        return self.new_variant(key, args, kwargs) if variant is None else variant

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[Any]) -> Hashable:
        """What tells this call's variant; its arrays go to `arrays`.

        Raises:
            Plain: An argument makes the call run plainly, which one and why.
            Traced: An argument is a tracer of something else than an array.
        """
        marks, traced = self.marks, bool(self.marks.traced)
        parts: list[Hashable] = []
        named: list[Hashable] = []
        where: object = ""
        try:
            for i, value in enumerate(args):
                where = i + 1
                parts.append(_apart.take_apart(value, arrays, traced=traced and marks.traces(i)))
            for name, value in marks.in_order(kwargs):
                where = name
                key = _apart.take_apart(value, arrays, traced=name in marks.traced)
                named.append((name, key))
        except Traced:
            raise
        except Plain as plain:
            raise Plain(f"argument {where} ({plain})") from None
        return tuple(parts), tuple(named)

    def new_variant(
        self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Variant | None:
        """Prepare a set of static values that was not seen before; nothing is traced yet."""
        if _why.has_static_values(key):
            if len(self.static_keys) >= MOST_VARIANTS:
                self.reasons[_why.too_many(self.static_keys, self.marks, MOST_VARIANTS)] += 1
                return None
            self.static_keys.append(key)
        for old, known in list(self.variants.items()):
            if not all(map(_static.lives_in_its_module, known.given)):
                self.variants.pop(old, None)  # its module was loaded again, and holds others now
        variant = Variant(self)
        for value in (*args, *kwargs.values()):
            for function in _apart.functions_in(value):
                variant.look_into(function)
        drop = lambda: self.variants.pop(key, None)  # noqa: E731
        weakly = lambda value: variant.pin(value, drop)  # noqa: E731
        put_args = [
            _apart.putter(v, weakly, traced=self.marks.traces(i)) for i, v in enumerate(args)
        ]
        put_kwargs = {
            k: _apart.putter(v, weakly, traced=k in self.marks.traced)
            for k, v in self.marks.in_order(kwargs)
        }
        variant.jitted = jitted(self, variant, put_args, put_kwargs)
        if variant.plain:
            self.reasons[variant.plain] += 1
        return self.variants.setdefault(key, variant)

    def guard_again(self) -> None:
        """Something that the method reads has changed: everything is traced again (rule 9)."""
        self.changes += 1
        log.debug("%s is traced again: what it reads has changed", self.title)
        if self.changes > MOST_CHANGES and self.unstable is None:
            self.unstable = _why.unstable(self.guard, MOST_CHANGES)
        self.screen()
        self.variants.clear()
        self.fast.clear()
        self.static_keys.clear()
        self.jits = self.jits and self.why_never() is None
        self.refresh()

    def runner(self, types: tuple[type, ...], *, is_watched: bool = False) -> _runners.Runner:
        """The fastest way to run calls with positional arguments of exactly these types."""
        return _runners.best(self, types, is_watched=is_watched)
