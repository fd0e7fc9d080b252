"""A program is a list of steps. Each is small data that prints as Python, and runs in any world."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import plum

from .compare import Outcome, described, outcome
from .speed import fresh_jit

if TYPE_CHECKING:
    from .world import World


@dataclasses.dataclass(frozen=True)
class Step:
    """One step. `number` is its place in the program, and numbers the methods that it makes."""

    def run(self, world: World, number: int) -> Outcome:
        return outcome(lambda: self.act(world, number))

    def act(self, world: World, number: int) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Register(Step):
    """Register a method: how it is written, and which way it is registered."""

    function: int
    parameters: tuple[tuple[str, str], ...]  # hint and default
    body: str
    rest: str | None = None
    keyword: str | None = None
    returns: str = ""
    precedence: int = 0
    way: str = "dispatch"
    foreign: bool = False

    def source(self, number: int) -> str:
        names = [name for name, _ in zip("xyz", self.parameters, strict=False)]
        written = []
        for name, (hint, default) in zip(names, self.parameters, strict=True):
            annotation = f": {hint}" if hint and self.way != "multi" else ""
            written.append(name + annotation + (f" = {default}" if default else ""))
        if self.rest is not None:
            written.append("*rest" + (f": {self.rest}" if self.rest else ""))
        if self.keyword is not None:
            written += ([] if self.rest is not None else ["*"]) + [f"k={self.keyword}"]
        name = f"f{self.function}"
        text = f"def {name}({', '.join(written)}){f' -> {self.returns}' if self.returns else ''}:\n"
        text += f"    'm{number}'\n    {self.body.replace('{n}', str(number % 50 + 1))}\n"
        return f"{self._decorator(name)}\n{text}"

    def _decorator(self, name: str) -> str:
        precedence = f"(precedence={self.precedence})" if self.precedence else ""
        hints = (
            "(" + "".join(f"{hint.strip(chr(34)) or 'Any'}, " for hint, _ in self.parameters) + ")"
        )
        return {
            "dispatch": f"@dispatch{precedence}",
            "jitted": f"@dispatch{precedence}\n@jitted",
            "function": f"@{name}.dispatch{precedence}",
            "multi": f"@dispatch.multi({hints})",
        }[self.way]

    def act(self, world: World, number: int) -> None:
        world.late += world.is_late(self.function)
        world.execute(self.source(number), number, foreign=self.foreign)

    def __str__(self) -> str:
        return self.source(0).rstrip() + ("  # in another module" if self.foreign else "")


@dataclasses.dataclass(frozen=True)
class Plugin(Step):
    """Register a method that imports, when it runs, a module that registers another one."""

    imports: Register
    registered: Register

    def act(self, world: World, number: int) -> None:
        name = f"{world.module.__name__}_p{number:03d}"

        def body(_: Any) -> None:
            self.registered.act(world, number)

        world.finder.bodies[name] = body
        body_text = f"import {name}; {self.imports.body}"
        dataclasses.replace(self.imports, body=body_text).act(world, number + 100)

    def __str__(self) -> str:
        inner = dataclasses.replace(self.imports, body=f"import plugin; {self.imports.body}")
        return f"{inner}\n# and plugin.py is:\n{_indented(self.registered)}"


@dataclasses.dataclass(frozen=True)
class Call(Step):
    """Call a function: directly, or from inside JAX."""

    function: int
    args: tuple[str, ...]
    kw: tuple[tuple[str, str], ...] = ()
    way: str = ""

    def run(self, world: World, number: int) -> Outcome:
        thunk, values = world.call(self.function, self.args, self.kw, self.way)
        return outcome(thunk, arguments=values)

    def __str__(self) -> str:
        written = ", ".join([*self.args, *(f"{k}={v}" for k, v in self.kw)])
        text = f"f{self.function}({written})"
        return text if not self.way else f"{text}  # under {self.way}, from a caller made once"


@dataclasses.dataclass(frozen=True)
class MidTrace(Step):
    """Register between two calls in one trace. That trace must not be kept."""

    call: Call
    late: Register

    def run(self, world: World, number: int) -> Outcome:
        world.refresh()
        values = (world.evaluate(self.call.args[0]),)
        rest = tuple(world.evaluate(a) for a in self.call.args[1:])
        registered: list[bool] = []

        def make() -> Any:
            def caller(x: Any) -> Any:
                target = world.function(self.call.function)
                before = target(x, *rest)
                if not registered:
                    registered.append(True)
                    self.late.act(world, number)
                return before, target(x, *rest)

            return caller

        kept = jax.jit(make()) if world.keeps else lambda *a: fresh_jit(make(), *a)
        first = outcome(lambda: kept(*values))
        if is_refusal(first):
            return first
        world.refresh()
        return Outcome("returned", ((first.kind, first.what), _again(lambda: kept(*values))))

    def __str__(self) -> str:
        return f"in one trace: {self.call}; then\n{_indented(self.late)}\nthen again, and a second time"


def _method(implementation: Any) -> Any:
    """Which method it is, and whether it is jitted by its author."""
    code = getattr(implementation, "__wrapped__", implementation).__code__
    return implementation.__doc__, code.co_filename, hasattr(implementation, "lower")


def is_refusal(said: Outcome) -> bool:
    """Whether a late registration was refused."""
    return said.kind == "raised" and said.what[0].endswith("LateRegistrationError")


def _again(thunk: Any) -> Any:
    second = outcome(thunk)
    return second.kind, second.what


@dataclasses.dataclass(frozen=True)
class Ask(Step):
    """Ask plum: `invoke`, `resolve_method`, `methods`, the documentation."""

    function: int
    what: str
    args: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    def run(self, world: World, number: int) -> Outcome:
        world.refresh()
        values = tuple(world.evaluate(a) for a in self.args)
        hints = tuple(world.evaluate(h) for h in self.hints)
        return outcome(
            lambda: getattr(self, self.what)(world.function(self.function), values, hints)
        )

    def invoke(self, function: plum.Function, values: Any, hints: Any) -> Any:
        invoked = function.invoke(*hints)
        return _method(invoked.__wrapped_by_plum__), described(invoked(*values), values)

    def resolve(self, function: plum.Function, values: Any, hints: Any) -> Any:
        method, returns = function.resolve_method(values)
        return _method(method), str(returns)

    def methods(self, function: plum.Function, values: Any, hints: Any) -> Any:
        rows = [
            (_method(m.implementation), str(m.signature), str(m.return_type))
            for m in function.methods
        ]
        return rows, function._resolver.is_faithful, len(function._resolver)

    def doc(self, function: plum.Function, values: Any, hints: Any) -> Any:
        return function.__doc__, function.__name__, function.__wrapped__.__doc__

    def __str__(self) -> str:
        return f"f{self.function}: {self.what} {', '.join(self.hints)} of ({', '.join(self.args)})"


@dataclasses.dataclass(frozen=True)
class Rule(Step):
    """A conversion or a promotion rule. One side at least is a class of the world."""

    kind: str
    source: str
    target: str
    to: str = ""

    def act(self, world: World, number: int) -> None:
        source, target = world.evaluate(self.source), world.evaluate(self.target)
        if self.kind == "promotion":
            plum.add_promotion_rule(source, target, world.evaluate(self.to))
            return
        factor, getter = number % 8 + 1, lambda o: getattr(o, "v", o)
        convert = lambda o: target(getter(o) * factor)  # noqa: E731
        plum.add_conversion_method(source, target, convert)

    def __str__(self) -> str:
        if self.kind == "promotion":
            return f"plum.add_promotion_rule({self.source}, {self.target}, {self.to})"
        return f"plum.add_conversion_method({self.source}, {self.target}, ...)"


def _indented(step: Step) -> str:
    return "\n".join("    " + line for line in str(step).splitlines())
