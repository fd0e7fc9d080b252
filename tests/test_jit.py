"""Jitted methods end to end, against plain plum: results, purity, transformations, errors, threads."""

from __future__ import annotations

import dataclasses
import functools
import gc
import sys
import threading
import traceback
from pathlib import Path

import plum
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from side_by_side import Pair, compiled, foreign, functions_of

import plum_freeze
from plum_freeze import _jit, _running, _tracing

X = jnp.arange(4.0)
INTS = jnp.arange(4)


def only(method):
    return lambda dispatch: dispatch(method)


# -- self of every kind --------------------------------------------------------------------------


class Plain:
    def __init__(self):
        self.n = 2
        self.calls = 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int = 2


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Registered:
    w: object
    n: int = dataclasses.field(metadata={"static": True}, default=2)


class Layer(eqx.Module):
    w: Array
    n: int = eqx.field(static=True, default=2)


SELVES = {
    "plain": (Plain, Plain, 0),
    "frozen dataclass": (Frozen, Frozen, 1),
    "registered dataclass": (Registered, lambda cls: cls(X), 1),
    "equinox module": (Layer, lambda cls: cls(X), 1),
}


@pytest.mark.parametrize("name", SELVES)
def test_a_method_of_a_class(name):
    base, make, times = SELVES[name]

    def build(dispatch):
        class Child(base):
            @dispatch
            def scaled(self, x: Array):
                return x * self.n + getattr(self, "w", 0)

            @dispatch
            def scaled(self, x: int):
                return x * self.n

        Child.__module__ = __name__
        Child.__qualname__ = "Child"
        return make(Child) if base in (Registered, Layer) else Child()

    if base is Registered:
        build_once = build

        def build(dispatch):
            made = build_once(dispatch)
            jax.tree_util.register_dataclass(type(made), ["w"], ["n"])
            return made

    pair = Pair(build)
    pair.check(lambda o: o.scaled(X))
    pair.check(lambda o: o.scaled(3))
    found = sum(m.compiled for f in functions_of(pair.frozen_dispatch) for m in compiled(f))
    assert found == (times if base in (Registered, Layer) else 0)  # a local class is held by nobody


def test_a_method_that_changes_its_object_runs_each_time():
    def build(dispatch):
        class Counter(Plain):
            @dispatch
            def count(self, x: Array):
                self.calls += 1
                return x * self.calls

        return Counter()

    pair = Pair(build)
    pair.check(lambda o: o.count(X), times=5)
    assert pair.frozen.calls == 5


def test_static_and_class_methods():
    def build(dispatch):
        class Holder:
            factor = 2

            @staticmethod
            @dispatch
            def static(x: Array):
                return x * 3

            @classmethod
            @dispatch
            def of_class(cls, x: Array):
                return x * cls.factor

        return Holder

    pair = Pair(build)
    for call in (lambda c: c.static(X), lambda c: c().static(X), lambda c: c.of_class(X), lambda c: c().of_class(X)):
        pair.check(call)


@pytest.mark.filterwarnings("ignore:Could not resolve the type hint of `Any`")
def test_partials_and_callable_instances_as_methods():
    class Scale:
        def __init__(self):
            self.calls = 0

        def __call__(self, x: Array):
            self.calls += 1
            return x * self.calls

    def build(dispatch):
        @dispatch
        def f(x: int):
            return x

        scale = Scale()
        scale.__name__ = "f"
        f.register(scale, signature=plum.Signature(Array))
        part = functools.partial(jnp.multiply, 2.0)
        f.register(part, signature=plum.Signature(str, Array))
        return f

    pair = Pair(build)
    pair.check(lambda f: f(X), times=4)
    pair.check(lambda f: f(3))


def test_generators_and_coroutines_are_not_jitted():
    def build(dispatch):
        @dispatch
        def f(x: Array):
            yield x
            yield x * 2

        @dispatch
        async def f(x: Array, y: Array):
            return x + y

        return f

    def run(coroutine):
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        return None

    pair = Pair(build)
    pair.check(lambda f: list(f(X)))
    pair.check(lambda f: run(f(X, X)))
    assert pair.compiled() == 0


# -- purity, end to end --------------------------------------------------------------------------

