"""The runners: what plum calls, with as little of ours in its way as can be, and what must stay."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path

import plum
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import jax
import jax.numpy as jnp
from jax import Array
from side_by_side import Pair

import plum_freeze
from plum_freeze import _plum, _running, _screen, _seam, _table, _tracing

X = jnp.arange(4.0)
COUNTS = {"calls": 0}
SCALE = 1.0


class Thing:
    """A class of which no value is an array."""


def entry(function, *types):
    return _table.table_of(function)[types][0]


# -- methods that plum calls directly ------------------------------------------------------------


def test_plum_calls_a_method_itself_where_nothing_has_to_be_done():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(self: Thing, x: int):
        return COUNTS, x

    (method,) = [m.implementation for m in f.methods]
    plum_freeze.freeze(f, jit=False)
    assert f(Thing(), 1) == (COUNTS, 1)
    assert entry(f, Thing, int) is method


def test_only_what_may_be_traced_is_screened(monkeypatch):
    """With dispatch alone it takes milliseconds for nothing."""
    dispatch = plum.Dispatcher()
    seen, real = [], _screen.examine
    monkeypatch.setattr(_screen, "examine", lambda f: (seen.append(f), real(f))[1])

    @dispatch
    def f(x: Array, y: str):
        return x * SCALE

    plum_freeze.freeze(f, jit=False)
    for x in (X, jnp.ones((2, 2))):
        assert (f(x, "a") == x).all() and not seen
    assert (jax.jit(f, static_argnums=1)(X, "a") == X).all() and not seen

    @dispatch
    def g(x: Array):
        return f(x, "a")

    plum_freeze.freeze(g)
    for _ in range(3):
        assert (g(X) == X).all()
    assert {each.__name__ for each in seen} == {"f", "g"}, "f is a part of the trace of g"
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 2.0)
    assert (g(X) == 2 * X).all()


def test_there_is_a_frame_of_ours_where_an_array_may_come_by_keyword():
    def make(dispatch):
        @dispatch
        def f(x: int, *, y=None):
            return x if y is None else y * x

        return f

    pair = Pair(make)
    pair.check(lambda f: f(2))
    pair.check(lambda f: f(2, y=X))
    assert entry(pair.frozen, int) is not pair.frozen.methods[0].implementation
    assert pair.compiled() == 1


@pytest.fixture(params=["seen by the seam", "not seen by the seam"])
def seam(request, monkeypatch):
    """Traces are watched for the methods that are inlined in them, with and without the seam."""
    if request.param.startswith("not"):
        monkeypatch.setattr(_seam, "on_begin", lambda: None)
        monkeypatch.setattr(_seam, "on_end", lambda: None)


@pytest.mark.parametrize("before", [True, False], ids=["known", "first met in the trace"])
@pytest.mark.usefixtures("seam")
def test_the_effect_of_a_method_that_plum_calls_itself(before, monkeypatch):
    if not before:
        monkeypatch.setattr(_running, "PLAIN_CALLS", 0)

    def make(dispatch):
        @dispatch
        def inner(x: Thing):
            COUNTS["calls"] += 1
            return COUNTS["calls"]

        @dispatch
        def outer(x: Array, name: str):
            return x * inner(Thing())

        return inner, outer

    def run(functions):
        inner, outer = functions
        COUNTS["calls"] = 0
        if before:
            inner(Thing())
        return [outer(X, "a") for _ in range(4)]

    pair = Pair(make)
    pair.check(run)
    inner, _ = pair.frozen
    assert entry(inner, Thing) is inner.methods[0].implementation
    assert pair.compiled("outer") == 0
    if plum.COMPILED:  # the screen looks through a pure-Python plum, and names the reason itself
        assert any("inner, which writes" in reason for reason in pair.reasons("outer"))


FACTOR = 2


@pytest.mark.usefixtures("seam")
def test_what_a_method_reads_that_plum_calls_itself(monkeypatch):
    def make(dispatch):
        @dispatch
        def inner(x: Thing):
            return FACTOR

        @dispatch
        def outer(x: Array):
            return x * inner(Thing())

        return inner, outer

    pair = Pair(make)
    pair.check(lambda functions: functions[1](X))
    _, outer = pair.frozen
    assert pair.compiled("outer") == 1
    monkeypatch.setitem(globals(), "FACTOR", 3)
    pair.check(lambda functions: functions[1](X))
    assert float(outer(X)[1]) == 3.0


@pytest.mark.usefixtures("seam")
def test_code_that_is_swapped_in_a_method_that_plum_calls_itself():
    def make(dispatch):
        @dispatch
        def inner(x: int):
            return x + 1

        @dispatch
        def outer(x: Array):
            return x * inner(1)

        return inner, outer

    def other(x):
        return x + 10

    pair = Pair(make)
    pair.check(lambda functions: functions[1](X))
    assert pair.compiled("outer") == 1
    for inner, _ in (pair.plain, pair.frozen):
        inner.methods[0].implementation.__code__ = other.__code__
    pair.check(lambda functions: functions[1](X))
    assert float(pair.frozen[1](X)[1]) == 11.0


def test_nothing_is_watched_after_the_traces():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Array):
        return x + 1

    plum_freeze.freeze(f)
    for _ in range(3):
        f(X)
    assert not _tracing.anywhere
    assert type(_table.table_of(f)) is _table.Table


# -- arrays by keyword ---------------------------------------------------------------------------


def keywords(dispatch):
    @dispatch
    def f(x: Array, *, a, b=1):
        return x * a - b

    return f


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(X, a=X),
        lambda f: f(X, a=X, b=X + 1),
        lambda f: f(X, b=X + 1, a=X),
        lambda f: f(X, a=2, b=X),
        lambda f: f(X, b=X, a=2),
        lambda f: [f(X, a=X, b=b) for b in (1, True, 1.0, 0.0, -0.0)],
        lambda f: [f(X, a=a, b=X) for a in (2, X, 2.0, X + 1)],
        lambda f: f(X, a=X, c=1),
        lambda f: f(X, a=X, x=X),
        lambda f: jax.jit(lambda y: f(X, a=y))(X),
        lambda f: jax.grad(lambda y: f(X, a=y).sum())(X),
    ],
)
def test_arrays_by_keyword(call):
    pair = Pair(keywords)
    pair.check(lambda f: f(X, a=X, b=X))
    for _ in range(2):
        pair.check(call)


def test_arrays_by_keyword_are_compiled_once_in_any_order():
    pair = Pair(keywords)
    for _ in range(3):
        pair.check(lambda f: [f(X, a=X, b=X + 1), f(X, b=X + 1, a=X)])
    assert pair.compiled() == 1


def test_a_method_that_sees_the_order_of_keywords():
    def make(dispatch):
        @dispatch
        def f(x: Array, **rest):
            (first, *_) = rest.values()
            return x + first

        return f

    pair = Pair(make)
    for _ in range(3):
        pair.check(lambda f: [f(X, a=X, b=X + 1), f(X, b=X + 1, a=X)])


def test_a_name_that_the_runners_use_themselves():
    def make(dispatch):
        @dispatch
        def f(argument_0: Array, **rest):
            return argument_0 + sum(rest.values())

        return f

    pair = Pair(make)
    for _ in range(3):
        pair.check(lambda f: f(X, argument_1=X, kwargs=X + 1, key=X, args=X))
        pair.check(lambda f: f(X, argument_0=X))


def test_no_argument_is_kept_by_a_runner():
    pair = Pair(keywords)
    pair.check(lambda f: f(X, a=X))
    x = jnp.ones(3)
    gone = weakref.ref(x)
    assert pair.frozen(x, a=x).shape == (3,)
    assert _plum.resolved_methods(pair.frozen)
    del x
    gc.collect()
    assert gone() is None
