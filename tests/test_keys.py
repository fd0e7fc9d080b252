"""Keys are sound: equal keys mean that plum's own check gives the same answer.

The oracle is `matches`, plum's `is_bearable`. It is compared over a grid of values and hints, with
hypothesis' unions of those hints, and with plum's resolver over hypothesis' functions.
"""
# ruff: noqa: F821  to jaxtyping "n" is the name of an axis

from __future__ import annotations

import abc
import collections
import enum
import gc
import numbers
import random
import re
import struct
import subprocess
import sys
import threading
import types
import typing
import unittest.mock
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, Protocol, Union

import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
import wrapt
from beartype.vale import Is
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Int64, Key, Num, PyTree, Shaped, jaxtyped
from plum import Kind, ModuleType, PromisedType, Signature, parametric
from plum._method import Method
from plum._resolver import AmbiguousLookupError, NotFoundLookupError, Resolver

from plum_freeze import _jax, _key_function, _keys
from plum_freeze._keys import UNCACHED, KeyPart, bits, certain, depends, keyed_entry, plan, reason
from plum_freeze._plum import matches

pytestmark = [
    # beartype: `typing.List` and its like are deprecated by PEP 585. They work, and people write them.
    pytest.mark.filterwarnings("ignore::beartype.roar.BeartypeDecorHintPep585DeprecationWarning"),
]

TYPE, NEVER, VALUE, IDENTITY = KeyPart.TYPE, KeyPart.NEVER, KeyPart.VALUE, KeyPart.IDENTITY
AVAL, ARRAY, SCOPE = KeyPart.AVAL, KeyPart.ARRAY, KeyPart.SCOPE
T = typing.TypeVar("T")
TBound = typing.TypeVar("TBound", bound=int)
TEither = typing.TypeVar("TEither", int, str)
UserId = NewType("UserId", int)


def key_function(parts):
    """A function from positional arguments to the key under which their entry looks."""
    entry = keyed_entry(parts, None, {}, lambda args, key: lambda *_: key)
    return None if entry is None else lambda args: entry(*args)


# -- classes that people dispatch on, and some that lie ------------------------------------------


class Plain:
    pass


class Sub(Plain):
    pass


class Abstract(abc.ABC):
    pass


class Virtual:
    pass


Abstract.register(Virtual)


class OddOnes(type):
    def __instancecheck__(cls, value):
        return getattr(value, "odd", False)


class Odd(metaclass=OddOnes):
    pass


class Seen:
    def __init__(self, odd):
        self.odd = odd


class FaithfulMeta(type):
    def __instancecheck__(cls, value):
        return issubclass(type(value), cls)


class Faithful(metaclass=FaithfulMeta):
    __faithful__ = True


class Faithless:
    __faithful__ = False


class OddSubclasses(abc.ABCMeta):
    def __subclasscheck__(cls, other):
        return random.random() < 0.5


class OddABC(metaclass=OddSubclasses):
    pass


class Closes(Protocol):
    def close(self): ...


@typing.runtime_checkable
class Named(Protocol):
    name: str


class NamedHere(Named):
    name = "here"


class NameOnSome:
    def __init__(self, name=None):
        if name is not None:
            self.name = name


class Box(Generic[T]):
    pass


class IntBox(Box[int]):
    pass


class Ints(list[int]):
    pass


class MoreInts(Ints):
    pass


class Point(NamedTuple):
    x: int


class Config(typing.TypedDict):
    a: int


class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    CRIMSON = 1  # noqa: PIE796  an alias is what is tested


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Flags(enum.IntFlag):
    R = 1
    W = 2


