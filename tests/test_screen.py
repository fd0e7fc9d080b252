"""The purity screen: what is an effect and what is not, from bytecode alone (nothing here has a source)."""

import asyncio
import contextlib
import copy
import dataclasses
import datetime as dt
import enum
import fractions
import functools
import importlib.util
import logging
import math
import operator
import os
import pathlib
import random
import socket
import sys
import textwrap
import time
import types
import typing
import uuid
import warnings
from collections import defaultdict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import plum
import pytest

from plum_freeze import _bytecode, _flow, _kinds, _screen
from plum_freeze._screen import Effect, examine, screen


class Config:
    FACTOR = 2.0
    CACHE = {}
    twice = property(lambda self: 2)

    @staticmethod
    def noisy(x):
        print(x)
        return x

    @staticmethod
    def quiet(x):
        return x


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float = 1.0
    parts: tuple = ()


@dataclasses.dataclass
class Thawed:
    x: float = 1.0


class Layer(eqx.Module):
    weight: jax.Array


class Unit:
    """A value: it has an equality and a hash of its own."""

    def __eq__(self, other):
        return isinstance(other, Unit)

    def __hash__(self):
        return 1


class HashOnly:
    """No value: it is compared by identity."""

    def __hash__(self):
        return 1


def make_module(name, source="", **names):
    module = types.ModuleType(name)
    module.__dict__.update(names)
    exec(textwrap.dedent(source), module.__dict__)
    return module


@functools.cache
def shared_world():
    """The globals of a method's module, and what it imports."""
    settings = make_module(
        "pkg.settings", FACTOR=2.0, TABLE={}, sub=make_module("pkg.settings.sub", DEEP=1)
    )
    dynamic = make_module("pkg.dynamic", "def __getattr__(name): return 1")
    foreign = make_module("other.tools", "def log(x): print(x)\ndef __getattr__(name): return 1")
    own = make_module("pkg.tools", "def log(x): print(x)\ndef good(x): return x + 1")
    log, good = own.log, own.good
    return {
        "__name__": "pkg.core", "COUNT": 0, "LOG": [], "CACHE": {}, "SEEN": set(), "BYTES": bytearray(),
        "DATA": np.ones(3), "ITER": iter([1, 2]), "OBJECT": types.SimpleNamespace(x=1), "GROUPS": defaultdict(list),
        "THAWED": Thawed(), "BAD_FROZEN": Frozen(parts=([],)), "NESTED": ((1, []),), "REF": jax.new_ref(jnp.ones(())),
        "RNG": np.random.default_rng(0), "LOGGER": logging.getLogger("x"), "PARTIAL": functools.partial(int, [1]),
        "VIEW": types.MappingProxyType({}), "BOUND": [].append, "FRAGMENT": functools.partial(log, 1),
        "FLOAT": 1.0, "TEXT": "a", "TUPLE": (1, (2.0, None)), "ARRAY": jnp.ones(3), "DTYPE": np.dtype("f4"),
        "FROZEN": Frozen(), "LAYER": Layer(jnp.ones(2)), "UNIT": Unit(), "FRACTION": fractions.Fraction(1, 2),
        "SENTINEL": object(), "HINT": typing.Optional[int], "Color": Color, "Config": Config, "JITTED": jax.jit(good), "LOUD_JITTED": jax.jit(log),
        "VMAPPED": jax.vmap(good), "LOUD_VMAPPED": jax.vmap(log), "FUNCTION": plum.Function(good), "SLICE": slice(1, None), "HASHED": HashOnly(),
        "GOOD_PARTIAL": functools.partial(jnp.sum, axis=0), "cached": functools.lru_cache(good),
        "settings": settings, "dynamic": dynamic, "foreign": foreign, "own": own, "log": log, "good": good,
        "Layer": Layer, "Frozen": Frozen, "asyncio": asyncio, "contextlib": contextlib, "copy": copy, "datetime": dt,
        "jax": jax, "jnp": jnp, "np": np, "math": math, "os": os, "random": random, "sys": sys, "time": time, "uuid": uuid,
        "logging": logging, "warnings": warnings, "operator": operator, "socket": socket, "eqx": eqx, "functools": functools,
    }  # fmt: skip


