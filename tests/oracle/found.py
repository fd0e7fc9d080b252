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
}
