"""What was compiled with a decision that changed is compiled again; nothing else is."""

import abc
import sys
import threading
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import plum
import pytest
from jaxtyping import Array, Float, Int

import plum_freeze
from plum_freeze import _jax, _record, _table

X = jnp.asarray(3.0)


class Traced:
    """A dispatched function with a late method, and a count of what is traced."""

    def __init__(self, *, on_late="accept", jit=True):
        dispatch = self.dispatch = plum.Dispatcher()

        @dispatch
        def f(x: object):
            return x * 2

        self.f = f
        self.traces = 0
        plum_freeze.freeze(f, jit=jit, on_late=on_late)

    def counted(self, function):
        def counting(*args):
            self.traces += 1
            return function(*args)

        return counting

    def change(self):
        @self.dispatch
        def f(x: jax.Array):
            return x * 32

    def change_nothing(self):
        @self.dispatch
        def f(x: str):
            return x

        @self.dispatch
        def f(x: Int[Array, "n m"]):
            return x


def scan(f):
    return lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def cond(f):
    return lambda x: jax.lax.cond(x > 0, f, lambda y: y, x)


def while_loop(f):
    return lambda x: jax.lax.while_loop(lambda c: c[1] < 1, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0]


def custom_jvp(f):
    @jax.custom_jvp
    def g(x):
        return f(x)

    g.defjvp(lambda p, t: (g(*p), f(*t)))
    return g


CALLERS = {
    "jit": lambda f: jax.jit(f),
    "jit of a lambda": lambda f: jax.jit(lambda x: f(x)),
    "jit in jit": lambda f: jax.jit(lambda x: jax.jit(lambda y: jax.jit(f)(y))(x)),
    "scan": lambda f: scan(f),
    "jit of scan": lambda f: jax.jit(scan(f)),
    "cond": lambda f: jax.jit(cond(f)),
    "while_loop": lambda f: jax.jit(while_loop(f)),
    "vmap": lambda f: lambda x: jax.jit(jax.vmap(f))(x[None])[0],
    "kept vmap": lambda f: (lambda g: lambda x: g(x[None])[0])(jax.jit(jax.vmap(f))),
    "grad": lambda f: (lambda g: lambda x: g(x) * x)(jax.jit(jax.grad(f))),
    "checkpoint": lambda f: jax.jit(jax.checkpoint(f)),
    "custom_jvp": lambda f: jax.jit(custom_jvp(f)),
    "filter_jit": lambda f: eqx.filter_jit(f),
    "pure python": lambda f: f,
}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("jit", [True, False])
def test_every_caller_gets_the_new_method(caller, jit):
    t = Traced(jit=jit)
    call = CALLERS[caller](t.f)
    assert float(call(X)) == 6.0
    assert float(call(X)) == 6.0
    t.change()
    assert float(call(X)) == 96.0
    assert float(call(X)) == 96.0


@pytest.mark.parametrize("caller", CALLERS)
def test_refused_leaves_every_caller_as_it_was(caller):
    t = Traced(on_late="raise")
    call = CALLERS[caller](t.f)
    assert float(call(X)) == 6.0
    with pytest.raises(plum_freeze.LateRegistrationError):
        t.change()
    assert float(call(X)) == 6.0


@pytest.mark.parametrize("caller", ["jit", "jit in jit", "jit of scan", "grad", "filter_jit"])
def test_what_changes_no_decision_retraces_nothing(caller):
    t = Traced()
    call = CALLERS[caller](t.counted(t.f))
    call(X)
    before = t.traces
    t.change_nothing()
    call(X)
    assert t.traces == before
    assert t.f("s") == "s"  # the new methods are there
    t.change()
    call(X)
    assert t.traces > before


def test_the_own_jit_of_a_method_is_not_traced_again_either():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Float[Array, "n"]):  # noqa: F821  an axis
        return x * 2

    plum_freeze.freeze(f, on_late="accept")

    def traced():
        (compiled,) = _table.table_of(f).methods.values()
        (variant,) = compiled.variants.values()
        return variant.jitted, variant.jitted._cache_size(), compiled.compiled

    x = jnp.ones(3)
    f(x)
    f(x)
    before = traced()
    moves = _jax.epoch.moves

    @dispatch
    def f(x: Int[Array, "n"]):  # noqa: F821  an axis
        return x

    f(x)
    assert traced() == before
    assert _jax.epoch.moves == moves


