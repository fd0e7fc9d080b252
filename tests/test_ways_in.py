"""A late registration is seen at every way in, under each policy."""

import subprocess
import sys
import warnings

import plum
import pytest

import plum_freeze
from plum_freeze import (
    FreezeError,
    InvalidationWarning,
    LateRegistrationError,
    LateRegistrationWarning,
)


class Late(int):
    """The type that late methods are about."""


class Program:
    """A dispatcher with a function, a multi-signature way in, and a class with a method."""

    def __init__(self):
        dispatch = self.dispatch = plum.Dispatcher()

        @dispatch
        def f(x: object):
            return "old"

        self.f = f
        self.decorator = dispatch(precedence=3)
        self.own_decorator = f.dispatch(precedence=3)
        self.multi_decorator = f.dispatch_multi((Late,), (float,))

        class Thing:
            @dispatch
            def method(self, x: object):
                return "old"

        self.thing = Thing()
        self.method = Thing.method


def new(x: Late):
    return "new"


new.__name__ = "f"


def method(self, x: Late):
    return "new"


def dispatch(p):
    p.dispatch(new)


def dispatch_with_precedence(p):
    p.dispatch(precedence=2)(new)


def decorator_from_before(p):
    p.decorator(new)


def own_decorator_from_before(p):
    p.own_decorator(new)


def multi_decorator_from_before(p):
    p.multi_decorator(new)


def multi(p):
    p.dispatch.multi((Late,), (float,))(new)


def abstract_then_dispatch(p):
    def f(x): ...

    p.dispatch.abstract(f)
    p.dispatch(new)


def overload(p):
    @plum.overload
    def f(x: Late) -> str:
        return "new"

    @plum.overload
    def f(x: float) -> str:
        return "new"

    def f(x): ...

    p.dispatch(f)


def own_dispatch(p):
    p.f.dispatch(new)


def own_dispatch_with_precedence(p):
    p.f.dispatch(precedence=1)(new)


def own_dispatch_multi(p):
    p.f.dispatch_multi((Late,), (float,))(new)


def register(p):
    p.f.register(new)


def register_signature(p):
    p.f.register(new, plum.Signature(Late), None)


WAYS = [
    dispatch, dispatch_with_precedence, decorator_from_before, own_decorator_from_before,
    multi_decorator_from_before, multi, abstract_then_dispatch, overload, own_dispatch,
    own_dispatch_with_precedence, own_dispatch_multi, register, register_signature,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_warn(way):
    p = Program()
    plum_freeze.freeze(p.f)
    assert p.f(Late()) == "old"
    with pytest.warns(InvalidationWarning, match=r"test_ways_in\.py:\d+"):
        way(p)
    assert p.f(Late()) == "new"
    assert plum_freeze.is_frozen(p.f)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_refuse(way):
    p = Program()
    plum_freeze.freeze(p.f, on_late="raise")
    assert p.f(Late()) == "old"
    with pytest.raises(LateRegistrationError, match=r"test_ways_in\.py:\d+"):
        way(p)
    assert p.f(Late()) == "old"
    assert len(p.f.methods) == 1
    assert p.f(Late()) == "old"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_warnings_as_errors_refuse_too(way):
    p = Program()
    plum_freeze.freeze(p.f)
    assert p.f(Late()) == "old"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LateRegistrationWarning):
            way(p)
    assert p.f(Late()) == "old"
    assert len(p.f.methods) == 1


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_accept(way):
    p = Program()
    plum_freeze.freeze(p.f, on_late="accept")
    assert p.f(Late()) == "old"
    way(p)
    assert p.f(Late()) == "new"
    assert [r.phase for r in plum_freeze.registrations(p.f)][-1] == "late"


@pytest.mark.parametrize("policy", ["warn", "raise", "accept"])
@pytest.mark.parametrize("bound", [True, False])
def test_method_of_a_class(policy, bound):
    p = Program()
    plum_freeze.freeze(p.method, on_late=policy)
    assert p.thing.method(Late()) == "old"

    def register():
        (p.thing.method if bound else p.method).dispatch(method)

    if policy == "raise":
        with pytest.raises(LateRegistrationError):
            register()
    elif policy == "warn":
        with pytest.warns(InvalidationWarning):
            register()
    else:
        register()
    assert p.thing.method(Late()) == ("old" if policy == "raise" else "new")


# -- conversions and promotions ------------------------------------------------------------------


class World:
    """Conversions are global in plum, so each test has classes of its own."""

    def __init__(self):
        class Raw:
            def __init__(self, value):
                self.value = value

        class Cooked:
            def __init__(self, value):
                self.value = value

        self.Raw, self.Cooked = Raw, Cooked
        plum.add_conversion_method(Raw, Cooked, lambda raw: Cooked(raw.value))
        plum.add_conversion_method(Cooked, Raw, lambda cooked: Raw(cooked.value))
        plum.add_promotion_rule(Raw, Cooked, Raw)
        dispatch = plum.Dispatcher()

        @dispatch
        def make(x: object) -> Cooked:
            return Raw(x)

        @dispatch
        def both(x: object):
            left, right = plum.promote(Raw(x), Cooked(x))
            return type(left).__name__, type(right).__name__

        self.make, self.both = make, both