def world():
    """A module's globals of its own, over objects that tests share and do not change."""
    return dict(shared_world())


def method(body, names=None, parameters="self, x, xs, *args, **kwargs"):
    """A method with this body that has captured `total`, `HELD` and `empty`."""
    namespace = world() if names is None else names
    lines = textwrap.indent(textwrap.dedent(body), " " * 8)
    source = f"def make(total, HELD, missing):\n    def method({parameters}):\n{lines}\n    return method\n"
    exec(compile(source, "/far/away/fields.py", "exec"), namespace)
    return namespace["make"](1, [], None)


EFFECTS = {
    # Names.
    "global COUNT; COUNT += 1": "writes global COUNT",
    "global COUNT; del COUNT": "deletes global COUNT",
    "nonlocal total; total = x": "writes captured total",
    "nonlocal total\ndef inner():\n    nonlocal total\n    total += 1\ninner()": "writes captured total",
    "def inner():\n    global COUNT\n    COUNT = x\nreturn inner()": "writes global COUNT",
    "for self.x in xs: pass": "writes attribute x of argument self",
    # Global and captured state, however it is used.
    "LOG.append(x)": "calls append on global LOG (list)",
    "add = LOG.append; add(x)": "calls append|reads attribute chain LOG.append",
    "CACHE['a'] = x": "writes item of global CACHE (dict)",
    "del CACHE['a']": "deletes item of global CACHE (dict)",
    "HELD[0:1] = xs": "writes item of captured HELD (list)",
    "HELD.append(x)": "calls append on captured HELD (list)",
    "return CACHE['a'] * x": "reads global CACHE (dict)",
    "return len(SEEN)": "reads global SEEN (set)",
    "return BYTES": "reads global BYTES (bytearray)",
    "return x * DATA": "reads global DATA (ndarray)",
    "return next(ITER)": "reads global ITER",
    "return HASHED": "reads global HASHED (HashOnly)",
    "return OBJECT.x * x": "reads attribute chain OBJECT.x of a global object",
    "OBJECT.x = x": "writes attribute x of global OBJECT",
    "GROUPS[0].append(x)": "GROUPS",
    "return THAWED.x": "reads attribute chain THAWED.x",
    "return BAD_FROZEN.x": "BAD_FROZEN.x",
    "return NESTED": "reads global NESTED (tuple)",
    "return REF": "reads global REF",
    "return RNG.normal()": "calls normal on global RNG (Generator)",
    "LOGGER.info(1)": "calls info on global LOGGER (Logger)",
    "return PARTIAL()": "reads global PARTIAL (partial)",
    "return VIEW": "reads global VIEW (mappingproxy)",
    "return BOUND(x)": "reads global BOUND",
    "return [CACHE[k] for k in xs]": "reads global CACHE (dict)",
    "return (lambda: CACHE['a'])()": "reads global CACHE (dict)",
    "return x if x is None else LOG": "reads global LOG (list)",
    "return settings.TABLE['a']": "reads global settings.TABLE (dict)",
    "settings.FACTOR = x": "writes attribute FACTOR of settings",
    "return Config.CACHE": "reads global Config.CACHE (dict)",
    "Config.FACTOR = x": "writes attribute FACTOR of Config",
    "return dynamic.anything": "reads dynamic.anything, which is made up when asked for",
    "return getattr(OBJECT, 'x')": "reads attribute chain OBJECT.x",
    "return getattr(settings, 'TABLE')": "reads global settings.TABLE (dict)",
    "return getattr(settings, x)": "reads attributes of settings with getattr",
    "return x.f(settings)": "hands on module settings",
    "good.calls = 1": "writes attribute calls of good",
    "return sys.modules": "reads global sys.modules (dict)",
    "return jax.config.jax_enable_x64": "reads attribute chain jax.config.jax_enable_x64",
    # Writes to what the call did not make.
    "self.count += 1": "writes attribute count of argument self",
    "self.count = 1": "writes attribute count of argument self",
    "del self.count": "deletes attribute count of argument self",
    "self.a.b = 1": "writes attribute b of argument self.a",
    "self.items[0] = 1": "writes item of argument self.items",
    "type(self).count = 1": "writes attribute count of the result of type",
    "xs[0] = 1": "writes item of argument xs",
    "xs[0:2] = []": "writes item of argument xs",
    "xs[0][1] = 1": "writes item of argument xs[...]",
    "del xs[0]": "deletes item of argument xs",
    "xs[0], y = 1, 2": "writes item of argument xs",
    "xs += [1]": "changes argument xs in place",
    "xs[0] += 1": "writes item of argument xs",
    "CACHE['n'] += 1": "writes item of global CACHE (dict)",
    "out = [xs]\nout[0] += [1]": "in place",
    "for y in xs: y[0] = 1": "writes item of",
    "ys = [] if x is None else xs\nys[0] = 1": "writes item of",
    "ys = []\nif x is None: ys = xs\nys.append(1)": "calls append",
    "ys = []\nfor _ in xs:\n    ys.append(1)\n    ys = xs": "calls append",
    "ys = xs or []\nys[0] = 1": "writes item of",
    "try:\n    ys = []\n    ys = xs\n    1 / 0\n    ys = []\nexcept ValueError:\n    ys[0] = 1": "writes item of argument xs",
    "ys = xs\ndef inner(): ys.append(1)\ninner()": "calls append on argument ys|calls append on argument xs",
    "ys = []\ndef inner(): ys[0] = 1\ninner()\nys = xs": "writes item of",
    "def inner(y): y[0] = 1\ninner(xs)": "writes item of argument y",
    "(lambda y: y.append(1))(xs)": "calls append on argument y",
    "ys = []\ndef a(): ys[0] = 1\ndef b():\n    nonlocal ys\n    ys = xs\nb(), a()": "writes item of argument xs",
    "helper = xs.append\nhelper(1)": "calls append on argument xs",
    "list(map(xs.append, x))": "calls append on argument xs",
    "list.append(xs, 1)": "calls list.append, which writes a part of argument xs",
    "operator.setitem(xs, 0, 1)": "writes a part of argument xs",
    "object.__setattr__(self, 'a', 1)": "writes a part of argument self",
    "return xs.pop()": "calls pop on argument xs",
    "return self.cache.setdefault(1, x)": "calls setdefault on argument self.cache",
    "if x is None: ys = xs\nys[0] = 1": "writes item of argument xs",
    "if x is None: pass\nelse: ys = xs\nys[0] = 1": "writes item of argument xs",
    "f = self.update\nf(x)": "calls update on argument self",
    "self.update(x)": "calls update on argument self",
    "x.f().update(1)": "calls update on the result of x.f",
    "super(Config, self).__init__(x)": "__init__",
    "setattr(self, 'a', 1)": "calls setattr",
    "delattr(self, 'a')": "calls delattr",
    # Impure builtins and modules.
    "print(x)": "calls print",
    "return list(map(print, xs))": "calls print",
    "return jnp.sum(x) if x is None else print(x)": "calls print",
    "input()": "calls input",
    "with open('f') as f: pass": "calls open",
    "exec('1')": "calls exec",
    "return eval('1')": "calls eval",
    "return globals()": "calls globals",
    "return locals()": "calls locals",
    "return vars(self)": "calls vars",
    "return id(x)": "calls id",
    "return time.time()": "calls time.time",
    "time.sleep(1)": "calls time.sleep",
    "return random.random()": "calls random.random",
    "return random.Random(0)": "calls random.Random",
    "return np.random.normal()": "calls numpy.random",
    "return np.random.default_rng(0)": "calls numpy.random",
    "return os.environ['HOME']": "reads global os.environ",
    "return os.getpid()": "calls posix.getpid|calls nt.getpid",
    "return datetime.datetime.now()": "calls datetime.now",
    "return datetime.date.today()": "calls datetime.today",
    "return uuid.uuid4()": "calls uuid.uuid4",
    "logging.getLogger('a').info(1)": "calls logging.getLogger",
    "warnings.warn('a')": "calls warnings.warn",
    "sys.stdout.write('a')": "calls write on global sys.stdout",
    "import never_imported_module": "imports never_imported_module",
    "from os import never_there": "imports os.never_there",
    "class A: pass": "defines a class",
    # Helpers of the same package, however they are reached.
    "return log(x)": "calls print",
    "return own.log(x)": "calls print",
    "return jax.vmap(log)(x)": "calls print",
    "return FRAGMENT()": "calls print",
    "return LOUD_VMAPPED(x)": "calls print",
    # Functions of another kind.
    "yield x": "is a generator",
}  # fmt: skip

