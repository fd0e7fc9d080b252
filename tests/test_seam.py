"""Exact invalidation: what depends on a change is traced again, and nothing else.

    PLUM_FREEZE_CALLS=20000 python -m pytest tests/test_seam.py

compares that many calls of random programs, half from a fixed seed, half from a fresh one, which is
printed. PLUM_FREEZE_SECONDS=60 sets how long the threads run, PLUM_FREEZE_REDEFINITIONS=10000 how
often a method is defined again.
"""

from __future__ import annotations

import collections
import gc
import os
import random
import subprocess
import sys
import threading
import time
import traceback
import types
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import jaxtyping
import plum
import pytest
from exact import duel, leaves, nodes
from jax._src import ad_checkpoint, pjit
from jax._src.interpreters import partial_eval
from jax._src.lax import lax
from oracle.speed import remembered_compilations

import plum_freeze
from plum_freeze import (
    _dependencies,
    _epoch,
    _invalidation,
    _observe,
    _parents,
    _seam,
    _stack,
    _table,
    _watch,
)

CALLS = int(os.environ.get("PLUM_FREEZE_CALLS", "400"))
REDEFINITIONS = int(os.environ.get("PLUM_FREEZE_REDEFINITIONS", "400"))
SECONDS = float(os.environ.get("PLUM_FREEZE_SECONDS", "3"))
FRESH = random.SystemRandom().randrange(1, 2**31)
X = jnp.asarray([1.0, 2.0])

# They have rules, which JAX keeps with what it has traced, or threads: what is decided there counts
# as baked in everywhere.
UNSEEN = {
    "custom_jvp", "custom_vjp", "vjp of custom_vjp", "custom_vmap", "primitive", "thread",
}  # fmt: skip
SEEN = [mode for mode in nodes.MODES if mode not in UNSEEN]


@pytest.fixture(autouse=True)
def exact():
    """The seam is in force; where this JAX cannot have it, the epoch is tested elsewhere."""
    _watch.watch_everything()
    jnp.ones(1).block_until_ready()  # it is tried out once a backend has been started
    why = _invalidation.why_not()
    if why != "":
        pytest.skip(f"invalidation is by epoch: {why}")
    yield
    assert _invalidation.why_not() == ""


@pytest.fixture
def counted():
    """How often each way of invalidation was used since."""
    exact, moves = _invalidation.exact, _epoch.epoch.moves
    return lambda: (_invalidation.exact - exact, _epoch.epoch.moves - moves)


def frozen(factor=2.0, **kw):
    dispatch = plum.Dispatcher()

    def define(factor):
        @dispatch
        def f(x: jax.Array):
            return x * factor

        return f

    f = define(factor)
    plum_freeze.freeze(f, on_late="accept", **kw)
    return f, define


def frozen_by_text(value):
    """As `frozen`: a function of a string, whose decisions have no array in them."""
    dispatch = plum.Dispatcher()

    def define(value):
        @dispatch
        def unit(name: str):
            return value

        return unit

    unit = define(value)
    plum_freeze.freeze(unit, on_late="accept")
    return unit, define


# -- random programs -----------------------------------------------------------------------------


