"""Dispatched functions that multiply by a number, each by a decision of another kind.

What each of them decides can be changed, by the public interface alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import plum

import plum_freeze


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Box:
    """A pytree with an array inside."""

    x: Any


class Leaf:
    """Multiplies by `factor`, which is a power of two."""

    def __init__(self, rng: Any) -> None:
        self.factor = 1.0
        self.function: Any = None
        self.change(rng.choice([2.0, 4.0]))

    def __call__(self, x: Any) -> Any:
        raise NotImplementedError

    decides_numbers = False

    def number(self) -> float:
        """The factor, without an array; decided by a method if `decides_numbers`."""
        return self.factor

    def change(self, factor: float) -> None:
        """Another method is the right one from now on."""
        self.factor = factor
        self.register(factor)

    def register(self, factor: float) -> None:
        raise NotImplementedError


class OfArray(Leaf):
    """A tracer decides."""

    frozen = True

    def __init__(self, rng: Any) -> None:
        self.dispatch = plum.Dispatcher()
        super().__init__(rng)
        if self.frozen:
            plum_freeze.freeze(self.function, on_late="accept")

    def register(self, factor: float) -> None:
        def f(x: jax.Array):
            return x * factor

        self.function = self.dispatch(f)

    def __call__(self, x: Any) -> Any:
        return self.function(x)


class Watched(OfArray):
    """The same, and the function is not frozen."""

    frozen = False


class OfBox(OfArray):
    """A pytree decides."""

    def register(self, factor: float) -> None:
        def f(box: Box):
            return Box(box.x * factor)

        self.function = self.dispatch(f)

    def __call__(self, x: Any) -> Any:
        return self.function(Box(x)).x


class OfText(OfArray):
    """No array is there: plum's dictionary answers it in C."""

    def register(self, factor: float) -> None:
        def f(name: str):
            return factor

        self.function = self.dispatch(f)

    decides_numbers = True

    def number(self) -> float:
        return self.function("unit")

    def __call__(self, x: Any) -> Any:
        return x * self.number()


class OfClass(OfArray):
    """A class decides, not its type."""

    def register(self, factor: float) -> None:
        def f(cls, x):
            return x * factor

        f.__annotations__ = {"cls": type[Box], "x": jax.Array}
        self.function = self.dispatch(f)

    def __call__(self, x: Any) -> Any:
        return self.function(Box, x)


class OfNested(OfArray):
    """A frozen function that calls another one, which is the one that changes."""

    def __init__(self, rng: Any) -> None:
        super().__init__(rng)
        inner = self.function

        def g(x: jax.Array):
            return inner(x)

        self.outer = plum.Dispatcher()(g)
        plum_freeze.freeze(self.outer, on_late="accept")

    def __call__(self, x: Any) -> Any:
        return self.outer(x)


class Invoked(OfArray):
    """The method is asked for by its hints."""

    def __call__(self, x: Any) -> Any:
        return self.function.invoke(jax.Array)(x)


CLASSES = """
class Parent:
    @dispatch
    def scale(self, x: jax.Array):
        return x * {factor}

class Child(Parent):
    @dispatch
    def scale(self, x: str):
        return x
"""


class Inherited(OfArray):
    """A class method of a parent, called on a child that adds another."""

    def register(self, factor: float) -> None:
        if self.function is not None:
            function = self.parent.__dict__["scale"]

            @function.dispatch
            def scale(self, x: jax.Array):
                return x * factor

            return
        # plum looks for the class in the globals of its methods
        namespace = {"jax": jax, "dispatch": self.dispatch, "__name__": "classes"}
        exec(CLASSES.format(factor=factor), namespace)  # noqa: S102
        self.parent, self.child = namespace["Parent"], namespace["Child"]
        self.function = self.child.__dict__["scale"]

    def __call__(self, x: Any) -> Any:
        return self.child().scale(x)


class Assigned(Inherited):
    """The parent gets the method by an assignment, which is no registration."""

    def register(self, factor: float) -> None:
        if self.function is None:
            super().register(factor)
        else:
            self.parent.scale = lambda self, x: x * factor


class Rebased(Inherited):
    """The child gets another parent."""

    def register(self, factor: float) -> None:
        if self.function is None:
            super().register(factor)
        else:
            self.child.__bases__ = (type("Parent", (), {"scale": lambda self, x: x * factor}),)


class Converted(OfArray):
    """What is returned is converted by a rule, and the rule changes."""

    def register(self, factor: float) -> None:
        if self.function is None:
            self.source = type("Source", (), {"__init__": lambda self, x: setattr(self, "x", x)})
            target = self.target = type("Target", (self.source,), {})
            source = self.source

            def f(x: jax.Array):
                return source(x)

            f.__annotations__["return"] = target
            self.function = self.dispatch(f)
        target = self.target
        plum.add_conversion_method(self.source, target, lambda value: target(value.x * factor))

    def __call__(self, x: Any) -> Any:
        return self.function(x).x


KINDS = [
    OfArray, OfArray, Watched, OfBox, OfText, OfClass, OfNested, Invoked, Inherited, Converted,
]  # fmt: skip

# Nobody tells of the change.
UNTOLD = [Assigned, Rebased]
