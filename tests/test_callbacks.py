"""Methods that call Python from compiled code, and what only a later trace of a method shows.

A callback has come back when a plain call has, and what it raises leaves that call.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import jax
import jax.numpy as jnp
import numpy as np
import plum
import pytest
from jax import Array
from jax._src.dispatch import runtime_tokens
from jax.experimental import io_callback
from side_by_side import Pair, foreign, took

import plum_freeze

SMALL, LARGE = jnp.ones(3), jnp.full((300, 300), 0.01)


def noted(events, name):
    """A callback that writes down that it was called, and a few values."""

    def note(x):
        events.append((name, np.shape(x)))
        return np.asarray(x)

    return note


def refused(events, name):
    """A callback that raises."""

    def refuse(x):
        raise ValueError(f"refused {name}")

    return refuse


def pure(call, x):
    return jax.pure_callback(call, x, x)


def io(call, x):
    return io_callback(call, x, x)


def ordered_io(call, x):
    return io_callback(call, x, x, ordered=True)


def debug(call, x):
    jax.debug.callback(call, x)
    return x


def ordered_debug(call, x):
    jax.debug.callback(call, x, ordered=True)
    return x


def in_a_branch(call, x):
    return jax.lax.cond(x.sum() > 0, lambda x: debug(call, x), lambda x: x, x)


def in_a_jitted_helper(call, x):
    return jax.jit(lambda x: io(call, x))(x)


AT_ONCE = [debug, ordered_debug]
"""Run plainly, these call Python before they return. JAX runs all others in the background as well."""

WAYS = [*AT_ONCE, pure, io, ordered_io, in_a_branch, in_a_jitted_helper]


def method(way, call, where):
    """A method that calls Python for all arrays, or for those of a later shape."""

    def f(x: Array):
        for _ in range(4):  # long enough for the callback to come late
            x = x @ x if x.ndim == 2 else x * 1
        if where == "all shapes" or x.ndim == 2:
            x = way(call, x)
        return x + 1

    return f


@pytest.mark.parametrize("where", ["all shapes", "a later shape"])
@pytest.mark.parametrize("callback", [noted, refused])
@pytest.mark.parametrize("way", WAYS)
def test_a_callback_has_come_back_when_the_call_has(way, callback, where):
    found = {}
    for frozen in (False, True):
        events = found[frozen] = []
        f = plum.Dispatcher()(method(way, callback(events, "called"), where))
        if frozen:
            plum_freeze.freeze(f)
        for x in [SMALL] * 3 + [LARGE] * 5:
            if way in AT_ONCE:
                events.append(took(f, x))
            else:  # what is raised has another type if it comes late
                events.append(took(lambda x: jax.block_until_ready(f(x)), x).kind)  # noqa: B023
    assert found[True] == found[False]


@pytest.mark.parametrize("where", ["all shapes", "a later shape"])
def test_what_is_printed_stands_before_the_call_returns(where, capfd):
    found = {}
    for frozen in (False, True):

        @plum.Dispatcher()
        def f(x: Array):
            for _ in range(4):
                x = x @ x if x.ndim == 2 else x * 1
            if where == "all shapes" or x.ndim == 2:
                jax.debug.print("inside, {}", x.ndim)
            return x + 1

        if frozen:
            plum_freeze.freeze(f)
        capfd.readouterr()
        printed = found[frozen] = []
        for x in [SMALL] * 3 + [LARGE] * 5:
            f(x)
            printed += [capfd.readouterr().out]
    assert found[True] == found[False]



@pytest.fixture(autouse=True)
def nothing_is_left_running():
    """What a callback raised in the background is raised again when JAX waits for all."""
    yield
    while True:
        try:
            jax.effects_barrier()
        except jax.errors.JaxRuntimeError:
            runtime_tokens.clear()
        else:
            break


def test_a_tracer_that_only_a_later_trace_keeps_is_found():
    found = {}
    for frozen in (False, True):
        kept = []
        keep = foreign("def keep(x):\n    kept.append(x)\n    return x", kept=kept).keep

        @plum.Dispatcher()
        def f(x: Array):
            return (keep(x * 2) if x.ndim == 2 else x) + 1  # noqa: B023

        if frozen:
            plum_freeze.freeze(f)
        found[frozen] = [took(f, x) for x in [SMALL] * 3 + [jnp.ones((2, 2))] * 3]
    assert found[True] == found[False]
    tracer, *arrays = kept  # the trace has left one behind, and was never run
    assert isinstance(tracer, jax.core.Tracer)
    assert [type(x) for x in arrays] == [type(SMALL)] * 3


def test_a_new_trace_is_that_of_a_call_in_all_its_contexts():
    pair = Pair(lambda dispatch: dispatch(method(debug, lambda x: None, "a later shape")))
    for x in (SMALL, SMALL, SMALL, jnp.ones((2, 2))):
        pair.check(lambda f: f(x))  # noqa: B023
        pair.check(lambda f: jax.grad(lambda x: f(x).sum())(x))  # noqa: B023
        pair.check(lambda f: jax.vmap(f)(x[None]))  # noqa: B023
        pair.check(lambda f: jax.jit(f)(x))  # noqa: B023
    assert any("debug_callback" in reason for reason in pair.reasons())
