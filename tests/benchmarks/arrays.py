# ruff: noqa: F722, F821  (the axis names of jaxtyping are no forward references)
"""The rows that time one call with JAX arrays.

No `from __future__ import annotations` here: plum cannot resolve text on a jitted method.
"""

import types
from typing import Union

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .columns import OVER, UNDER, Program


def six(dispatch, body):
    """A function with six jaxtyping methods, by rank and dtype, all of which do `body`."""

    @dispatch
    def f(x: Float[Array, "a"]):
        return body(x)

    @dispatch
    def f(x: Float[Array, "a b"]):
        return body(x)

    @dispatch
    def f(x: Float[Array, "a b c"]):
        return body(x)

    @dispatch
    def f(x: Int[Array, "a"]):
        return body(x)

    @dispatch
    def f(x: Int[Array, "a b"]):
        return body(x)

    @dispatch
    def f(x: Int[Array, "a b c"]):
        return body(x)

    return f


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
    def values():
        arrays = [jnp.ones((2,) * rank, dtype) for dtype in ("f4", "i4") for rank in (1, 2, 3)]
        return {f"x{i}": value for i, value in enumerate(arrays)}

    return Program(
        lambda dispatch: {"f": six(dispatch, _plus_one)},
        f"({', '.join(f'f(x{i})' for i in range(6))})",
        lambda: {"f": jax.jit(_plus_one)},
        values,
        calls=6,
    )


def _plus_one(x):
    return x + 1


def ten(x):
    """Ten operations."""
    y = jnp.sin(x) * 2 + jnp.cos(x)
    y = y * y - jnp.exp(-x)
    return jnp.sqrt(jnp.abs(y)) + 1


def ten_operations():
    def define(dispatch):
        @dispatch
        def f(x: int):
            return x

        @dispatch
        def f(x: jax.Array):
            return ten(x)

        return {"f": f}

    # Multiples of 1/2, where fused and single operations agree to the last printed digit.
    values = lambda: {"x": jnp.arange(4) / 2}
    return Program(define, "f(x)", lambda: {"f": jax.jit(ten)}, values, (jax.Array,))


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


ROWS = {
    "array method": array,
    "six jaxtyping methods": jaxtyping_six,
    "ten operations": ten_operations,
    "keyword array": keyword,
    "static keyword": static_keyword,
    "union of arrays": unions,
    "134 methods": many_methods,
}