COUNT = 0
FACTOR = 2.0
KEPT = []


def test_a_counter_counts():
    def f(x: Array):
        global COUNT
        COUNT += 1
        return x * COUNT

    frozen = plum.Dispatcher()(f)
    plum_freeze.freeze(frozen)
    before = COUNT
    assert [float(frozen(jnp.float32(1))) for _ in range(4)] == [before + i for i in (1, 2, 3, 4)]


def test_a_global_that_is_read_may_change(monkeypatch):
    def f(x: Array):
        return x * FACTOR

    def through_another(x: Array, s: str = ""):
        return scaled(x) + 1

    def scaled(x):
        return x * FACTOR

    monkeypatch.setattr(sys.modules[__name__], "scaled", scaled, raising=False)
    pairs = [Pair(only(f)), Pair(only(through_another)), Pair(lambda d: _nested(d))]
    for value in (2.0, 3.0, 2.0, jnp.float32(4)):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", value)
        for pair in pairs:
            pair.check(lambda g: g(X))


def _nested(dispatch):
    @dispatch
    def outer(x: Array):
        return inner(x) * 2

    @dispatch
    def inner(x: Array):
        return x * FACTOR

    return outer


def test_a_global_that_keeps_changing_ends_the_compiling_and_not_the_results(monkeypatch):
    def f(x: Array):
        return x * FACTOR

    pair = Pair(only(f))
    pair.check(lambda g: g(X))
    for i in range(3 * _jit.MOST_CHANGES):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", float(i))
        pair.check(lambda g: g(X), times=2)
    assert pair.compiled() <= _jit.MOST_CHANGES + 1
    (method,) = pair.methods()
    assert method.why_never() == f"reads FACTOR, which changed more than {_jit.MOST_CHANGES} times"


def test_a_helper_that_keeps_a_tracer_is_found():
    keep = foreign("def keep(x):\n    kept.append(x)\n    return x", kept=[]).keep

    def f(x: Array):
        return keep(x * 2) + 1

    pair = Pair(only(f))
    pair.check(lambda g: g(X), times=4)
    assert pair.compiled() == 0
    assert any("keeps a tracer" in reason for reason in pair.reasons())


def test_the_effect_of_an_inlined_method_is_that_of_the_outer_one():
    counts = {"plain": 0, "frozen": 0}

    def build(which):
        def make(dispatch):
            @dispatch
            def outer(x: Array):
                return middle(x) + 1

            @dispatch
            def middle(x: Array):
                return inner(x) + 1

            @dispatch
            def inner(x: Array):
                counts[which] += 1
                return x * counts[which]

            return outer

        return make

    plain = build("plain")(plum.Dispatcher())
    dispatch = plum.Dispatcher()
    frozen = build("frozen")(dispatch)
    plum_freeze.freeze(*functions_of(dispatch))
    for _ in range(4):
        assert plain(X).tolist() == frozen(X).tolist()
    assert counts["plain"] == counts["frozen"] == 4
    (method,) = compiled(frozen)
    # The screen looks through a pure-Python plum: there the reason stands in why_never().
    if not plum.COMPILED:
        return
    assert any("inner, which writes" in reason for reason in method.reasons), method.reasons
    assert method.compiled == 0


def test_an_eager_method_that_is_inlined_makes_the_outer_one_eager():
    calls = []

    def build(dispatch):
        @dispatch
        def outer(x: Array):
            return inner(x) + 1

        @dispatch
        @plum_freeze.eager
        def inner(x: Array):
            calls.append(1)
            return x * len(calls)

        return outer

    dispatch = plum.Dispatcher()
    outer = build(dispatch)
    plum_freeze.freeze(*functions_of(dispatch))
    assert [float(outer(jnp.float32(1))) for _ in range(4)] == [2, 3, 4, 5]


def counting(x):
    global COUNT
    COUNT += 1
    return x * COUNT


def test_the_effect_of_a_function_that_is_passed():
    def f(x: Array, function: object):
        return function(x)

    def in_a_module(x: Array, holder: object):
        return holder.function(x)

    class Holder(eqx.Module):
        function: object = eqx.field(static=True)

    for method, argument in ((f, counting), (in_a_module, Holder(counting)), (f, jnp.negative)):
        frozen = plum.Dispatcher()(method)
        plum_freeze.freeze(frozen)
        got = []
        for _ in range(4):
            before = COUNT
            got.append(frozen(X, argument).tolist())
            assert argument is jnp.negative or before + 1 == COUNT


