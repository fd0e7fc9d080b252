"""Programs that once differed, shortened. Each stays, under the name of what was wrong."""

from __future__ import annotations

from .control import Seal
from .steps import Ask, Call, MidTrace, Register

PROGRAMS = {
    "a method that differs only in its docstring is refused when it is registered": (
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
}
