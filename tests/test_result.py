"""What a compiled method may return: the same objects, in the same order, as the plain one."""

from __future__ import annotations

import dataclasses
import enum
import sys
import typing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from side_by_side import Pair

from plum_freeze import _jax, _result
from plum_freeze._static import Plain

X = jnp.arange(4.0)


class Colour(enum.Enum):
    RED = 1


class Point(typing.NamedTuple):
    a: object
    b: object


class Module(eqx.Module):
    w: object
    n: object = eqx.field(static=True)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Data:
    x: object
    n: object = dataclasses.field(metadata={"static": True}, default=3)


class Leaky:
    def __init__(self, x):
        self.x = x
        self.calls = 1


jax.tree_util.register_pytree_node(Leaky, lambda node: ((node.x,), None), lambda _, children: Leaky(*children))


def only(method):
    return lambda dispatch: dispatch(method)


def _leaky(x):
    found = Leaky(x)
    found.calls = 7
    return found


def _twice(x):
    found = [x * 2]
    return found, found


COMPILED = {
    "tuple": lambda x: (x * 2, x),
    "nested": lambda x: [(x * 2, None), {}, [], ()],
    "sorted dict": lambda x: {"a": x + 1, "z": x * 2},
    "dict": lambda x: {"z": x * 2, "a": x + 1},
    "nested dicts": lambda x: [{"z": x * 2, "a": {2: x + 1, 1: [x, {"q": x * 3, "b": None}]}}, ({"y": x, "x": -x},)],
    "dict with keys of several types": lambda x: {1: x * 2, "a": x + 1},
    "namedtuple": lambda x: Point(x * 2, [x]),
    "module": lambda x: Module(x * 2, (1, "a")),
    "dataclass": lambda x: Data(x * 2, 5),
    "weak type": lambda x: jnp.asarray(2.0) * 3,
    "integers": lambda x: jnp.int8(3) + x.astype("int8"),
    "key": lambda x: jax.random.split(jax.random.key(0)).shape and x * 2,
}
PLAIN = {
    "int": (lambda x: x.shape[0], "returns int"),
    "tuple with an int": (lambda x: (x * 2, 1), "returns int"),
    "float": (lambda x: float(x[0]), "returns float"),
    "numpy": (lambda x: np.asarray(x) * 2, "returns numpy.ndarray"),
    "numpy scalar": (lambda x: np.float64(x[1]) / 3, "returns numpy.float64"),
    "str": (lambda x: str(x.dtype), "returns str"),
    "None": (lambda x: None, "returns NoneType without an array"),
    "empty": (lambda x: {}, "returns dict without an array"),
    "enum": (lambda x: Colour.RED, ".Colour"),
    "function": (lambda x: jnp.sin, "returns jaxlib.PjitFunction"),
    "argument": (lambda x: x, "returns an argument as it is"),
    "list twice": (_twice, "the same one twice"),
    "module with a function": (lambda x: Module(x * 2, lambda: 1).n(), "returns int"),
    "module with a list": (lambda x: Module(x * 2, [1]), "static field of type list"),
    "unordered dict in a module": (lambda x: Module({"b": x * 2, "a": x}, 1), "whose keys are not in order"),
    "more than its pytree": (_leaky, "keeps more than its pytree shows"),
    "complex": (lambda x: complex(x[0]), "returns complex"),
    "iterator": (lambda x: [iter(()), x * 2], "returns tuple_iterator"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_compiled_code_can_return(name):
    function = COMPILED[name]

    def f(x: Array):
        return function(x)

    pair = Pair(only(f))
    pair.check(lambda g: g(X))
    assert pair.compiled() == 1, pair.reasons()


@pytest.mark.parametrize("name", PLAIN)
def test_what_compiled_code_cannot_return(name):
    function, reason = PLAIN[name]

    def f(x: Array):
        return function(x)

    pair = Pair(only(f))
    pair.check(lambda g: g(X))
    assert pair.compiled() == 0
    assert reason in pair.reasons()[0]


def test_a_dict_keeps_its_values_under_its_keys_when_the_shape_changes():
    """JAX's C++ puts a result together with the structure of the result that it saw first."""

    def f(x: Array):
        return {"z": x * 2, "a": x + 1} if x.shape[0] == 4 else {"a": x + 1, "z": x * 2}

    pair = Pair(only(f))
    for x in (X, X[:2], X, X[:2]):
        pair.check(lambda g, x=x: g(x))
    pair.check(lambda g: jax.vmap(g)(jnp.ones((2, 4))))
    pair.check(lambda g: jax.jit(g)(X))
    assert pair.compiled() == 1


def test_the_very_list_that_was_passed_comes_back():
    def f(x: list):
        return x

    def g(x: list, y: Array):
        return x, y * 2

    def changed(d: dict):
        return d["a"] * 2, d

    for method, args in ((f, ([X],)), (g, ([X], X)), (changed, ({"a": X},))):
        pair = Pair(only(method))
        pair.check(lambda h: h(*args))
        for _ in range(3):
            result = pair.frozen(*args)
            found = result if isinstance(result, (list, dict)) else next(r for r in result if isinstance(r, (list, dict)))
            assert found is args[0]


def test_a_mutable_dataclass_that_was_passed_comes_back():
    def f(d: Data):
        return d, d.x * 2

    pair = Pair(only(f))
    data = Data(X)
    for _ in range(3):
        assert pair.frozen(data)[0] is data


def test_a_node_that_cannot_be_flattened():
    class Odd:
        pass

    def refuse(node):
        raise ZeroDivisionError

    jax.tree_util.register_pytree_node(Odd, refuse, lambda _, children: Odd())

    def f(x: Array, o: object):
        return o if o is None else x * 2

    def g(x: Array):
        return x * 2, Odd()

    pair, other = Pair(only(f)), Pair(only(g))
    pair.check(lambda h: h(X, Odd()))
    other.check(lambda h: h(X)[0])
    for reasons in (pair.reasons(), other.reasons()):
        assert "cannot be flattened: ZeroDivisionError" in reasons[0]


def test_return_types_are_converted_as_plum_does():
    def to_int(x: Array) -> int:
        return x.shape[0]

    def to_array(x: Array) -> Array:
        return x * 2

    def to_tuple(x: Array) -> tuple:
        return (x * 2, x)

    def wrong(x: Array) -> int:
        return x * 2

    for method, times in ((to_int, 0), (to_array, 1), (to_tuple, 1), (wrong, 0)):
        pair = Pair(only(method))
        pair.check(lambda g: g(X))
        assert pair.compiled() == times


def test_a_value_that_decides_the_type_of_the_result():
    def f(x: Array):
        return x * 2 if bool((x > 0).all()) else 0

    pair = Pair(only(f))
    for x in (X + 1, X - 1, X + 1):
        pair.check(lambda g, x=x: g(x))
    assert pair.compiled() == 0
    assert "branches on a traced value (test_result.py:" in pair.reasons()[0]


def test_unwrapping_leaves_everything_else_alone():
    wrapped = _jax.InOrder({"z": 1, "a": _jax.InOrder({2: [3], 1: (4,)})})
    assert list(_result.unwrap([wrapped, (5,)])[0].items()) == [("z", 1), ("a", {2: [3], 1: (4,)})]
    point = Point(1, 2)
    assert _result.unwrap(point) is point


def test_checking_takes_plain_results_as_well():
    (left, right), wrapped = _result.checked((X, X), (), {})
    assert left is right is X
    assert not wrapped
    with pytest.raises(Plain, match="returns int"):
        _result.checked((X, 1), (), {})