def test_the_effect_of_a_function_that_is_passed_to_an_inlined_method():
    def build(dispatch):
        @dispatch
        def inner(x: Array, function: object):
            return function(x)

        @dispatch
        def outer(x: Array, n: int):
            return inner(x, FUNCTIONS[n]) + 1

        return outer

    build(dispatch := plum.Dispatcher())
    plum_freeze.freeze(*functions_of(dispatch))
    for _ in range(4):
        before = COUNT
        dispatch.functions["outer"](X, 0)
        assert before + 1 == COUNT


FUNCTIONS = (counting,)


def test_a_global_of_a_function_that_is_passed_may_change(monkeypatch):
    def f(x: Array, function: object):
        return function(x)

    pair = Pair(only(f))
    for value in (2.0, 3.0, 2.0):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", value)
        pair.check(lambda g: g(X, times_factor))
    assert pair.compiled() >= 1


def times_factor(x):
    return x * FACTOR


def test_code_that_is_swapped_in_place_is_traced_again():
    def build(dispatch):
        @dispatch
        def outer(x: Array):
            return inner(x) + 1

        @dispatch
        def inner(x: Array):
            return x * 2

        return outer, inner

    def new(x):
        return x * 3

    pair = Pair(build)
    pair.check(lambda fs: fs[0](X), times=4)
    for _, inner in (pair.plain, pair.frozen):
        inner.methods[0].implementation.__code__ = new.__code__
    pair.check(lambda fs: fs[0](X), times=4)
    pair.check(lambda fs: fs[1](X))


# -- transformations -----------------------------------------------------------------------------


def cube(x: Array):
    return jnp.sum(jax.nn.relu(x) * x * x)


WAYS = {
    "grad": lambda f: jax.grad(f)(X),
    "value_and_grad": lambda f: jax.value_and_grad(f)(X),
    "vmap": lambda f: jax.vmap(f)(X[:, None]),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "vjp": lambda f: jax.vjp(f, X)[0],
    "linearize": lambda f: jax.linearize(f, X)[1](X),
    "hessian": lambda f: jax.hessian(f)(X),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f))(X.reshape(2, 2)),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())(X.reshape(2, 2)),
    "jit": lambda f: jax.jit(f)(X),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(X),
    "scan": lambda f: jax.lax.scan(lambda c, x: (c + f(x), f(x)), 0.0, X[:, None]),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(X),
    "eval_shape": lambda f: str(jax.eval_shape(f, X)),
}


def test_transformations_at_top_level():
    pair = Pair(only(cube))
    for call in WAYS.values():
        pair.check(call, times=2)
    assert not pair.reasons()


def test_grad_and_vmap_use_compiled_code_and_an_outer_jit_inlines():
    def f(x: Array):
        return jnp.sum(x * x)

    pair = Pair(only(f))
    jax.jit(pair.frozen)(X)
    jax.jit(pair.frozen)(X + 1)
    assert pair.compiled() == 0
    for _ in range(3):
        jax.grad(pair.frozen)(X)
    assert pair.compiled() == 1
    jax.vmap(pair.frozen)(X[:, None])
    assert pair.compiled() == 1


def test_a_branch_on_the_value_under_grad():
    def f(x: Array, y: Array):
        return x * 2 if x > 0 else y * 3

    pair = Pair(only(f))
    for x in (2.0, -2.0, jnp.float32(2), jnp.float32(-2)):
        pair.check(lambda g, x=x: jax.grad(g, (0, 1))(x, 1.0))
        pair.check(lambda g, x=x: g(jnp.asarray(x), jnp.asarray(1.0)))


def test_an_axis_name():
    def f(x: Array):
        return jax.lax.psum(x, "i") * 2

    pair = Pair(only(f))
    for call in (
        lambda g: g(X),
        lambda g: jax.vmap(g, axis_name="i")(X),
        lambda g: jax.vmap(g, axis_name="j")(X),
        lambda g: jax.vmap(g, axis_name="i")(X[:2]),
    ):
        pair.check(call)


