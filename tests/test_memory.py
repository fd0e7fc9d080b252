"""Tables stay bounded, no argument lives on, and a thawed function keeps nothing of ours."""

import gc
import weakref
from typing import Literal

import jax
import jax.numpy as jnp
import plum
import pytest

import plum_freeze
from plum_freeze import _table
from plum_freeze._jit import MOST_VARIANTS

X = jnp.ones(2)


def program(jit=True):
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: object):
        return 0

    @dispatch
    def f(x: int) -> int:
        return x

    @dispatch
    def f(x: Literal["a", "b"]):
        return 1

    @dispatch
    def f(x: type[int]):
        return 2

    @dispatch
    def f(x: jax.Array, y: object):
        return x

    plum_freeze.freeze(f, jit=jit)
    return f, _table.table_of(f)


def size(table):
    keyed = [entry for entry, _ in table.values()]
    cells = [c.cell_contents for e in keyed for c in getattr(e, "__closure__", None) or ()]
    inner = [len(c) for c in cells if isinstance(c, dict)]
    return max([len(table), len(table.decisions), len(table.anchors), len(table.invoked), *inner])


def test_a_million_values():
    f, table = program()
    for i in range(1_000_000):
        f(i)
    assert size(table) <= 4


def test_fresh_strings_under_a_literal():
    f, table = program()
    for i in range(3 * _table.MOST_DECISIONS):
        f(f"s{i}")
    assert size(table) <= _table.MOST_DECISIONS
    assert f("a") == 1


def test_fresh_classes():
    f, table = program()
    for _ in range(_table.MOST_DECISIONS + 500):
        assert f(type("Fresh", (), {})()) == 0
    assert size(table) <= _table.MOST_DECISIONS


def test_fresh_classes_as_arguments():
    f, table = program()
    for _ in range(600):
        assert f(type("Fresh", (int,), {})) == 2
    gc.collect()
    entry, _ = table[(type,)]
    runners = [c.cell_contents for c in entry.__closure__ if isinstance(c.cell_contents, dict)]
    assert max(map(len, runners)) < 50
    assert len(table.decisions) <= _table.MOST_DECISIONS


def test_fresh_arrays_and_lambdas():
    f, table = program()
    for i in range(2_000):
        f(X, lambda: i)
        f(X, [i])
        f(X + i, object())
    assert size(table) <= 8
    (compiled,) = [c for c in table.methods.values() if len(c.marks.positional) == 2]
    assert len(compiled.variants) <= MOST_VARIANTS + 2


class Thing:
    pass


def fresh(kind):
    if kind == "object":
        return Thing()
    if kind == "class":
        return type("Local", (), {})
    if kind == "lambda":
        return lambda: 1
    if kind == "closure":
        k = Thing()
        return lambda: k
    if kind == "array":
        return jnp.arange(3.0)
    return type("Sub", (int,), {})(3)


@pytest.mark.parametrize("kind", ["object", "class", "lambda", "closure", "array", "subclass of int"])
@pytest.mark.parametrize("jit", [True, False])
def test_no_argument_lives_on(kind, jit):
    f, _ = program(jit)
    value = fresh(kind)
    for _ in range(3):
        f(value)
        f(X, value)
    try:
        reference = weakref.ref(value)
    except TypeError:
        pytest.skip("this kind of value takes no weak reference")
    del value
    gc.collect()
    assert reference() is None


def test_a_thawed_function_keeps_nothing():
    f, table = program()
    f(X, 2)
    f(X, 2)
    methods = [weakref.ref(compiled) for compiled in table.methods.values()]
    assert methods
    del table
    plum_freeze.thaw(f)
    gc.collect()
    assert [m() for m in methods] == [None] * len(methods)
    assert not _table.table_of(f)
    assert not _table.table_of(f).methods