def test_from_another_thread():
    t = Traced()
    call = jax.jit(lambda x: t.f(x))
    answers = [float(call(X))]
    thread = threading.Thread(target=t.change)
    thread.start()
    thread.join()
    answers.append(float(call(X)))
    thread = threading.Thread(target=lambda: answers.append(float(call(X))))
    thread.start()
    thread.join()
    assert answers == [6.0, 96.0, 96.0]


def test_a_registration_in_the_middle_of_a_trace():
    t = Traced()

    @jax.jit
    def call(x):
        first = t.f(x)
        t.change()
        return first + t.f(x)

    assert float(call(X)) in (6.0 + 96.0, 96.0 + 96.0)
    assert float(call(X)) == 96.0 + 96.0


def test_a_failed_lookup_is_a_decision_too():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: str):
        return x

    plum_freeze.freeze(f, on_late="accept")

    @jax.jit
    def call(x):
        try:
            return f(x)
        except plum.NotFoundLookupError:
            return x * 0

    assert float(call(X)) == 0.0

    @dispatch
    def f(x: jax.Array):
        return x

    assert float(call(X)) == 3.0


def test_a_decision_without_tracers():
    dispatch = plum.Dispatcher()

    @dispatch
    def factor(unit: object):
        return 2

    plum_freeze.freeze(factor, on_late="accept")
    call = jax.jit(lambda x: x * factor("m"))
    assert float(call(X)) == 6.0

    @dispatch
    def factor(unit: str):
        return 4

    assert float(call(X)) == 12.0


def test_functions_that_are_not_frozen_are_safe_too():
    dispatch = plum.Dispatcher()

    @dispatch
    def g(x: object):
        return x * 2

    @dispatch
    def f(x: jax.Array):
        return g(x) + 1

    plum_freeze.freeze(f)
    call = jax.jit(lambda x: g(x))
    assert (float(f(X)), float(call(X))) == (7.0, 6.0)

    @dispatch
    def g(x: jax.Array):
        return x * 4

    assert (float(f(X)), float(call(X))) == (13.0, 12.0)


@pytest.mark.parametrize("question", ["invoke", "resolve_method"])
def test_questions_in_a_trace_are_decisions(question):
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: object):
        return x * 2

    plum_freeze.freeze(f, on_late="accept")

    @jax.jit
    def call(x):
        if question == "invoke":
            return f.invoke(jax.Array)(x)
        return f.resolve_method((x,))[0](x)

    assert float(call(X)) == 6.0

    @dispatch
    def f(x: jax.Array):
        return x * 4

    assert float(call(X)) == 12.0


def test_a_method_that_its_author_jitted_is_cleared():
    dispatch = plum.Dispatcher()

    @dispatch
    def inner(x: object):
        return x * 2

    @dispatch
    @jax.jit
    def outer(x: jax.Array):
        return inner(x) + 1

    plum_freeze.freeze(inner, outer, on_late="accept")
    assert float(outer(X)) == 7.0

    @dispatch
    def inner(x: jax.Array):
        return x * 4

    assert float(outer(X)) == 13.0


class TestRunAgain:
    """The same source again changes nothing: a notebook cell, a doctest, a reload."""

    SOURCE = """
@dispatch
def f(x: jax.Array, k: int = 3) -> jax.Array:
    return x * k
"""

    def run(self, namespace, source=SOURCE):
        exec(compile(source, "<cell>", "exec"), namespace)

    def namespace(self):
        return {"dispatch": plum.Dispatcher(), "jax": jax, "__name__": "cell"}

    @pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
    def test_identical(self, future):
        n = self.namespace()
        self.run(n, future + self.SOURCE)
        f = n["f"]
        plum_freeze.freeze(f, on_late="raise")
        traces = []
        call = jax.jit(lambda x: (traces.append(1), f(x))[1])
        assert float(call(X)) == float(f(X)) == 9.0
        self.run(n, future + self.SOURCE)
        assert float(call(X)) == float(f(X)) == 9.0
        assert len(traces) == 1

    @pytest.mark.parametrize("change", [("x * k", "x + k"), ("= 3", "= 4"), ("= 3", "= 3.0")])
    def test_changed(self, change):
        n = self.namespace()
        self.run(n)
        f = n["f"]
        plum_freeze.freeze(f)
        call = jax.jit(lambda x: f(x))
        call(X)
        changed = self.SOURCE.replace(*change).replace("k: int", "k: object")
        with pytest.warns(plum_freeze.InvalidationWarning):
            self.run(n, changed)
        fresh = self.namespace()
        self.run(fresh, changed)
        wanted = fresh["f"](X)
        assert (float(call(X)), float(f(X))) == (float(wanted), float(wanted))

    def test_closures_share_their_code_and_differ_in_their_cells(self):
        dispatch = plum.Dispatcher()

        def define(k):
            @dispatch
            def f(x: jax.Array):
                return x * k

            return f

        f = define(2)
        plum_freeze.freeze(f, on_late="accept")
        call = jax.jit(lambda x: f(x))
        assert float(call(X)) == 6.0
        define(4)
        assert float(call(X)) == 12.0
        define(4.0)
        assert float(call(X)) == 12.0

    def test_back_to_an_earlier_version(self):
        n = self.namespace()
        self.run(n)
        f = n["f"]
        plum_freeze.freeze(f, on_late="accept")
        call = jax.jit(lambda x: f(x))
        assert float(call(X)) == 9.0
        self.run(n, self.SOURCE.replace("x * k", "x + k"))
        assert float(call(X)) == 6.0
        self.run(n)
        assert float(call(X)) == 9.0


