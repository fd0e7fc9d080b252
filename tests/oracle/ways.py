"""How a function is called from inside JAX. Each way is a caller that a user could have written.

A caller is built from `call`, a function of the traced arguments alone. In a frozen world it is
built once and kept; in the plain world it is built anew each time, so it is never stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Callable


def vmap(call: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(call)


def grad(call: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda *a: jnp.sum(jax.tree.leaves(call(*a))[0] * 1.0), allow_int=True)


def scan(call: Callable[..., Any]) -> Callable[..., Any]:
    def body(carry: Any, _: Any) -> Any:
        return carry, call(*carry)

    return lambda *a: jax.lax.scan(body, a, None, length=2)


def cond(call: Callable[..., Any]) -> Callable[..., Any]:
    def branch(*a: Any) -> Any:
        return call(*a)

    return lambda *a: jax.lax.cond(len(a) > 0, branch, branch, *a)


def checkpoint(call: Callable[..., Any]) -> Callable[..., Any]:
    return jax.checkpoint(call)


def custom_jvp(call: Callable[..., Any]) -> Callable[..., Any]:
    @jax.custom_jvp
    def ruled(*a: Any) -> Any:
        return a

    @ruled.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        call(*primals)
        return primals, jax.tree.map(lambda t: t * _number(call(*primals)), tangents)

    return lambda *a: jax.jvp(ruled, a, a)


def custom_vjp(call: Callable[..., Any]) -> Callable[..., Any]:
    @jax.custom_vjp
    def ruled(*a: Any) -> Any:
        return a

    def forward(*a: Any) -> Any:
        return a, call(*a)

    def backward(kept: Any, cotangents: Any) -> Any:
        return jax.tree.map(lambda t: t * _number(kept), cotangents)

    ruled.defvjp(forward, backward)
    return lambda *a: jax.vjp(ruled, *a)[1](a)


def eval_shape(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a: jax.eval_shape(call, *a)


def filter_jit(call: Callable[..., Any]) -> Callable[..., Any]:
    return eqx.filter_jit(call)


def itself(call: Callable[..., Any]) -> Callable[..., Any]:
    return call


def _number(tree: Any) -> Any:
    """One number that depends on the method that ran."""
    return jnp.sum(jax.tree.leaves(tree)[0])


# Under one `jax.jit`, made once in a frozen world.
JITTED = {
    "jit": itself,
    "jit vmap": vmap,
    "jit grad": grad,
    "jit scan": scan,
    "jit cond": cond,
    "jit checkpoint": checkpoint,
    "jit custom_jvp": custom_jvp,
    "jit custom_vjp": custom_vjp,
}
# Through the same inner jit as way "jit": JAX does not trace that again for another outer one.
NESTED = {"jit jit": itself, "scan jit": scan, "vmap jit": vmap}
# What JAX does without a jit of ours: some of it keeps traces of its own.
EAGER = {
    "vmap": vmap,
    "grad": grad,
    "scan": scan,
    "custom_jvp": custom_jvp,
    "eval_shape": eval_shape,
    "filter_jit": filter_jit,
}
WAYS = (*JITTED, *NESTED, *EAGER)
