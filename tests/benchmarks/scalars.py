"""The rows that time one call with Python values: there is nothing to jit, and dispatch is all."""

from typing import Literal

from .columns import FILTER, OVER, UNDER, Program

PYTHON = "jit turns the argument into an array"
NO_JIT = {OVER: PYTHON, UNDER: PYTHON, FILTER: "the result stays what it was, at jit's price"}


def int_to_int():
    def define(dispatch):
        @dispatch
        def f(x: int) -> int:
            return x + 1

        @dispatch
        def f(x: str) -> str:
            return x

        return {"f": f}

    def hand():
        return {"f": lambda x: x + 1}

    return Program(define, "f(5)", hand, dict, (int,), absent=NO_JIT)


def int_faithful():
    def define(dispatch):
        @dispatch
        def f(x: int):
            return x + 1

        @dispatch
        def f(x: str):
            return x

        return {"f": f}

    def hand():
        return {"f": lambda x: x + 1}

    return Program(define, "f(5)", hand, dict, (int,), absent=NO_JIT)


def classes():
    def define(dispatch):
        @dispatch
        def f(x: type[int]):
            return 1

        @dispatch
        def f(x: type[str]):
            return 2

        return {"f": f}

    return Program(define, "f(int)", lambda: {"f": lambda x: 1}, dict, (type[int],), absent=NO_JIT)


def literals():
    def define(dispatch):
        @dispatch
        def f(x: Literal["sum"]):
            return 1

        @dispatch
        def f(x: Literal["mean"]):
            return 2

        return {"f": f}

    hints = (Literal["sum"],)
    return Program(define, "f('sum')", lambda: {"f": lambda x: 1}, dict, hints, absent=NO_JIT)


def union_of_scalars():
    def define(dispatch):
        @dispatch
        def f(x: int | float, y: int | None) -> int | float:
            return x + 1

        @dispatch
        def f(x: str | bytes, y: int | None) -> str | bytes:
            return x

        return {"f": f}

    return Program(define, "f(5, None)", lambda: {"f": lambda x, y: x + 1}, dict, absent=NO_JIT)


ROWS = {
    "int -> int": int_to_int,
    "int, no return hint": int_faithful,
    "type[X]": classes,
    "Literal": literals,
    "union -> union": union_of_scalars,
}