PURE = [
    "return x",
    "return jnp.where(x > 0, jnp.sin(x), 0.0) * math.pi + np.pi",
    "return x.at[0].set(1)",
    "return x.at[0].add(1)",
    "return self.weight @ x + self.bias.T",
    "return jax.lax.scan(lambda c, y: (c + y, c * total), x, xs)",
    "return jax.tree.map(lambda leaf: leaf * FLOAT, xs)",
    "return jax.random.normal(x, (3,))",
    "jax.debug.print('{}', x)",
    "return [y + 1 for y in xs], {y: 1 for y in xs}, {y for y in xs}, sum(y for y in xs)",
    "out = []\nfor y in xs: out.append(y)\nreturn out",
    "out = []\ndef inner(y):\n    out.append(y)\n    return y\nreturn [inner(y) for y in xs], out",
    "n = 0\ndef inner():\n    nonlocal n\n    n += 1\ninner()\nreturn x * n",
    "out = {}\nout['a'] = x\nout.update(b=x)\ndel out['a']\nout |= {}\nreturn out.pop('b')",
    "out = {**xs}\nout[0] = 1",
    "xs = list(xs)\nxs[0] = 1\nxs += [2]\nreturn xs",
    "ys = [1, 2, 3] if x is None else [*xs]\nys.append(1)",
    "shape = sorted(x.shape)\nshape.append(1)",
    "ys = xs.copy()\nys[0] = 1",
    "ys = xs + [1]\nys.append(2)",
    "out = np.zeros(3)\nout[0] = 1\nout[1:] = 2",
    "try:\n    out = []\n    out.append(x)\nfinally:\n    out = None",
    "while x:\n    out = []\n    if x: break\n    out.append(1)\nelse:\n    out = 1",
    "kwargs.pop('a', None)\nreturn kwargs",
    "y = x + 1\ny += 1\ny *= FLOAT\nn = COUNT\nn += 1\nreturn y",
    "y = jnp.sin(x)\ny += 1",
    "new = object.__new__(Layer)\nobject.__setattr__(new, 'weight', x)\nreturn new",
    "return Layer(x), Frozen(1.0)",
    "layer = Frozen()\nlayer.x = 1",
    "if x.ndim != 2: raise ValueError(f'{x.shape!r:>10} {TEXT}')\nassert isinstance(x, jax.Array), 'no'",
    "try:\n    return x / 0\nexcept (ZeroDivisionError, TypeError) as error:\n    return str(error)",
    "with jax.named_scope('a'): return x * 2",
    "match xs:\n    case [a, *b]: return a\n    case {'k': v}: return v\n    case Frozen(x=1.0): return x",
    "return ARRAY + FLOAT + TUPLE[0] + FROZEN.x + LAYER.weight + FRACTION + DTYPE.itemsize, TEXT.upper(), UNIT, SLICE",
    "return SENTINEL, HINT, Color.RED.value, Config.FACTOR, Config.twice, Config.quiet(x)",
    "return JITTED(x), VMAPPED(x), FUNCTION(x), GOOD_PARTIAL(x), cached(1), jnp.s_[0:1], jax.lax.sin_p.bind(x)",
    "return good(x) + own.good(x) + settings.FACTOR + settings.sub.DEEP + foreign.log(x) + foreign.made_up",
    "return getattr(self, 'a'), getattr(x, 'b', None), getattr(settings, 'FACTOR'), getattr(jnp, x)",
    "import math\nimport os.path as p\nfrom jax import numpy, lax as l\nreturn math.sin(1), p, numpy.sin(x), l",
    "return x.sum(axis=0, keepdims=True), max(*xs), dict(**kwargs), x[1:2, ...], x[1:2], not x, -x, x is None",
    "return not_defined_yet(x)",
    "if x is None: a = []\nelse: b = []\nif x is None: a.append(1)\nelse: b.append(1)",
    "return LOUD_JITTED(x)  # it prints when it is traced, in plain plum too",
    "return jax.lax.cond(x > 0, lambda: x, lambda: -x) if (y := x) is not None and xs else y",
    "a, (b, *c) = xs\n(a, b) = (b, a)\nreturn a, b, c",
    "def inner(a, *b, c=1, **d): return a, b, c, d\nreturn inner(*xs, c=2, **kwargs)",
    "@jax.checkpoint\ndef inner(c, y): return c, y + x\nreturn jax.lax.scan(inner, 0, xs)",
    "def gen():\n    yield x\n    yield from xs\nreturn sum(gen())",
    "return eqx.error_if(x, x < 0, 'negative')",
    "eqx.tree_check(x)",
    "return isinstance(x, os.PathLike), issubclass(type(x), (Exception, socket.gaierror))",
    "return functools.reduce(operator.add, xs)",
]


