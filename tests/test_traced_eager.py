"""`@eager` and `@traced`."""

from __future__ import annotations

import sys
from pathlib import Path

import plum
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import jax.numpy as jnp
from jax import Array
from side_by_side import Pair, compiled

import plum_freeze

X = jnp.arange(4.0)


def only(method):
    return lambda dispatch: dispatch(method)


def test_twenty_floats_compile_once():
    @plum_freeze.traced("dt")
    def step(x: Array, dt: float):
        return x + dt * 2

    pair = Pair(only(step))
    for i in range(20):
        pair.check(lambda f, i=i: f(X, i / 4), times=1)
    assert pair.compiled() == 1
    assert not pair.reasons()


def test_twenty_keywords_and_a_container_compile_once():
    @plum_freeze.traced("dt", "sizes")
    def step(x: Array, sizes: tuple, *, dt: float = 1.0):
        return x + dt * sizes[0] + sizes[1]

    pair = Pair(only(step))
    for i in range(20):
        pair.check(lambda f, i=i: f(X, (i, float(i)), dt=i / 4), times=1)
    assert pair.compiled() == 1


def test_int_float_and_bool_are_told_apart():
    @plum_freeze.traced("n")
    def f(x: Array, n: object):
        return x * n

    pair = Pair(only(f))
    for n in (1, 2, 1.0, 2.0, True, False, 1j, 2j, 0.0, -1.0):
        pair.check(lambda g, n=n: g(X + 1, n))
    assert pair.compiled() == 4


def test_varargs_and_an_int_that_is_too_large():
    @plum_freeze.traced("ns")
    def f(x: Array, *ns: object):
        return x * len(ns) + sum(n % 7 for n in ns)

    pair = Pair(only(f))
    for ns in ((1, 2), (3, 4), (2**70, 1), (5, 6)):
        pair.check(lambda g, ns=ns: g(X, *ns))
    assert pair.compiled() == 1
    assert not pair.reasons()


def test_without_an_array_it_runs_plainly():
    @plum_freeze.traced("dt")
    def f(x: object, dt: float):
        return x + dt

    pair = Pair(only(f))
    pair.check(lambda g: g(1, 2.5))
    assert pair.compiled() == 0


def test_a_traced_value_that_python_needs_runs_plainly():
    @plum_freeze.traced("n")
    def f(x: Array, n: int):
        return x * 2 if n > 1 else x * 3

    pair = Pair(only(f))
    for n in (1, 2, 3, 1):
        pair.check(lambda g, n=n: g(X, n))
    assert "branches on a traced value (test_traced_eager.py" in pair.reasons()[0]


def test_an_eager_method_runs_each_time_and_says_so():
    calls = []

    @plum_freeze.eager
    def f(x: Array):
        calls.append(x)
        return x * len(calls)

    dispatch = plum.Dispatcher()
    frozen = dispatch(f)
    plum_freeze.freeze(frozen)
    assert [float(frozen(jnp.float32(1))) for _ in range(4)] == [1, 2, 3, 4]
    (method,) = compiled(frozen)
    assert method.why_never() == "marked with @eager"


def test_both_marks_in_any_order():
    def f(x: Array, dt: float):
        return x * dt

    for method in (plum_freeze.eager(plum_freeze.traced("dt")(f)), plum_freeze.traced("dt")(plum_freeze.eager(f))):
        pair = Pair(only(method))
        pair.check(lambda g: g(X, 2.0))
        assert pair.compiled() == 0


def _raised(make):
    with pytest.raises(plum_freeze.FreezeError) as caught:
        make()
    return str(caught.value)


def test_above_dispatch_both_show_the_right_order():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return x

    for mark, name in ((plum_freeze.eager, "@plum_freeze.eager"), (plum_freeze.traced("x"), "@plum_freeze.traced('x')")):
        text = _raised(lambda mark=mark: mark(f))
        lines = [line.strip() for line in text.splitlines()]
        order = [lines.index("@dispatch"), lines.index(name), lines.index("def f(...): ...")]
        assert order == sorted(order)
        assert "above @dispatch" in text


def test_unknown_names_are_named_with_those_that_there_are():
    text = _raised(lambda: plum_freeze.traced("dt", "x")(lambda x, y, *zs, k=1: x))
    assert "no parameter named 'dt'" in text
    assert "x, y, k, zs" in text
    assert "test_traced_eager.py" in text


def test_any_name_is_known_where_there_are_any_keywords():
    def f(x: Array, **kw: float):
        return x * kw["dt"]

    pair = Pair(only(plum_freeze.traced("dt")(f)))
    for i in range(20):
        pair.check(lambda g, i=i: g(X, dt=i / 4), times=1)
    assert pair.compiled() == 1


@pytest.mark.parametrize("names", [(), (1,), ("a", None)])
def test_traced_without_names(names):
    assert "names of parameters" in _raised(lambda: plum_freeze.traced(*names))


def test_what_is_no_plain_function_is_refused():
    for value in (len, 3, int, classmethod(lambda cls: 1)):
        assert "plain Python function" in _raised(lambda value=value: plum_freeze.eager(value))
