"""Methods that are alike, decisions that are overtaken, conversions in traces, frames that are held.

Each runs the same program on plain plum and frozen; nothing of it is jitted around but where it is
said, so that plain plum is always right.
"""

import types

import jax
import jax.numpy as jnp
import plum
import pytest

import plum_freeze
from plum_freeze import _plum

X = jnp.arange(3)


def made(k=1, hint=jax.Array):
    """A method that has captured `k`, and what sets or deletes that."""

    def impl(a, x, *, m=2):
        return x * k * m

    impl.__annotations__ = {"a": hint, "x": jax.Array}

    def put(value):
        nonlocal k
        k = value

    return impl, put


def both(program):
    """What a program says on plain plum and frozen."""
    said = []
    for is_frozen in (False, True):
        dispatch = plum.Dispatcher()

        @dispatch
        def f(a: object):
            return None

        if is_frozen:
            plum_freeze.freeze(f, on_late="accept")
        said.append(program(f))
    return said


def answers(f, first):
    return [f(first, X).tolist() for _ in range(3)]


def around(f, body):
    """Another function, which calls `f`, and is frozen if `f` is."""

    @plum.Dispatcher()
    def g(x: jax.Array):
        return body(x)

    if plum_freeze.is_frozen(f):
        plum_freeze.freeze(g, on_late="accept")
    return g


def test_two_methods_that_are_alike_for_now():
    def program(f):
        (one, _), (two, put) = made(hint=int), made(hint=str)
        f.dispatch(one)
        f.dispatch(two)
        before = answers(f, 1), answers(f, "a")
        put(10)
        return before, answers(f, 1), answers(f, "a")

    plain, frozen = both(program)
    assert frozen == plain
    assert plain[1] != plain[2]


CHANGES = {
    "what the old one has captured": lambda old, new: old[1](7),
    "what the new one has captured": lambda old, new: new[1](7),
    "the defaults of the new one": lambda old, new: setattr(new[0], "__kwdefaults__", {"m": 9}),
    "the defaults of the old one": lambda old, new: setattr(old[0], "__kwdefaults__", {"m": 9}),
    "the code of the new one": lambda old, new: setattr(new[0], "__code__", _other()),
    "the code of the old one": lambda old, new: setattr(old[0], "__code__", _other()),
}


def _other():
    k = 0

    def impl(a, x, *, m=2):
        return x - m + k

    return impl.__code__


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("is_before", [False, True], ids=["after", "before"])
def test_the_same_source_is_registered_again(change, is_before):
    """And then, or just before, one of the two functions changes."""

    def program(f):
        old, new = made(hint=int), made(hint=int)
        f.dispatch(old[0])
        said = [answers(f, 1)]
        if is_before:
            change(old, new)
        f.dispatch(new[0])
        said.append(answers(f, 1))
        change(old, new)
        return *said, answers(f, 1), answers(f, 1)

    plain, frozen = both(program)
    assert frozen == plain


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_same_source_is_registered_again_where_it_is_inlined(change):
    """The method that calls the function is frozen as well, and has it in its trace."""

    def program(f):
        g = around(f, lambda x: f(1, x) + 1)
        old, new = made(hint=int), made(hint=int)
        said = []
        for step in (
            lambda: f.dispatch(old[0]),
            lambda: f.dispatch(new[0]),
            lambda: change(old, new),
        ):
            step()
            said.append([g(X).tolist() for _ in range(3)])
        return said

    plain, frozen = both(program)
    assert frozen == plain


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_one_of_two_signatures_is_registered_again(change):
    """The old function stays in force under the other one."""

    def program(f):
        g = around(f, lambda x: f(1, x) + 10 * f("a", x))
        old, new = made(), made()
        said = []

        def both_signatures():
            f.register(old[0], plum.Signature(int, jax.Array))
            f.register(old[0], plum.Signature(str, jax.Array))

        def one_again():
            f.register(new[0], plum.Signature(int, jax.Array))

        for step in (both_signatures, one_again, lambda: change(old, new)):
            step()
            said.append([g(X).tolist() for _ in range(3)])
            said.append((answers(f, 1), answers(f, "a")))
        return said

    plain, frozen = both(program)
    assert frozen == plain


def test_what_was_compiled_stays_when_the_same_source_is_registered_again():
    dispatch, calls = plum.Dispatcher(), []

    def define():
        @dispatch
        def g(x: jax.Array):
            return x * 2

        return g

    g = define()
    plum_freeze.freeze(g, on_late="accept")
    for _ in range(3):
        g(X)
    compiled = g._cache.methods
    (known,) = compiled.values()
    for _ in range(50):
        define()
        calls.append(g(X).tolist())
    assert list(compiled.values()) == [known]
    (variant,) = known.variants.values()
    assert variant.ready
    assert len(variant.guards) == 1
    assert calls == [[0, 2, 4]] * 50


