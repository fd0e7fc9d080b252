"""The identity guard: every way in which what a method reads can become another thing."""

import gc
import math
import sys
import types
import weakref

import jax.numpy as jnp
import numpy as np
import pytest

from plum_freeze import _guard, _screen


class Config:
    FACTOR = 2.0


class Derived(Config):
    pass


def module(name, source="", **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    exec(source, made.__dict__)
    return made


def names():
    """The globals of a module that defines `method` and helpers."""
    tools = module("pkg.tools", "SCALE = 3.0\ndef helper(x, k=1, *, n=2): return x * SCALE * k * n")
    other = module("other.tools", "SCALE = 3.0\ndef helper(x): return x * SCALE")
    made = {
        "__name__": "pkg.core", "A": 1.0, "B": jnp.ones(2), "C": (1, "a"), "D": None, "jnp": jnp, "np": np,
        "tools": tools, "other": other, "Config": type("Config", (), {"FACTOR": 2.0}), "Derived": Derived,
        "helper": tools.helper, "math": math,
    }  # fmt: skip
    exec("def near(x): return near(x) if x is A else far(x)\ndef far(x): return near(x) * B", made)
    return made


def make(body, made, value=1.0):
    exec(
        f"def make(held, empty):\n    del empty\n    def method(x, k=1.5, *, n=2.5):\n        return {body}\n"
        "    def change(new):\n        nonlocal held\n        held = new\n    def fill(new):\n"
        "        nonlocal empty\n        empty = new\n    return method, change, fill",
        made,
    )
    return made["make"](value, None)


def set_global(name, value):
    return lambda made, *_: made.__setitem__(name, value)


def set_in(holder, name, value):
    return lambda made, *_: setattr(made[holder], name, value)


def delete(name):
    return lambda made, *_: made.pop(name)


def code_of(source):
    made = {}
    exec(source, made)
    return next(value for key, value in made.items() if key != "__builtins__").__code__


CHANGES = {
    "a global": ("x * A", set_global("A", 2.0)),
    "a global, to an equal value of another type": ("x * A", set_global("A", 1)),
    "a global array": ("x * B", set_global("B", jnp.ones(2))),
    "a global tuple": ("x * C[0]", set_global("C", (2,))),
    "a global None": ("x * D", set_global("D", 1.0)),
    "a global that goes": ("x * A", delete("A")),
    "a global that was missing": ("x * MISSING", set_global("MISSING", 1.0)),
    "a global in an inner function": ("[lambda: x * A]", set_global("A", 2.0)),
    "a global in a comprehension": ("[x * A for _ in x]", set_global("A", 2.0)),
    "a global function": ("helper(x)", set_global("helper", lambda x: x)),
    "a global class": ("Config(x)", set_global("Config", int)),
    "a global module": ("jnp.sin(x)", set_global("jnp", math)),
    "a builtin that is shadowed": ("len(x)", set_global("len", lambda x: 1)),
    "a module's number": ("x * tools.SCALE", set_in("tools", "SCALE", 4.0)),
    "another package's number": ("x * other.SCALE", set_in("other", "SCALE", 4.0)),
    "a module's number by getattr": ("x * getattr(tools, 'SCALE')", set_in("tools", "SCALE", 4.0)),
    "a module's number that goes": ("x * tools.SCALE", lambda made, *_: delattr(made["tools"], "SCALE")),
    "a module's number that was missing": ("x * tools.LATER", set_in("tools", "LATER", 4.0)),
    "a module's function": ("tools.helper(x)", set_in("tools", "helper", lambda x: x)),
    "a class's number": ("x * Config.FACTOR", set_in("Config", "FACTOR", 4.0)),
    "a class's number that goes": ("x * Config.FACTOR", lambda made, *_: delattr(made["Config"], "FACTOR")),
    "a number of a parent class": ("x * Derived.FACTOR", set_in("Derived", "FACTOR", 4.0)),
    "a helper's global": ("near(x)", set_global("A", 2.0)),
    "the global of a helper's helper": ("near(x)", set_global("B", 2.0)),
    "the global of a helper in another module": ("helper(x)", set_in("tools", "SCALE", 4.0)),
    "a helper's builtin, shadowed elsewhere": ("tools.measure(x)", set_in("tools", "len", lambda x: 1)),
    "a helper's code": ("helper(x)", lambda made, *_: setattr(made["helper"], "__code__", code_of("def f(x): return x"))),
    "a helper's defaults": ("helper(x)", lambda made, *_: setattr(made["helper"], "__defaults__", (5,))),
    "a helper's keyword defaults": ("helper(x)", lambda made, *_: setattr(made["helper"], "__kwdefaults__", {"n": 5})),
    "a keyword default in place": ("helper(x)", lambda made, *_: made["helper"].__kwdefaults__.update(n=5)),
    "a captured value": ("x * held", lambda made, method, change, fill: change(2.0)),
    "a captured value in an inner function": ("[lambda: x * held]", lambda made, method, change, fill: change(2.0)),
    "a captured value that goes": ("x * held", lambda made, method, *_: delattr(method.__closure__[0], "cell_contents")),
    "a captured value that was missing": ("x * empty", lambda made, method, change, fill: fill(2.0)),
    "its own code": ("x", lambda made, method, *_: setattr(method, "__code__", code_of("def f(x): return x + 1"))),
    "its own defaults": ("x", lambda made, method, *_: setattr(method, "__defaults__", (5,))),
    "its own keyword defaults": ("x", lambda made, method, *_: setattr(method, "__kwdefaults__", {"n": 5})),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen(what, monkeypatch):
    body, change = CHANGES[what]
    made = names()
    exec("def measure(x): return len(x)", made["tools"].__dict__)
    monkeypatch.setattr(Derived, "FACTOR", 2.0)
    method, *setters = make(body, made)
    effect, guard = _screen.examine(method)
    assert effect is None
    assert guard.check() is guard.changed() is False
    change(made, method, *setters)
    assert guard.check() is guard.changed() is True


def test_the_code_of_a_wrapper_of_another_package_is_compared_too():
    made = names()
    wrap = module(
        "other",
        "import functools\ndef wrap(f):\n  @functools.wraps(f)\n  def g(*a): return f(*a)\n  return g",
    ).wrap
    wrapped = wrap(make("x * A", made)[0])
    guard = _screen.guard(wrapped)
    made["A"] = 2.0
    assert guard.check() is True
    made["A"] = 1.0
    guard = _screen.guard(wrapped)
    wrapped.__code__ = wrapped.__code__.replace(co_name="other")
    assert guard.check() is True


@pytest.mark.parametrize(
    "change",
    [
        set_global("UNRELATED", 1),
        set_global("D", 5),
        set_in("tools", "UNRELATED", 1),
        set_in("other", "helper", len),  # another package's function
        set_in("Config", "UNRELATED", 1),
        lambda made, method, change, fill: fill(5),
    ],
)
def test_what_is_not_read_may_change(change):
    made = names()
    method, *setters = make(
        "helper(x) * A * tools.SCALE * other.helper(x) * Config.FACTOR * held", made
    )
    guard = _screen.guard(method)
    change(made, method, *setters)
    assert guard.check() is False


def test_a_guard_taken_again_accepts_the_change():
    made = names()
    method, *_ = make("x * A", made)
    made["A"] = 5.0
    assert _screen.guard(method).check() is False


def test_a_number_that_becomes_a_list_is_an_effect_the_next_time():
    made = names()
    method, *_ = make("x * A", made)
    guard = _screen.guard(method)
    made["A"] = []
    assert guard.check() is True
    assert _screen.screen(method).what == "reads global A (list)"


def test_a_builtin_that_is_replaced_is_seen(monkeypatch):
    made = names()
    exec("def measure(x): return len(x)", made["tools"].__dict__)
    guards = [_screen.guard(make(body, made)[0]) for body in ("len(x)", "tools.measure(x)")]
    assert [guard.check() for guard in guards] == [False, False]
    real = len
    monkeypatch.setattr("builtins.len", lambda x: real(x))
    changed = [guard.check() for guard in guards]
    monkeypatch.undo()
    assert changed == [True, True]


def test_a_guard_leaves_no_name_in_the_module_and_takes_none_from_it():
    made = names() | {"is_empty": 1.0, "_plum_freeze_": 2.0, "make": None, "changed": 3.0}
    method, *_ = make("x * is_empty * _plum_freeze_ * changed * empty", made)
    before = set(made)
    guard = _screen.guard(method)
    assert guard.check() is False
    assert set(made) == before
    made["_plum_freeze_"] = 5.0
    assert guard.check() is True


def test_the_same_place_is_compared_once():
    made = names()
    method, *_ = make("A * A + near(x) + near(x) + [A for _ in x][0]", made)
    keys = [read.key for read in _screen.guard(method).reads]
    assert len(keys) == len(set(keys))


def test_a_method_that_reads_nothing_has_its_code_compared_and_nothing_else():
    made = names()
    exec("def method(x): return x", made)
    assert [read.name for read in _screen.guard(made["method"]).reads] == ["__code__"]


def test_one_guard_for_several_methods():
    made = names()
    first, second = (_screen.guard(make(body, made)[0]) for body in ("x * A", "x * tools.SCALE"))
    both = _guard.joined(first, second)
    assert both.check() is False
    made["tools"].SCALE = 5.0
    assert (first.check(), second.check(), both.check()) == (False, True, True)


def test_a_guard_holds_no_argument_and_lets_the_method_go():
    class Big:
        pass

    made = names()
    method, *_ = make("helper(x)", made)
    big = Big()
    guard = _screen.guard(method)
    reference = weakref.ref(big)
    with pytest.raises(TypeError):
        method(big)
    guard.check()
    del big
    gc.collect()
    assert reference() is None
    gone = weakref.ref(method)
    del method, guard
    made.clear()
    gc.collect()
    assert gone() is None


def test_a_module_without_a_getattr_of_its_own_is_not_asked():
    asked = []
    made = names() | {"lazy": module("other.lazy", __getattr__=asked.append)}
    guard = _screen.guard(make("lazy.thing(x)", made)[0])
    assert guard.check() is False
    made["lazy"].thing = len
    assert guard.check() is True
    assert asked == []


def test_an_import_statement_in_a_method_gives_the_module_to_look_into(monkeypatch):
    tools = module("pkg_with_tools.tools", SCALE=3.0)
    package = module("pkg_with_tools", tools=tools)
    for each in (tools, package):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    made = {"__name__": "pkg_with_tools.core", "__package__": "pkg_with_tools"}
    exec(
        "def f(x):\n    from . import tools\n    from .tools import SCALE\n    return x * tools.SCALE * SCALE",
        made,
    )
    effect, guard = _screen.examine(made["f"])
    assert effect is None
    assert guard.check() is False
    tools.SCALE = 4.0
    assert guard.check() is True
