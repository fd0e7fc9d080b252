"""The stateful test: hypothesis chooses the steps, in any order."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from . import vocabulary as words
from . import ways
from .control import Clear, Happens, Promise, Seal, Thawed
from .duel import Difference, Duel, as_data, counts, printed, shortened
from .speed import remembered_compilations
from .steps import Ask, Call, MidTrace, Plugin, Register, Rule
from .world import FUNCTIONS

if TYPE_CHECKING:
    from .library import Library
    from .steps import Step

pick = st.sampled_from
functions = st.integers(0, FUNCTIONS - 1)
some_functions = st.one_of(
    st.just(tuple(range(FUNCTIONS))),
    functions.map(lambda i: (i,)),
    st.just((0, 1)),
    st.just((1, 2, 3)),
)
classes = pick(("A", "B", "C", "D", "P", "int", "float"))
hints = st.one_of(pick(words.PLAIN_HINTS), pick(words.ARRAY_HINTS), pick(words.OTHER_HINTS))
arrays = pick(words.TRACEABLE)
values = st.one_of(arrays, pick(words.SCALARS), pick(words.VALUES))
immutable = st.one_of(arrays, pick(words.SCALARS), pick(words.SCALARS + words.OBJECTS[:6]))


@st.composite
def registers(draw: Any, index: int | None = None) -> Register:
    i = draw(functions) if index is None else index
    shape = draw(pick(("x", "x", "x", "x", "xy", "xy", "xy", "default", "rest", "keyword")))
    parameters = [(draw(hints), "")]
    keyword = rest = None
    bodies: tuple[str, ...] = words.MARKING * 2 + words.AWKWARD
    if shape in ("xy", "default"):
        second = draw(hints)
        defaults = {"int": "2", "object": "1", "": "2.0", "Any": "True", "str": "'s'"}
        parameters.append((second, defaults.get(second, "") if shape == "default" else ""))
        bodies = words.MARKING + words.BINARY * 2
    elif shape == "rest":
        rest, bodies = draw(hints), words.REST + words.MARKING
    elif shape == "keyword":
        keyword, bodies = draw(pick(words.KEYS)), words.KEYWORD + words.MARKING
    if i == FUNCTIONS - 1:
        bodies = tuple(b for b in bodies if "{g}" not in b)
    elif shape == "x":
        bodies += words.CALLING * 2
    body = draw(pick(bodies)).replace("{t}", draw(pick(("A", "D", "P"))))
    body = body.replace("{{", "{").replace("}}", "}") if "{{" in body else body
    if "{g}" in body:
        body = body.replace("{g}", f"f{draw(st.integers(i + 1, FUNCTIONS - 1))}")
    how = draw(pick(("dispatch", "dispatch", "dispatch", "function", "multi", "jitted")))
    return Register(
        function=i,
        parameters=tuple(parameters),
        body=body,
        rest=rest,
        keyword=keyword,
        returns=draw(pick(("", "", "", "", *words.RETURNS))),
        precedence=draw(pick((0, 0, 0, 1, -1))) if how != "multi" else 0,
        way="dispatch" if rest is not None and how == "multi" else how,
        foreign=draw(pick((False,) * 7 + (True,))),
    )


@st.composite
def calls(draw: Any) -> Call:
    i = draw(functions)
    way = draw(pick(("", "", *ways.WAYS, "jit", "jit")))
    count = draw(pick((1, 1, 1, 1, 2, 2)))
    first, rest = (arrays, immutable) if way else (values, values)
    args = tuple(draw(first if n == 0 else rest) for n in range(count))
    kw = (("k", draw(pick(words.KEYS))),) if draw(pick((False,) * 6 + (True,))) else ()
    return Call(i, args, kw, way)


@st.composite
def plugins(draw: Any) -> Plugin:
    i = draw(st.integers(0, FUNCTIONS - 2))
    j = draw(st.integers(i + 1, FUNCTIONS - 1))
    body = draw(pick((f"return f{j}(x)", f"return f{j}(x) * 2", f"return x * 2, f{j}(x)")))
    parameter = (draw(pick(("object", "jax.Array", "A", "P"))), "")
    return Plugin(Register(i, (parameter,), body), draw(registers(j)))


promises = st.builds(
    Promise, functions.map(lambda i: Register(i, (("Hint", ""),), "return {n}, x"))
)
rules = st.one_of(
    st.builds(Rule, st.just("conversion"), pick(("A", "B", "D", "P", "jax.Array", "int")), pick(("A", "D"))),
    st.builds(Rule, st.just("conversion"), pick(("A", "D", "P")), pick(("int", "float", "str", "list", "jax.Array"))),
    st.builds(Rule, st.just("promotion"), pick(("A", "D", "P")), pick(("B", "D", "int", "jax.Array")), pick(("A", "D"))),
)  # fmt: skip
mid_traces = st.builds(
    MidTrace, st.builds(Call, functions, arrays.map(lambda a: (a,))), registers()
)
asks = st.one_of(
    st.builds(Ask, functions, st.just("invoke"), values.map(lambda a: (a,)), pick(words.PLAIN_HINTS[1:] + words.ARRAY_HINTS).map(lambda h: (h,))),
    st.builds(Ask, functions, st.just("resolve"), st.lists(values, min_size=1, max_size=2).map(tuple)),
    st.builds(Ask, functions, pick(("methods", "doc"))),
)  # fmt: skip
happenings = st.one_of(
    st.builds(Happens, st.just("abc"), pick(("M", "N")), pick(("A", "B", "D", "P", "int"))),
    st.builds(Happens, pick(("define", "lazy"))),
    st.builds(Happens, st.just("set_global"), st.just("K"), pick(words.GLOBALS)),
    st.builds(Happens, st.just("set_attribute"), pick(("a0", "b0")), pick(words.GLOBALS)),
)


def machine(library: Library, stop_at: int) -> type[RuleBasedStateMachine]:
    """A machine over `library` that does nothing any more once `stop_at` steps were taken."""

    class Machine(RuleBasedStateMachine):
        failed: tuple[list[Step], str] | None = None
        duel: Duel

        @initialize(
            on_late=pick(("accept", "accept", "warn", "raise")),
            base=st.tuples(*(registers(i) for i in range(FUNCTIONS))),
            early=st.booleans(),
        )
        def start(self, on_late: str, base: tuple[Register, ...], early: bool) -> None:
            self.duel = Duel(library, on_late)
            for i, method in enumerate(base):
                self.take(
                    Register(
                        i, (("object", ""),), "return ({n}, x)" if i % 2 else "return x * 0 + {n}"
                    )
                )
                self.take(Register(i, (("object", ""), ("object", "")), "return ({n}, x, y)"))
                self.take(method)
            if early:
                self.take(Seal("freeze", tuple(range(FUNCTIONS))))

        def take(self, step: Step) -> None:
            if counts["steps"] >= stop_at:
                return
            try:
                self.duel.take(step)
            except Difference:
                if Machine.failed is None:
                    Machine.failed = (list(self.duel.program), self.duel.on_late)
                raise

        @rule(step=calls())
        def call(self, step: Step) -> None:
            self.take(step)

        @rule(step=calls())
        def call_too(self, step: Step) -> None:
            self.take(step)

        @rule(back=st.integers(0, 30))
        def again(self, back: int) -> None:
            past = [s for s in self.duel.program if isinstance(s, Call)]
            for i in range(min(3, len(past))):
                self.take(past[-1 - (back + i) % len(past)])

        @rule(back=st.integers(0, 30))
        def again_from_inside(self, back: int) -> None:
            past = [s for s in self.duel.program if isinstance(s, Call) and s.way]
            for i in range(min(3, len(past))):
                self.take(past[-1 - (back + i) % len(past)])

        @rule(
            call=calls(),
            hint=pick(
                (
                    "object",
                    "jax.Array",
                    "jax.Array",
                    "A",
                    "P",
                    "Any",
                    'Float[jax.Array, "..."]',
                    "type",
                    "int",
                )
            ),
            body=pick(
                ("return {n}", "return x * 0 + {n}", "return ({n}, x)", "return x * 4 + {n}")
            ),
            deeper=st.booleans(),
        )
        def around(self, call: Call, hint: str, body: str, deeper: bool) -> None:
            """Call, register what may apply to that call or to one below it, and call again."""
            function = min(call.function + deeper, FUNCTIONS - 1)
            parameters = tuple(
                (hint if i == 0 else "object", "") for i in range(1 if deeper else len(call.args))
            )
            self.take(call)
            self.take(Register(function, parameters, body, precedence=1))
            self.take(call)

        @rule(step=registers())
        def register(self, step: Step) -> None:
            self.take(step)

        @rule(step=registers(), back=st.integers(0, 30))
        def redefine(self, step: Register, back: int) -> None:
            past = [s for s in self.duel.program if isinstance(s, Register)]
            if past:
                old = past[-1 - back % len(past)]
                body = step.body if step.function == old.function else old.body
                self.take(
                    dataclasses.replace(
                        old,
                        body=body if "y" not in body or len(old.parameters) > 1 else "return {n}",
                    )
                )

        @rule(step=st.one_of(plugins(), rules, mid_traces, promises))
        def register_otherwise(self, step: Step) -> None:
            self.take(step)

        @rule(step=asks)
        def ask(self, step: Step) -> None:
            self.take(step)

        @rule(
            step=st.one_of(
                happenings,
                st.builds(Clear, functions, pick(("all", "dispatcher", "reregister", "cache"))),
            )
        )
        def happen(self, step: Step) -> None:
            self.take(step)

        @rule(step=st.builds(Seal, pick(("freeze", "freeze", "freeze", "thaw")), some_functions))
        def seal(self, step: Step) -> None:
            self.take(step)

        @rule(step=st.builds(Thawed, some_functions, st.one_of(registers(), calls(), mid_traces)))
        def thawed(self, step: Step) -> None:
            self.take(step)

        def teardown(self) -> None:
            if hasattr(self, "duel"):
                self.duel.close()

    return Machine


def attack(library: Library, steps: int, seed: int, *, shorten: bool = True) -> None:
    """Take `steps` steps in programs that follow from `seed`.

    Raises:
        Difference: With the shortest program found, where two worlds differ.

    """
    stop_at = counts["steps"] + steps
    round_ = 0
    with library.install("oracle_worlds"), remembered_compilations():
        while counts["steps"] < stop_at:
            tested = hypothesis.seed(seed * 1000 + round_)(machine(library, stop_at))
            settings = hypothesis.settings(
                max_examples=max(1, min(100, (stop_at - counts["steps"]) // 50)),
                stateful_step_count=50,
                deadline=None,
                database=None,
                phases=[hypothesis.Phase.generate],
                suppress_health_check=list(hypothesis.HealthCheck),
                report_multiple_bugs=False,
                print_blob=False,
                verbosity=hypothesis.Verbosity.quiet,
            )
            try:
                run_state_machine_as_test(tested, settings=settings)
            except BaseException as error:
                if tested.failed is None:
                    raise
                program, on_late = tested.failed
                text = str(error)
                if shorten:
                    program, text = shortened(program, library, on_late)
                raise Difference(
                    f"seed {seed}\n{text}\n\n{printed(program)}\n\n{as_data(program)}"
                ) from None
            round_ += 1
