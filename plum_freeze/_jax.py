"""Everything that touches JAX. Of the others, `_seam` and `_selftest` import it.

JAX is imported when it is first needed and the program has it already: a program that never
imports JAX has no array and no tracer, and every question here is answered without it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any

from plum_freeze._epoch import Epoch as Epoch
from plum_freeze._epoch import epoch as epoch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


def loaded() -> bool:
    """Whether the program has imported JAX. Until then nothing can be an array."""
    return "jax.numpy" in sys.modules


@functools.cache
def _tracer_class() -> type:
    import jax.core

    return jax.core.Tracer


@functools.cache
def _array_class() -> type:
    import jax

    return jax.Array


def is_tracer_class(cls: type) -> bool:
    """Whether values of this class are tracers: abstract values inside a trace."""
    return loaded() and issubclass(cls, _tracer_class())


def is_array_class(cls: type) -> bool:
    """Whether values of this class are concrete JAX arrays (also typed PRNG keys)."""
    # `issubclass` of a concrete class is sound; of a tracer class it says no since JAX 0.8.2.
    return loaded() and issubclass(cls, _array_class()) and not issubclass(cls, _tracer_class())


def aval_key(value: Any) -> Hashable:
    """What a hint can see of a JAX array or tracer: the kind of aval, dtype and shape.

    The kind tells an array from a `Ref`, whose tracers have the same class.
    """
    aval = value.aval
    return type(aval), aval.dtype, aval.shape


# -- pytrees -------------------------------------------------------------------------------------


@functools.cache
def _registry() -> Any:
    from jax.tree_util import default_registry

    return default_registry


def one_level(value: Any) -> tuple[Any, Any] | None:
    """Children and auxiliary data of a registered pytree node; None for a leaf.

    Without JAX in the program, or on the machine, everything is a leaf.
    """
    return _registry().flatten_one_level(value) if loaded() else None


def rebuilder(value: Any) -> Any:
    """A function from children to a node that is like `value` but for them."""
    import jax.tree_util

    _, structure = jax.tree_util.tree_flatten(value, is_leaf=lambda child: child is not value)
    return structure.unflatten  # type: ignore[attr-defined]  # JAX's stub leaves it out


def is_tracer(value: Any) -> bool:
    """Whether the value is abstract: an argument or an intermediate value of a trace."""
    return loaded() and isinstance(value, _tracer_class())


def is_array(value: Any) -> bool:
    """Whether the value is a JAX array, concrete or traced."""
    return loaded() and isinstance(value, _array_class())


def tracing() -> bool:
    """Whether this thread is inside a trace, also where no argument is a tracer."""
    return loaded() and not _trace_context().is_top_level()


# -- jit -----------------------------------------------------------------------------------------


def jit(function: Any) -> Any:
    """`jax.jit`, for a function of arrays only."""
    import jax

    return jax.jit(function)


def is_jitted(function: Any) -> bool:
    """Whether something has jitted this function already, recognised by its structure."""
    return hasattr(function, "clear_cache") and hasattr(function, "lower")


def callbacks(traced: Any) -> set[str]:
    """The primitives by which a function, traced with `jit(f).trace(...)`, calls Python.

    What else has an effect outside of the function counts as one of them.
    """
    return _callbacks(traced.jaxpr, traced.jaxpr.effects)


def _callbacks(jaxpr: Any, effects: Any) -> set[str]:
    import jax

    found: set[str] = set()
    for eqn in jaxpr.eqns:
        leaves = jax.tree_util.tree_leaves(eqn.params)
        inner = [getattr(leaf, "jaxpr", leaf) for leaf in leaves if hasattr(leaf, "eqns")]
        if eqn.primitive.name == "pure_callback" or (eqn.effects & effects and not inner):
            found.add(eqn.primitive.name)
        for each in inner:
            found |= _callbacks(each, effects)
    return found


def is_deleted(value: Any) -> bool:
    """Whether this is an array whose buffer was donated or deleted."""
    return not is_tracer(value) and is_array(value) and bool(value.is_deleted())


def wait(result: Any) -> Any:
    """The result, once it is computed."""
    import jax

    waited: Any = jax.block_until_ready  # it has no annotations
    return waited(result)


def wait_for_effects() -> None:
    """Come back once everything has been printed."""
    import jax

    barrier: Any = jax.effects_barrier
    barrier()


def jit_is_disabled() -> bool:
    """Whether `jax.disable_jit()` is in force here."""
    return bool(_config().jax_disable_jit)


def checks_leaks() -> bool:
    """Whether `jax.checking_leaks()` is in force: nobody may hold a frame that has a tracer."""
    return bool(_config().jax_check_tracer_leaks)


def _config() -> Any:  # its attributes are made at run time
    import jax

    return jax.config


_EAGER = frozenset({"EvalTrace", "JVPTrace", "LinearizeTrace", "BatchTrace"})


def transforms_eagerly(tracers: Iterable[Any]) -> bool:
    """Whether `grad`, `vmap` and their like run here with no jit around them.

    Each operation is then run and differentiated one by one, and a jitted function as one.
    """
    for tracer in tracers:
        if not _is_eager(tracer._trace):
            return False
    return _is_eager(getattr(_trace_context(), "trace", None))


@functools.cache
def staged_trace_class() -> type:
    """The class of the traces that `jit` and its like make."""
    from jax._src.interpreters import partial_eval

    return getattr(partial_eval, "DynamicJaxprTrace", type(None))


def _is_eager(trace: Any) -> bool:
    while trace is not None:
        if type(trace).__name__ not in _EAGER:
            return False
        trace = getattr(trace, "parent_trace", None)
    return True


@functools.cache  # an import inside of a function takes 0.3 us each time
def _trace_context() -> Any:
    from jax._src import core

    return core.trace_ctx


# -- traces -------------------------------------------------------------------------------------


def trace_of(tracers: list[Any]) -> Any:
    """A weak reference to the trace that these tracers belong to; dead once nobody keeps one."""
    return weakref.ref(tracers[0]._trace)


def is_branching(error: BaseException) -> bool:
    """Whether JAX raised it because Python asked for the value of a tracer."""
    import jax

    return isinstance(error, jax.errors.ConcretizationTypeError)


class InOrder:
    """A dict in a result, in the order of its keys. JAX sorts the keys of a dict.

    It goes through JAX as it is: where jit's C++ puts a result together it uses the structure of
    the result that it saw first, so that a node that turns into a dict comes back with its values
    under the wrong keys [measured].
    """

    def __init__(self, items: dict[Any, Any]) -> None:
        self.items = items


@functools.cache
def register_in_order() -> None:
    """Make `InOrder` a pytree node; once JAX is there."""
    import jax.tree_util

    jax.tree_util.register_pytree_node(
        InOrder,
        lambda node: (tuple(node.items.values()), tuple(node.items)),
        lambda keys, values: InOrder(dict(zip(keys, values, strict=True))),
    )


# -- what hints on arrays look at ----------------------------------------------------------------


def is_aval_hint(hint: Any) -> bool:
    """Whether it is `jax.Array` or `jax.Ref`, whose metaclass looks at the aval of a tracer."""
    if not loaded():
        return False
    import jax

    return hint is jax.Array or hint is getattr(jax, "Ref", None)


def asks_its_aval(cls: type) -> bool:
    """Whether `isinstance(tracer, jax.Array)` looks at the tracer's aval and at nothing else."""
    ask = (
        "_is_traced_array"  # the metaclass of `jax.Array` calls it, and a subclass can override it
    )
    return getattr(cls, ask, None) is getattr(_tracer_class(), ask, None)


