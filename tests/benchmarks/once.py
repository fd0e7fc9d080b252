"""The rows about what happens once: tracing, compiling, and late registrations.

No `from __future__ import annotations` here: plum cannot resolve text on a jitted method.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import plum

import plum_freeze

from .arrays import six, ten
from .columns import FROZEN, HAND, PLAIN, UNDER, Absent, untouched
from .measure import Effort, Figure, interleaved_once, once

CALLS = 1000

# Unlike the rows about one call, these define their functions anew in each round.
Cells = dict[str, Figure | Absent]


# -- tracing -------------------------------------------------------------------------------------


def nested(effort: Effort, *, new: bool = False) -> Cells:
    """Trace a new program that makes 1,000 calls, half of them from inside the other half.

    Args:
        effort: How much is measured.
        new: Whether the functions are new as well, and never were called.
    """
    calls = effort.size(CALLS)
    x = jnp.ones((2, 3))
    inner_body = jax.lax.neg  # one operation of JAX for two calls

    def pair(dispatch) -> tuple[Any, Any]:
        inner = six(dispatch(), inner_body)
        outer = six(dispatch(), lambda x: inner(x))
        return outer, inner

    def dispatcher():
        return plum.Dispatcher()

    def plain():
        outer, inner = pair(dispatcher)
        untouched(outer)
        untouched(inner)
        return outer

    def under():
        def jitting():
            dispatch = plum.Dispatcher()
            return lambda method: dispatch(jax.jit(method))

        outer, inner = pair(jitting)
        untouched(outer)
        untouched(inner)
        return outer

    def frozen():
        outer, inner = pair(dispatcher)
        plum_freeze.freeze(outer, inner)
        for function in (outer, inner):  # as in the other columns
            function._resolve_pending_registrations()
        return outer

    def by_hand():
        return lambda x: (lambda y: inner_body(y))(x)

    def prepare(make: Callable[[], Any]) -> Callable[[], Callable[[], Any]]:
        def one_round() -> Callable[[], Any]:
            f = make()
            if not new:
                jax.make_jaxpr(lambda x: f(x))(x)

            def program(x):
                for _ in range(calls // 2):
                    x = f(x)
                return x

            return lambda: jax.make_jaxpr(program)(x)

        return one_round

    makers = {FROZEN: frozen, PLAIN: plain, UNDER: under, HAND: by_hand}
    return dict(interleaved_once({k: prepare(m) for k, m in makers.items()}, 5 * effort.repeats))


def first_calls(effort: Effort) -> Cells:
    """The first two calls of a method of ten operations: after them it is compiled."""
    sizes = iter(range(1000, 100000))

    def define(dispatch):
        @dispatch
        def f(x: jax.Array):
            return ten(x)

        return f

    def plain():
        f = define(plum.Dispatcher())
        untouched(f)
        return f

    def under():
        dispatch = plum.Dispatcher()
        f = define(lambda method: dispatch(jax.jit(method)))
        untouched(f)
        return f

    def frozen():
        f = define(plum.Dispatcher())
        plum_freeze.freeze(f)
        return f

    def prepare(make):
        def one_round():
            f, x = make(), jnp.ones(next(sizes))  # eager operations are compiled for each shape
            return lambda: (f(x), f(x))

        return one_round

    makers = {
        FROZEN: frozen, PLAIN: plain, UNDER: under, HAND: lambda: jax.jit(lambda x: ten(x))
    }  # fmt: skip
    return dict(interleaved_once({k: prepare(m) for k, m in makers.items()}, effort.repeats))


# -- late registrations --------------------------------------------------------------------------

TRACE = "trace"  # counted by the functions themselves: JAX tells the same of traces that it reuses
COMPILE = "/jax/core/compile/backend_compile_duration"
_counts: dict[str, int] = {}


def _listen() -> None:
    if not _counts:
        _counts.update({TRACE: 0, COMPILE: 0})

        def count(event, seconds, **_):
            if event in _counts:
                _counts[event] += 1

        jax.monitoring.register_event_duration_secs_listener(count)


@dataclass(frozen=True)
class Late:
    """What a late registration costs until every function has answered again."""

    traces: int
    compilations: int
    seconds: float


def late(effort: Effort, *, changes: bool, clear: bool) -> list[Late]:
    """Register late in a program of jitted functions, a few of which use the changed function.

    Args:
        effort: How often.
        changes: Whether the new method changes a decision that was compiled.
        clear: Whether plain plum and `jax.clear_caches()` are what makes the answers right.
    """
    _listen()
    return [_late_once(changes=changes, clear=clear) for _ in range(min(effort.repeats, 3))]


def _late_once(*, changes: bool, clear: bool) -> Late:
    dispatch = plum.Dispatcher()

    @dispatch
    def kept(x: jax.Array):
        return jnp.where(x > 0, x, 0.0)

    @dispatch
    def changed(x: object):
        return x + 1.0

    def using(function, number):
        def program(x):
            _counts[TRACE] += 1
            return function(x) * number

        return jax.jit(program)

    programs = [using(kept, n) for n in range(9)] + [using(changed, n) for n in range(1, 3)]
    if clear:
        untouched(kept)
        untouched(changed)
    else:
        plum_freeze.freeze(kept, changed, on_late="accept")
    x = jnp.arange(4.0)
    for program in programs:
        program(x)

    def register_and_run():
        if changes:

            @changed.dispatch
            def changed_now(x: jax.Array):
                return x + 2.0
        else:

            @changed.dispatch
            def unrelated(x: str):
                return x

        if clear:
            jax.clear_caches()
        for program in programs:
            program(x).block_until_ready()

    before = dict(_counts)
    seconds = once(register_and_run)
    found = Late(_counts[TRACE] - before[TRACE], _counts[COMPILE] - before[COMPILE], seconds)
    assert float(programs[-1](x)[0]) == (4.0 if changes else 2.0)
    return found


def late_rows(effort: Effort, *, changes: bool) -> dict[str, Cells]:
    """Three rows: traces, compilations, and the time until all have answered."""
    frozen = late(effort, changes=changes, clear=False)
    cleared = late(effort, changes=changes, clear=True)

    def cells(field: str, unit: str) -> Cells:
        return {
            PLAIN: Figure.of([float(getattr(each, field)) for each in cleared], unit),
            FROZEN: Figure.of([float(getattr(each, field)) for each in frozen], unit),
        }

    return {
        "traces": cells("traces", "traces"),
        "compilations": cells("compilations", "compilations"),
        "until all answered": cells("seconds", "s"),
    }