@pytest.mark.parametrize("body", EFFECTS)
def test_effects(body):
    effect = screen(method(body))
    assert effect is not None
    assert any(part in effect.what for part in EFFECTS[body].split("|")), effect


@pytest.mark.parametrize("body", PURE)
def test_what_ordinary_numerical_code_does_is_no_effect(body):
    effect, guard = examine(method(body))
    assert effect is None
    assert guard.check() is False


def test_an_effect_names_its_line():
    effect = screen(method("y = x\nglobal COUNT\nCOUNT = y"))
    assert effect == Effect("writes global COUNT", "/far/away/fields.py", 5)
    assert str(effect) == "writes global COUNT (fields.py:5)"


def test_the_first_effect_in_the_code_is_the_reason():
    assert screen(method("y = jnp.sin(x)\nprint(y)\nself.a = 1")).what == "calls print"
    assert screen(method("self.a = 1\nprint(x)")).what.startswith("writes attribute a")


def test_the_effect_of_a_helper_names_the_line_of_the_helper():
    names = world()
    exec(compile("\n\ndef deep(x):\n    print(x)", "/far/helpers.py", "exec"), names)
    exec("def middle(x): return middle(x), deep(x)", names)
    assert str(screen(method("return middle(x)", names))) == "calls print (helpers.py:4)"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("print(x)", "jax.debug.print"),
        ("xs[0] = 1", r"x.at\[i\].set"),
        ("return random.random()", "jax.random"),
        ("return DATA", "pass the value as an argument"),
        ("LOG.append(x)", "return what is computed"),
        ("import never_imported_module", "top of the module"),
    ],
)
def test_an_effect_has_a_remedy_in_words(what, words):
    remedy = screen(method(what)).remedy
    assert __import__("re").search(words, remedy)
    assert "@eager" in remedy