def test_random_programs_from_a_fixed_seed(capsys):
    fuzz(20251202, CALLS // 2, capsys)


def test_random_programs_from_a_fresh_seed(capsys):
    fuzz(FRESH, CALLS // 2, capsys)


def fuzz(seed, calls, capsys):
    duel.counts.clear()
    exact, moves = _invalidation.exact, _epoch.epoch.moves
    with capsys.disabled():
        print(f"\nrandom programs: seed {seed}")
    with remembered_compilations():
        duel.run(seed, calls * 2 // 3, kinds=leaves.KINDS + leaves.UNTOLD)
        before = _epoch.epoch.moves
        duel.run(seed, calls // 3, modes=SEEN, kinds=leaves.KINDS + leaves.UNTOLD)
        assert _epoch.epoch.moves == before, "all of that can be seen"
    with capsys.disabled():
        print(
            f"random programs: {duel.counts['calls']} calls, {duel.counts['changes']} changes and"
            f" {duel.counts['changes in a trace']} in a trace, 0 stale;"
            f" {duel.counts['refused']} of {duel.counts['programs']} programs JAX does not take;"
            f" exact {_invalidation.exact - exact}, epoch {_epoch.epoch.moves - moves}"
        )


def test_every_mode_and_kind_is_tried():
    """One call of each, and one after a change."""
    rng = random.Random(1)
    with remembered_compilations():
        for mode in nodes.MODES:
            leaf, rule = leaves.OfArray(rng), leaves.OfArray(rng)
            node = nodes.make(mode, [nodes.leaf_node(leaf)], rule)
            call, moves = jax.jit(node.call), _epoch.epoch.moves
            for factor in (2.0, 4.0):
                leaf.change(factor)
                rule.change(factor * 2)
                assert node.call(X)[0] == node.model()[0], (mode, factor)
                assert call(X)[0] == node.model()[0], (mode, factor)
            assert mode in UNSEEN or _epoch.epoch.moves == moves, f"{mode} is not exact"
        for kind in leaves.KINDS + leaves.UNTOLD:
            leaf = kind(rng)
            call = jax.jit(leaf)
            for factor in (2.0, 4.0, 1.0):
                leaf.change(factor)
                assert call(X)[0] == factor, (kind, factor)


# -- each part is needed -------------------------------------------------------------------------


def without_the_link(patch):
    patch.setattr(_dependencies, "inherit", lambda decisions: None)


def without_the_seam_of_traces(patch):
    patch.setattr(partial_eval, "trace_to_jaxpr", partial_eval.trace_to_jaxpr.__wrapped__)


def without_the_seam_of_checkpoints(patch):
    patch.setattr(ad_checkpoint, "_trace_to_jaxpr", ad_checkpoint._trace_to_jaxpr.__wrapped__)


def without_the_seam_of_reductions(patch):
    patch.setattr(lax, "_variadic_reduction_jaxpr", lax._variadic_reduction_jaxpr.__wrapped__)


def without_the_rule_for_caches(patch):
    patch.setattr(
        _stack,
        "_is_known",
        lambda frame: _stack._is_known_module(frame.f_globals["__name__"]),
    )


def without_clearing_fast_paths(patch):
    patch.setattr(_seam, "clear_fast_paths", pjit._infer_params_cached.cache_clear)


def without_the_rule_for_unknown_code(patch):
    patch.setattr(_stack, "is_below_unknown", lambda *_: False)


def without_the_record_of_what_types_decide(patch):
    patch.delattr(_observe.Observed, "__getitem__")


def without_the_rule_for_other_threads(patch):
    real = _dependencies.note
    patch.setattr(
        _dependencies, "note", lambda *args, **kw: _dependencies.traces() and real(*args, **kw)
    )


def without_asking_at_each_call(patch):
    patch.setattr(_parents.Parents, "is_told", True)


NEEDED = {
    without_the_link: (["jit of jit", "scan of jit", "jit"], [leaves.OfArray]),
    without_the_seam_of_traces: (["scan", "cond"], [leaves.OfArray]),
    without_the_seam_of_checkpoints: (["checkpoint", "jit"], [leaves.OfArray]),
    without_the_seam_of_reductions: (["reduce", "jit"], [leaves.OfArray]),
    without_the_rule_for_caches: (["primitive", "jvp", "jit"], [leaves.OfArray]),
    without_clearing_fast_paths: (["jit"], [leaves.OfArray]),
    without_the_rule_for_unknown_code: (["custom_jvp", "jit of grad of jit"], [leaves.OfArray]),
    without_the_record_of_what_types_decide: (["jit"], [leaves.OfText]),
    without_the_rule_for_other_threads: (["thread"], [leaves.OfText]),
    without_asking_at_each_call: (["jit", "scan"], leaves.UNTOLD),
}


@pytest.mark.parametrize("part", NEEDED, ids=lambda part: part.__name__)
def test_without_any_one_part_something_is_stale(part):
    modes, kinds = NEEDED[part]
    with remembered_compilations():
        with pytest.MonkeyPatch.context() as patch:
            part(patch)
            with pytest.raises(duel.Stale):
                duel.run(7, 1500, modes=modes, kinds=kinds)
        jax.clear_caches()
        duel.run(7, 40, modes=modes, kinds=kinds)


@pytest.mark.parametrize("name", sorted(_stack.KNOWN_FUNCTIONS))
def test_what_is_known_by_name_is_there_and_nothing_else_goes_by_its_name(name):
    module, _, function = name.partition(".")
    path = Path(jax.__file__).parent / "_src" / f"{module}.py"
    codes = [compile(path.read_text(), str(path), "exec")]
    for code in codes:
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    (code,) = [code for code in codes if code.co_qualname == function]

    def is_known(module):
        frame = types.SimpleNamespace(f_code=code, f_globals={"__name__": module})
        return _stack._is_known(frame)

    assert is_known(f"jax._src.{module}")
    assert not is_known("jax._src.custom_dce") and not is_known(f"jax._src.other.{module}")
    assert not is_known(f"jax.{module}")


def code_of_jax(module):
    """A function that calls another, as code of this module of JAX does."""
    code = compile("def call(f):\n    return f()", "/site-packages/jax/_src/x.py", "exec")
    namespace = {"__name__": f"jax._src.{module}"}
    exec(code, namespace)
    return namespace["call"]


def test_the_stack_is_looked_at_once_and_what_is_new_on_it_each_time():
    known, unknown = code_of_jax("api"), code_of_jax("custom_derivatives")
    trace = _dependencies.Trace(sys._getframe())
    below = lambda: _stack.is_below_unknown(sys._getframe(), trace)  # noqa: E731

    def traced():
        frame = sys._getframe()
        for _ in range(2):
            assert not below() and trace.seen is frame
            assert not known(below) and trace.seen is frame
            assert unknown(below) and unknown(lambda: known(below)) and known(lambda: unknown(below))
            assert unknown(lambda: below()) and trace.seen is frame

    def another():
        assert not below() and trace.seen is sys._getframe()
        assert unknown(below)

    def resumed():
        while True:
            yield below()

    known(traced)
    known(another)
    generator = resumed()
    assert known(generator.__next__) is False and trace.seen is not generator.gi_frame
    assert known(lambda: unknown(generator.__next__)) is True


def test_a_composite_is_exact(counted):
    """It has no derivative and no batching, so it is in no random program."""
    f, define = frozen()
    body = lambda x: f(x) + 1  # noqa: E731
    call = jax.jit(lambda x: jax.lax.composite(body, name="test.body")(x))
    assert call(X)[0] == 3
    define(5.0)
    assert call(X)[0] == 6
    assert counted() == (1, 0)


def test_only_what_has_an_inherited_method_is_asked_at_each_call(monkeypatch):
    rng = random.Random(1)
    told, untold = jax.jit(leaves.OfArray(rng)), jax.jit(leaves.Inherited(rng))
    for call in (told, untold):
        call(X), call(X)
    seen = []
    real = _dependencies.settle
    monkeypatch.setattr(
        _dependencies, "settle", lambda *args: (seen.append(args[1].__class__), real(*args))[1]
    )
    told(X), untold(X)
    assert seen == [leaves.Inherited]


@pytest.mark.parametrize("kind", leaves.UNTOLD)
def test_an_inherited_method_in_a_trace_that_jax_keeps_unseen_is_found_out_by_who_calls_it(kind):
    leaf = kind(random.Random(1))
    call = jax.jit(lambda x: jax.closure_convert(leaf, x)[0](x))
    for factor in (2.0, 4.0, 1.0):
        leaf.change(factor)
        assert call(X)[0] == call(X)[0] == factor


# -- exactly what depends on it ------------------------------------------------------------------


@pytest.fixture
def compilations():
    found = []
    event = "/jax/core/compile/backend_compile_duration"

    def listen(name, seconds, **_):
        if name == event:
            found.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


def test_of_fifty_functions_three_and_what_contains_them_are_traced(compilations, counted):
    f, define = frozen()
    g, _ = frozen()
    traced = collections.Counter()

    def make(i):
        def body(x):
            traced[i] += 1
            y = f(x) if i < 3 else g(x)
            return jnp.where(y > 0, y, jnp.sin(y)) + jnp.linalg.norm(x) * 0 + i

        return jax.jit(body)

    jits = [make(i) for i in range(50)]

    @jax.jit
    def outer(x):
        traced["outer"] += 1
        return jits[0](x) + 1

    def step(carry, _):
        traced["scan"] += 1
        return f(carry), None

    def everything():
        return [
            *(float(jit(X)[0]) for jit in jits),
            float(outer(X)[0]),
            float(jax.lax.scan(step, X, None, length=2)[0][0]),
            *(X + X).tolist(),
            *jnp.sin(X).tolist(),
        ]

    first = everything()
    assert everything() == first
    traced.clear()
    compilations.clear()
    define(3.0)
    second = everything()
    assert counted() == (1, 0)
    assert set(traced) == {0, 1, 2, "outer", "scan"}
    assert set(traced.values()) == {1}
    assert len(compilations) == 5
    assert [a != b for a, b in zip(first, second, strict=True)].count(True) == 5
    assert (second[0], second[50], second[51]) == (3.0, 4.0, 9.0)


def test_a_registration_that_changes_nothing_traces_nothing(compilations, counted):
    f, _ = frozen()
    traced = []
    call = jax.jit(lambda x: traced.append(None) or f(x))
    float(call(X)[0])
    compilations.clear()

    @f.dispatch
    def other(x: str):
        return x

    assert float(call(X)[0]) == 2.0
    assert (len(traced), compilations, counted()) == (1, [], (0, 0))


def test_what_is_decided_first_inside_a_trace_is_watched_in_the_same_trace(counted):
    """Nothing of the function is in its table when the trace begins: it is not watched yet."""
    unit, define = frozen_by_text(2.0)
    first, second = (jax.jit(lambda x: x * unit("metre")) for _ in range(2))
    assert jax.jit(lambda x: first(x) + second(x))(X).tolist() == [4, 8]
    assert type(unit._cache) is _table.Table  # nothing is traced now
    define(3.0)
    assert (first(X).tolist(), second(X).tolist()) == ([3, 6], [3, 6])
    assert counted() == (1, 0)


def test_a_table_whose_entries_tell_is_not_watched():
    @plum.Dispatcher()
    def f(x: jaxtyping.Float[jax.Array, "n"]):  # noqa: F821  an axis
        return x

    plum_freeze.freeze(f)
    text, _ = frozen_by_text(2.0)
    text("metre")
    kinds = []

    @jax.jit
    def program(x):
        kinds.append((type(f._cache), type(text._cache)))
        with plum_freeze.Cache():
            kinds.append((type(f._cache), type(text._cache)))
        return f(x)

    f(X)
    program(X)
    assert kinds == [(_table.Table, _observe.Observed), (_observe.Observed, _observe.Observed)]
    assert type(f._cache) is type(text._cache) is _table.Table


def test_decisions_for_other_arguments_are_not_touched(counted):
    """One function, and of its decisions one changes."""
    dispatch = plum.Dispatcher()

    @dispatch
    def unit(name: str):
        return 1.0

    @dispatch
    def unit(number: int):
        return 2.0

    plum_freeze.freeze(unit, on_late="accept")
    traced = collections.Counter()

    @jax.jit
    def by_name(x):
        traced["name"] += 1
        return x * unit("m")

    @jax.jit
    def by_number(x):
        traced["number"] += 1
        return x * unit(3)

    by_name(X), by_number(X)

    @dispatch
    def unit(name: str):
        return 3.0

    assert (float(by_name(X)[0]), float(by_number(X)[0])) == (3.0, 2.0)
    assert traced == {"name": 2, "number": 1}
    assert counted() == (1, 0)


# -- traces that are under way -------------------------------------------------------------------


def changing():
    """A function that calls a frozen one twice, which changes in between, once."""
    f, define = frozen()
    done = []

    def body(x):
        y = f(x)
        if not done:
            done.append(None)
            define(3.0)
        return f(y)

    return body


def test_a_change_in_the_middle_of_a_trace(counted):
    call = jax.jit(changing())
    assert float(call(X)[0]) == 6.0, "the line before it is not run again"
    assert float(call(X)[0]) == 9.0
    assert counted() == (1, 0)


def test_a_change_in_the_middle_of_a_checkpoint(counted):
    call = jax.jit(jax.checkpoint(changing()))
    assert float(call(X)[0]) == 6.0
    assert float(call(X)[0]) == 9.0
    assert counted() == (1, 0)


def test_a_change_in_the_middle_of_a_rule(counted):
    """The trace that JAX keeps has the old method; whoever changed it could not know."""
    body = changing()
    custom = jax.custom_jvp(lambda x: x)
    custom.defjvp(lambda primals, tangents: (custom(*primals), body(*tangents)))
    call = jax.jit(lambda x: jax.jvp(custom, (x,), (x,))[1])
    assert float(call(X)[0]) == 6.0
    assert float(call(X)[0]) == 9.0
    assert counted()[1] >= 1


@pytest.mark.parametrize("way", ["jit", "scan", "cond", "checkpoint", "custom_jvp", "eval_shape"])
def test_a_trace_that_fails_inside_another_is_a_part_of_it(way, counted):
    """That there was no method is baked in, if the function around it does without."""
    dispatch = plum.Dispatcher()

    def define(hint, factor):
        def f(x):
            return factor

        f.__annotations__["x"] = hint
        return dispatch(f)

    f = define(str, 2.0)
    plum_freeze.freeze(f, on_late="accept")

    def inner(x):
        return x * f(3)

    custom = jax.custom_jvp(inner)
    custom.defjvp(lambda primals, tangents: (custom(*primals), *tangents))
    ways = {
        "jit": jax.jit(inner),
        "scan": lambda x: jax.lax.scan(lambda c, _: (inner(c), None), x, None, length=1)[0],
        "cond": lambda x: jax.lax.cond(x[0] > 0, inner, inner, x),
        "checkpoint": jax.checkpoint(inner),
        "custom_jvp": custom,
        "eval_shape": lambda x: (jax.eval_shape(inner, x), x * 5)[1],
    }

    def body(x):
        try:
            return ways[way](x)
        except plum.NotFoundLookupError:
            return x * 10

    call = jax.jit(body)
    assert float(call(X)[0]) == 10
    define(int, 5.0)
    assert float(call(X)[0]) == 5
    assert counted() == (1, 0)


def test_a_rule_that_decides_where_nothing_is_traced():
    """Eagerly differentiated and lowered: JAX keeps what comes out with the jaxpr."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, mlir

    f, define = frozen()
    factor, define_factor = frozen_by_text(2.0)
    scaled = Primitive("test_scaled")
    scaled.def_abstract_eval(lambda x: x)

    def lower(context, x):
        k = factor("lowered")
        return mlir.lower_fun(lambda x: x * k, multiple_results=False)(context, x)

    mlir.register_lowering(scaled, lower)
    ad.primitive_jvps[scaled] = lambda primals, tangents: (scaled.bind(*primals), f(*tangents))
    call = jax.jit(lambda x: scaled.bind(x))
    slope = lambda: float(jax.grad(lambda x: call(x).sum())(X)[0])  # noqa: E731
    assert (float(call(X)[0]), slope()) == (2.0, 2.0)
    define(3.0)
    assert (float(call(X)[0]), slope()) == (2.0, 3.0)
    define_factor(5.0)
    assert (float(call(X)[0]), slope()) == (5.0, 3.0)


def test_compiled_code_inside_of_a_custom_rule_at_compile_time():
    """There JAX takes the fast path while a trace is open."""
    f, define = frozen()
    once = jax.jit(lambda x: f(x))
    custom = jax.custom_jvp(lambda x: once(x))
    custom.defjvp(lambda primals, tangents: (custom(*primals), *tangents))

    def body(x):
        with jax.ensure_compile_time_eval():
            factor = custom(jnp.ones(2))
        return x * factor

    calls = [jax.jit(lambda x, i=i: body(x) + i) for i in range(3)]
    for factor in (2.0, 3.0, 4.0):
        if factor > 2.0:
            define(factor)
        once(jnp.ones(2)), once(jnp.ones(2))
        assert [float(call(X)[0]) for call in calls] == [factor, factor + 1, factor + 2]


def test_a_change_while_another_thread_traces(counted):
    """It lands after the other thread has taken the decision, and before it has its result."""
    f, define = frozen()
    taken, changed = threading.Event(), threading.Event()

    @jax.jit
    def body(x):
        y = f(x)
        taken.set()
        assert changed.wait(60)
        return y

    answers = []
    thread = threading.Thread(target=lambda: answers.append(float(body(X)[0])))
    thread.start()
    assert taken.wait(60)
    define(3.0)
    changed.set()
    thread.join()
    assert answers == [2.0], "the call began before the change"
    assert float(body(X)[0]) == 3.0
    assert counted() == (0, 1), "no order is certain"


def test_a_change_while_another_thread_compiles(counted, monkeypatch):
    """Its trace is done, and its executable is not in the fast path yet."""
    f, define = frozen()
    body = jax.jit(lambda x: f(x) + 1)
    compiles, changed = threading.Event(), threading.Event()
    real = pjit._get_fastpath_data

    def slow(*args, **kw):
        if threading.current_thread() is thread and args[0] is not None:  # an executable
            compiles.set()
            assert changed.wait(60)
        return real(*args, **kw)

    monkeypatch.setattr(pjit, "_get_fastpath_data", slow)
    thread = threading.Thread(target=lambda: body(X))
    thread.start()
    assert compiles.wait(60)
    define(3.0)
    changed.set()
    thread.join()
    assert float(body(X)[0]) == 4.0
    assert counted() == (1, 0)


def test_a_decision_on_a_thread_that_a_traced_function_starts(counted):
    """No trace is open on that thread: what it finds counts as baked in everywhere."""
    unit, define = frozen_by_text(2.0)

    @jax.jit
    def body(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(unit("m")))
        thread.start()
        thread.join()
        return x * found[0]

    assert float(body(X)[0]) == 2.0
    define(3.0)
    assert float(body(X)[0]) == 3.0
    assert counted() == (0, 1)


@pytest.mark.parametrize("way", ["a compiled method", "a scan", "a new jit"])
def test_a_traced_function_starts_a_thread(way):
    """What is baked into what runs there ends in the trace, and no decision is taken again."""
    f, define = frozen()
    dispatch = plum.Dispatcher()

    @dispatch
    def outer(x: jax.Array):
        return f(x)

    plum_freeze.freeze(outer, on_late="accept")
    for _ in range(3):
        outer(X)  # it is compiled
    step = lambda carry, _: (f(carry), None)  # noqa: E731
    on_thread = {
        "a compiled method": outer,
        "a scan": lambda x: jax.lax.scan(step, x, None, length=1)[0],
        "a new jit": lambda x: jax.jit(lambda y: f(y))(x),
    }[way]

    def call(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(on_thread(X)[0]))
        thread.start()
        thread.join()
        return x * found[0]

    body = jax.jit(call)
    for factor in (2.0, 3.0, 4.0):
        if factor > 2.0:
            define(factor)
        assert float(body(X)[0]) == factor


def test_threads_that_trace_call_and_register(request):
    """Values only ever come from methods that were there during the call."""
    before = sys.getswitchinterval()
    request.addfinalizer(lambda: sys.setswitchinterval(before))
    f, define = frozen(1.0)
    inner = jax.jit(lambda x: f(x) * 2)
    shared = [jax.jit(lambda x, i=i: inner(x) + i) for i in range(4)]
    lowest, highest, errors, stop = [1.0], [1.0], [], threading.Event()

    def register():
        k = 1.0
        while not stop.is_set():
            k += 1.0
            highest[0] = k
            define(k)
            # One less: while plum resolves what was registered, a call on another thread can still
            # get the method before it, frozen or not.
            lowest[0] = k - 1
            time.sleep(0.002)

    def call(seed):
        rng = random.Random(seed)
        while not stop.is_set():
            i = rng.randrange(4)
            jitted = shared[i] if rng.random() < 0.8 else jax.jit(lambda x, i=i: inner(x) + i)
            least = lowest[0]
            value = (float(jitted(X)[0]) - i) / 2
            if not least <= value <= highest[0]:
                errors.append((least, value, highest[0]))

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=guarded, args=(register,))]
    threads += [threading.Thread(target=guarded, args=(call, seed)) for seed in range(5)]
    with remembered_compilations():
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert all(float(jitted(X)[0]) == 2 * highest[0] + i for i, jitted in enumerate(shared))


# -- memory --------------------------------------------------------------------------------------


def test_what_traces_depend_on_goes_with_them():
    f, _ = frozen()
    gc.collect()
    before = len(_dependencies._dependents)
    jits = [jax.jit(lambda x, i=i: f(x) + i) for i in range(20)]
    for jitted in jits:
        jitted(X)
    assert len(_dependencies._dependents) >= before + 20
    del jits, jitted
    gc.collect()
    assert len(_dependencies._dependents) <= before


@pytest.mark.parametrize("way", ["exact", "epoch"])
def test_many_redefinitions_leave_nothing_behind(way, monkeypatch):
    if way == "epoch":
        monkeypatch.setattr(_invalidation, "_why_not", "this test")
    f, define = frozen()
    body = jax.jit(lambda x: f(x) + 1)
    sizes = []
    for k in range(1, REDEFINITIONS + 1):
        define(float(k % 7))
        if k % (REDEFINITIONS // 8) == 0:
            assert float(body(X)[0]) == k % 7 + 1
            gc.collect()
            sizes.append(len(_dependencies._dependents))
    # what JAX keeps of superseded epochs goes with every fourth move; a leak would reach 8 here
    assert max(sizes) <= min(sizes) + 4, sizes
    monkeypatch.undo()


# -- what is said --------------------------------------------------------------------------------


def test_the_warning_names_what_is_traced_again():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: jax.Array):
        return x

    plum_freeze.freeze(f)

    @jax.jit
    def my_algorithm(x):
        return f(x) + 1

    my_algorithm(X)
    line = my_algorithm.__wrapped__.__code__.co_firstlineno
    with pytest.warns(plum_freeze.LateRegistrationWarning) as caught:

        @dispatch
        def f(x: jax.Array):
            return x * 2

    text = str(caught[0].message)
    assert f"my_algorithm (test_seam.py:{line})" in text
    assert "\nretraces: " in text


def test_the_warning_says_when_nothing_compiled_has_it():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: int):
        return x

    plum_freeze.freeze(f)
    f(1)
    with pytest.warns(plum_freeze.LateRegistrationWarning, match="retraces: nothing"):

        @dispatch
        def f(x: int):
            return x * 2


def test_the_report_says_which_way_and_what_is_compiled():
    f, define = frozen()

    @jax.jit
    def my_algorithm(x):
        return f(x) + 1

    my_algorithm(X)
    report = plum_freeze.report(f)
    assert report.as_dict()["invalidation"]["by"] == "exact"
    (function,) = report.as_dict()["functions"]
    assert any("my_algorithm (test_seam.py:" in each for each in function["compiled_in"])
    assert "my_algorithm (test_seam.py:" in str(report)
    assert "invalidated exactly" in str(report)


PROGRAM = """
import jax, jax.numpy as jnp, plum, plum_freeze
plum_freeze.install()
dispatch = plum.Dispatcher()

@dispatch
def f(x: jax.Array):
    return x * 2

plum_freeze.freeze(f, on_late="accept")
call = jax.jit(lambda x: f(x) + 1)
print(float(call(jnp.ones(()))))

@dispatch
def f(x: jax.Array):
    return x * 3

print(float(call(jnp.ones(()))))
print(plum_freeze.report(f).as_dict()["invalidation"])
"""


def run(way):
    env = os.environ | {"PLUM_FREEZE_INVALIDATION": way}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False
    )


def test_a_switch_forces_the_epoch():
    found = run("epoch")
    assert found.stdout.splitlines()[:2] == ["3.0", "4.0"], found.stderr
    assert "'by': 'epoch', 'why': 'PLUM_FREEZE_INVALIDATION=epoch'" in found.stdout
    assert "'by': 'exact'" in run("exact").stdout


def test_a_wrong_switch_is_named():
    found = run("sometimes")
    assert found.returncode == 1
    assert "PLUM_FREEZE_INVALIDATION='sometimes' is no way of invalidation" in found.stderr


def test_jax_filters_our_frames_from_tracebacks():
    f, _ = frozen()

    @f.dispatch
    def wrong(x: int, y: int):
        return x

    @jax.jit
    def body(x):
        f(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        body(X)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [file for file in files if Path(file).parent.name == "plum_freeze"], files


def test_a_blind_change_moves_the_epoch_once(counted):
    """Decisions were taken that are not in the record."""
    f, define = frozen()
    call = jax.jit(lambda x: f(x) + 1)
    call(X)
    _table.table_of(f).blind = True
    define(3.0)
    assert float(call(X)[0]) == 4.0
    assert counted() == (0, 1)
