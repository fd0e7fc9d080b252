"""`Cache`: recording and replaying decisions."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import threading
from typing import Annotated, Any, Literal

import plum
import pytest
from beartype.vale import Is

import plum_freeze
from plum_freeze import Cache, FreezeError, ReplayError, _cache, _observe, _plum, _table


class Counted(type):
    """A metaclass whose classes count how often somebody looks at an argument."""

    looks = 0

    def __instancecheck__(cls, value):
        Counted.looks += 1
        return isinstance(value, cls.of)


class AnInt(metaclass=Counted):
    of = int


class AStr(metaclass=Counted):
    of = str


@pytest.fixture
def dispatch():
    return plum.Dispatcher()


@pytest.fixture(autouse=True)
def nothing_stays_observed():
    yield
    assert _observe._blocks == 0
    assert _observe.current.get() is None
    assert _table.kind is _table.Table
    for function in _plum.functions():
        assert not isinstance(function._cache, _observe.Observed)


@pytest.fixture
def counted(dispatch):
    @dispatch
    def f(x: AnInt):
        return f"int {x}"

    @dispatch
    def f(x: AStr):
        return f"str {x}"

    return f


def looks(call):
    before = Counted.looks
    call()
    return Counted.looks - before


# -- what it does --------------------------------------------------------------------------------


def test_a_replay_asks_no_resolver_and_looks_at_no_type(counted):
    with Cache() as cache:
        assert counted(1) == "int 1"
    assert len(cache) == 1
    assert looks(lambda: counted(1)) > 0
    with cache:
        assert looks(lambda: counted(2)) == 0

    with cache:  # nor at what it is: the recorded method runs
        assert counted("two") == "int two"


def test_decisions_are_replayed_in_the_order_of_the_calls(dispatch):
    ran = []

    @dispatch
    def inner(x: int):
        ran.append("int")

    @dispatch
    def inner(x: str):
        ran.append("str")

    @dispatch
    def outer(x: Any):
        ran.append("outer")
        inner(x)
        inner("a")

    with Cache() as cache:
        outer(1)
        inner("b")
    assert [step.partition("(")[0].rpartition(".")[2] for step in cache] == [
        "outer", "inner", "inner", "inner",
    ]  # fmt: skip
    recorded, ran[:] = ran[:], []
    with cache:
        outer("not an int")
        inner(3)
    assert ran == recorded == ["outer", "int", "str", "str"]


@pytest.mark.parametrize("frozen", [False, True])
def test_functions_that_plum_cannot_cache(dispatch, frozen):
    @dispatch
    def f(x: list[int]):
        return "ints"

    @dispatch
    def f(x: list[str]):
        return "strs"

    @dispatch
    def f(x: Annotated[int, Is[lambda n: n > 0]]):
        return "positive"

    @dispatch
    def f(x: Literal[0]):
        return "zero"

    if frozen:
        plum_freeze.freeze(f)
    arguments = [[1], ["a"], 5, 0]
    with Cache() as cache:
        plain = [f(x) for x in arguments]
    assert plain == ["ints", "strs", "positive", "zero"]
    with cache:
        assert [f(None) for _ in arguments] == plain
    assert [f(x) for x in arguments] == plain


@pytest.mark.parametrize("frozen", [False, True])
def test_results_are_converted_as_plum_does(dispatch, frozen):
    class Wrapped:
        def __init__(self, value):
            self.value = value

    helper_ran = []

    @dispatch
    def helper(x: int):
        helper_ran.append(x)
        return x

    plum.add_conversion_method(int, Wrapped, lambda n: Wrapped(helper(n)))

    @dispatch
    def f(x: int) -> Wrapped:
        return x if x else Wrapped(0)

    @dispatch
    def text(x: int) -> str:
        return x

    if frozen:
        plum_freeze.freeze(f, text)
    with Cache() as cache:
        assert f(1).value == 1
        assert f(0).value == 0
    assert len(cache) == 2  # what a conversion calls is no step
    with cache:
        assert f(2).value == 2
        assert f(0).value == 0
    assert helper_ran == [1, 2]
    with pytest.raises(TypeError, match="Cannot convert"), Cache() as cache:
        text(1)


def test_keyword_arguments_and_defaults(dispatch):
    @dispatch
    def f(x: int, y: int = 2, *, z: int = 3):
        return x, y, z

    @dispatch
    def f(x: str, *rest: int):
        return x, rest

    with Cache() as cache:
        assert f(1, z=5) == (1, 2, 5)
        assert f(1, 7) == (1, 7, 3)
        assert f("a", 1, 2) == ("a", (1, 2))
    with cache:
        assert f(10, z=6) == (10, 2, 6)
        assert f(10, 70) == (10, 70, 3)
        assert f("b", 3, 4) == ("b", (3, 4))


class Base:
    registry = plum.Dispatcher()

    @registry
    def size(self, x: int):
        return "base int"

    def plain(self, x):
        return "base plain"


class Child(Base):
    registry = plum.Dispatcher()

    @registry
    def size(self, x: str):
        return "child str"

    @registry
    def plain(self, x: str):
        return "child str"


def test_class_methods_and_inherited_ones():
    child = Child()
    with Cache() as cache:
        plain = child.size("a"), child.size(1), child.plain(1), child.plain("a")
    assert plain == ("child str", "base int", "base plain", "child str")
    assert len(cache) == 5  # the inherited dispatched method decides once more
    with cache:
        assert (child.size("b"), child.size(2), child.plain(2), child.plain("b")) == plain


def test_a_parents_method_that_was_replaced_parts(monkeypatch):
    with Cache() as cache:
        Child().plain(1)
    monkeypatch.setattr(Base, "plain", lambda self, x: "another")
    with pytest.raises(ReplayError, match="Base.plain, which was inherited, is another"), cache:
        Child().plain(1)


def test_a_parents_method_that_is_replaced_in_the_middle_of_a_replay_parts(monkeypatch):
    with Cache() as cache:
        Child().plain(1)
        Child().plain(1)
    with pytest.raises(ReplayError, match="at call 2 of 2(.|\n)*Base.plain"), cache:
        Child().plain(1)
        monkeypatch.setattr(Base, "plain", lambda self, x: "another")
        Child().plain(1)


def test_a_call_that_no_method_takes_is_a_decision_too(dispatch):
    @dispatch
    def f(x: int):
        return "int"

    def safely(x):
        try:
            return f(x)
        except plum.NotFoundLookupError:
            return f(0)

    with Cache() as cache:
        assert safely("a") == "int"
    assert len(cache) == 2
    with cache:
        assert safely("b") == "int"
    with pytest.raises(ReplayError, match="a method applies to the arguments now"), cache:
        safely(1)


def test_invoke_is_answered_as_always_and_what_it_calls_is_recorded(dispatch):
    @dispatch
    def inner(x: int):
        return "inner"

    @dispatch
    def f(x: object):
        return inner(1)

    @dispatch
    def f(x: int):
        return "int"

    with Cache() as cache:
        assert f.invoke(object)(3) == "inner"
    assert len(cache) == 1
    with cache:
        assert f.invoke(object)(3) == "inner"


def test_explicit_forms(counted):
    cache = Cache()
    with pytest.raises(FreezeError, match="nothing has been recorded"), cache.replay():
        pass
    with cache.record() as same:
        counted(1)
    assert same is cache
    with cache.record():
        counted("a")
        counted("b")
    assert len(cache) == 2
    with cache.replay():
        counted("c")
        counted("d")
    assert repr(cache) == "<plum_freeze.Cache: 2 decisions of 1 functions>"
    cache.clear()
    assert len(cache) == 0


def test_a_recording_that_ended_in_an_exception_is_dropped(counted):
    cache = Cache()
    with pytest.raises(ZeroDivisionError), cache:
        counted(1)
        raise ZeroDivisionError
    assert len(cache) == 0
    with pytest.raises(FreezeError, match=r"dropped, it ended in ZeroDivisionError"):
        cache.replay().__enter__()
    with cache:
        counted(1)
    with pytest.raises(ZeroDivisionError), cache.record():
        raise ZeroDivisionError
    assert len(cache) == 1  # what was there before


# -- where a replay leaves the path --------------------------------------------------------------


@pytest.fixture
def pair(dispatch):
    @dispatch
    def f(x: int, *y: int):
        return "f"

    @dispatch
    def g(x: int):
        return "g"

    with Cache() as cache:
        f(1)
        g(1)
    return f, g, cache


def _first(f, g):
    g(1)


def _arguments(f, g):
    f(1)
    f(1, 2)


def _too_many(f, g):
    f(1)
    g(1)
    f(1)


def _too_few(f, g):
    f(1)


@pytest.mark.parametrize(
    ("path", "number", "why"),
    [
        (_first, 1, "it is another function"),
        (_arguments, 2, "it is another function"),
        (_too_many, 3, "only 2 calls were recorded"),
        (_too_few, 2, "the block ended before it"),
    ],
)
def test_where_it_parts(pair, path, number, why):
    f, g, cache = pair
    with pytest.raises(ReplayError, match=why) as caught, cache:
        path(f, g)
    error = caught.value
    assert error.number == number
    assert f"at call {number} of 2, at {__file__}:" in str(error)
    for fact in (r"recorded: .*(f\(int\) -> .*\.f\(int, \*int\)|g\(int\)|nothing more)", "called: ", "record"):
        assert re.search(fact, str(error)), fact


def test_another_number_of_arguments(pair):
    f, g, cache = pair
    with pytest.raises(ReplayError, match=r"another number of arguments(.|\n)*called: .*f\(int, int\)"), cache:
        f(1, 2)


def test_what_follows_a_parting_parts_too(pair):
    f, g, cache = pair
    with pytest.raises(ReplayError, match="at call 1 of 2"), cache:
        with contextlib.suppress(ReplayError):
            g(1)
        with pytest.raises(ReplayError):
            f(1)


def test_an_exception_from_the_block_is_not_hidden(pair):
    f, g, cache = pair
    with pytest.raises(ZeroDivisionError), cache:
        raise ZeroDivisionError


# -- registrations -------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True])
def test_a_registration_that_changes_a_decision_parts_before_anything_runs(dispatch, frozen):
    ran = []

    @dispatch
    def f(x: object):
        ran.append("object")

    if frozen:
        plum_freeze.freeze(f, on_late="accept")
    with Cache() as cache:
        f(1)

    @dispatch
    def f(x: int):
        ran.append("int")

    with pytest.raises(ReplayError, match=r"another method may be the right one now; registered since: .*f\(int\)"), cache:
        f(1)
    assert ran == ["object"]
    with cache.record():
        f(1)
    with cache:
        f(1)
    assert ran == ["object", "int", "int"]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_registration_that_changes_none_is_all_right(dispatch, frozen):
    @dispatch
    def f(x: object):
        return "object"

    if frozen:
        plum_freeze.freeze(f, on_late="accept")
    with Cache() as cache:
        f(1)

    @dispatch
    def f(x: str):
        return "str"

    with cache:
        assert f(1) == "object"


def test_a_registration_in_the_middle_of_a_replay(dispatch):
    @dispatch
    def f(x: object):
        return "object"

    with Cache() as cache:
        f(1)
        f(1)
    with pytest.raises(ReplayError, match="at call 2 of 2"), cache:
        f(1)

        @dispatch
        def f(x: int):
            return "int"

        f(1)


def test_a_method_that_was_replaced_parts_and_the_same_source_again_does_not(dispatch):
    def source(n):
        def f(x: int):
            return n

        return f

    f = dispatch(source(1))
    with Cache() as cache:
        f(1)
    dispatch(source(1))
    with cache:
        assert f(1) == 1
    dispatch(source(2))
    with pytest.raises(ReplayError, match=r"its method .*f\(int\) is gone"), cache:
        f(1)


def test_a_class_that_is_registered_with_an_abc_parts(dispatch):
    import abc

    class Shape(abc.ABC):  # noqa: B024
        pass

    class Square:
        pass

    @dispatch
    def f(x: object):
        return "object"

    @dispatch
    def f(x: Shape):
        return "shape"

    with Cache() as cache:
        assert f(Square()) == "object"
        f(1)
    Shape.register(str)
    with cache:
        assert (f(Square()), f(1)) == ("object", "object")
    Shape.register(Square)
    with pytest.raises(ReplayError, match="registered with an ABC"), cache:
        f(Square())


def test_freezing_thawing_and_clearing_meanwhile(counted):
    with Cache() as cache:
        counted(1)
        plum_freeze.freeze(counted)
        counted("a")
        plum.clear_all_cache()
        counted(1)
    assert plum_freeze.is_frozen(counted)
    plum_freeze.thaw(counted)
    with cache:
        counted(1)
        plum_freeze.freeze(counted)
        counted("a")
        plum.clear_all_cache()
        before = Counted.looks
        assert counted(None) == "int None"
        assert Counted.looks == before
    assert plum_freeze.is_frozen(counted)
    assert counted("b") == "str b"


def test_a_function_that_is_made_in_a_block_is_seen(dispatch):
    cache = Cache()

    def program(x):
        @dispatch
        def f(x: int):
            return "int"

        return f(x)

    with cache:
        assert program(1) == "int"
    assert len(cache) == 1


# -- nesting, threads, tasks ---------------------------------------------------------------------


def test_calls_belong_to_the_innermost_block(pair):
    f, g, _ = pair
    outer, inner = Cache(), Cache()
    for _ in range(3):
        with outer:
            f(1)
            with inner:
                g(1)
            f(2)
    assert len(outer) == 2
    assert len(inner) == 1


def test_a_cache_that_is_being_recorded_cannot_be_nested_in_itself(pair):
    f, g, _ = pair
    cache = Cache()
    with cache:
        f(1)
        with pytest.raises(FreezeError, match="being recorded here already"), cache:
            pass
    with cache, contextlib.suppress(ReplayError):  # while a replay can be
        f(1)
        with cache:
            f(1)
    assert len(cache) == 1


def test_a_block_that_ends_out_of_order(pair):
    f, g, cache = pair
    blocks = cache.replay(), Cache().record()
    for block in blocks:
        block.__enter__()
    with pytest.raises(FreezeError, match="not the innermost"):
        blocks[0].__exit__(None, None, None)
    blocks[1].__exit__(None, None, None)
    with pytest.raises(ReplayError):
        _cache._end(cache, _observe.current.get(), None)


def test_other_threads_are_not_recorded_and_stay_right(dispatch):
    @dispatch
    def f(x: int):
        return "int"

    @dispatch
    def f(x: str):
        return "str"

    results = []
    with Cache() as cache:
        f(1)
        thread = threading.Thread(target=lambda: results.append((f(1), f("a"))))
        thread.start()
        thread.join()
        f(1)
    assert len(cache) == 2
    with cache:
        f("x")
        thread = threading.Thread(target=lambda: results.append((f(1), f("a"))))
        thread.start()
        thread.join()
        f("x")
    assert results == [("int", "str")] * 2


def test_tasks_and_threads_that_copy_the_context_are_not_recorded(dispatch):
    @dispatch
    def f(x: int):
        return "int"

    @dispatch
    def f(x: str):
        return "str"

    async def child():
        return f(1), f("a")

    async def main(cache):
        with cache:
            f(1)
            here = asyncio.create_task(child())
            there = asyncio.to_thread(lambda: (f(1), f("a")))
            assert [await here, await there] == [("int", "str")] * 2
            await asyncio.sleep(0)
            f(1)

    cache = Cache()
    asyncio.run(main(cache))
    assert len(cache) == 2
    asyncio.run(main(cache))


def test_tasks_replay_side_by_side(dispatch):
    @dispatch
    def f(x: int):
        return "int"

    @dispatch
    def f(x: str):
        return "str"

    with Cache() as ints:
        for _ in range(20):
            f(1)
    with Cache() as strs:
        for _ in range(20):
            f("a")

    async def task(cache):
        results = set()
        with cache:
            for _ in range(20):
                results.add(f(None))
                await asyncio.sleep(0)
        return results

    async def main():
        return await asyncio.gather(*(task(cache) for cache in (ints, strs) * 3))

    assert asyncio.run(main()) == [{"int"}, {"str"}] * 3


def test_threads_race(dispatch):
    """Recording, replaying, plain calls, registrations and clearing, all at once."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            _race(plum.Dispatcher())
    finally:
        sys.setswitchinterval(interval)