def test_a_static_power_under_grad():
    def f(x: Array, n: int):
        return x**n

    pair = Pair(only(f))
    for n in (2, 3):
        pair.check(lambda g, n=n: jax.grad(lambda x: g(x, n))(3.0))
        pair.check(lambda g, n=n: jax.vmap(lambda x: g(x, n))(X))
    assert pair.compiled() == 2


def test_a_custom_rule_is_kept():
    @jax.custom_jvp
    def g(x):
        return x * 2

    g.defjvp(lambda primals, tangents: (g(primals[0]), tangents[0] * 100))

    def f(x: Array):
        return g(x) + 1

    pair = Pair(only(f))
    pair.check(lambda h: jax.grad(h)(1.0))
    pair.check(lambda h: h(X))
    assert pair.compiled() == 1


# -- errors --------------------------------------------------------------------------------------


def failing(x: Array, n: int = 0):
    if n == 1:
        raise KeyError("k")
    if n == 2:
        return jnp.dot(x, jnp.ones(7))
    return x * 2


def _frames(error):
    """Files of the frames from the user's call on, those of plum left out."""
    found = [Path(f.filename) for f in traceback.extract_tb(error.__traceback__)]
    return [path for path in found if path.parent.name != "plum"]


@pytest.mark.parametrize("n", [1, 2])
def test_errors_look_as_in_plain_plum(n):
    pair = Pair(only(failing))
    pair.check(lambda f: f(X))
    pair.check(lambda f: f(X, n))
    for number in range(3):
        with pytest.raises((KeyError, TypeError)) as caught:
            pair.frozen(X, n)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
        frames = _frames(caught.value)
        ours = [path for path in frames if path.parent.name == "plum_freeze"]
        assert frames[0] == Path(__file__)
        assert len(ours) <= (1 if number else 2), frames


def test_every_frame_of_ours_is_hidden():
    pair = Pair(only(failing))
    for _ in range(3):
        with pytest.raises(KeyError) as caught:
            pair.frozen(X, 1)
        frame = caught.value.__traceback__
        while frame is not None:
            if Path(frame.tb_frame.f_code.co_filename).parent.name == "plum_freeze":
                assert frame.tb_frame.f_locals.get("__tracebackhide__")
            frame = frame.tb_next


def test_an_interrupt_passes_and_leaves_nothing_behind():
    state = {"stop": False}
    stop = foreign("def check():\n    if state['stop']: raise KeyboardInterrupt", state=state)

    def f(x: Array):
        stop.check()
        return x * 2

    dispatch = plum.Dispatcher()
    frozen = dispatch(f)
    plum_freeze.freeze(frozen)
    (first, method) = frozen(X), compiled(frozen)[0]
    state["stop"] = True
    with pytest.raises(KeyboardInterrupt):
        frozen(X)
    assert not _tracing.anywhere
    assert _tracing.current() is None
    state["stop"] = False
    assert [frozen(X).tolist() for _ in range(3)] == [first.tolist()] * 3
    assert not method.reasons
    assert method.compiled == 1


def test_an_error_in_one_call_only_does_not_end_the_compiling():
    pair = Pair(only(failing))
    pair.check(lambda f: f(X))
    pair.check(lambda f: f(X, 1))
    assert pair.compiled() == 1
    assert not pair.reasons()


def test_recursion():
    def build(dispatch):
        @dispatch
        def power(x: Array, n: int):
            return jnp.ones_like(x) if n == 0 else x * power(x, n - 1)

        return power

    pair = Pair(build)
    for n in (3, 0, 5, 3):
        pair.check(lambda f, n=n: f(X, n))
    assert pair.compiled() == 3


def test_recursion_without_an_end_raises_as_in_plain_plum():
    def build(dispatch):
        @dispatch
        def f(x: Array, n: int):
            return f(x, n)

        return f

    frozen = build(dispatch := plum.Dispatcher())
    plum_freeze.freeze(*functions_of(dispatch))
    for _ in range(2):
        with pytest.raises(RecursionError):
            frozen(X, 1)
    assert not _tracing.anywhere


