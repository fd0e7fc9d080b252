"""JAX's settings, devices and buffers: as with plain plum. And `jit=`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import plum
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from side_by_side import Pair, compiled

import plum_freeze

X = jnp.arange(4.0)


def only(method):
    return lambda dispatch: dispatch(method)


def doubled(x: Array, n: int = 2):
    return jnp.sin(x * 0) + x * n


def test_a_deleted_buffer():
    def deleted(f):
        y = jnp.arange(3.0)
        y.delete()
        return f(y)

    pair = Pair(only(doubled))
    pair.check(deleted)
    pair.check(lambda f: f(X))
    pair.check(deleted)
    pair.check(lambda f: f(X))
    assert pair.compiled() == 1
    assert not pair.reasons()


def test_a_donated_buffer():
    def donated(f):
        y = jnp.arange(3.0)
        jax.jit(lambda a: a + 1, donate_argnums=0)(y)
        return f(y)

    pair = Pair(only(doubled))
    pair.check(lambda f: f(jnp.arange(3.0)))  # JAX raises another error where a shape is new
    pair.check(donated)
    assert pair.compiled() == 1


def test_x64_at_run_time():
    def wide(f):
        with jax.enable_x64(True):
            return f(jnp.arange(4.0)), f(jnp.arange(3), 2)

    pair = Pair(only(doubled))
    for call in (lambda f: f(X), wide, lambda f: f(X), lambda f: (f(X), wide(f))):
        pair.check(call)


def test_disable_jit():
    def disabled(f):
        with jax.disable_jit():
            return f(X), f(X, 3)

    pair = Pair(only(doubled))
    pair.check(disabled)
    assert pair.compiled() == 0
    pair.check(lambda f: f(X))
    pair.check(disabled)
    assert pair.compiled() == 1


def test_disable_jit_gives_the_very_argument_back():
    def f(x: list):
        return x

    pair = Pair(only(f))
    with jax.disable_jit():
        argument = [X]
        assert pair.frozen(argument) is argument


def test_checking_leaks():
    def checked(f):
        with jax.checking_leaks():
            return f(X), f(X), f(X), f(X[:2])

    pair = Pair(only(doubled))
    pair.check(checked)
    pair.check(lambda f: f(X))
    assert pair.compiled() == 1


def test_debug_nans(caplog):
    def f(x: Array):
        return jnp.log(x - 1)

    def nans(g):
        with jax.debug_nans(True):
            return g(X)

    pair = Pair(only(f))
    pair.check(lambda g: g(X + 2).shape)
    pair.check(nans)
    pair.check(lambda g: g(X + 2).shape)
    assert pair.compiled() == 1
    assert not pair.reasons()


@pytest.mark.filterwarnings("ignore")
def test_equinox_error_if_raises_in_the_call_and_is_compiled(caplog):
    def f(x: Array):
        return eqx.error_if(x, x.sum() > 3, "too big") * 2

    pair = Pair(only(f))
    for x in (X * 0, X, X * 0, X):
        pair.check(lambda g, x=x: g(x), times=2)
    assert pair.compiled() == 1
    with pytest.raises(RuntimeError, match="too big") as caught:
        pair.frozen(X)
    assert type(caught.value).__name__ == "EquinoxRuntimeError"


def test_default_device_and_matmul_precision():
    def f(x: Array):
        return x + jnp.ones(4)

    def elsewhere(g):
        with jax.default_device(jax.devices("cpu")[0]), jax.default_matmul_precision("float32"):
            return g(X)

    pair = Pair(only(f))
    pair.check(elsewhere)
    pair.check(lambda g: g(X))


SHARDED = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
sys.path.insert(0, sys.argv[1])
from side_by_side import Pair
import jax, jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
def f(x: Array, n: int = 2): return x * n + 1
def g(x: Array, y: Array): return x + y
def where(value): return value, str(value.sharding), sorted(d.id for d in value.devices()), value.committed
pair, both = Pair(lambda d: d(f)), Pair(lambda d: d(g))
mesh = Mesh(jax.devices(), ("i",))
X = jnp.arange(8.0)
split = jax.device_put(X, NamedSharding(mesh, P("i")))
second = jax.device_put(X, jax.devices()[1])
def on_device(h):
    with jax.default_device(jax.devices()[2]):
        return where(h(jnp.arange(8.0)))
for x in (X, split, second, split, X):
    pair.check(lambda h: where(h(x)))
pair.check(on_device)
for args in ((X, X), (split, split), (second, X), (split, second), (X, second)):
    both.check(lambda h: where(h(*args)))
assert pair.compiled() == both.compiled() == 1, (pair.reasons(), both.reasons())
print("right")
"""


def test_sharded_arrays_and_committed_devices():
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(Path(plum_freeze.__file__).parents[1])}
    command = [sys.executable, "-c", SHARDED, str(Path(__file__).parent)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "right", done.stderr


# -- jit= ----------------------------------------------------------------------------------------


def _two():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array):
        return x * 2

    @dispatch
    def f(x: Array, y: Array):
        return x * y

    return f


def _jitted(function):
    for _ in range(2):
        function(X)
        function(X, X)
    return sorted(m.implementation.__code__.co_argcount for m in compiled(function) if m.compiled)


def test_jit_is_a_boolean_a_predicate_or_a_collection():
    f = _two()
    methods = [method.implementation for method in f.methods]
    short = min(methods, key=lambda m: m.__code__.co_argcount)
    for jit, expected in (
        (True, [1, 2]),
        (False, []),
        (lambda m: m.__code__.co_argcount == 2, [2]),
        ([short], [1]),
        ({short}, [1]),
        ((), []),
    ):
        plum_freeze.freeze(f, jit=jit)
        assert _jitted(f) == expected, jit
        plum_freeze.thaw(f)


@pytest.mark.parametrize("jit", [None, 1.5, "yes", [3]])
def test_what_is_no_choice_of_methods_is_refused(jit):
    with pytest.raises(plum_freeze.FreezeError, match="jit="):
        plum_freeze.freeze(_two(), jit=jit)
