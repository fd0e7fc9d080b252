"""What hypothesis chooses from: one strategy for each kind of step."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from . import themes, ways
from . import vocabulary as words
from .control import Clear, Happens, Promise, Seal, Thawed
from .family import BASES, FAMILY, Family, Member
from .steps import Ask, Call, MidTrace, Plugin, Register, Rule, Step
from .world import FUNCTIONS

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

register_otherwise = st.one_of(plugins(), rules, mid_traces, promises)
seals = st.builds(Seal, pick(("freeze", "freeze", "freeze", "thaw", "report")), some_functions)
clears = st.builds(Clear, functions, pick(("all", "dispatcher", "reregister", "cache")))
thawed = st.builds(Thawed, some_functions, st.one_of(registers(), calls(), mid_traces))


inherited_from = pick(("return ({n}, x)", "return x * 0 + {n}", "return x * self.v + {n}", "return {n}"))
families = st.builds(
    Family, pick(tuple(BASES)), pick(("object", "Any", "A", "jax.Array")), hints, inherited_from, pick((True, True, False))
)  # fmt: skip
member_calls = st.one_of(
    st.builds(Call, st.just(FAMILY), values.map(lambda a: (a,))),
    st.builds(Call, st.just(FAMILY), arrays.map(lambda a: (a,)), st.just(()), pick(ways.WAYS)),
)
members = st.one_of(
    *[st.builds(Member, st.just("register"), pick(("Parent", "Parent", "Child")), hints, inherited_from)] * 2,
    st.builds(Member, st.just("assign"), pick(("Parent", "Middle", "Child")), st.just("object"), inherited_from),
    st.builds(Member, st.just("delete"), pick(("Parent", "Middle"))),
)  # fmt: skip


@st.composite
def inheritance(draw: Any) -> list[Step]:
    """Calls of an inherited method, before and after something happens to the classes."""
    again = draw(st.lists(member_calls, min_size=1, max_size=3))
    other = st.one_of(members, members, clears, happenings, rules)
    steps = [draw(families), *again, *again]
    for step in draw(st.lists(other, min_size=1, max_size=3)):
        steps += [step, *again, *again]
    return steps


@st.composite
def themed(draw: Any) -> list[Step]:
    """A sequence around one distinction, with one other step somewhere in it."""
    kind, function = draw(pick(("told apart", "told apart", "static", "changed"))), draw(functions)
    if kind == "told apart":
        name, way = draw(pick(tuple(themes.HINTS))), draw(pick(("", "", "", "jit", "vmap")))
        values = draw(st.permutations(themes.HINTS[name][1]))
        steps = themes.told_apart(name, function, tuple(values), way)
    elif kind == "static":
        name, place = draw(pick(tuple(themes.STATIC))), draw(pick(themes.PLACES))
        values = draw(st.permutations(themes.STATIC[name][1]))
        steps = themes.static(name, function, place, tuple(values), draw(pick(("v", "s", "i"))))
    else:
        steps = themes.changed(
            draw(pick(themes.CHANGES)), function, draw(pick(("", "jit", "jit jit")))
        )
    if draw(pick((True, True, True, False))):
        steps.insert(0, Seal("freeze", tuple(range(FUNCTIONS))))
    steps.insert(draw(st.integers(0, len(steps))), draw(st.one_of(registers(), clears, happenings)))
    return steps