class Loose(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return True


class LooseEnum(enum.Enum):
    A = 1
    __hash__ = enum.Enum.__hash__

    def __eq__(self, other):
        return random.random() < 0.5


class Module(eqx.Module):
    x: Any = 1


@parametric
class Vector:
    def __init__(self, *args):
        pass


class Duck:
    def __init__(self, array):
        self.array = array

    dtype = property(lambda self: self.array.dtype)
    shape = property(lambda self: self.array.shape)


class RaggedDuck(Duck):
    shape = property(lambda self: list(self.array.shape))


class BrokenDuck(Duck):
    dtype = property(lambda self: 1 // 0)


class Liar:
    def __init__(self, cls):
        self.cls = cls

    __class__ = property(lambda self: self.cls)


class Forwarder:
    def __init__(self, target):
        self.target = target

    def __getattribute__(self, name):
        return getattr(object.__getattribute__(self, "target"), name)


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


class SubArray(np.ndarray):
    pass


# -- values -------------------------------------------------------------------------------------


def traced(*transforms, args):
    """The tracers that a function meets under the transforms."""
    found = []

    def collect(*tracers):
        found.extend(tracers)
        return jnp.zeros(())

    function = collect
    for transform in transforms:
        function = transform(function)
    function(*args)
    return found


def jax_values():
    ones = jnp.ones
    arrays = [
        *(
            ones(shape, dtype)
            for shape in [(), (3,), (4,), (3, 4), (1, 3), (3, 3)]
            for dtype in "fi"
        ),
        *(ones(3, dtype) for dtype in "?de"),
        *(ones(3, dtype) for dtype in ["bfloat16", "int4", "float8_e4m3fn", "complex64", "uint8"]),
        jnp.asarray(2.0),
        jnp.asarray(np.array([1, 2, 3], "q")),
        jnp.asarray([1, 2, 3]) + 0,
    ]
    keys = [jax.random.key(0), jax.random.split(jax.random.key(1), 3)]
    refs = [jax.new_ref(ones(3)), jax.new_ref(ones((3, 4), int))]
    tracers = [
        *traced(jax.jit, args=[*arrays, *keys, *refs]),
        *traced(jax.vmap, args=[ones((3,)), ones((3, 4)), ones((3, 3), int), keys[1]]),
        *traced(jax.vmap, jax.vmap, args=[ones((3, 4)), ones((3, 4, 3))]),
        *traced(jax.grad, args=[ones(3)]),
        *traced(lambda f: jax.grad(f, argnums=(0, 1)), args=[ones((3, 4)), ones(())]),
    ]
    symbolic = []
    shape = jax.export.symbolic_shape("b, 3")
    exported = jax.ShapeDtypeStruct(shape, jnp.float32)
    jax.export.export(jax.jit(lambda x: symbolic.append(x) or x))(exported)
    return [*arrays, *keys, *refs, *tracers, *symbolic]


def numpy_values():
    padded = {"names": ["a", "b"], "formats": ["i4", "i1"], "offsets": [0, 4], "itemsize": 8}
    dtypes = ["f4", "f8", ">f4", "i8", "q", "?", "U3", "M8[s]", [("a", "i4")], [("a", "i8")]]
    dtypes += [np.dtype([("a", "i4"), ("b", "i1")], align=True), np.dtype(padded), "V4", "O"]
    arrays = [np.zeros((3,), dtype) for dtype in dtypes]
    arrays += [np.ones(shape) for shape in [(), (4,), (3, 4), (1,)]]
    arrays += [np.ones(3).view(SubArray), np.ones((3, 4), int).view(SubArray)]
    arrays += [np.ma.masked_array([1.0, 2.0, 3.0]), np.rec.array([(1, 2.0)])]
    scalars = [
        np.float32(1),
        np.float64(2),
        np.int64(1),
        np.bool_(True),
        np.str_("a"),
        np.str_("b"),
    ]
    scalars += [np.longlong(1), jnp.bfloat16(1), np.datetime64(1, "s")]
    return [*arrays, *scalars]


def plain_values():
    return [
        None, True, False, 0, 1, 2, 2**70, -0.0, 0.0, 1.0, float("nan"), 1j, "a", "b", "", b"a", b"b", [], [1],
        ["a"], (), (1,), ("a",), (1, "a"), {}, {1: 2}, {"a": 1}, {1}, frozenset({1}), range(3), int, bool, str,
        float, list, type, object, Plain, Sub, Colour, type(None), Odd, Faithful, OddABC, WithMeta, Vector,
        Vector[int], Vector[bool], Abstract, Virtual, Meta, abc.ABCMeta, Named, list[int], list[str],
        int | str, Union[int, str], typing.List, len, print, lambda x: x, "".join, Plain().__init__,
        types.SimpleNamespace(name="x"), re, types, types.SimpleNamespace(), re.compile("a"), Ellipsis,
        NotImplemented, super(Sub, Sub()), Plain(), Sub(), Virtual(), Seen(True), Seen(False), Faithful(),
        Faithless(), NamedHere(), NameOnSome(), NameOnSome("n"), Box(), IntBox(), Ints([1]), Ints(["a"]), MoreInts([1]), MoreInts(["a"]),
        Point(1), Point("a"), *Colour, *Level, *Flags, Flags.R | Flags.W, Flags(8), Loose(1), Loose(2),
        LooseEnum.A, Odd(), Module(), Module("a"), Vector(1), Vector(True), Vector("a"), Vector(1, 2), Kind(1),
        Kind("a"), Kind[int](1), WithMeta(), collections.OrderedDict(), collections.Counter(), iter([]),
    ]  # fmt: skip


def lying_values(keep):
    keep += [Plain(), {1}]
    return [
        *[wrapt.ObjectProxy(target) for target in [1, "a", Plain(), [1], int, jnp.ones(3), None]],
        *[unittest.mock.Mock(spec=target) for target in [int, Plain, jax.Array, list]],
        *[unittest.mock.MagicMock(), unittest.mock.MagicMock(spec=type)],
        *[weakref.proxy(target) for target in keep],
        *[Liar(int), Liar(Plain), Liar(jnp.ones(3).__class__), Liar(type), Liar(type(None))],
        *[Forwarder(1), Forwarder("a"), Forwarder(Plain()), Forwarder(np.ones(3))],
        *[Duck(np.ones(3)), Duck(jnp.ones(4)), Duck(np.ones(3, "q")), Duck(np.ones(3, "i8"))],
        *[Duck(types.SimpleNamespace(dtype="torch.float32", shape=(3,))), RaggedDuck(np.ones(3))],
        *[RaggedDuck(np.ones(4)), BrokenDuck(np.ones(3))],
    ]


KEEP: list = []
jax.config.update("jax_enable_x64", True)
ALL_VALUES = [*plain_values(), *numpy_values(), *jax_values(), *lying_values(KEEP)]
BY_CLASS: dict[type, list] = collections.defaultdict(list)
for _value in ALL_VALUES:
    BY_CLASS[type(_value)].append(_value)

promised, delivered = PromisedType("Promised"), PromisedType("Delivered")
delivered.deliver(int)
transparent = Float[Array, "7"]
transparent.make_transparent()

HINTS = [
    Any, object, None, int, bool, float, complex, str, bytes, list, tuple, dict, type, Plain, Sub, Ellipsis,
    Abstract, Odd, Faithful, Faithless, OddABC, Closes, Named, NamedHere, Box, IntBox, Box[int], Ints, Point,
    Config, Colour, Level, Flags, Loose, Module, eqx.Module, Vector, Vector[int], Vector[bool], Kind,
    Kind[int], WithMeta, Meta, abc.ABCMeta, promised, delivered, promised | str, type[promised],
    ModuleType("plum_freeze_no_such_module", "X"), numbers.Number, numbers.Integral, types.ModuleType,
    types.FunctionType, types.NoneType, re.Pattern, typing.Pattern[str], enum.Enum, types.SimpleNamespace,
    Callable, Hashable, Iterable, Mapping, Sequence, Sized, typing.Callable, typing.Hashable, typing.List,
    typing.Tuple, typing.Dict, typing.Type, typing.IO, typing.SupportsInt, typing.Generic, typing.Protocol,
    typing.Union, typing.Never, typing.LiteralString, typing.Final[int], "int", (int, str), typing.Self,
    int | None, int | str, Optional[Plain], Union[int, Any], Union[Odd, int], Union[list[int], int], T, TBound,
    TEither, UserId, Annotated[int, "note"], Annotated[int, Is[lambda x: x > 1]],
    Annotated[object, Is[lambda x: len(x) > 1]], Annotated[list[int], "note"], list[int], list[str], list[Any],
    typing.List[int], dict[str, int], set[int], tuple[int, ...], tuple[()], tuple[int], tuple[int, str],
    Iterable[int], Sequence[str], Callable[[int], str], Callable[..., Any], list[typing.Never],
    list["Undefined"], type[int], type[Any], type[object], type[int | str], type[Plain], type[T], type[TBound],
    type[TEither], type[None], type["int"], type[list[int]], type[Abstract], type[Vector[int]], type[OddABC],
    type[Odd], *[type[Enum] for Enum in [Colour]], type[WithMeta], type[Faithful], type[jax.Array],
    type[Named], Union[type[int], type[str], int], Literal[1], Literal[True], Literal["a"], Literal["a", 1],
    Literal[None], Literal[None, 1], Literal[b"a"], Literal[Colour.RED], Literal[Level.LOW], Literal[Flags.R],
    Literal[1.0], Literal["a"] | int, LooseEnum, Literal[LooseEnum.A], np.ndarray, np.generic, np.number,
    np.floating, np.float64, np.str_, np.typing.NDArray[np.float64], np.typing.ArrayLike, jnp.float32,
    SubArray, np.ma.MaskedArray, jax.Array, jax.Ref, jax.core.Tracer, type(jnp.ones(3)), jax.typing.ArrayLike,
    jax.Array | np.ndarray, Float[Array, ""], Float[Array, "3"], Float[Array, "n"], Float[Array, "n n"],
    Float[Array, "#n"], Float[Array, "n=3"], Float[Array, "#3 4"], Float[Array, "_ 4"],
    Float[Array, "*batch 4"], Float[Array, "..."], Float[Array, "... 4"], Float[Array, "#*b 3"],
    Float[Array, "n n+1"], Float[Array, "n-1"], Float[Array, "?n"], Float[Array, "{len(x)}"],
    Shaped[Array, "..."], Shaped[Array, "3"], Shaped[Array, "*n"], Num[Array, "..."], Bool[Array, "..."],
    Int[Array, "n"], Int64[Array, "n"], Key[Array, ""], Key[Array, "3"], jaxtyping.BFloat16[Array, "..."],
    jaxtyping.Int4[Array, "..."], Float[np.ndarray, "3"], Float[np.ndarray, "n"], Shaped[np.ndarray, "..."],
    Int[np.ndarray, "..."], Int64[np.ndarray, "..."], Float[SubArray, "..."], Float[np.float64, ""],
    Float[Any, "3"], Shaped[Any, "..."], Shaped[Any, "n"], Float[Duck, "3"], Int64[Duck, "3"],
    Shaped[Duck, "..."], Float[RaggedDuck, "3"], Shaped[RaggedDuck, "..."], Float[BrokenDuck, "3"],
    Float[Odd, "3"], Float[ArrayLike, ""], Shaped[ArrayLike, "..."], Float[T, "3"],
    Float[Float[Array, "4"], "3"], Float[Array | np.ndarray, "n"], Union[Float[Array, "n"], int],
    Union[jax.Array, Float[Array, "n"]], Union[int, Float[Array, "n-1"]],
    Union[jax.Array, Float[Array, "n-1"]], Float[Array, "n"] | None,
    jaxtyping.make_numpy_struct_dtype(np.dtype([("a", "i4")]), "S")[np.ndarray, "..."],
    jaxtyping.make_numpy_struct_dtype(np.dtype([("a", "i4"), ("b", "i1")], align=True), "A")[np.ndarray, "..."],
    PyTree, PyTree[int], PyTree[Any], PyTree[Float[Array, "n"]], PyTree[int, "T"], transparent, Float,
]  # fmt: skip
if sys.version_info >= (3, 12):
    exec(
        "type Whole = int\ntype Deep = int | list[Deep]\n"
        "class Pep695[S]: pass\nclass PepList[S](list[S]): pass"
    )
    HINTS += [Whole, Deep, Pep695, PepList]  # noqa: F821


# -- the oracle ---------------------------------------------------------------------------------


def outcome(value, hint):
    try:
        return matches(value, hint)
    except Exception as error:
        return type(error).__name__


def check(hint, cls, values):
    """Nothing that the module says of this hint and class is contradicted by the values."""
    found, parts = certain(hint, cls), depends(hint, cls)
    if found is not None:
        assert parts is TYPE
        for value in values:
            assert outcome(value, hint) is found, (hint, cls, value)
        return
    assert parts is not TYPE
    key = key_function((parts,))
    assert (key is None) == (NEVER in parts)
    answers: dict = {}
    for value in values if key else ():
        made = key((value,))
        if made is UNCACHED:
            continue
        hash(made)
        answer = outcome(value, hint)
        assert answers.setdefault(made, answer) == answer, (hint, cls, value, made)


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: str(hint)[:60])
def test_grid(hint):
    for cls, values in BY_CLASS.items():
        check(hint, cls, values)
        assert isinstance(reason(hint, cls), str)


def union_of(members):
    try:
        return Union[tuple(members)]
    except TypeError:
        return members[0]


unions = st.lists(st.sampled_from(HINTS), min_size=2, max_size=4).map(union_of)
slow = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@settings(slow, max_examples=120)
@given(hint=unions, classes=st.lists(st.sampled_from(list(BY_CLASS)), max_size=30, unique=True))
def test_unions(hint, classes):
    for cls in classes:
        check(hint, cls, BY_CLASS[cls])


# Compiled plum crashes the process on `Signature(promised)` before delivery: without end it looks
# for what was promised. A hint of None stands for "no varargs" here.
IN_SIGNATURES = [hint for hint in HINTS if "Promised]" not in str(hint) and hint is not None]
functions = st.lists(
    st.tuples(
        st.lists(st.sampled_from(IN_SIGNATURES), max_size=2).map(tuple),
        st.one_of(st.none(), st.sampled_from(IN_SIGNATURES)),
    ),
    min_size=1,
    max_size=4,
)


def resolved(methods, args):
    """Which methods plum finds applicable, with nothing remembered; or the exception."""
    found = []
    try:
        for fixed, varargs in methods:
            more = {} if varargs is None else {"varargs": varargs}
            found.append(Signature(*fixed, **more).match(args))
    except Exception as error:
        return type(error).__name__
    return found


@settings(slow, max_examples=250)
@given(methods=functions, data=st.data())
def test_equal_keys_find_the_same_methods(methods, data):
    classes = data.draw(st.lists(st.sampled_from(list(BY_CLASS)), min_size=1, max_size=3))
    calls = data.draw(
        st.lists(st.tuples(*(st.sampled_from(BY_CLASS[cls]) for cls in classes)), max_size=12)
    )
    parts = plan(methods, tuple(classes))
    key = key_function(parts)
    answers: dict = {}
    for args in calls if key else ():
        made = key(args)
        if made is not UNCACHED:
            answer = resolved(methods, args)
            assert answers.setdefault(made, answer) == answer, (methods, parts, args)


def test_equal_keys_find_the_same_method_of_a_library():
    hints = [
        *[
            (Float[Array, "n"], int),
            (Float[Array, "n n"], int),
            (Int[Array, "..."], str),
            (type[int], str),
        ],
        *[
            (Literal["a"], int),
            (str, int),
            (jax.Array, type[Plain]),
            (np.ndarray, np.ndarray),
            (int, int),
        ],
    ]
    resolver = Resolver("f")
    for types_ in hints:
        resolver.register(Method(lambda *args: None, Signature(*types_), function_name="f"))

    def chosen(args):
        try:
            return resolver.resolve(args)
        except (NotFoundLookupError, AmbiguousLookupError) as error:
            return type(error)

    answers: dict = {}
    for first in ALL_VALUES:
        for second in [1, "a", Plain, Sub, int, np.ones(3)]:
            types_ = (type(first), type(second))
            key = key_function(plan([(types_, None) for types_ in hints], types_))
            if key is not None and (made := key((first, second))) is not UNCACHED:
                answer = chosen((first, second))
                assert answers.setdefault((types_, made), answer) is answer
    assert {
        method.signature.types for method in answers.values() if isinstance(method, Method)
    } == set(hints)


# -- what is cached, and under what ---------------------------------------------------------------

CONCRETE, KEY_ARRAY = type(jnp.ones(3)), type(jax.random.key(0))
TRACER = type(traced(jax.jit, args=[jnp.ones(3)])[0])
# Until JAX 0.8.2 a tracer's class says that it is an array, and nobody asks its aval.
OLD = issubclass(TRACER, jax.Array)
REF = type(jax.new_ref(jnp.ones(3)))


@pytest.mark.parametrize(
    ("hint", "cls", "expected"),
    [
        (list[int], CONCRETE, TYPE),
        (list[int], list, NEVER),
        (tuple[()], tuple, NEVER),
        (typing.List, list, TYPE),
        (Literal["a"], int, TYPE),
        (Literal["a"], str, VALUE),
        (Literal[1], bool, VALUE),
        (Literal[True], int, TYPE),
        (Literal[1], Loose, NEVER),
        (Literal[Colour.RED], Colour, VALUE),
        (Literal[1], Level, VALUE),
        (Literal[Flags.R], Flags, NEVER),
        (Literal[LooseEnum.A], LooseEnum, NEVER),
        (type[int], Plain, TYPE),
        (type[int], type, IDENTITY),
        (type[int], Meta, IDENTITY),
        (type[Any], type, TYPE),
        (type[TBound], type, IDENTITY),
        (type[OddABC], type, NEVER),
        (type[Vector[int]], type(Vector), IDENTITY),
        (Float[Array, "n"], int, TYPE),
        (Float[Array, "n"], CONCRETE, AVAL | SCOPE),
        (Float[Array, "n"], TRACER, AVAL | SCOPE),
        (Float[Array, "..."], CONCRETE, AVAL),
        (Float[Array, "3 _"], CONCRETE, AVAL),
        (Float[Array, "n-1"], CONCRETE, NEVER),
        (Float[Array, "?n"], CONCRETE, NEVER),
        (Float[Array, "n-1"], np.ndarray, TYPE),
        (Shaped[Array, "..."], CONCRETE, TYPE),
        (Shaped[Array, "..."], TRACER, AVAL),
        (Shaped[Array, "*n"], CONCRETE, AVAL | SCOPE),
        (Key[Array, ""], KEY_ARRAY, AVAL),
        (Float[np.ndarray, "n"], np.ndarray, ARRAY | SCOPE),
        (Float[np.ndarray, "3"], CONCRETE, TYPE),
        (Shaped[np.ndarray, "..."], SubArray, TYPE),
        (Float[Any, "3"], int, TYPE),
        (Float[Any, "3"], Plain, NEVER),
        (Float[Any, "3"], CONCRETE, AVAL),
        (Float[ArrayLike, ""], float, TYPE),
        (Float[Duck, "3"], Duck, ARRAY),
        (transparent, int, TYPE),
        (jax.Array, CONCRETE, TYPE),
        (jax.Array, KEY_ARRAY, TYPE),
        (jax.Array, TRACER, TYPE if OLD else AVAL),
        (jax.Array, REF, TYPE),
        (jax.Ref, REF, TYPE),
        (jax.Ref, TRACER, TYPE if OLD else AVAL),
        (jax.core.Tracer, TRACER, TYPE),
        (np.ndarray, np.ndarray, TYPE),
        (int, np.float64, TYPE),
        (Abstract, Virtual, TYPE),
        (Odd, int, NEVER),
        (Odd, Odd, TYPE),
        (Faithful, int, TYPE),
        (Faithless, Faithless, NEVER),
        (OddABC, int, NEVER),
        (Named, int, NEVER),
        (NamedHere, int, TYPE),
        (Box, IntBox, TYPE),
        (Box[int], IntBox, NEVER),
        (Box[int], int, TYPE),
        (Ints, Ints, NEVER),
        (Ints, MoreInts, NEVER),
        (Ints, int, TYPE),
        (Point, Point, TYPE),
        (Vector[int], Vector[bool], TYPE),
        (Kind[int], Kind[int], TYPE),
        (eqx.Module, Module, TYPE),
        (Plain, Module, TYPE),
        (promised, int, TYPE),
        (delivered, int, TYPE),
        (TBound, int, TYPE),
        (UserId, str, TYPE),
        (Annotated[int, "note"], int, TYPE),
        (Annotated[int, Is[lambda x: x > 1]], int, NEVER),
        (Annotated[int, Is[lambda x: x > 1]], str, TYPE),
        (Callable[[int], str], int, TYPE),
        (Callable[[int], str], types.FunctionType, NEVER),
        (PyTree, int, TYPE),
        (PyTree[int], int, NEVER),
        (Union[int, Any], float, TYPE),
        (Union[Odd, int], int, NEVER),
        (Union[list[int], int], int, TYPE),
        (Union[jax.Array, Float[Array, "n"]], CONCRETE, SCOPE),
        (Union[Literal["a"], type[int]], str, VALUE),
        (int, wrapt.ObjectProxy, NEVER),
        (object, wrapt.ObjectProxy, TYPE),
        (wrapt.ObjectProxy, wrapt.ObjectProxy, TYPE),
        (int, unittest.mock.Mock, NEVER),
        (unittest.mock.NonCallableMock, unittest.mock.Mock, TYPE),
        (int, type(weakref.proxy(KEEP[0])), NEVER),
        (int, Liar, NEVER),
        (int, Forwarder, NEVER),
        (type[int], Liar, NEVER),
        (jax.Array, Liar, NEVER),
        (Literal[1], Liar, NEVER),
    ],
    ids=str,
)
def test_parts(hint, cls, expected):
    assert depends(hint, cls) == expected


def test_most_of_what_people_write_is_cached():
    """A floor, so that `NEVER` for everything does not pass the tests of soundness."""
    pairs = [(hint, cls) for hint in HINTS for cls in BY_CLASS]
    never = sum(NEVER in depends(hint, cls) for hint, cls in pairs)
    assert never / len(pairs) < 0.3


@pytest.mark.skipif(OLD, reason="JAX before 0.8.2 does not ask a tracer whether it is an array")
def test_a_class_that_overrides_how_tracers_are_arrays_is_not_cached():
    class Own(jax.core.Tracer):
        def _is_traced_array(self):
            return random.random() < 0.5

    assert depends(jax.Array, Own) is NEVER


def test_a_promised_type_matches_nothing_until_plum_resolves_it_again():
    late = PromisedType("Late")
    assert certain(late, int) is False
    late.deliver(int)
    assert certain(late, int) is False is matches(1, late)


def test_a_virtual_subclass_counts_from_then_on():
    class Base(abc.ABC):
        pass

    class Other:
        pass

    assert certain(Base, Other) is False
    Base.register(Other)
    assert certain(Base, Other) is True


# -- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "types_", "expected"),
    [
        ([((list[int], int), None), ((str, str), None)], (str, str), (TYPE, TYPE)),
        ([((list[int], int), None)], (list, str), (TYPE, TYPE)),
        ([((int, list[int]), None)], (str, list), (TYPE, TYPE)),
        ([((Odd, int), None)], (str, str), (NEVER, TYPE)),
        ([((int, Odd), None)], (str, str), (TYPE, TYPE)),
        ([((list[Odd], int), None)], (list, str), (NEVER, TYPE)),
        ([((Float[Array, "n-1"], int), None)], (CONCRETE, str), (NEVER, TYPE)),
        ([((Float[Array, "n"], int), None)], (CONCRETE, str), (SCOPE, TYPE)),
        ([((Float[Array, "n"], int), None)], (CONCRETE, int), (AVAL | SCOPE, TYPE)),
        ([((Literal["a"], int), None), ((str, Literal[1]), None)], (str, int), (VALUE, VALUE)),
        ([((list[int],), None)], (list, int), (TYPE, TYPE)),
        ([((list[int],), None)], (list, type(None)), (TYPE, TYPE)),
        ([((list[int],), int)], (list, int), (NEVER, TYPE)),
        ([((), Literal["a"])], (str, str), (VALUE, VALUE)),
        ([((int, Literal["a"]), Any)], (int,), (TYPE,)),
        ([((), None)], (), ()),
        ([], (int,), (TYPE,)),
    ],
)
def test_plan(methods, types_, expected):
    assert plan(methods, types_) == expected


