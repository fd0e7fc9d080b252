"""What of a call is traced and what is static: values by type and bits, pytrees, nothing kept alive."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import gc
import sys
import types
import typing
import weakref
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from side_by_side import Pair

from plum_freeze import _apart, _static

X = jnp.arange(4.0)
INTS = jnp.arange(4)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Name(str, enum.Enum):
    A = "a"


class Point(typing.NamedTuple):
    a: object
    b: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Data:
    x: object
    n: object = dataclasses.field(metadata={"static": True}, default=3)


@dataclasses.dataclass(frozen=True)
class Settings:
    n: object


class Module(eqx.Module):
    w: Array
    n: object = eqx.field(static=True)


class Leaky:
    """A pytree that keeps an attribute to itself."""

    def __init__(self, x):
        self.x = x
        self.calls = 1


jax.tree_util.register_pytree_node(Leaky, lambda node: ((node.x,), None), lambda _, children: Leaky(*children))

identity = lambda x: x  # noqa: E731


def only(method):
    return lambda dispatch: dispatch(method)


def kind(n):
    """A number that depends on the type and bits of a value."""
    return float(sum(map(ord, f"{type(n).__name__}{n!r}")) % 997)


def by_kind(x: Array, n: object):
    return x + kind(n)


STATIC = [
    *(1, True, 1.0, 0, False, 0.0, -0.0, float("nan"), float("inf"), 1j, None, ..., "s", b"s", NotImplemented),
    *(slice(1), slice(True), range(1), range(True), (1, (2,)), (1, (True,)), (), frozenset({1}), frozenset({1.0})),
    *(Colour.RED, Level.LOW, Flags.A, Flags.A | Flags.B, Name.A, int, float, jnp.float32, np.float32, np.dtype("f4")),
    *(Settings(1), Settings(True), Settings(0.0), Settings(-0.0), Settings((1,)), len, np.dtype("q"), np.dtype("l")),
]


@pytest.mark.parametrize("start", range(0, len(STATIC), 14))
def test_a_static_value_is_compiled_for_and_compared_by_type_and_bits(start):
    pair = Pair(only(by_kind))
    values = STATIC[start : start + 14]
    for value in values:
        pair.check(lambda f, n=value: f(X, n))
    assert not pair.reasons()
    assert pair.compiled() == len({_static.static_key(value) for value in values})


def test_equal_values_of_different_types_have_different_keys():
    same = [(1, True, 1.0, 1 + 0j), (0.0, -0.0), ((1,), (True,), (1.0,))]
    same += [(Settings(1), Settings(True)), (np.dtype("q"), np.dtype("l")), (slice(1), slice(True))]
    same += [(frozenset({1}), frozenset({True})), (Colour.RED, Level.LOW, 1), (None, ()), ("s", b"s", Name.A)]
    for values in same:
        assert len({_static.static_key(v) for v in values}) == len(values), values


@pytest.mark.parametrize(
    "value",
    [
        *(np.ones(2), np.float64(1), np.int8(1), [object()], {1}, bytearray(1), object(), iter(()), types.SimpleNamespace()),
        *(functools.partial(int), "".join, (np.ones(2),), Settings([1]), collections.Counter()),
    ],
    ids=lambda v: type(v).__name__,
)
def test_anything_else_runs_plainly_and_the_reason_names_it(value):
    def f(x: Array, n: object):
        return x * 2

    pair = Pair(only(f))
    pair.check(lambda g: g(X, value))
    assert pair.compiled() == 0
    assert any(reason.startswith("argument 2 (") for reason in pair.reasons())


def test_a_lambda_and_a_closure_run_plainly_but_not_one_that_a_module_holds():
    def f(x: Array, function: object):
        return function(x) * 2

    pair = Pair(only(f))
    pair.check(lambda g: g(X, lambda x: x + 1))
    assert pair.compiled() == 0
    pair.check(lambda g: g(X, identity))
    pair.check(lambda g: g(X, jnp.sin))
    pair.check(lambda g: g(X, jax.nn.relu))
    pair.check(lambda g: g(X, jnp.linalg.norm))
    assert pair.compiled() == 4


def double(t: object):
    return jax.tree_util.tree_map(lambda a: a * 2, t)


TREES = [
    *((X,), [X, INTS], {"b": X, "a": INTS}, {"a": INTS, "b": X}, (X, None), [None, (), {}, [X]], {1: X, 0: [INTS, {"z": X}]}),
    *(Point(X, INTS), Point(X, None), Data(X), Data(X, 5), Module(X, 1), collections.OrderedDict(b=X, a=INTS), Point([X], {"q": INTS})),
    *(collections.defaultdict(list, b=X), {"a": X, "z": (Point({"a": X, "z": INTS}, 1.0),)}, Data({"z": X, "a": [INTS]})),
]


@pytest.mark.parametrize("tree", TREES, ids=[str(i) for i in range(len(TREES))])
def test_pytrees_are_traced_through_their_leaves(tree):
    pair = Pair(only(double))
    pair.check(lambda f: f(tree))
    # doubled, a float that is static is a float
    assert (pair.compiled(), pair.reasons()) == ((0, ["returns float"]) if "b=1.0" in str(tree) else (1, []))


def test_a_dict_whose_keys_cannot_be_sorted_is_traced():
    def f(d: dict):
        return d[1] + d["a"]

    pair = Pair(only(f))
    pair.check(lambda g: g({1: X, "a": INTS}))
    assert pair.compiled() == 1


@pytest.mark.parametrize("tree", [(), {}, [], None, ((), {"a": []})], ids=str)
def test_empty_trees_run_plainly(tree):
    pair = Pair(only(double))
    pair.check(lambda f: f(tree))
    assert pair.compiled() == 0


def test_a_namedtuple_of_a_local_class_is_traced():
    Local = collections.namedtuple("Local", "a b")

    def f(t: object):
        return t.a + t.b

    pair = Pair(only(f))
    pair.check(lambda g: g(Local(X, INTS)))
    assert pair.compiled() == 1


def test_the_static_fields_of_a_module_count():
    def f(m: Module, x: Array):
        return m.w * x + kind(m.n)

    pair = Pair(only(f))
    for n in (1, True, 1.0, 0.0, -0.0, "x", None, (1, 2), Colour.RED, jax.nn.relu, jnp.sin):
        pair.check(lambda g, n=n: g(Module(X, n), X))
    assert pair.compiled() == 11
    assert not pair.reasons()
    for n in ([1], np.float32(1), lambda: 1):
        pair.check(lambda g, n=n: g(Module(X, n), X))
    assert pair.compiled() == 11
    assert any("static field of type list" in reason for reason in pair.reasons())


def test_equinox_layers_are_traced():
    mlp = eqx.nn.MLP(4, 4, 8, 1, key=jax.random.key(0))

    def f(m: eqx.Module, x: Array):
        return jnp.round(m(x) * 64)

    pair = Pair(only(f))
    pair.check(lambda g: g(mlp, X))
    assert pair.compiled() == 1  # JAX keeps the trace of a `relu`, and that is no leak
    assert not pair.reasons()


def test_a_pytree_that_keeps_an_attribute_to_itself_runs_plainly():
    def f(node: Leaky):
        return node.x * node.calls

    def called_often():
        node = Leaky(X)
        node.calls = 5
        return node

    pair = Pair(only(f))
    pair.check(lambda g: g(Leaky(X)))
    pair.check(lambda g: g(called_often()))
    assert any("keeps more than its pytree shows" in reason for reason in pair.reasons())


def test_an_object_that_imitates_a_function_is_not_static():
    class Counter:
        def __init__(self, function):
            functools.update_wrapper(self, function)
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return x * self.calls

    def f(x: Array, function: object):
        return function(x)

    Counter.__module__ = __name__
    globals()["counted"] = plain = Counter(len)
    plain.__name__ = plain.__qualname__ = "counted"
    plain.__module__ = __name__
    pair = Pair(only(f))
    for _ in range(3):
        before = plain.calls
        pair.frozen(X, plain)
        assert plain.calls == before + 1


# -- keywords, defaults, varargs -----------------------------------------------------------------


def test_keywords_defaults_and_varargs():
    def f(x: Array, *xs: Array, s: object = 3, **kw: object):
        return x * s + sum(xs) + sum(kw.values())

    pair = Pair(only(f))
    pair.check(lambda g: g(X))
    pair.check(lambda g: g(X, X, X, s=4))
    pair.check(lambda g: g(X, s=2.5))
    pair.check(lambda g: g(X, s=True))
    pair.check(lambda g: g(X, s=1))
    pair.check(lambda g: g(X + 1, s=2.0))
    pair.check(lambda g: g(X + 1, s=-2.0))
    pair.check(lambda g: g(X, a=X, b=INTS))
    pair.check(lambda g: g(X, b=X, a=2))
    pair.check(lambda g: g(X, s=X))
    assert pair.compiled() == 10
    assert not pair.reasons()
    pair.check(lambda g: g(X, a=np.ones(4)))
    assert pair.reasons() == ["argument a (numpy.ndarray)"]


def test_keywords_in_another_order_are_the_same_call_unless_the_method_sees_it():
    def f(x: Array, *, a: object, b: object):
        return x * a + b

    def seen(x: Array, **kw: object):
        return {k: x * v for k, v in kw.items()}

    pair, other = Pair(only(f)), Pair(only(seen))
    for _ in range(2):
        pair.check(lambda g: g(X, a=2, b=3))
        pair.check(lambda g: g(X, b=3, a=2))
        other.check(lambda g: g(X, z=2, b=3))
        other.check(lambda g: g(X, b=3, z=2))
    assert pair.compiled() == 1
    assert other.compiled("seen") == 2


def test_an_unhashable_and_a_nan_keyword():
    def f(x: Array, *, n: object = None):
        return x * 2 + (0.0 if n != n else 1.0)

    pair = Pair(only(f))
    for n in (float("nan"), [1, 2], [X], {"a": 1}, float("nan"), 2.0):
        pair.check(lambda g, n=n: g(X, n=n) if not isinstance(n, list) else g(X, n=tuple(n) if n[0] is X else 1))


# -- the limit -----------------------------------------------------------------------------------


def test_the_limit_of_variants_names_the_argument():
    def f(x: Array, mode: str, dt: float):
        return x * dt

    pair = Pair(only(f))
    for i in range(40):
        pair.check(lambda g, i=i: g(X, "abc"[i % 3], float(i)), times=1)
        pair.check(lambda g, i=i: g(X, "abc"[i % 3], float(i)), times=1)
    assert pair.compiled() == 16
    (reason,) = pair.reasons()
    assert "more than 16 sets of static values" in reason
    assert "argument dt varies" in reason
    assert "traced('dt')" in reason


def test_the_limit_names_a_keyword_and_does_not_suggest_traced_for_a_string():
    def f(x: Array, *, mode: str = ""):
        return x * len(mode)

    pair = Pair(only(f))
    for i in range(20):
        pair.check(lambda g, i=i: g(X, mode="m" * i), times=2)
    (reason,) = pair.reasons()
    assert "argument mode varies" in reason
    assert "traced" not in reason


def test_structures_of_arrays_are_no_static_values():
    pair = Pair(only(double))
    for n in range(1, 20):
        pair.check(lambda g, n=n: g([X] * n), times=2)
    assert pair.compiled() == 19
    assert not pair.reasons()


# -- nothing is kept alive -----------------------------------------------------------------------


class Plain:
    pass


def _local_class():
    class Local:
        pass

    return Local


def _closure():
    y = 3
    return lambda: y


def _local_module():
    class Local(eqx.Module):
        w: Array

    return Local(X)


KEPT = {
    "object": Plain,
    "class": _local_class,
    "lambda": lambda: lambda: 1,
    "closure": _closure,
    "array": lambda: jnp.ones(3),
    "module": lambda: eqx.nn.Linear(3, 3, key=jax.random.key(0)),
    "module of a local class": _local_module,
    "partial": lambda: functools.partial(int),
    "frozen dataclass": lambda: Settings(5),
    "frozen dataclass in a tuple": lambda: Settings(Settings((Settings(5),))),
    "frozen dataclass with an object": lambda: Settings(Plain()),
    "bound method": lambda: types.MethodType(kind, Plain()),
}


@pytest.mark.parametrize("how", ["positional", "keyword", "in a tuple", "error"])
def test_an_argument_is_not_kept_alive(how):
    def f(x: Array, o: object = None, *, k: object = None):
        if how == "error":
            raise ValueError(how)
        return x * 2

    pair = Pair(only(f))
    references = {}
    for name, make in KEPT.items():
        value, array = make(), jnp.ones(3)
        references[name] = weakref.ref(value)
        references[f"the array beside {name}"] = weakref.ref(array)
        for _ in range(3):
            with contextlib.suppress(ValueError):
                if how == "keyword":
                    pair.frozen(array, k=value)
                else:
                    pair.frozen(array, (value,) if how == "in a tuple" else value)
        del value, array
    gc.collect()
    # plum itself keeps the class of an argument, as a key of its cache
    assert [name for name, reference in references.items() if reference() is not None] == []


def test_a_function_that_leaves_its_module_is_let_go():
    def f(x: Array, function: object):
        return function(x)

    namespace = types.ModuleType("plum_freeze_test_module")
    sys.modules[namespace.__name__] = namespace
    try:
        exec("def held(x): return x * 2", namespace.__dict__)
        pair = Pair(only(f))
        for _ in range(3):
            pair.frozen(X, namespace.held)
        assert pair.compiled() == 1
        reference = weakref.ref(namespace.held)
        exec("def held(x): return x * 3", namespace.__dict__)
        pair.check(lambda g: g(X, namespace.held))
        gc.collect()
        assert reference() is None
        (method,) = pair.methods()
        assert len(method.variants) == 1
    finally:
        del sys.modules[namespace.__name__]


def test_an_error_in_a_trace_keeps_nothing_alive():
    def f(x: Array, y: Array):
        return x * 2 if y.sum() > 0 else x * 3

    pair = Pair(only(f))
    array = jnp.ones(3)
    reference = weakref.ref(array)
    for _ in range(3):
        pair.frozen(array, array)
    assert "branches on a traced value" in pair.reasons()[0]
    del array
    gc.collect()
    assert reference() is None


def test_array_classes_are_only_those_of_jax():
    assert all(cls.__module__.startswith("jax") for cls in _apart.array_classes)
    assert not _apart.is_array_class(np.ndarray)
    assert not _apart.is_array_class(int)
