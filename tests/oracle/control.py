"""Steps that seal and unseal, clear, or change what dispatch depends on without a registration."""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING, Any

import plum

from .steps import Register, Step, _indented

if TYPE_CHECKING:
    from .compare import Outcome
    from .world import World


@dataclasses.dataclass(frozen=True)
class Seal(Step):
    """Freeze or thaw functions, or report on them. The plain world does nothing."""

    what: str
    functions: tuple[int, ...]

    def act(self, world: World, number: int) -> None:
        if world.library is None:
            return
        # To thaw what is not frozen is an error, and no target at all means every function.
        present = [
            i for i in self.functions
            if f"f{i}" in world.dispatch.functions and (self.what != "thaw" or i in world.sealed)
        ]  # fmt: skip
        if not present:
            return
        functions = [world.function(i) for i in present]
        if self.what == "report":
            world.library.report(functions)
        elif self.what == "freeze":
            world.library.freeze(functions, jit=world.jit, on_late=world.on_late)
            if world.library.seals:
                world.sealed.update(present)
        else:
            world.library.thaw(functions)
            world.sealed.difference_update(present)
        check_sealed(world)

    def __str__(self) -> str:
        return f"{self.what}({', '.join(f'f{i}' for i in self.functions)})"


@dataclasses.dataclass(frozen=True)
class Thawed(Step):
    """Take another step inside `thawed`."""

    functions: tuple[int, ...]
    inside: Step

    def run(self, world: World, number: int) -> Outcome:
        before = set(world.sealed)
        if world.library is None or not before & set(self.functions):
            return self.inside.run(world, number)
        try:
            with world.library.thawed([world.function(i) for i in self.functions if i in before]):
                world.sealed.difference_update(self.functions)
                check_sealed(world)
                return self.inside.run(world, number)
        finally:
            world.sealed = before
            check_sealed(world)

    def __str__(self) -> str:
        return (
            f"with thawed({', '.join(f'f{i}' for i in self.functions)}):\n{_indented(self.inside)}"
        )


def check_sealed(world: World) -> None:
    """Whether each function is sealed exactly if it was frozen last."""
    assert world.library is not None
    for number, functions in world.functions().items():
        for function in functions:
            said = world.library.is_frozen(function)
            if said is not None and said != (number in world.sealed):
                raise AssertionError(f"is_frozen(f{number}) is {said}")


@dataclasses.dataclass(frozen=True)
class Clear(Step):
    """Clear plum's caches in one of plum's ways."""

    function: int
    how: str

    def act(self, world: World, number: int) -> None:
        functions = world.functions_and_rules()
        if not all(world.settled(f) for f in functions):
            return
        if self.how == "all":
            with world.alone():
                plum.clear_all_cache()
        elif self.how == "dispatcher":
            world.dispatch.clear_cache()
        else:
            world.function(self.function).clear_cache(reregister=self.how == "reregister")
        if world.library:
            check_sealed(world)

    def __str__(self) -> str:
        return {
            "all": "plum.clear_all_cache()",
            "dispatcher": "dispatch.clear_cache()",
            "reregister": f"f{self.function}.clear_cache()",
            "cache": f"f{self.function}.clear_cache(reregister=False)",
        }[self.how]


class ResolvedTooEarly(BaseException):
    """The compiled plum 2.10.1 would have overflown the stack here, and ended the process."""


def _before_the_stack_overflows(promise: Any) -> Any:
    """A `resolve` for a promise that is not kept: asked once it gives itself, as plum's does.

    `resolve_type_hint` then asks again, for ever. This ends that.
    """
    asked = iter(range(100))

    def resolve() -> Any:
        if next(asked, None) is None:
            raise ResolvedTooEarly
        return promise

    return resolve


@dataclasses.dataclass(frozen=True)
class Promise(Step):
    """Register for a type that is promised, and deliver it before anybody calls."""

    late: Register

    def act(self, world: World, number: int) -> None:
        names = world.module.__dict__
        promise = plum.PromisedType("Promised")
        promise.resolve = _before_the_stack_overflows(promise)
        exec("class Promised(A): pass", names)
        names["Hint"] = world.foreign.__dict__["Hint"] = promise
        settled = [world.settled(f) for f in list(world.dispatch.functions.values())]
        if all(settled):
            try:
                self.late.act(world, number)
            except ResolvedTooEarly:
                raise RuntimeError("a promise is resolved that was not kept") from None
            finally:
                del promise.resolve
                promise.deliver(names["Promised"])

    def __str__(self) -> str:
        return f"Hint = plum.PromisedType()\n{self.late}\nHint.deliver(Promised)"


@dataclasses.dataclass(frozen=True)
class Happens(Step):
    """A statement that changes what dispatch depends on, or what a method reads."""

    what: str
    target: str = ""
    value: str = ""

    def act(self, world: World, number: int) -> None:
        getattr(self, self.what)(world)

    def abc(self, world: World) -> None:
        world.something_else_changed()
        world.evaluate(self.target).register(world.evaluate(self.value))

    def define(self, world: World) -> None:
        if "Later" not in world.module.__dict__:
            exec("class Later(A): pass", world.module.__dict__)
            world.foreign.__dict__["Later"] = world.evaluate("Later")

    def lazy(self, world: World) -> None:
        name = f"{world.module.__name__}_lazy"
        world.finder.bodies[name] = lambda module: exec(_LAZY, vars(module))
        world.something_else_changed(promises=True)
        world.module.__dict__["Lazy_class"] = importlib.import_module(name).Lazy

    def set_global(self, world: World) -> None:
        world.forget_callers()
        setattr(world.module, self.target, world.evaluate(self.value))
        setattr(world.foreign, self.target, world.evaluate(self.value))

    def set_attribute(self, world: World) -> None:
        world.forget_callers()
        world.evaluate(self.target).v = world.evaluate(self.value)

    def __str__(self) -> str:
        return {
            "abc": f"{self.target}.register({self.value})",
            "define": "class Later(A): pass",
            "lazy": "import lazy  # and with it the class of a ModuleType",
            "set_global": f"{self.target} = {self.value}",
            "set_attribute": f"{self.target}.v = {self.value}",
        }[self.what]


_LAZY = """
class Lazy:
    def __init__(self, v): self.v = v
    def __repr__(self): return f"Lazy({self.v!r})"
"""