# -- keys ----------------------------------------------------------------------------------------


def test_values_differ_by_type_and_bits_at_any_depth():
    nan = struct.unpack("d", struct.pack("Q", 0x7FF8000000000001))[0]
    values = [
        0, False, 0.0, -0.0, 0j, 1, True, 1.0, "1", b"1", None, float("nan"), nan, complex(0, -0.0),
    ]  # fmt: skip
    values += [*Colour, *Level, *Flags]
    nested = [
        *values,
        *[(v,) for v in values],
        *[frozenset({v}) for v in values],
        *[((v, 1),) for v in values],
    ]
    assert len({bits(value) for value in nested}) == len(nested)
    assert bits((1, "a")) == bits((1, "a"))
    assert bits(float("nan")) == bits(float("nan"))
    assert bits(Colour.RED) == bits(Colour.CRIMSON)


@pytest.mark.parametrize(
    "value", [[1], Loose(1), Plain(), (1, [2]), np.float64(1), Flags.R | Flags.W], ids=str
)
def test_other_values_are_not_cached(value):
    assert key_function((VALUE,))((value,)) is UNCACHED


def test_no_key_where_one_part_is_never():
    assert key_function((AVAL, NEVER)) is None
    assert key_function((AVAL | NEVER,)) is None


def test_equal_arrays_have_equal_keys():
    one, two = key_function((AVAL,)), key_function((AVAL, TYPE, AVAL | SCOPE))
    a, b, c = jnp.ones(3), jnp.zeros(3), jnp.ones(4)
    assert one((a,)) == one((b,)) != one((c,))
    assert two((a, 1, c)) == two((b, 2, c)) != two((c, 1, a))
    (tracer,) = traced(jax.jit, args=[a])
    assert one((tracer,)) == one((a,))