def interned_aval_class() -> type | None:
    """`ShapedArray` where JAX makes one object for all equal ones, so that `is` compares them.

    An older `ShapedArray` compares dtypes with `==`, which takes `longlong` for `int64`, and
    jaxtyping tells them apart.
    """
    import jax.core

    shaped: type = jax.core.ShapedArray
    by_value = any("__eq__" in vars(base) for base in shaped.__mro__[:-1])
    return None if by_value else shaped


def close(left: Any, right: Any) -> bool:
    """Whether two arrays of one dtype are equal: exactly, but for rounding for floats."""
    import jax.numpy as jnp

    if jnp.issubdtype(left.dtype, jax_inexact()):
        epsilon = float(jnp.finfo(left.dtype).eps)  # type: ignore[no-untyped-call]
        return bool(jnp.allclose(left, right, rtol=64 * epsilon, atol=64 * epsilon, equal_nan=True))
    return bool((left == right).all())


def jax_inexact() -> Any:
    """The floats and complex numbers."""
    import jax.numpy as jnp

    return jnp.inexact


def abstract(value: Any) -> tuple[Any, tuple[int, ...]] | None:
    """Dtype and shape of an array or of a tracer of one; None for what is no array (a `Ref`)."""
    from jax.core import ShapedArray

    aval = value.aval
    return (aval.dtype, aval.shape) if type(aval) is ShapedArray else None


def with_abstract(dtype: Any, shape: tuple[int, ...], ask: Any) -> Any:
    """What `ask` says of a tracer of this dtype and shape. Starts no backend, compiles nothing."""
    import jax

    answer = []

    def trace(x: Any) -> Any:
        answer.append(ask(x))
        return x

    jax.eval_shape(trace, jax.ShapeDtypeStruct(shape, dtype))  # type: ignore[no-untyped-call]
    return answer[0]


def concrete_array_class() -> type:
    """The class of JAX's arrays, of which `jax.Array` is the abstract face."""
    from jax._src.array import ArrayImpl

    found: type = ArrayImpl
    return found