# -- how often things are compiled ---------------------------------------------------------------


def test_the_first_call_of_each_set_of_static_values_runs_plainly():
    def f(x: Array, n: int):
        return x * n

    pair = Pair(only(f))
    for n in range(8):
        pair.frozen(X, n)
    assert pair.compiled() == 0
    pair.frozen(X, 3)
    assert pair.compiled() == 1


def test_a_first_result_that_is_no_array_saves_the_trace():
    traced = []
    probe = foreign("def seen(x): traced.append(isinstance(x, Tracer))", traced=traced, Tracer=jax.core.Tracer)

    def f(x: Array):
        probe.seen(x)
        return int(x.shape[0])


    pair = Pair(only(f))
    pair.check(lambda g: g(X))
    assert pair.reasons() == ["returns int"]
    assert True not in traced


def test_there_are_no_more_compilations_than_calls_that_differ(monkeypatch):
    compilations = []

    def count(key, *_, **__):
        if key == "/jax/core/compile/backend_compile_duration":
            compilations.append(key)

    def f(x: Array, n: int = 1, *, axis: int = 0):
        return jnp.sum(x * n, axis)

    monkeypatch.setattr(_running, "PLAIN_CALLS", 0)
    pair = Pair(only(f))
    arrays = [jnp.ones((2, 2)), jnp.ones((3, 3)), jnp.ones((2, 2), int)]
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        for _ in range(3):
            for x in arrays:
                for n in (1, 2):
                    for axis in (0, 1):
                        pair.frozen(x, n, axis=axis)
    finally:
        # A listener cannot be taken away before JAX 0.8; then it goes on counting, for nobody.
        getattr(jax.monitoring, "unregister_event_duration_listener", id)(count)
    assert 0 < len(compilations) <= 3 * 2 * 2
    assert pair.compiled() == 4


def test_threads_that_call_a_new_method_at_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            pair = Pair(lambda d: _nested(d))
            barrier, results, errors = threading.Barrier(4), [], []

            def work():
                barrier.wait()
                try:
                    results.extend(pair.frozen(X).tolist() for _ in range(3))
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not errors
            assert results == [[0.0, 4.0, 8.0, 12.0]] * 12
            assert not _tracing.anywhere
    finally:
        sys.setswitchinterval(interval)


def test_a_global_that_changes_while_a_method_is_traced(monkeypatch):
    """A trace that read the new value is not taken for one of the old value."""
    module = sys.modules[__name__]
    source = "def change(x):\n    if isinstance(x, Tracer) and todo: module.FACTOR = todo.pop()"
    probe = foreign(source, module=module, Tracer=jax.core.Tracer, todo=[7.0])

    def f(x: Array):
        probe.change(x)
        return x * FACTOR

    monkeypatch.setattr(module, "FACTOR", 2.0)
    frozen = plum.Dispatcher()(f)
    plum_freeze.freeze(frozen)
    assert frozen(X).tolist() == [0, 2, 4, 6]
    assert frozen(X).tolist() == [0, 7, 14, 21]
    monkeypatch.setattr(module, "FACTOR", 2.0)
    for _ in range(3):
        assert frozen(X).tolist() == [0, 2, 4, 6]
    assert sum(method.compiled for method in compiled(frozen)) > 0


def test_what_a_call_leaves_is_no_garbage():
    pair = Pair(only(cube))
    for _ in range(3):
        pair.frozen(X)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            pair.frozen(X)
        assert gc.collect() < 10
    finally:
        gc.enable()


def test_numpy_keeps_its_64_bits():
    def f(x: Array, y: np.ndarray):
        return y * 2

    pair = Pair(only(f))
    pair.check(lambda g: g(X, np.array([1e300])))
    assert pair.reasons() == ["argument 2 (numpy.ndarray)"]


def test_a_method_whose_first_compiled_run_raised_is_compiled_all_the_same():
    def f(x: Array):
        return x / x

    with jax.debug_nans(True):
        pair = Pair(only(f))
        pair.check(lambda g: g(X + 1), times=1)
        pair.check(lambda g: g(X * 0))
        assert pair.compiled() == 0
        pair.check(lambda g: g(X + 1))
    assert pair.compiled() == 1