def test_a_thousand_changes_leave_calls_and_memory_as_they_were():
    dispatch = plum.Dispatcher()

    def define(k):
        @dispatch
        def f(x: jax.Array):
            return x * k

        return f

    f = define(0)
    plum_freeze.freeze(f, on_late="accept")
    call = jax.jit(lambda x: f(x))
    moves = _jax.epoch.moves
    sizes = []
    for k in range(1, 1001):
        define(k)
        if k % 100 == 0:
            assert float(call(X)) == 3.0 * k == float(f(X))
            table = _table.table_of(f)
            sizes.append((len(table), len(table.decisions), len(table.placed), len(_record.all_of({id(f)}))))
    assert len(set(sizes)) == 1, sizes
    assert _jax.epoch.moves - moves <= 1000


def test_a_forward_reference_changes_decisions_at_once(tmp_path, monkeypatch):
    """The module that registers it may call a jitted function before it ends."""
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: object):
        return 1

    plum_freeze.freeze(f, on_late="accept")
    outer = jax.jit(lambda x: x * f(x))
    assert float(outer(X)) == 3.0
    source = """
from __future__ import annotations
import jax
from forward_base import f, outer, answers, x

@f.dispatch
def f(x: Later):
    return 2

Later = jax.Array
answers.append(float(outer(x)))
"""
    base = types.ModuleType("forward_base")
    base.__dict__.update(f=f, outer=outer, answers=[], x=X)
    monkeypatch.setitem(sys.modules, "forward_base", base)
    (tmp_path / "forward_late.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    import forward_late  # noqa: F401

    del sys.modules["forward_late"]
    assert base.answers == [6.0]


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("asked", ["called", "invoked"])
def test_a_hint_that_cannot_be_compared_yet_stops_no_registration(frozen, asked, monkeypatch):
    """Plum says so to who calls, and we say nothing to who registers.

    Nor do we compare it: beartype would keep the error and raise it again after the class is there.
    """
    module = types.ModuleType(f"comes_later_{frozen}_{asked}")  # beartype knows hints by their names
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__dict__.update(dispatch=plum.Dispatcher(), functions=[])
    exec("@dispatch\ndef f(x: str, y: str): return 0\n", module.__dict__)
    f = module.f
    if frozen:
        plum_freeze.freeze(f, on_late="accept")
    ask = (lambda: f(3)) if asked == "called" else lambda: f.invoke(int)(3)
    with pytest.raises(plum.NotFoundLookupError):
        ask()
    exec("@dispatch\ndef f(x: 'Later'): return 1\n", module.__dict__)
    if asked == "called":  # here plum only looks at the value; to invoke, it would compare
        with pytest.raises(Exception, match="Later"):
            ask()
    for hint in ("object", "'Later'", "int"):
        exec(f"@dispatch(precedence=1)\ndef f(x: {hint}): return 2\n", module.__dict__)
    print(plum_freeze.report(f))
    exec("class Later: pass", module.__dict__)
    assert (ask(), f(module.Later()), f("s", "s")) == (2, 2, 0)


@pytest.mark.parametrize("asked", ["called", "invoked"])
def test_no_hints_are_compared_before_plum_compares_them(asked):
    """Beartype keeps the answer, and a class that becomes a subclass afterwards would not be one."""

    class Metric(abc.ABC):  # noqa: B024
        pass

    class Plane:
        pass

    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: Plane):
        return "plane"

    plum_freeze.freeze(f, on_late="accept")
    ask = (lambda: f(Plane())) if asked == "called" else lambda: f.invoke(Plane)(Plane())
    assert ask() == "plane"

    @dispatch
    def f(x: Metric):
        return "metric"

    Metric.register(Plane)
    assert ask() == "plane"
