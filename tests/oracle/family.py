"""Steps about a dispatched method of classes: inherited, extended, replaced on the parent.

In a program they are function number 4, `f4`, which calls the method of an instance of the child.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from .steps import Step

if TYPE_CHECKING:
    import plum

    from .world import World

FAMILY = 4
BASES = {"mutable": "", "module": "(eqx.Module)"}
SOURCE = """
class Parent{base}:
    v: jax.Array = 2
    @dispatch
    def f4(self, x: {parent}):
        'm{number}'
        {body}
class Middle(Parent): pass
class Child(Middle):
    @dispatch
    def f4(self, x: {child}):
        'm{number}'
        return ({marked}, x)
parent, child = Parent(), Child()
"""


def functions_of(world: World) -> list[plum.Function]:
    """The functions of the method that the classes hold, as they were defined."""
    return [f for methods in world.dispatch.classes.values() for f in methods.values()]


@dataclasses.dataclass(frozen=True)
class Family(Step):
    """Define the classes, and freeze the functions of their method."""

    base: str
    parent: str
    child: str
    body: str
    frozen: bool

    def source(self, number: int) -> str:
        return SOURCE.format(
            base=BASES[self.base],
            parent=self.parent or "Any",
            child=self.child or "Any",
            body=self.body.replace("{n}", str(number % 50 + 1)),
            marked=number % 50 + 51,
            number=number,
        )

    def act(self, world: World, number: int) -> None:
        if functions_of(world):
            return
        world.forget_callers()
        world.execute(self.source(number), number)
        if world.library is not None and self.frozen:
            world.library.freeze(functions_of(world), jit=world.jit, on_late=world.on_late)
            world.sealed.add(FAMILY)

    def __str__(self) -> str:
        frozen = "\nfreeze(Parent.f4, Child.f4)" if self.frozen else ""
        return self.source(0).strip() + frozen


@dataclasses.dataclass(frozen=True)
class Member(Step):
    """Register on a class's function, assign another one, or delete it."""

    what: str
    cls: str
    hint: str = "object"
    body: str = "return {n}"

    def source(self, number: int) -> str:
        body = self.body.replace("{n}", str(number % 50 + 1))
        method = f"def f4(self, x: {self.hint or 'Any'}):\n    'm{number}'\n    {body}\n"
        return {
            "register": f"@{self.cls}.__dict__['f4'].dispatch\n{method}",
            "assign": f"{method}{self.cls}.f4 = f4\ndel f4\n",
            "delete": f"del {self.cls}.f4\n",
        }[self.what]

    def act(self, world: World, number: int) -> None:
        if not functions_of(world):
            return
        if self.what != "register":  # which a jit that was traced before does not see
            world.forget_callers()
        world.late += self.what == "register" and FAMILY in world.sealed
        kept: dict[str, Any] = world.module.__dict__
        before = kept.get("f4")
        try:
            world.execute(self.source(number), number)
        finally:
            kept.pop("f4", None)
            if before is not None:
                kept["f4"] = before

    def __str__(self) -> str:
        return self.source(0).rstrip()
