"""Programs over leaves: each node calls leaves and earlier nodes in one of JAX's ways.

A node is a linear function of an array, and it is known which one: its values and its derivative
can be computed without JAX.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


@dataclass
class Node:
    """`call(x)` is `model()[0] * x`, and its derivative is `model()[1]`, None if it has none.

    `within` has the modes of the nodes that it calls, and its own; and `UNDECIDED`.
    """

    mode: str
    call: Callable[[Any], Any]
    model: Callable[[], tuple[float, float | None]]
    within: frozenset[str] = frozenset()


def leaf_node(leaf: Any) -> Node:
    return Node(type(leaf).__name__, leaf, lambda: (leaf.factor, leaf.factor))


def _product(parts: list[Node]) -> tuple[float, float | None]:
    value, slope = 1.0, 1.0
    for part in parts:
        a, d = part.model()
        value = value * a
        slope = None if slope is None or d is None else slope * d
    return value, slope


UNDECIDED = "a callback that reads what no method decides"


def make(mode: str, parts: list[Node], rule: Any) -> Node | None:
    """A node that calls `parts` one after the other; None if it cannot be.

    Args:
        mode: How, one of `MODES`.
        parts: Earlier nodes, and leaves.
        rule: A leaf for the node's own rule of differentiation or batching.
    """
    # Nodes may have constants, and JAX cannot compile a reduction that has one. And nobody sees that
    # another thread calls a function that is jitted and compiled (the README says so).
    within = frozenset[str]().union(*(part.within for part in parts))
    if (mode in {"reduce", "thread"} and within) or (mode == "shard_map" and mode in within):
        return None  # the last one JAX refuses, for the mesh around it

    def body(x):
        for part in parts:
            x = part.call(x)
        return x

    if mode == "pure_callback" and not rule.decides_numbers:
        within |= {UNDECIDED}
    if mode == "compile time" and UNDECIDED in within:
        return None  # what the callback reads is baked in, as under any jit

    whole = lambda: _product(parts)  # noqa: E731
    made = MODES[mode](body, whole, rule)
    return None if made is None else Node(mode, *made, within | {mode})


def _same(transform: Callable[[Any], Any]) -> Any:
    return lambda body, whole, _: (transform(body), whole)


def _twice(transform: Callable[[Any], Any]) -> Any:
    def model(whole):
        a, d = whole()
        return a * a, None if d is None else d * d

    return lambda body, whole, _: (transform(body), lambda: model(whole))


def _derivative(transform: Callable[[Any], Any]) -> Any:
    """The value of the node is the derivative of the body, times x."""

    def make(body, whole, _):
        if whole()[1] is None:
            return None

        def model():
            d = whole()[1]
            return d, d

        return transform(body), model

    return make


# The functions that JAX traces are made once, so that it finds its traces of them again.


def _scan(body):
    step = lambda carry, _: (body(carry), None)  # noqa: E731
    return lambda x: lax.scan(step, x, None, length=2)[0]


def _while(body):
    step = lambda carry: (carry[0] + 1, body(carry[1]))  # noqa: E731
    goes_on = lambda carry: carry[0] < 2  # noqa: E731, PLR2004
    return lambda x: lax.while_loop(goes_on, step, (0, x))[1]


def _fori(body):
    step = lambda _, y: body(y)  # noqa: E731
    return lambda x: lax.fori_loop(0, 2, step, x)


def _without_slope(made: Any) -> Any:
    def make(*args):
        call, model = made(*args)
        return call, lambda: (model()[0], None)

    return make


def _custom_jvp(body, whole, rule):
    custom = jax.custom_jvp(lambda x: body(x))
    custom.defjvp(lambda primals, tangents: (custom(*primals), rule(tangents[0])))
    return custom, lambda: (whole()[0], rule.factor)


def _custom_vjp(body, whole, rule):
    custom = jax.custom_vjp(lambda x: body(x))
    custom.defvjp(lambda x: (body(x), None), lambda _, cotangent: (rule(cotangent),))
    # it cannot be differentiated forwards
    return custom, lambda: (whole()[0], None)


def _reverse(body, whole, rule):
    custom, _ = _custom_vjp(body, whole, rule)
    return lambda x: jax.vjp(custom, x)[1](x)[0], lambda: (rule.factor, None)


def _custom_vmap(body, whole, rule):
    custom = jax.custom_batching.custom_vmap(lambda x: body(x))
    custom.def_vmap(lambda size, batched, x: (rule(x), True))
    return lambda x: jax.vmap(custom)(x[None])[0], lambda: (rule.factor, None)


def _callback(body, whole, rule):
    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)  # noqa: E731
    host = lambda x: np.asarray(x) * np.float32(rule.number())  # noqa: E731
    call = lambda x: jax.pure_callback(host, shape(x), body(x), vmap_method="sequential")  # noqa: E731
    return call, lambda: (whole()[0] * rule.factor, None)


def _shard_map(body):
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("i",))
    spec = jax.sharding.PartitionSpec()
    return jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


def _associative_scan(body):
    combine = lambda left, right: jax.vmap(body)(left + right)  # noqa: E731

    def call(x):
        return lax.associative_scan(combine, jnp.stack([x, jnp.zeros_like(x)]))[1]

    return call


def _reduce(body, whole, _):
    """A reduction to the largest, and to the body's value of 1, however often XLA combines."""
    combine = lambda a, b: jnp.maximum(jnp.maximum(a, b), body(a * 0 + 1))  # noqa: E731

    def call(x):
        return x * lax.reduce(jnp.zeros(2, x.dtype), np.zeros((), x.dtype), combine, (0,))

    return call, lambda: (whole()[0],) * 2


