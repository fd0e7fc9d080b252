"""What lies on the stack between a decision and the trace that it is taken in.

JAX keeps traces in caches of its own. Those that `_seam` looks after are known; below other code
of JAX nobody can tell where a decision will be baked in.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from plum_freeze import _jax

if TYPE_CHECKING:
    from types import FrameType

    from plum_freeze._dependencies import Trace

KNOWN = (
    "api", "api_util", "config", "core", "dispatch", "flatten_util", "image", "interpreters.ad",
    "interpreters.batching", "interpreters.partial_eval", "lax", "linear_util", "nn", "numpy",
    "ops", "pjit", "profiler", "random", "scipy", "shard_map", "source_info_util", "stages",
    "traceback_util", "tree_util", "util",
)  # fmt: skip
"""Modules of `jax._src` that keep no trace of what is called below them, but for those that we see.

All others may (rules of `custom_jvp` are remembered with the jaxpr, which is what others remember
more by): a decision that is taken below them counts as baked in everywhere. So it does below a
function of these that has a cache, if it is none of those that `_seam` looks after.
"""
KNOWN_FUNCTIONS = frozenset(
    {
        "ad_checkpoint.checkpoint.<locals>.fun_remat",
        "custom_batching.custom_vmap.__call__",
        "custom_derivatives.CustomJVPCallPrimitive.bind_with_trace",
        "custom_derivatives.CustomVJPCallPrimitive.bind_with_trace",
        "custom_derivatives._check_primal_refs",
        "custom_derivatives._flatten_fun_nokwargs",
        "custom_derivatives.custom_jvp.__call__",
        "custom_derivatives.custom_vjp.__call__",
    }
)
"""What is on the way to the primal function of a custom rule, and to what a checkpoint calls.

There they become a part of the trace around them. The rules themselves have others on their way.
"""

# Flags of code that runs below another frame each time that it goes on.
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_others: set[str] = set()  # files that are none of JAX


def is_below_unknown(frame: FrameType | None, trace: Trace | None) -> bool:
    """Whether code of JAX that may keep traces of its own lies between here and a trace."""
    boundary, seen = (None, None) if trace is None else (trace.boundary, trace.seen)
    if seen is not None:  # it is near in nearly all calls
        near = frame
        while near is not None and near.f_code.co_filename in _others:
            if near is seen:
                return False
            near = near.f_back
    outermost = None
    while frame is not None and frame is not boundary and frame is not seen:
        back, code = frame.f_back, frame.f_code
        if "jax" not in code.co_filename:
            _others.add(code.co_filename)
            if not code.co_flags & _RESUMED:
                outermost = frame
        # what `boundary` itself calls is seen there, whatever keeps it
        elif back is not boundary and not _is_known(frame):
            return True
        frame = back
    if trace is not None and frame is boundary and not _jax.checks_leaks():
        trace.seen = outermost  # what is above a frame stays there for as long as it runs
    return False


def _is_known(frame: FrameType) -> bool:
    module, code = frame.f_globals.get("__name__", ""), frame.f_code
    if not module.startswith("jax."):
        return True
    if not _is_known_module(module):
        return f"{module}.{code.co_qualname}".removeprefix("jax._src.") in KNOWN_FUNCTIONS
    return not hasattr(frame.f_globals.get(code.co_name), "cache_clear")


@functools.lru_cache(maxsize=4096)
def _is_known_module(module: str) -> bool:
    return any(f"{module}.".startswith(f"jax._src.{known}.") for known in KNOWN)