def test_a_registration_while_plum_decides():
    """What is in traces stays in the record, though this one call has been overtaken."""
    todo = []

    class Asks(type):
        def __instancecheck__(cls, value):
            if todo:
                todo.pop()()
            return hasattr(value, "dtype")

    class HasDtype(metaclass=Asks):
        pass

    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: HasDtype):
        return x * 2

    @dispatch
    def f(x: int):
        return 0

    plum_freeze.freeze(f, on_late="accept")
    jitted = jax.jit(lambda y: y + f(X))
    assert (jitted(X).tolist(), f(X).tolist()) == ([0, 3, 6], [0, 2, 4])

    def register():
        @f.dispatch
        def _(x: str):
            return "text"

    @f.dispatch
    def _(x: bytes):
        return b""

    todo.append(register)
    assert [f(X).tolist() for _ in range(2)] == [[0, 2, 4]] * 2

    @f.dispatch(precedence=5)
    def _(x: jax.Array):
        return x * 100

    assert (f(X).tolist(), jitted(X).tolist()) == ([0, 100, 200], [0, 101, 202])


class Pair(tuple):
    __slots__ = ()


RULES = {
    "from arrays": (jax.Array, Pair, lambda: lambda a: Pair((a, a + 1))),
    "from arrays to arrays": (jax.Array, jax.Array, lambda: lambda a: a + 100),
}


@pytest.mark.parametrize("is_late", [False, True], ids=["early", "late"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_conversion_rule_for_concrete_arrays(rule, is_late):
    """In a trace there are tracers, for which plum has another rule."""
    source, target, new_rule = rule
    rules = plum._promotion._convert
    before = {entry.key for entry in _plum.entries(rules)}

    def program(is_frozen):
        dispatch = plum.Dispatcher()

        @dispatch
        def r(x: jax.Array) -> target:
            return x * 2

        if is_frozen:
            plum_freeze.freeze(r, on_late="accept")
        said = []
        try:
            for step in range(8):
                if step == (4 if is_late else 0):
                    plum.add_conversion_method(source, target, new_rule())
                try:
                    found = r(X)
                    said.append([str(each) for each in (found if type(found) is Pair else [found])])
                except TypeError as error:
                    said.append(type(error).__name__)
        finally:
            new = [e for e in _plum.entries(rules) if e.key not in before]
            _plum.forget_entries(rules, new)
        return said

    plain = program(is_frozen=False)
    assert program(is_frozen=True) == plain
    assert plain[-1] != [str(X * 2)]


def test_leaks_are_checked_around_frozen_calls():
    dispatch = plum.Dispatcher()

    @dispatch
    def f(x: jax.Array):
        return x * 2

    plum_freeze.freeze(f)

    def user(x):
        y = x + 1
        return f(y) + f(x)

    with jax.checking_leaks():
        assert jax.jit(user)(X).tolist() == [2, 6, 10]


def test_modules_with_equal_sources_and_one_name_have_their_own_globals():
    """Their guards share code, and nothing else."""
    functions = []
    for scale in (2, 3):
        module = types.ModuleType("same_name")
        source = "def f(x: jax.Array):\n    return x * scale"
        vars(module).update(jax=jax, scale=scale, dispatch=plum.Dispatcher())
        exec(f"@dispatch\n{source}", vars(module))
        plum_freeze.freeze(module.f)
        functions.append(module)
    first, second = functions
    for step in range(6):
        if step == 3:
            second.scale = 5
        expected = [[0, 2, 4], [0, 3, 6] if step < 3 else [0, 5, 10]]
        assert [first.f(X).tolist(), second.f(X).tolist()] == expected


def thaw_and_freeze(f):
    plum_freeze.thaw(f)
    plum_freeze.freeze(f, on_late="accept")


def thaw_for_a_moment(f):
    with plum_freeze.thawed(f):
        pass


@pytest.mark.parametrize("thaw", [thaw_and_freeze, thaw_for_a_moment, plum_freeze.thaw])
def test_a_method_that_is_registered_again_after_a_thaw_where_it_is_inlined(thaw):
    def program(f):
        (one, put_one), (two, put_two) = made(), made()
        f.dispatch(one)
        g = around(f, lambda x: f(x, x) + 1)
        said = [[g(X).tolist() for _ in range(3)]]
        if plum_freeze.is_frozen(f):
            thaw(f)
        f.dispatch(two)
        for put, value in (put_two, 10), (put_one, 7):
            put(value)
            said.append([g(X).tolist() for _ in range(3)])
        return said

    plain, frozen = both(program)
    assert frozen == plain