def test_without_interned_avals_the_parts_are_compared(monkeypatch):
    monkeypatch.setattr(_jax, "interned_aval_class", lambda: None)
    _key_function._compiled.cache_clear()
    key = key_function((AVAL,))
    _key_function._compiled.cache_clear()
    assert key((jnp.ones(3),)) == key((jnp.zeros(3),)) != key((jnp.ones(4),))
    assert key((jnp.ones(3),)) != key((jnp.ones(3, int),))
    (tracer,) = traced(jax.jit, args=[jax.new_ref(jnp.ones(3))])
    assert key((tracer,)) != key((jnp.ones(3),))


def test_an_aval_without_a_shape_is_not_cached():
    value = types.SimpleNamespace(aval=types.SimpleNamespace(dtype=np.dtype(int)))
    assert key_function((AVAL,))((value,)) is UNCACHED


def test_no_argument_is_kept_alive():
    class Local:
        pass

    class Shade(enum.Enum):
        DARK = 1

    args = (jnp.ones(3), np.ones(3), Local, Shade.DARK)
    parts = (AVAL | SCOPE, ARRAY, IDENTITY, VALUE)
    key = key_function(parts)(args)
    assert key is not UNCACHED
    gone = [weakref.ref(args[0]), weakref.ref(args[1]), weakref.ref(Local), weakref.ref(Shade)]
    del args, Local, Shade
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4


