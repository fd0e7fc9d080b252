"""Programs that once differed, shortened. Each stays, under the name of what was wrong."""

from __future__ import annotations

from .control import Happens, Promise, Seal
from .steps import Ask, Call, MidTrace, Register

PROGRAMS = {
    "a refusal comes when the method is registered, not at the next call": (
        "raise",
        [
            Register(2, (('Num[jax.Array, "2"]', ""), ("int", "")), "return x", returns="A"),
            Seal("freeze", (1, 2, 3)),
            Register(2, (('Num[jax.Array, "2"]', ""), ("int", "")), "return x", returns="A"),
            MidTrace(
                Call(2, ("wi",)),
                Register(2, (("object", ""),), "return (x * 2).tolist()", precedence=1),
            ),
            Ask(2, "methods"),
        ],
    ),
    "a promise is not resolved before it is kept": (
        "accept",
        [
            Register(0, (("object", ""),), "return {n}"),
            Seal("freeze", (0,)),
            Promise(Register(0, (("Hint", ""),), "return {n}, x")),
            Call(0, ("Promised(1)",)),
            Call(0, ("1",)),
        ],
    ),
    "a pending forward reference does not stop the next registration": (
        "warn",
        [
            Register(2, (("object", ""),), "return x * 0 + {n}"),
            Seal("freeze", (2,)),
            Register(2, (('"Later"', ""),), "return x.v"),
            Register(2, (("int", ""),), "return x * 4"),
            Happens("define"),
            Call(2, ("1",)),
            Call(2, ("Later(1)",)),
        ],
    ),
    "a late method that waits is not lost when the type of another one is imported": (
        "accept",
        [
            Register(3, (("Lazy", ""),), "return x"),
            Register(3, (("object", ""),), "return {n}"),
            Seal("freeze", (3,)),
            Call(3, ("1.0",)),
            Register(3, (("object", ""),), "return ({n}, x)"),
            Happens("lazy"),
            Call(3, ("1.0",)),
        ],
    ),
    "a type that is imported before the first call": (
        "accept",
        [
            Register(3, (("A | Lazy", ""),), "return {n}", precedence=-1),
            Promise(Register(3, (("Hint", ""),), "return {n}, x")),
            Seal("freeze", (0, 1, 2, 3)),
            Register(3, (("A | Lazy", ""),), "return {n}", precedence=-1),
            Happens("lazy"),
            Call(3, ("'s'", "1", "1", "1", "1")),
        ],
    ),
    "a hint that cannot be compared yet does not stop the next registration": (
        "accept",
        [
            Register(1, (("type[A]", ""), ("D", "")), "return x", precedence=-1),
            Seal("freeze", (0, 1, 2, 3)),
            Register(1, (('"Later"', ""),), "return x * 2, {n}", way="function"),
            Call(1, ("(v, v)",)),
            Register(1, (("object", ""),), "return x * 0 + {n}", precedence=1),
            Happens("define"),
            Call(1, ("(v, v)",)),
        ],
    ),
    "a report on hints that plum could not compare": (
        "raise",
        [
            Register(1, (("object", ""),), "return ({n}, x)"),
            Register(1, (('"Later"', ""),), "return ({n}, x, k)", keyword="2.0"),
            Call(1, ("b", "z"), (), "jit custom_vjp"),
            Happens("define"),
            Seal("report", (0, 1)),
        ],
    ),
}
