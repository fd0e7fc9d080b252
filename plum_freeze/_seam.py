"""Exact invalidation: a seam in JAX's slow path, where every trace and every reuse of one is seen.

JAX traces a Python function in `partial_eval.trace_to_jaxpr`, for `jit` by way of
`pjit._infer_params`. Both are caches, both are looked up as attributes of their modules, and only
off the hot path. So one wrapper around each sees every trace that is made and every one that is
used again, and what a trace depends on can be kept with it (see `_dependencies`).

When decisions change, the C++ fast paths are cleared. That is cheap, since what is compiled stays
compiled: each jitted function comes by here once at its next call, and only a trace that depends on
an old decision is evicted and made again. A trace that is under way meanwhile on this thread gives
its result to whoever called. It does not get into the fast path: C++ has made the place for it
before, and that was cleared (measured on JAX 0.10.2 and 0.12). If it is on another thread, the
epoch is moved.

These are private names of JAX. Whether they do what is said here, `_selftest` finds out; where they
do not, the epoch is moved.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from types import FunctionType
from typing import TYPE_CHECKING, Any

import wrapt

from plum_freeze import _asked, _dependencies
from plum_freeze._epoch import epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from plum_freeze._dependencies import Baked


MOST_TRIES = 4
"""How often a trace with an old decision may come back after it was evicted. It never does."""


def _nothing() -> None:
    pass


# Called when a trace begins, and when it has ended: lookups of dispatched functions are watched
# meanwhile. Set by `_observe`.
on_begin: Callable[[], None] = _nothing
on_end: Callable[[], None] = _nothing


def install() -> str | None:
    """Put the wrappers around JAX's functions; say what is missing, if something is.

    JAX is there already.
    """
    from jax._src import core, lib, pjit, util
    from jax._src.interpreters import mlir, partial_eval

    needed = {
        "pjit._infer_params": (pjit, "_infer_params"),
        "pjit._infer_params_cached": (pjit, "_infer_params_cached"),
        "pjit._run_python_pjit": (pjit, "_run_python_pjit"),
        "pjit._cpp_pjit_cache_fun_only": (pjit, "_cpp_pjit_cache_fun_only"),
        "pjit._cpp_pjit_cache_explicit_attributes": (pjit, "_cpp_pjit_cache_explicit_attributes"),
        "partial_eval.trace_to_jaxpr": (partial_eval, "trace_to_jaxpr"),
        "partial_eval.trace_to_jaxpr_dynamic": (partial_eval, "trace_to_jaxpr_dynamic"),
        "partial_eval.explain": (partial_eval, "explain"),
        "mlir.lower_jaxpr_to_module": (mlir, "lower_jaxpr_to_module"),
        "EvalTrace.process_custom_jvp_call": (core.EvalTrace, "process_custom_jvp_call"),
        "EvalTrace.process_custom_vjp_call": (core.EvalTrace, "process_custom_vjp_call"),
        "util.cache": (util, "cache"),
        "util.weakref_lru_cache": (util, "weakref_lru_cache"),
        "lib._jax.PjitFunctionCache": (getattr(lib, "_jax", None), "PjitFunctionCache"),
    }
    missing = [name for name, (module, attr) in needed.items() if not hasattr(module, attr)]
    if missing:
        return f"this JAX has no {', '.join(missing)}"
    native: Any = partial_eval  # its stub says nothing of the cache
    if _inside(native.trace_to_jaxpr, native.__name__) is None:
        return "this JAX keeps its traces in another way"
    wrapt.wrap_function_wrapper(pjit, "_infer_params", _infer_params)
    _again(native, "trace_to_jaxpr", util.weakref_lru_cache(maxsize=None, explain=native.explain))
    wrapt.wrap_function_wrapper(partial_eval, "trace_to_jaxpr_dynamic", _trace_to_jaxpr_dynamic)
    for kind, names in OTHERS.items():
        for module, name in names:
            _again(sys.modules.get(module), name, getattr(util, kind)())
    wrapt.wrap_function_wrapper(mlir, "lower_jaxpr_to_module", _lowered)
    for name in ("process_custom_jvp_call", "process_custom_vjp_call"):
        wrapt.wrap_function_wrapper(core, f"EvalTrace.{name}", _evaluated)
    return None


# JAX's other caches of traces, by what decorates them there.
OTHERS = {
    "weakref_lru_cache": (
        ("jax._src.ad_checkpoint", "_trace_to_jaxpr"),
        ("jax._src.interpreters.ad", "_linearize_jaxpr"),
        ("jax._src.interpreters.partial_eval", "lower_jaxpr"),
        ("jax._src.lax.lax", "_trace_composite_to_jaxpr"),
    ),
    "cache": (
        ("jax._src.lax.lax", "_reduction_jaxpr"),
        ("jax._src.lax.lax", "_variadic_reduction_jaxpr"),
    ),
}


def _again(module: Any, name: str, decorator: Any) -> None:
    """Make a cache of JAX once more, if this JAX has it.

    It is put around a function that says what a trace depends on before anyone gets it: other
    threads that want the same trace wait in the cache for the first.
    """
    function = _inside(getattr(module, name, None), getattr(module, "__name__", ""))
    if function is not None:
        traced = decorator(wrapt.FunctionWrapper(function, _trace))
        setattr(module, name, wrapt.FunctionWrapper(traced, _kept))


def _inside(cache: Any, module: str) -> FunctionType | None:
    """The function of a module that a cache calls; None if it is not to be found."""
    inside = {
        id(f): f
        for f in (*gc.get_referents(cache), getattr(cache, "__wrapped__", None))
        if isinstance(f, FunctionType) and f.__module__ == module
    }
    return inside.popitem()[1] if len(inside) == 1 else None


# -- what JAX calls ------------------------------------------------------------------------------


def _infer_params(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """A jitted function is called, and not by its fast path: it is traced, or a trace is found."""
    tries = 0
    while True:
        result, collected = _dependencies.collect(wrapped, args, kwargs)
        decisions = _dependencies.settle(result[0].params["jaxpr"], args[0], collected)
        if not decisions:
            return result  # first of all: whoever traces at each call comes here at each call
        if collected or _hold(decisions):
            _dependencies.inherit(decisions)
            if not all(decision.is_told for decision in decisions):
                _start_run()
            return result
        sys.modules["jax._src.pjit"]._infer_params_cached.cache_clear()
        tries += 1
        _give_up_after(tries)


@functools.cache
def _start_run() -> None:
    """From now on `_run` is called. Not before: it costs each call off JAX's fast path.

    Two threads may put it there twice, which changes nothing.
    """
    wrapt.wrap_function_wrapper(sys.modules["jax._src.pjit"], "_run_python_pjit", _run)


def _run(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """A jitted function runs; with what it was compiled to, its next calls take the fast path.

    Unless there is something to ask at each call: then nothing is said of it.
    """
    from jax._src.interpreters import pxla

    result = wrapped(*args, **kwargs)
    if all(decision.is_told for decision in _dependencies.of(args[0].params["jaxpr"])):
        return result
    return tuple(None if isinstance(each, pxla.MeshExecutable) else each for each in result)


class _Thread(threading.local):
    made: Any = None  # the jaxpr that this thread has made last


_thread = _Thread()


def _trace(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """A function is traced."""
    result, collected = _watched(wrapped, args, kwargs)
    _dependencies.settle(result[0], args[0], collected)
    _thread.made = result[0]
    return result


def _kept(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """A function is traced, or a trace of it is found."""
    tries = 0
    while True:
        _thread.made = None
        result = wrapped(*args, **kwargs)
        made, _thread.made = _thread.made, None
        decisions = _dependencies.of(result[0])
        # A trace that was made just now is what the caller gets, even if a decision has changed
        # meanwhile: plainly, the lines before the change would not run again either.
        if made is result[0] or _hold(decisions):
            _dependencies.inherit(decisions)
            return result
        if hasattr(wrapped, "evict_weakref"):
            wrapped.evict_weakref(args[0])
        else:
            wrapped.cache_clear()
        tries += 1
        _give_up_after(tries)


def _hold(decisions: Collection[Baked]) -> bool:
    """Whether a trace with these decisions is still right."""
    lost = [decision for decision in decisions if not decision.holds()]
    if lost:
        _asked.ask()  # traces may have them that we know nothing of
    return not lost


def _give_up_after(tries: int) -> None:
    """A trace with an old decision came back: JAX has kept it where we do not know."""
    if tries >= MOST_TRIES:
        epoch.move()


def _trace_to_jaxpr_dynamic(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """A function is traced, and whoever called keeps the trace, or it becomes part of another."""
    result, collected = _watched(wrapped, args, kwargs)
    _dependencies.inherit(collected)
    return result


def _lowered(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """Rules of the operations are called, which may decide; what is compiled is kept."""
    if _dependencies.traces():
        return wrapped(*args, **kwargs)
    result, collected = _watched(wrapped, args, kwargs)
    for decision in collected:
        _dependencies.bake_everywhere(decision)
    return result


def _evaluated(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    """A function with a rule is called at once, maybe inside a trace: then fast paths are used."""
    if _dependencies.traces():
        _dependencies.bake_anything()
    return wrapped(*args, **kwargs)


def _watched(function: Any, args: Any, kwargs: Any) -> tuple[Any, set[Baked]]:
    """The same as `collect`, and lookups are watched meanwhile."""
    on_begin()
    try:
        return _dependencies.collect(function, args, kwargs)
    finally:
        on_end()


# -- invalidation --------------------------------------------------------------------------------


def invalidate(decisions: Collection[Baked]) -> bool:
    """Have all that depends on these decisions traced again; say False if that is not in reach.

    They are not valid any more. With False the epoch has to be moved.
    """
    if any(decision.everywhere for decision in decisions):
        return False
    # Traces of other threads are under way. What they end with has the old decision or the new one,
    # and a third thread may wait for it inside of JAX: no order is certain.
    if len(_dependencies.anywhere) > len(_dependencies.traces()):
        return False
    clear_fast_paths()
    return True


def clear_fast_paths() -> None:
    """Have each jitted function come by the seam at its next call."""
    from jax._src import lib, pjit

    native: Any = lib  # its stub leaves `_jax` out
    pjit._infer_params_cached.cache_clear()
    pjit._cpp_pjit_cache_fun_only.clear()
    pjit._cpp_pjit_cache_explicit_attributes.clear()
    native._jax.PjitFunctionCache.clear_all()