def test_asking_keeps_no_class_alive():
    class Local:
        pass

    class Liar2(Local):
        __class__ = int

    gone = [weakref.ref(Local), weakref.ref(Liar2)]
    for cls in (Local, Liar2):
        depends(cls, cls), depends(int, cls), plan([((cls,), None)], (cls,)), reason(int, cls)
    del Local, Liar2, cls
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_the_classes_that_a_key_names_are_listed():
    parts = (IDENTITY, TYPE, IDENTITY | VALUE, AVAL)
    assert _keys.weak_parts((Plain, int, "a", jnp.ones(3)), parts) == (Plain,)
    key = key_function((IDENTITY,))
    assert key((Plain,)) == id(Plain) != key((Sub,))


# -- jaxtyping's scopes --------------------------------------------------------------------------


@jaxtyped(typechecker=None)
def in_scope(function):
    return function()


def test_nothing_that_names_axes_is_cached_in_a_jaxtyped_scope():
    named, fixed = key_function((AVAL | SCOPE,)), key_function((AVAL,))
    three, four = jnp.ones(3), jnp.ones(4)
    hint = Float[Array, "n"]
    outside = named((three,))

    def inside():
        assert matches(three, hint)
        assert not matches(four, hint)  # `n` is 3 by now
        return named((three,)), fixed((three,))

    assert in_scope(inside) == (UNCACHED, fixed((three,)))
    assert named((three,)) == outside is not UNCACHED


