"""`freeze(..., verify=True)`: compiled and plain results are compared when a call is first compiled."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import plum
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from side_by_side import Pair, foreign

import plum_freeze

X = jnp.arange(1.0, 5.0)


def verified(method):
    frozen = plum.Dispatcher()(method)
    plum_freeze.freeze(frozen, verify=True)
    return frozen


def _text(call):
    with pytest.raises(plum_freeze.FreezeError) as caught:
        call()
    return str(caught.value)


def test_state_that_the_screen_cannot_see():
    state = foreign("def draw():\n    counts.append(1)\n    return len(counts)", counts=[])

    def f(x: Array):
        return x * state.draw()

    text = _text(lambda: verified(f)(X))
    for fact in (
        r"f \(.*test_verify\.py:\d+\)",
        r"gives something else compiled than plainly",
        r"plainly: .*Array\(\[2\.",
        r"compiled: .*Array\(\[1\.",
        r"state, or randomness",
        r"@plum_freeze\.eager",
    ):
        assert re.search(fact, text), (fact, text)


def without_x64():
    """With 64 bits both are right, and other test files switch them on."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(False)
    from jax.experimental import disable_x64

    return disable_x64()


def test_a_traced_scalar_that_changes_the_result():
    @plum_freeze.traced("n")
    def f(x: Array, n: int):
        return x * (n * n / 1e9)

    with without_x64():
        text = _text(lambda: verified(f)(jnp.ones(3, jnp.float32), 100_000))
    assert "@traced: Python's arithmetic on n is not XLA's" in text


def test_a_difference_deep_inside_is_named_by_its_path():
    class Box(eqx.Module):
        w: object

    state = foreign("def draw():\n    counts.append(1)\n    return len(counts)", counts=[])

    def f(x: Array):
        return {"a": [x, Box((x * state.draw(),))]}

    assert "at ['a'][1].0[0]" in _text(lambda: verified(f)(X))


def test_a_type_that_differs_is_shown():
    probe = foreign("def asks(x): return isinstance(x, Tracer)", Tracer=jax.core.Tracer)

    def f(x: Array):
        return (x, x) if probe.asks(x) else [x, x]

    text = _text(lambda: verified(f)(X))
    assert "(tuple)" in text
    assert "(list)" in text


def test_what_is_right_passes_and_each_new_shape_is_compared():
    seen = []
    probe = foreign("def see(x): seen.append(type(x).__name__)", seen=seen)

    def f(x: Array):
        probe.see(x)
        return jnp.sin(x) * 2

    frozen = verified(f)
    for x in (X, X, X, X[:2], X[:2]):
        frozen(x)
    assert len(seen) == 4  # two traces, and a plain run for each
    assert jax.vmap(frozen)(X[:, None]).shape == (4, 1)
    assert jax.jit(frozen)(X).shape == (4,)


def test_results_are_those_of_plain_plum():
    def f(x: Array, n: int = 2):
        return {"z": x * n, "a": (x, None)}

    pair = Pair(lambda d: d(f), verify=True)
    pair.check(lambda g: g(X))
    pair.check(lambda g: g(X, 3))
    assert pair.compiled() == 2


def test_exact_types_must_be_equal_exactly():
    state = foreign("def draw():\n    counts.append(1)\n    return len(counts)", counts=[])

    def f(x: Array):
        return (x * 1000).astype(int) + state.draw()

    assert "compiled: Array([1001" in _text(lambda: verified(f)(X)).replace("  ", " ")