def _race(dispatch):
    @dispatch
    def f(x: int):
        return "int"

    @dispatch
    def f(x: list[int]):
        return "ints"

    @dispatch
    def f(x: str):
        return "str"

    wrong = []
    barrier = threading.Barrier(6)

    def worker(body):
        barrier.wait()
        try:
            for _ in range(30):
                body()
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    shared = Cache()
    with shared:
        f(1)
        f([1])

    def replay():
        with shared:
            if (f("x"), f("y")) != ("int", "ints"):
                wrong.append("replay")

    def record():
        with Cache() as own:
            f("a")
        with own:
            if f(1) != "str":
                wrong.append("own")

    def plain():
        if (f(1), f([1]), f("a")) != ("int", "ints", "str"):
            wrong.append("plain")

    def change():
        def f(x):
            return "new"

        f.__annotations__["x"] = type("New", (), {})
        dispatch(f).clear_cache()

    threads = [
        threading.Thread(target=worker, args=(body,))
        for body in (replay, replay, record, record, plain, change)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# -- with JAX ------------------------------------------------------------------------------------


def test_steps_do_not_depend_on_what_is_compiled(dispatch):
    import jax
    import jax.numpy as jnp

    @dispatch
    def inner(x: jax.Array):
        return x + 1

    @dispatch
    def outer(x: jax.Array):
        return inner(x) * 2

    plum_freeze.freeze(inner, outer)
    x = jnp.arange(3)
    with Cache() as cold:
        outer(x)
    outer(x)
    outer(x)
    (method,) = _table.table_of(outer).methods.values()
    assert method.compiled == 1  # from here on outer's calls take no inner decision
    with Cache() as warm:
        outer(x)
    assert [*cold] == [*warm]
    assert len(warm) == 2
    with cold:
        assert outer(x).tolist() == [2, 4, 6]
    assert method.compiled == 1


def test_a_trace_that_replayed_a_decision_does_not_outlive_it(dispatch):
    import jax
    import jax.numpy as jnp

    @dispatch
    def f(x: jax.Array):
        return x + 1

    x = jnp.arange(3)
    cache = Cache()
    with cache:
        f(x)
    plum.clear_all_cache()

    @jax.jit
    def program(x):
        with cache:
            return f(x)

    assert program(x).tolist() == [1, 2, 3]

    @dispatch(precedence=1)
    def f(x: jax.Array):
        return x + 2

    cache.clear()
    assert program(x).tolist() == [2, 3, 4]


def test_a_method_of_ours_that_replays_while_it_is_traced_keeps_its_guards(dispatch):
    import jax
    import jax.numpy as jnp

    space = {"SCALE": 2, "__name__": "made", "cache": Cache()}
    exec("def inner(x):\n    return x * SCALE", space)
    space["inner"].__annotations__["x"] = jax.Array
    space["inner"] = dispatch(space["inner"])
    exec("def program(x):\n    with cache:\n        return inner(x)", space)
    program = space["program"]

    @dispatch
    def outer(x: jax.Array):
        return program(x)

    plum_freeze.freeze(space["inner"], outer, on_late="accept")
    x = jnp.arange(3)
    with space["cache"]:
        space["inner"](x)
    for _ in range(4):
        assert outer(x).tolist() == [0, 2, 4]
    (method,) = _table.table_of(outer).methods.values()
    assert method.compiled == 1  # so it was traced, with `inner` inlined
    space["SCALE"] = 3
    for _ in range(4):
        assert outer(x).tolist() == [0, 3, 6]


# -- cost and switches ---------------------------------------------------------------------------


def test_lookups_are_the_dictionarys_own_when_no_block_is_active(pair):
    f, g, cache = pair
    assert type(f._cache) is _table.Table
    assert "__getitem__" not in _table.Table.__dict__
    with cache:
        assert type(f._cache) is _observe.Observed
        f(1)
        g(1)
    assert type(f._cache) is _table.Table


def test_plum_freeze_0_makes_it_a_no_op(counted, monkeypatch):
    monkeypatch.setenv("PLUM_FREEZE", "0")
    cache = Cache()
    for _ in range(2):
        with cache:
            assert counted(1) == "int 1"
    with cache.replay():
        assert counted("a") == "str a"
    assert len(cache) == 0


def test_it_needs_no_jax():
    program = (
        "import sys, plum, plum_freeze\n"
        "@plum.dispatch\n"
        "def f(x: int): return 'int'\n"
        "with plum_freeze.Cache() as cache: f(1)\n"
        "with cache: assert f('a') == 'int'\n"
        "assert not [m for m in ('jax', 'jaxtyping', 'numpy') if m in sys.modules]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