def test_a_thread_that_has_never_met_jaxtyping_gets_keys_too():
    key, made = key_function((AVAL | SCOPE,)), []
    array = jnp.ones(3)

    def work():
        made.append(key((array,)))
        made.append(in_scope(lambda: key((array,))))

    def work_in_scope():
        made.append(in_scope(lambda: key((array,))))

    for target in (work, work_in_scope):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert made == [key((array,)), UNCACHED, UNCACHED]


def test_nothing_is_cached_while_jaxtyping_flattens_a_tree():
    """In there every array matches every jaxtyping hint."""
    array, hint = jnp.ones(3), Float[Array, "4"]
    keys, seen = [key_function((depends(hint, CONCRETE),)), key_function((AVAL | SCOPE,))], []

    @jax.tree_util.register_pytree_node_class
    class Node:
        def tree_flatten(self):
            seen.append((matches(array, hint), *(key((array,)) for key in keys)))
            return (), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls()

    def flatten():
        isinstance(Node(), PyTree[Any])

    for in_thread in (False, True):  # in a new thread jaxtyping has not set anything up yet
        seen.clear()
        thread = threading.Thread(target=flatten)
        thread.start() if in_thread else flatten()
        thread.join() if in_thread else None
        assert (True, UNCACHED, UNCACHED) in seen
    assert not matches(array, hint)
    assert UNCACHED not in [key((array,)) for key in keys]