def test_more_helpers_than_can_be_looked_through_are_an_effect():
    names = world()
    for index in range(_screen.MOST_FUNCTIONS + 1):
        exec(f"def f{index}(x): return f{index + 1}(x)", names)
    assert "too many functions" in screen(method("return f0(x)", names)).what
    assert screen(method("return f20(x)", names)) is None


async def coroutine(x):
    return x


async def asynchronous_generator(x):
    yield x


@types.coroutine
def old_coroutine(x):
    yield x


@pytest.mark.parametrize("function", [coroutine, asynchronous_generator, old_coroutine])
def test_functions_that_do_not_return_their_value(function):
    assert screen(function).what in {
        "is a coroutine",
        "is an asynchronous generator",
        "is a generator",
    }


class Callable_:
    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    "function",
    [
        functools.partial(len),
        len,
        Callable_(),
        Callable_().__call__,
        functools.lru_cache(coroutine),
        int,
    ],
)
def test_only_plain_functions_are_jitted(function):
    effect, guard = examine(function)
    assert effect.what == "is not a plain Python function"
    assert guard.check() is False


def test_what_is_jitted_already_has_no_effect():
    assert screen(jax.jit(lambda x: print(x))) is None


@pytest.mark.parametrize("default", [[], {}, np.ones(2), Thawed()])
@pytest.mark.parametrize("parameters", ["x, y=d", "x, *, y=d"])
def test_a_mutable_default_is_state(default, parameters):
    names = world() | {"d": default}
    exec(f"def f({parameters}): return x", names)
    assert screen(names["f"]).what == f"reads default y ({type(default).__name__})"
    exec(f"def f({parameters}): return x", names | {"d": 1.0})
    names["d"] = 1.0
    exec(f"def f({parameters}): return x", names)
    assert screen(names["f"]) is None


