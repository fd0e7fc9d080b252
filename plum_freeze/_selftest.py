"""Whether the seam sees what it has to in this JAX: tried out, once, and not read off a version.

The programs below are traced, a decision in them changes, and they are traced again: what they
compute is read off their jaxprs, which compiles nothing. Two are run, for the C++ fast path. It
happens at the first change of a decision, and only once a backend has been started.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from plum_freeze import _dependencies, _seam
from plum_freeze._dependencies import Baked
from plum_freeze._epoch import epoch

if TYPE_CHECKING:
    from collections.abc import Callable


def can_run() -> bool:
    """Whether a backend has been started, and this thread is in no trace."""
    if "jax.numpy" not in sys.modules:  # `import jax` is under way, and registers classes
        return False
    from jax._src import core, xla_bridge

    started: Any = xla_bridge.backends_are_initialized
    return bool(started()) and core.trace_ctx.is_top_level() and not _dependencies.traces()


def failure() -> str | None:
    """What the seam does not see in this JAX; None if it sees everything."""
    import jax
    import numpy as np

    config: Any = jax.config
    if config.jax_disable_jit or config.jax_no_tracing:
        return "tracing was turned off when it was tried"
    cpu = jax.local_devices(backend="cpu")[0]
    with jax.default_device(cpu), jax.transfer_guard("allow"), jax.debug_nans(False):
        return _failure(jax, np.ones(2, np.float32))


def _failure(jax: Any, x: Any) -> str | None:
    world, moves = _World(), epoch.moves
    inner = jax.jit(world.leaf)
    programs = {name: jax.jit(each) for name, each in _programs(jax, world.leaf, inner, x).items()}
    traced: list[None] = []

    def first(array: Any) -> Any:
        return array.tolist()[0]  # `array[0]` would compile an operation

    def unrelated(x: Any) -> Any:
        traced.append(None)
        return x * 2

    def changing(x: Any) -> Any:
        y = world.leaf(x)
        world.change(7.0)
        return y

    other, both = jax.jit(unrelated), jax.jit(changing)
    for value in (3.0, 5.0):
        world.change(value)
        if first(inner(x)) != 1 + value:
            return "a stale value of a jitted function"
        for name, program in programs.items():
            text = str(program.trace(x).jaxpr)
            if f"{value}" not in text or any(f"{old}" in text for old in world.old):
                return f"a stale trace of {name}"
        other.trace(x)
    asking = jax.jit(world.asked)
    for factor in (3.0, 3.0, 5.0):
        world.factor = factor
        if first(asking(x)) != factor:
            return "a stale value where each call has to ask"
    if first(both(x)) != 1 + value or first(both(x)) != 1 + 7.0:
        return "a trace in which a decision changed was kept"
    if epoch.moves != moves:
        return "a trace that was evicted came back"
    return "what depends on nothing was traced again" if len(traced) > 1 else None


class _World:
    """A function whose decision changes."""

    def __init__(self) -> None:
        self.old: list[float] = []
        self.value = 0.0
        self.decision = Baked()
        self.factor = 0.0

    def leaf(self, x: Any) -> Any:
        if _dependencies.anywhere:
            _dependencies.note(self.decision)
        return x + self.value

    def asked(self, x: Any) -> Any:
        _dependencies.note(_Asked(self))
        return x * self.factor

    def change(self, value: float) -> None:
        """Be another world, and tell of it: what has the old value baked in is outdated."""
        if self.value:
            self.old.append(self.value)
        self.value = value
        self.decision.valid = False
        self.decision = Baked()
        _seam.clear_fast_paths()


class _Asked(Baked):
    """The factor of a world, of whose change nobody tells."""

    __slots__ = ("factor", "world")
    is_told = False

    def __init__(self, world: _World) -> None:
        super().__init__()
        self.world, self.factor = world, world.factor

    def holds(self) -> bool:
        return self.factor == self.world.factor


def _programs(jax: Any, leaf: Any, once: Any, ones: Any) -> dict[str, Callable[[Any], Any]]:
    """Functions that have the decision of `leaf` baked in, each by another way of JAX."""
    lax = jax.lax
    twice = jax.jit(lambda x: once(x) * 2)
    body = lambda carry, _: (leaf(carry), None)  # noqa: E731
    loop = lambda _, carry: leaf(carry)  # noqa: E731

    combine = lambda a, b: a + leaf(b)  # noqa: E731
    custom = jax.custom_jvp(leaf)
    custom.defjvp(lambda primals, tangents: (custom(*primals), *tangents))

    def at_once(x: Any) -> Any:
        with jax.ensure_compile_time_eval():  # `once` has a fast path
            return x * float(once(ones).tolist()[0] - 1)

    return {
        "checkpoint": jax.checkpoint(leaf),
        "compile time": at_once,
        "custom_jvp": custom,
        "jit": leaf,
        "jit in jit": twice,
        "scan": lambda x: lax.scan(body, x, None, length=2)[0],
        "cond": lambda x: lax.cond(x[0] > 0, leaf, leaf, x),
        "fori_loop": lambda x: lax.fori_loop(0, x[0].astype(int), loop, x),
        "reduce": lambda x: lax.reduce(x, x.dtype.type(0), combine, (0,)),
        "vmap": jax.vmap(once),
        "grad": jax.value_and_grad(lambda x: twice(x).sum()),
        "jvp": lambda x: jax.jvp(twice, (x,), (x,)),
    }