# -- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "cls", "wanted"),
    [
        (int, int, ["decided by the class int"]),
        (Float[Array, "n"], CONCRETE, ["dtype and shape", "axis names", "jaxtyped"]),
        (type[int], type, ["which class"]),
        (Literal["a"], str, ["value of the argument"]),
        (list[int], list, [r"list\[int\]", "write list"]),
        (Annotated[int, Is[lambda x: x > 1]], int, ["validator", "check in the body"]),
        (Named, int, ["protocol", "ABC"]),
        (Odd, int, ["OddOnes", "__instancecheck__", "__faithful__ = True"]),
        (Faithless, int, ["Faithless", "not faithful"]),
        (Ints, Ints, ["Ints", "items"]),
        (PyTree[int], int, ["leaf", "write PyTree"]),
        (Float[Array, "n-1"], CONCRETE, ["computed", "name the axis"]),
        (int, wrapt.ObjectProxy, ["ObjectProxy", "pretend", "unwrap"]),
        (int | list[int], list, [r"list\[int\]", "write list"]),
        ("int", int, ["int", "not known"]),
    ],
    ids=str,
)
def test_reason(hint, cls, wanted):
    text = reason(hint, cls)
    assert [fact for fact in wanted if not re.search(fact, text)] == [], text


def test_without_jax_nothing_imports_it():
    program = """
import sys
from plum_freeze import _keys
from typing import Literal
assert _keys.depends(int | Literal["a"], str) == _keys.KeyPart.VALUE
entry = _keys.keyed_entry((_keys.KeyPart.VALUE,), None, {}, lambda args, key: lambda _: key)
assert entry("a") == (str, "a")
assert not {"jax", "jaxtyping"} & set(sys.modules), set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
