"""Programs that once differed, shortened. Each stays, under the name of what was wrong."""

from __future__ import annotations

from .control import Promise, Seal
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
}
