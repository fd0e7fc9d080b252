"""Return conversion: `-> int` costs plum 4 to 5 us at every call, also where nothing is converted.

For most results the type alone shows that plum's conversion gives back the very same object. Which
types those are is a decision of plum's conversion function, and is dropped when a rule is added.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from plum_freeze import _dependencies, _jax, _keys, _plum
from plum_freeze._static import Plain

# A result type is remembered by its id, so that no class is kept alive; this many at the most.
MOST_TYPES = 64

# Held where a type is learned and where all are forgotten: none is learned by rules of before.
_learning = threading.RLock()


class Conversion:
    """To one annotated return type."""

    __slots__ = ("__weakref__", "generation", "hint", "unchanged", "undecided")

    def __init__(self, hint: Any) -> None:
        self.hint = hint
        self.generation = 0
        # id of a type -> reference to it: results of exactly this type are returned as they are
        self.unchanged: dict[int, weakref.ref[type]] = {}
        # the same for types that decide nothing, as `tuple` for `-> tuple[int, str]`: to ask again
        # at each call costs more than the conversion does
        self.undecided: dict[int, weakref.ref[type]] = {}
        _all.add(self)

    def __call__(self, result: Any) -> Any:
        """The result as plum would return it."""
        if id(type(result)) in self.unchanged and not _dependencies.anywhere:
            return result
        generation = self.generation
        converted = _plum.convert(result, self.hint)
        if converted is result:
            self._learn(type(result), generation)
        return converted

    def traced(self, result: Any) -> Any:
        """The same inside of a trace that stands for calls with concrete arrays.

        Raises:
            Plain: There is a rule that would convert the array, and does not see a tracer; or one
                that would convert the tracer.
        """
        if not _jax.is_tracer(result):
            return self(result)
        concrete = _jax.concrete_array_class()
        _plum.rules_of_conversion().invoke(concrete, self.hint)  # the trace depends on the answer
        converts = not _plum.converts_by_identity(concrete, self.hint)
        if converts or self(result) is not result:
            raise Plain("a conversion rule applies to the array that it returns")
        return result

    def _learn(self, cls: type, generation: int) -> None:
        key = id(cls)
        if key in self.undecided or len(self.unchanged) + len(self.undecided) >= MOST_TYPES:
            return
        types = self.unchanged if _is_identity(cls, self.hint) else self.undecided
        with _learning:
            if generation == self.generation:  # otherwise a rule was added: it may be about it
                types[key] = weakref.ref(cls, lambda _: types.pop(key, None))

    def forget(self) -> None:
        """A conversion rule was added, or a class became a subclass of another."""
        with _learning:
            self.generation += 1
            self.unchanged.clear()
            self.undecided.clear()


def _is_identity(cls: type, hint: Any) -> bool:
    """Whether converting *any* value of this exact type gives back the value itself."""
    if not _plum.converts_by_identity(cls, hint):
        return False
    return cls is hint or _keys.certain(_plum.resolved_hint(hint), cls) is True


_all: weakref.WeakSet[Conversion] = weakref.WeakSet()


def conversion(hint: Any) -> Conversion | None:
    """The conversion to an annotated return type; None where there is nothing to do."""
    return None if hint is Any else Conversion(hint)


def forget_all() -> None:
    """What conversion does may have changed."""
    for each in list(_all):
        each.forget()
