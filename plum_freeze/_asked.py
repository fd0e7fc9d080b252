"""What nobody tells of, baked in where nobody sees: then each call of a jitted function asks.

An assignment to a class is such a change (see `_parents`). A trace that is known to have it asks
for itself (see `_seam`). The decisions that are kept here are in traces that are not known: in
rules and threads, and in all traces where invalidation is not exact. As long as there are any, no
jitted function that is compiled gets JAX's C++ fast path, which asks nobody: each call asks them.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

import wrapt

from plum_freeze._epoch import epoch

if TYPE_CHECKING:
    from plum_freeze._dependencies import Baked

# Each way of JAX to call a function says first which one it is, and looks for a trace of it then.
ASKING = (("jax._src.api_util", "debug_info"), ("jax._src.pjit", "_infer_params"))
# What C++ needs to make a fast path.
FAST = (("jax._src.pjit", "_get_fastpath_data"), ("jax._src.api", "_PmapFastpathData"))
# What is decided while one of these runs is baked in; if nobody sees where, it is asked.
BAKING = (
    ("jax._src.interpreters.partial_eval", "trace_to_jaxpr"),
    ("jax._src.interpreters.partial_eval", "trace_to_jaxpr_dynamic"),
    ("jax._src.interpreters.mlir", "lower_jaxpr_to_module"),
)

_lock = threading.Lock()
_asked: dict[object, Baked] = {}
_moves = 0  # how often the epoch had moved when they were baked in: no trace is older

anywhere: list[None] = []
"""One for each trace that is open in some thread, where it is not known what traces have."""


def count_traces() -> None:
    """From now on it is not known what traces have: invalidation is not exact."""
    _wrap(BAKING, _counted)


def _wrap(names: tuple[tuple[str, str], ...], wrapper: Any) -> None:
    """Put a wrapper around functions of JAX, in each of its modules that has taken them by name."""
    modules = [each for name, each in list(sys.modules.items()) if name.partition(".")[0] == "jax"]
    for home, name in names:
        function = getattr(sys.modules.get(home), name, None)
        for module in modules:
            if function is not None and vars(module).get(name) is function:
                wrapt.wrap_function_wrapper(module, name, wrapper)


@functools.cache
def _start() -> None:
    """Have what is asked asked. Not before there is any: each call off the fast path pays."""
    _wrap(ASKING, _ask_first)
    _wrap(FAST, _unless_asked)


def add(decision: Baked) -> None:
    """A decision of whose change nobody tells is baked in, and nobody knows where."""
    global _moves, _asked
    with _lock:
        _start()
        if _moves != epoch.moves:
            _moves, _asked = epoch.moves, {}
        first = _asked.setdefault(decision.subject, decision)
    if not (first.holds() and decision.holds()):  # it has changed meanwhile, and nobody told
        epoch.move()


def count() -> int:
    """How many decisions each call of a jitted function asks."""
    return len(_asked) if _moves == epoch.moves else 0


def ask() -> None:
    """Have everything compiled again if one of them does not hold any more."""
    if _moves == epoch.moves:
        for decision in list(_asked.values()):
            if not decision.holds():
                epoch.move()
                return


def _ask_first(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    if _asked:
        ask()
    return wrapped(*args, **kwargs)


def _unless_asked(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    return None if count() else wrapped(*args, **kwargs)


def _counted(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    anywhere.append(None)
    try:
        return wrapped(*args, **kwargs)
    finally:
        anywhere.pop()