def _primitive(body, whole, rule):
    """An operation of one's own, the identity, that a decision differentiates."""
    identity = Primitive("fuzz_identity")
    identity.def_impl(lambda x: x)
    identity.def_abstract_eval(lambda x: x)
    mlir.register_lowering(identity, mlir.lower_fun(lambda x: x, multiple_results=False))
    batching.primitive_batchers[identity] = lambda args, axes: (identity.bind(*args), axes[0])

    def jvp(primals, tangents):
        (tangent,) = tangents
        return identity.bind(*primals), tangent if type(tangent) is ad.Zero else rule(tangent)

    ad.primitive_jvps[identity] = jvp

    def model():
        a, d = whole()
        return a, None if d is None else d * rule.factor

    return jax.jit(lambda x: identity.bind(body(x))), model


def _thread(body, whole, _):
    """A jitted function that starts a thread, which calls the body on a number of its own."""

    def call(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(body(jnp.ones((), x.dtype))))
        thread.start()
        thread.join()
        return x * found[0]

    return jax.jit(call), lambda: (whole()[0],) * 2


def _filter_jit(body):
    import equinox as eqx

    return eqx.filter_jit(body)


def _at_compile_time(body, whole, _):
    once = jax.jit(body)

    def call(x):
        with jax.ensure_compile_time_eval():
            factor = once(np.ones((), np.float32))
        return x * factor

    return call, lambda: (whole()[0],) * 2


def _solve(body, whole, rule):
    solve = lambda matvec, b: b / matvec(jnp.ones_like(b))  # noqa: E731

    def call(x):
        return lax.custom_linear_solve(rule, body(x), solve, symmetric=True)

    return call, lambda: (whole()[0] / rule.factor, None)


def _jit(body):
    return jax.jit(body)


def _of_jit(transform):
    return lambda body: transform(jax.jit(body))


def _grad(body):
    gradient = jax.grad(lambda y: jnp.sum(body(y)))
    return lambda x: gradient(x) * x


def _linearize(body):
    return lambda x: jax.linearize(body, x)[1](x)


def _cond(body):
    other = lambda x: x * 0  # noqa: E731
    return lambda x: lax.cond(jnp.sum(x) < 1e30, body, other, x)  # noqa: PLR2004


MODES = {
    "plain": _same(lambda body: body),
    "jit": _same(_jit),
    "jit of jit": _same(_of_jit(lambda inner: jax.jit(lambda x: inner(x)))),
    "scan": _twice(_scan),
    "scan of jit": _twice(_of_jit(_scan)),
    "while_loop": _without_slope(_twice(_while)),
    "fori_loop": _twice(_fori),
    "cond": _same(_cond),
    "switch": _same(lambda body: lambda x: lax.switch(1, [jnp.sin, body, jnp.cos], x)),
    "vmap": _same(lambda body: lambda x: jax.vmap(body)(x[None])[0]),
    "vmap of jit": _same(_of_jit(lambda inner: lambda x: jax.vmap(inner)(x[None])[0])),
    "checkpoint": _same(jax.checkpoint),
    "grad": _derivative(_grad),
    "grad of jit": _derivative(_of_jit(_grad)),
    "jit of grad of jit": _derivative(_of_jit(lambda inner: jax.jit(_grad(inner)))),
    "vjp": _derivative(lambda body: lambda x: jax.vjp(body, x)[1](x)[0]),
    "jvp": _derivative(lambda body: lambda x: jax.jvp(body, (x,), (x,))[1]),
    "linearize": _derivative(_linearize),
    "grad of checkpoint": _derivative(lambda body: _grad(jax.checkpoint(body))),
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "vjp of custom_vjp": _reverse,
    "custom_vmap": _custom_vmap,
    "pure_callback": _callback,
    "shard_map": _same(_shard_map),
    "vectorize": _same(jnp.vectorize),
    "associative_scan": _without_slope(_same(_associative_scan)),
    "filter_jit": _same(_filter_jit),
    "compile time": _at_compile_time,
    "linear_solve": _solve,
    "reduce": _reduce,
    "primitive": _primitive,
    "thread": _thread,
}