def test_a_wrapper_of_another_package_is_not_looked_through_but_what_it_wraps_is():
    wrap = make_module(
        "other",
        "import functools\ndef wrap(f):\n  @functools.wraps(f)\n  def g(*a):\n    print(a)\n    return f(*a)\n  return g",
    ).wrap
    assert screen(wrap(method("return x"))) is None
    assert screen(wrap(method("self.a = 1"))).what == "writes attribute a of argument self"


def test_a_wrapper_of_the_same_package_is_looked_through():
    wrap = make_module(
        "pkg.wrap",
        "import functools\nN = []\ndef wrap(f):\n  @functools.wraps(f)\n  def g(*a):\n    N.append(1)\n    return f(*a)\n  return g",
    ).wrap
    assert screen(wrap(method("return x"))).what == "calls append on global N (list)"


def test_a_helper_is_of_the_package_of_its_code_not_of_its_name():
    names = world()
    helper = make_module("other.deep", "def helper(x): print(x)").helper
    helper.__module__ = "pkg.core"
    assert screen(method("return helper(x)", names | {"helper": helper})) is None


def test_static_helpers_of_a_global_class_are_looked_through():
    names = world()
    exec(
        "class Tools:\n  @staticmethod\n  def noisy(x): print(x)\n  @classmethod\n  def quiet(cls, x): return x",
        names,
    )
    assert screen(method("return Tools.noisy(x)", names)).what == "calls print"
    assert screen(method("return Tools.quiet(x)", names)) is None


def test_the_class_cell_of_super_is_no_state():
    names = world()
    exec(
        "class A:\n  def f(self, x): return super().f(x), __class__\n  def g(self, x): super().g(x)",
        names,
    )
    assert screen(names["A"].f) is None
    assert screen(names["A"].g).what == "calls g on argument super()"


def test_nothing_of_the_module_runs():
    """No PEP 562 `__getattr__`, no property, no `__getattr__` of an object."""
    names = world()
    ran = []
    names["own"] = make_module("pkg.lazy", __getattr__=ran.append)
    names["lazy"] = type("Lazy", (), {"__getattr__": lambda self, name: ran.append(name)})()
    names["Meta"] = type("M", (type,), {"__getattr__": lambda cls, name: ran.append(name)})(
        "Meta", (), {}
    )
    screen(method("return own.nothing, lazy.x, Meta.x", names))
    assert ran == []


def test_constants_that_hold_state_are_found_at_any_depth():
    assert _kinds.is_constant((1, (2, frozenset({3}), Frozen(parts=(4,)))))
    assert not _kinds.is_constant((1, (2, frozenset({3}), Frozen(parts=(4, [])))))
    deep = ()
    for _ in range(100):
        deep = (deep,)
    assert not _kinds.is_constant(deep)


STDLIB = ["asyncio.tasks", "contextlib", "dataclasses", "pdb"]


class AnyNames:
    def load_name(self, name):
        return _flow.Value(name=name)

    load_cell = load_name

    def load_attribute(self, owner, name):
        return _flow.Value(name=name)

    def load_module(self, name, level, names):
        return _flow.Value(name=name)


def functions_in(code):
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_flags & 1 and not const.co_freevars:
                yield const
            yield from functions_in(const)


@pytest.mark.parametrize("name", STDLIB)
def test_the_stack_is_followed_exactly(name, monkeypatch):
    """Where two paths meet they bring equally many values, and none is taken off an empty stack."""
    meet, pop, met = _flow.Flow._meet, _flow.pop, []

    def checked_meet(self, index, stack, local):
        met.append(len(self._states.get(index, [stack])[0]) == len(stack))
        meet(self, index, stack, local)

    def checked_pop(stack):
        met.append(bool(stack))
        return pop(stack)

    monkeypatch.setattr(_flow.Flow, "_meet", checked_meet)
    monkeypatch.setattr(_flow, "pop", checked_pop)
    monkeypatch.setattr(_bytecode, "pop", checked_pop)
    source = pathlib.Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")
    for code in functions_in(compile(source, name, "exec")):
        list(_bytecode.Body(code, AnyNames()).effects())
    assert len(met) > 1000
    assert all(met)
