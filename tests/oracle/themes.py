"""Short sequences around one distinction that a frozen function must make.

At random, two values that differ in no more than a dtype or a sign seldom meet a method that can tell
them apart. Here they always do; what comes before and in between is left to chance.
"""

from __future__ import annotations

from .control import Happens
from .steps import Ask, Call, Register, Rule, Step

# What two methods are registered for, and values that one of them or none takes.
HINTS: dict[str, tuple[tuple[str, str], tuple[str, ...]]] = {
    "dtype": (('Float[jax.Array, "..."]', 'Int[jax.Array, "..."]'), ("v", "iv", "u", "h", "b")),
    "scalar dtype": (('Float[jax.Array, ""]', 'Int[jax.Array, ""]'), ("s", "i", "w", "wi", "z")),
    "shape": (('Float[jax.Array, "n"]', 'Float[jax.Array, "n n"]'), ("v", "m", "s", "v3")),
    "size": (('Float[jax.Array, "3"]', 'Float[jax.Array, "2"]'), ("v", "v3")),
    "value": (("Literal[1]", "Literal[True]"), ("1", "True", "1.0")),
    "falsehood": (("Literal[0]", "Literal[False]"), ("0", "False", "0.0", "-0.0")),
    "class": (("type[A]", "type[int]"), ("A", "B", "D", "int", "bool", "1")),
    "validator": (("Positive", "bool"), ("1", "-1", "True", "3")),
    "items": (("list[int]", "list[str]"), ("[1, 2]", "['a']", "[v]", "[]")),
    "subclass": (("A", "B"), ("A(1)", "B(2)", "C(3)", "D(4)")),
    "array": (("jax.Array", "np.ndarray"), ("v", "np.array([1, 2], 'float32')", "1.0")),
}
# What a jitted method does with a static second argument, keyword or field, and its values.
STATIC: dict[str, tuple[str, tuple[str, ...]]] = {
    "type": (
        "return x * (2 if {s} is True else 4 if type({s}) is int else 8)",
        ("1", "True", "1.0", "3"),
    ),
    "zero": ("return x * 0 + (2 if str({s}) == '-0.0' else 4)", ("0.0", "-0.0", "0", "False")),
    "text": ("return x * (2 if {s} == 's' else 4)", ("'s'", "'ab'", "b's'", "None")),
    "nested": (
        "return x * (2 if repr({s}) == '(1, True)' else 4)",
        ("(1, True)", "(1, 2)", "('a', 'b')"),
    ),
    "large": ("return x * ({s} * {s} / 4)", ("3", "1", "2.0", "0")),
}
# A method is compiled at its second call with some static values, and runs fast from the third on.
OFTEN = 3
PLACES = ("argument", "keyword", "field")
CHANGES = ("abc", "conversion", "global", "attribute", "dict", "promotion", "failure", "promise")


def told_apart(name: str, function: int, values: tuple[str, ...], way: str) -> list[Step]:
    """Two methods that only the named distinction tells apart, and calls with `values`."""
    steps: list[Step] = [
        Register(function, ((hint, ""),), "return {n}", precedence=2) for hint in HINTS[name][0]
    ]
    return [*steps, *(Call(function, (value,), (), way) for value in values * OFTEN)]


def static(name: str, function: int, place: str, values: tuple[str, ...], array: str) -> list[Step]:
    """One method whose compiled code depends on a static value, and calls with `values`."""
    body, _ = STATIC[name]
    if place == "argument":
        parameters: tuple[tuple[str, str], ...] = (("jax.Array", ""), ("", ""))
        method = Register(function, parameters, body.replace("{s}", "y"), precedence=2)
        return [method, *(Call(function, (array, value)) for value in values * OFTEN)]
    if place == "keyword":
        body = body.replace("{s}", "k")
        method = Register(function, (("jax.Array", ""),), body, keyword="1", precedence=2)
        return [method, *(Call(function, (array,), (("k", value),)) for value in values * OFTEN)]
    body = body.replace("{s}", "x.aux").replace("return x *", "return x.v *")
    method = Register(function, (("Q", ""),), body, precedence=2)
    return [method, *(Call(function, (f"Q({array}, {value})",)) for value in values * OFTEN)]


def changed(name: str, function: int, way: str) -> list[Step]:
    """A call, something that is no method, and the call again."""
    array, last = Call(function, ("P(v)",), (), way), Call(function, ("D(4)",))
    if name == "abc":
        method: Step = Register(function, (("N", ""),), "return {n}", precedence=2)
        return [
            method,
            array,
            last,
            Happens("abc", "N", "P"),
            array,
            Happens("abc", "N", "D"),
            last,
        ]
    if name == "conversion":  # of what has the annotated type already, and of what has not
        methods = [
            Register(function, ((hint, ""),), "return x", returns="A", precedence=2)
            for hint in "BD"
        ]
        known = Call(function, ("B(2)",))
        rules = [Rule("conversion", "B", "A"), Rule("conversion", "D", "A")]
        again = [known, known, last]
        return [*methods, *again, rules[0], *again, rules[1], *again]
    if name == "promotion":
        method = Register(function, (("P", ""),), "return plum.promote(x, D(1))[1].v", precedence=2)
        rules = [
            Rule("promotion", "P", "D", "D"),
            Rule("conversion", "P", "D"),
            Rule("conversion", "D", "D"),
        ]
        return [method, array, rules[0], array, rules[1], array, rules[2], array]
    if name == "promise":  # of a class that plum has looked for in vain, and finds later
        methods = [Register(function, (("A | Lazy", ""),), "return {n}", precedence=2)] * 2
        call, ask = Call(function, ("Lazy_class(1)",)), Ask(function, "methods")
        return [methods[0], ask, methods[1], Happens("lazy"), call, last, ask]
    if name == "dict":
        method = Register(
            function, (("P", ""),), "return {'b': x.v * 2, 'a': x.v * 4}", precedence=2
        )
        return [method, *[Call(function, ("P(v)",))] * OFTEN]
    if name == "failure":  # what plum says of it names the arguments
        failing = [Call(function, (text, "1", "1", "1", "1")) for text in ("'s'", "'ab'")]
        return [*failing, *failing]
    if name == "attribute":
        method = Register(function, (("jax.Array", ""), ("A", "")), "return x * y.v", precedence=2)
        call = Call(function, ("v", "a0"))
        return [method, call, call, call, Happens("set_attribute", "a0", "4"), call]
    method = Register(function, (("P", ""),), "return x.v * K", precedence=2)
    call = Call(function, ("P(v)",))  # not in a trace, where the method is not compiled
    first, then = Happens("set_global", "K", "2"), Happens("set_global", "K", "4")
    return [method, first, call, call, call, then, call]
