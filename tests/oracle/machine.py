"""The stateful test: hypothesis chooses the steps, in any order."""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from . import choices
from .control import Seal
from .duel import Difference, Duel, as_data, counts, printed, shortened
from .speed import remembered_compilations
from .steps import Call, Register
from .world import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .library import Library
    from .steps import Step

FIXED = 20250731
"""The seed that every run takes first."""

EVERYTHING = tuple(range(FUNCTIONS))


class Evenly(providers.HypothesisProvider):
    """Chooses each of several things equally often, and never what it chose before on purpose.

    Hypothesis prefers small numbers, which here are the things that stand first in a list, and
    likes to repeat parts of what it tried: of 6,000 steps 575 were different ones. Now 1,600 are.
    """

    source = random.Random()

    def __init__(self, data: Any, /) -> None:
        super().__init__(data)
        self._random = self.source

    def draw_integer(
        self, min_value: int | None = None, max_value: int | None = None, **rest: Any
    ) -> int:
        if min_value is None or max_value is None:
            return super().draw_integer(min_value, max_value, **rest)
        return self.source.randint(min_value, max_value)


providers.AVAILABLE_PROVIDERS["evenly"] = f"{__name__}.{Evenly.__name__}"


class Machine(RuleBasedStateMachine):
    """Takes steps in a duel, until `stop_at` were taken in all."""

    library: Library
    stop_at: int
    skip: Callable[[Step], bool]
    failed: tuple[list[Step], str, str] | None = None
    duel: Duel

    @initialize(
        on_late=choices.pick(("accept", "accept", "warn", "raise")),
        base=st.tuples(*(choices.registers(i) for i in EVERYTHING)),
        early=st.booleans(),
    )
    def start(self, on_late: str, base: tuple[Register, ...], early: bool) -> None:
        """Begin with functions that most calls can find a method of."""
        self.duel = Duel(self.library, on_late)
        for i, method in enumerate(base):
            body = "return ({n}, x)" if i % 2 else "return x * 0 + {n}"
            self.take(Register(i, (("object", ""),), body))
            self.take(Register(i, (("object", ""), ("object", "")), "return ({n}, x, y)"))
            self.take(method)
        if early:
            self.take(Seal("freeze", EVERYTHING))

    def take(self, *steps: Step) -> None:
        for step in steps:
            if counts["steps"] >= self.stop_at:
                return
            if type(self).skip(step):
                continue
            try:
                self.duel.take(step)
            except Difference as error:
                if type(self).failed is None:
                    program = list(self.duel.program)
                    type(self).failed = (program, self.duel.on_late, str(error))
                raise

    def past(self, back: int, *, inside: bool = False) -> list[Step]:
        """Up to three calls that were made before."""
        calls = [s for s in self.duel.program if isinstance(s, Call) and (s.way or not inside)]
        return [calls[-1 - (back + i) % len(calls)] for i in range(min(3, len(calls)))]

    @rule(step=choices.calls())
    def call(self, step: Step) -> None:
        self.take(step)

    @rule(back=st.integers(0, 30))
    def again(self, back: int) -> None:
        self.take(*self.past(back))

    @rule(back=st.integers(0, 30))
    def again_from_inside(self, back: int) -> None:
        self.take(*self.past(back, inside=True))

    @rule(
        call=choices.calls(),
        hint=choices.pick(
            ("object", "jax.Array", "jax.Array", "A", "P", "Any", 'Float[jax.Array, "..."]', "int")
        ),
        body=choices.pick(
            ("return {n}", "return x * 0 + {n}", "return ({n}, x)", "return x * 4 + {n}")
        ),
        deeper=st.booleans(),
    )
    def around(self, call: Call, hint: str, body: str, deeper: bool) -> None:
        """Call, register what may apply to that call or to one below it, and call again."""
        function = min(call.function + deeper, FUNCTIONS - 1)
        hints = [hint, "object", "object"][: 1 if deeper else len(call.args)]
        late = Register(function, tuple((h, "") for h in hints), body, precedence=1)
        self.take(call, call, late, call, call)

    @rule(steps=choices.themed())
    def theme(self, steps: list[Step]) -> None:
        self.take(*steps)

    @rule(steps=choices.themed())
    def another_theme(self, steps: list[Step]) -> None:
        self.take(*steps)

    @rule(steps=choices.inheritance())
    def inherit(self, steps: list[Step]) -> None:
        self.take(*steps)

    @rule(step=choices.registers())
    def register(self, step: Step) -> None:
        self.take(step)

    @rule(step=choices.registers(), back=st.integers(0, 30))
    def redefine(self, step: Register, back: int) -> None:
        """Register again with a signature that is there, and the same or another body."""
        past = [s for s in self.duel.program if isinstance(s, Register)]
        if past:
            old = past[-1 - back % len(past)]
            fits = step.function == old.function and len(step.parameters) == len(old.parameters)
            fits = fits and step.rest is None and step.keyword is None
            self.take(dataclasses.replace(old, body=step.body if fits else "return ({n}, x)"))

    @rule(step=choices.register_otherwise)
    def register_otherwise(self, step: Step) -> None:
        self.take(step)

    @rule(step=choices.asks)
    def ask(self, step: Step) -> None:
        self.take(step)

    @rule(step=st.one_of(choices.happenings, choices.clears))
    def happen(self, step: Step) -> None:
        self.take(step)

    @rule(step=choices.seals)
    def seal(self, step: Step) -> None:
        self.take(step)

    @rule(step=choices.thawed)
    def thawed(self, step: Step) -> None:
        self.take(step)

    def teardown(self) -> None:
        if hasattr(self, "duel"):
            self.duel.close()


def attack(
    library: Library,
    steps: int,
    seed: int,
    *,
    shorten: bool = True,
    skip: Callable[[Step], bool] = lambda step: False,
) -> None:
    """Take `steps` steps in programs that follow from `seed`, without those to `skip`.

    Raises:
        Difference: With the shortest program found, where two worlds differ.

    """
    stop_at = counts["steps"] + steps
    Evenly.source = random.Random(seed)
    with library.install("oracle_worlds"), remembered_compilations():
        while counts["steps"] < stop_at:
            settings = hypothesis.settings(
                max_examples=max(1, min(100, (stop_at - counts["steps"]) // 50)),
                stateful_step_count=40,
                deadline=None,
                database=None,
                phases=[hypothesis.Phase.generate],
                suppress_health_check=list(hypothesis.HealthCheck),
                report_multiple_bugs=False,
                print_blob=False,
                verbosity=hypothesis.Verbosity.quiet,
                backend="evenly",
            )
            names = {
                "library": library,
                "stop_at": stop_at,
                "failed": None,
                "skip": staticmethod(skip),
            }
            tested = type("Machine", (Machine,), names)
            try:
                run_state_machine_as_test(tested, settings=settings)
            except BaseException:
                if tested.failed is None:
                    raise
                program, on_late, text = tested.failed
                if shorten:
                    program, shorter = shortened(program, library, on_late)
                    text = f"{shorter}\n(as found: {text})"
                what = f"seed {seed}\n{text}\n\n{printed(program)}\n\n{as_data(program)}"
                raise Difference(what) from None