def add_conversion_method(w):
    plum.add_conversion_method(w.Raw, w.Cooked, lambda raw: w.Cooked(raw.value + 100))


def conversion_method(w):
    @plum.conversion_method(w.Raw, w.Cooked)
    def cook(raw):
        return w.Cooked(raw.value + 100)


CONVERSIONS = [add_conversion_method, conversion_method]


@pytest.mark.parametrize("way", CONVERSIONS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("policy", ["warn", "raise", "accept"])
def test_conversion(way, policy):
    w = World()
    plum_freeze.freeze(w.make, w.both, on_late=policy)
    try:
        assert w.make(1).value == 1
        if policy == "raise":
            with pytest.raises(LateRegistrationError, match="test_ways_in"):
                way(w)
        elif policy == "warn":
            with pytest.warns(InvalidationWarning, match="test_ways_in"):
                way(w)
        else:
            way(w)
        assert w.make(1).value == (1 if policy == "raise" else 101)
    finally:
        plum_freeze.thaw(w.make, w.both)


@pytest.mark.parametrize("policy", ["warn", "raise", "accept"])
@pytest.mark.parametrize("swapped", [False, True])
def test_promotion_rule(policy, swapped):
    w = World()
    plum_freeze.freeze(w.make, w.both, on_late=policy)
    assert w.both(1) == ("Raw", "Raw")
    types = (w.Cooked, w.Raw) if swapped else (w.Raw, w.Cooked)

    def way():
        plum.add_promotion_rule(*types, w.Cooked)

    try:
        if policy == "raise":
            with pytest.raises(LateRegistrationError):
                way()
        elif policy == "warn":
            with pytest.warns(InvalidationWarning):
                way()
        else:
            way()
        wanted = "Raw" if policy == "raise" else "Cooked"
        assert w.both(1) == (wanted, wanted)
    finally:
        plum_freeze.thaw(w.make, w.both)


def test_conversion_that_changes_nothing_is_free():
    w = World()

    class Other:
        pass

    plum_freeze.freeze(w.make, on_late="raise")
    try:
        assert w.make(1).value == 1
        plum.add_conversion_method(w.Raw, Other, lambda raw: Other())
        assert w.make(1).value == 1
    finally:
        plum_freeze.thaw(w.make)


def test_refused_error_carries_its_facts():
    p = Program()
    plum_freeze.freeze(p.f, on_late="raise")
    p.f(Late())
    with pytest.raises(LateRegistrationError) as info:
        p.dispatch(new)
    error = info.value
    assert error.function.endswith("Program.__init__.<locals>.f")
    assert "Late" in error.signature
    assert error.where.startswith(__file__)
    assert error.frozen_at.startswith(__file__)
    assert len(error.changes) == 1
    assert isinstance(error, FreezeError)
    for fact in ("thawed", "accept", "before freeze", "nothing has changed"):
        assert fact in str(error)


# -- tried, and left out -------------------------------------------------------------------------

SWAPPED = """
import plum
from plum import clear_all_cache
dispatch = plum.Dispatcher()
@dispatch
def f(x: object):
    return "old"
taken = {
    "f.dispatch": lambda extend=f.dispatch: extend(lambda x: x),
    "f.invoke": lambda invoke=f.invoke: invoke(int),
    "f.clear_cache": f.clear_cache,
    "dispatch.clear_cache": lambda: dispatch.clear_cache(),
    "clear_all_cache": clear_all_cache,
}
import plum_freeze
class Faster(plum.Function):
    def __call__(self, *args, **kwargs):
        return "faster"
f.__class__ = Faster
assert f(1) == "faster"
for name, call in taken.items():
    try:
        call()
    except TypeError as error:
        assert "Function object expected; got" in str(error), error
        print(name)
f.__class__ = plum.Function
for call in taken.values():
    call()
"""


@pytest.mark.skipif(not plum.COMPILED, reason="the pure-Python plum takes any subclass")
def test_compiled_plum_refuses_a_function_of_another_class():
    """Why no frozen function gets a class with a faster `__call__`.

    It could be put back at each way in that is patched. What a program has taken from plum before
    plum_freeze was imported no patch reaches: with plain plum it works, and there it would raise.
    """
    done = subprocess.run(
        [sys.executable, "-c", SWAPPED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "f.dispatch", "f.invoke", "f.clear_cache", "dispatch.clear_cache", "clear_all_cache",
    ]  # fmt: skip
