# ruff: noqa: F722, F821  (the axis names of jaxtyping are no forward references)
"""The rows that time one call."""

import types
from typing import Literal, Union

import equinox
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .columns import FILTER, MULTI, OVER, OVLD, UNDER, Program

PYTHON = "jit turns the argument into an array"
NO_JIT = {OVER: PYTHON, UNDER: PYTHON, FILTER: "the result stays what it was, at jit's price"}
FIELDS = "the object would have to be an argument"


def array():
    def method(x):
        return x + 1

    def define(dispatch):
        @dispatch
        def f(x: int):
            return x

        @dispatch
        def f(x: jax.Array):
            return x + 1

        return {"f": f}

    return Program(
        define, "f(x)", lambda: {"f": jax.jit(method)}, lambda: {"x": jnp.ones(4)}, (jax.Array,)
    )


def jaxtyping_six():
    def method(x):
        return x + 1

    def define(dispatch):
        @dispatch
        def f(x: Float[Array, "a"]):
            return x + 1

        @dispatch
        def f(x: Float[Array, "a b"]):
            return x + 1

        @dispatch
        def f(x: Float[Array, "a b c"]):
            return x + 1

        @dispatch
        def f(x: Int[Array, "a"]):
            return x + 1

        @dispatch
        def f(x: Int[Array, "a b"]):
            return x + 1

        @dispatch
        def f(x: Int[Array, "a b c"]):
            return x + 1

        return {"f": f}

    def values():
        arrays = [jnp.ones((2,) * rank, dtype) for dtype in ("f4", "i4") for rank in (1, 2, 3)]
        return {f"x{i}": value for i, value in enumerate(arrays)}

    statement = f"({', '.join(f'f(x{i})' for i in range(6))})"
    return Program(define, statement, lambda: {"f": jax.jit(method)}, values, calls=6)


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


def ten_operations():
    def method(x):
        y = jnp.sin(x) * 2 + jnp.cos(x)
        y = y * y - jnp.exp(-x)
        return jnp.sqrt(jnp.abs(y)) + 1

    def define(dispatch):
        @dispatch
        def f(x: int):
            return x

        @dispatch
        def f(x: jax.Array):
            y = jnp.sin(x) * 2 + jnp.cos(x)
            y = y * y - jnp.exp(-x)
            return jnp.sqrt(jnp.abs(y)) + 1

        return {"f": f}

    # Multiples of 1/2, where fused and single operations agree to the last printed digit.
    values = lambda: {"x": jnp.arange(4) / 2}
    return Program(define, "f(x)", lambda: {"f": jax.jit(method)}, values, (jax.Array,))


def module_method():
    def define(dispatch):
        class Model(equinox.Module):
            weight: jax.Array

            @dispatch
            def __call__(self, x: jax.Array):
                return self.weight * x

            @dispatch
            def __call__(self, x: int):
                return x

        return {"Model": Model, "model": Model(jnp.ones(4))}

    def hand():
        class Model(equinox.Module):
            weight: jax.Array

            @jax.jit
            def __call__(self, x):
                return self.weight * x

        return {"model": Model(jnp.ones(4))}

    return Program(
        define,
        "model(x)",
        hand,
        lambda: {"x": jnp.ones(4)},
        functions=lambda names: [method_of(names["Model"], "__call__")],
        absent={OVLD: FIELDS, MULTI: FIELDS},
    )


def method_of(cls, name):
    """The plum function under a name of a class; equinox wraps what a module's body defines."""
    found = vars(cls)[name]
    return getattr(found, "method", found)


def bound(*, annotated):
    def build():
        def define(dispatch):
            class Counter:
                if annotated:

                    @dispatch
                    def add(self, x: int) -> int:
                        return x + 1

                    @dispatch
                    def add(self, x: str) -> str:
                        return x
                else:

                    @dispatch
                    def add(self, x: int):
                        return x + 1

                    @dispatch
                    def add(self, x: str):
                        return x

            return {"Counter": Counter, "counter": Counter()}

        def hand():
            class Counter:
                def add(self, x):
                    return x + 1

            return {"counter": Counter()}

        functions = lambda names: [vars(names["Counter"])["add"]]
        return Program(define, "counter.add(5)", hand, dict, functions=functions, absent=NO_JIT)

    return build


def keyword():
    def method(x, *, scale):
        return x * scale

    def define(dispatch):
        @dispatch
        def f(x: jax.Array, *, scale):
            return x * scale

        @dispatch
        def f(x: int, *, scale):
            return x

        return {"f": f}

    values = lambda: {"x": jnp.ones(4), "s": jnp.ones(4)}
    return Program(define, "f(x, scale=s)", lambda: {"f": jax.jit(method)}, values)


def static_keyword():
    def method(x, *, axis):
        return jnp.sum(x, axis=axis)

    def define(dispatch):
        @dispatch
        def f(x: jax.Array, *, axis):
            return jnp.sum(x, axis=axis)

        @dispatch
        def f(x: int, *, axis):
            return x

        return {"f": f}

    def hand():
        return {"f": jax.jit(method, static_argnames="axis")}

    absent = {OVER: "needs static_argnames", UNDER: "needs static_argnames"}
    values = lambda: {"x": jnp.ones((2, 4))}
    return Program(define, "f(x, axis=0)", hand, values, absent=absent)


def unions():
    def method(x, y):
        return x + y

    def define(dispatch):
        @dispatch
        def f(x: Union[Float[Array, "..."], Int[Array, "..."]], y: int | float | jax.Array):
            return x + y

        @dispatch
        def f(x: int | float, y: int | float):
            return x + y

        return {"f": f}

    values = lambda: {"x": jnp.ones(4), "y": jnp.ones(4)}
    return Program(define, "f(x, y)", lambda: {"f": jax.jit(method)}, values)


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


def many_methods():
    """As many methods as the largest function of quax's NumPy has."""

    def method(x):
        return x + 1

    def define(dispatch):
        for number in range(132):
            cls = type(f"Quantity{number}", (), {})
            function = types.FunctionType(_unchanged.__code__, globals(), "f")
            function.__annotations__ = {"x": cls}
            function.__qualname__ = "many_methods.<locals>.f"
            dispatch(function)

        @dispatch
        def f(x: Float[Array, "..."]):
            return x + 1

        @dispatch
        def f(x: Int[Array, "..."]):
            return x + 1

        return {"f": f}

    return Program(define, "f(x)", lambda: {"f": jax.jit(method)}, lambda: {"x": jnp.ones(4)})


def _unchanged(x):
    return x


CALLS = {
    "array method": array,
    "six jaxtyping methods": jaxtyping_six,
    "int -> int": int_to_int,
    "int, no return hint": int_faithful,
    "type[X]": classes,
    "Literal": literals,
    "ten operations": ten_operations,
    "equinox module": module_method,
    "class method -> int": bound(annotated=True),
    "class method": bound(annotated=False),
    "keyword array": keyword,
    "static keyword": static_keyword,
    "union of arrays": unions,
    "union -> union": union_of_scalars,
    "134 methods": many_methods,
}
