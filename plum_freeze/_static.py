"""What of a call is traced, and what is static: DESIGN, section 6, rules 2 to 4.

A call is taken apart into its JAX arrays and a *key* of all the rest. Two calls with equal keys have
the same static values, compared by type and bits at any depth: `1`, `True` and `1.0` differ, and
so do `0.0` and `-0.0`. What is neither raises `Plain`, and the call runs as its author wrote it.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
import sys
from collections.abc import Callable, Hashable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from plum_freeze import _jax

Build = Callable[[Iterator[Any]], Any]

ARRAY = "array"


class Plain(Exception):  # noqa: N818 (control flow, never seen by users)
    """This call runs plainly. The text says why, in the words of the report."""


class Traced(Plain):
    """This call has a tracer among its arguments: the plain method is inlined in its trace."""


def type_name(value: Any) -> str:
    """The type of a value, for the report."""
    cls = type(value)
    module = "" if cls.__module__ == "builtins" else cls.__module__.partition(".")[0] + "."
    return f"{module}{cls.__qualname__}"


def _by_value(value: Any) -> Hashable:
    return type(value), value


def _float(value: float) -> Hashable:
    return float, struct.pack("d", value)


def _complex(value: complex) -> Hashable:
    return complex, struct.pack("dd", value.real, value.imag)


def _frozenset(value: frozenset[Any]) -> Hashable:
    return frozenset, frozenset(map(static_key, value))


def _slice(value: slice) -> Hashable:
    return slice, static_key(value.start), static_key(value.stop), static_key(value.step)


def _tuple(value: tuple[Any, ...]) -> Hashable:
    return tuple, tuple(map(static_key, value))


_STATIC: dict[type, Callable[[Any], Hashable]] = {
    **dict.fromkeys((int, bool, str, bytes, type(None), type(...), type(NotImplemented)), _by_value),
    range: lambda value: (range, value.start, value.stop, value.step),
    float: _float,
    complex: _complex,
    frozenset: _frozenset,
    slice: _slice,
    tuple: _tuple,
}


def static_key(value: Any) -> Hashable:
    """The key of a static value.

    Raises:
        Plain: It is mutable, or compared by identity, or nothing says that it is not.
    """
    handler = _STATIC.get(type(value))
    if handler is not None:
        return handler(value)
    if by_identity(value):
        return type(value), id(value)
    if _is_dtype(value):
        return type(value), value
    if _is_frozen_dataclass(value):
        fields = dataclasses.fields(value)
        return type(value), tuple(static_key(getattr(value, field.name)) for field in fields)
    raise Plain(type_name(value))


def by_identity(value: Any) -> bool:
    """Whether the key of this static value holds nothing but its identity."""
    return type(value) not in _STATIC and (
        isinstance(value, enum.Enum) or lives_in_its_module(value)
    )


def _is_dtype(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.dtype) and value.metadata is None


def _is_frozen_dataclass(value: Any) -> bool:
    """Whether its author declared it immutable, and it is nothing but its fields."""
    cls = type(value)
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or "__dataclass_params__" not in vars(cls):
        return False
    names = {field.name for field in dataclasses.fields(value)}
    return names.issuperset(getattr(value, "__dict__", ()))


def lives_in_its_module(value: Any) -> bool:
    """Whether the value is a class, a function or a stateless object that its module holds.

    Only those are static by identity: the module keeps them alive anyway, and they are the same
    thing for as long as it does. Lambdas, closures and bound methods are not.
    """
    if not isinstance(value, (type, FunctionType, BuiltinFunctionType)) and not _is_wrapper(value):
        return _is_sentinel(value)
    name = getattr(value, "__qualname__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or not isinstance(name, str):
        return False
    found: Any = object.__getattribute__(module, "__dict__")
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else vars(found).get(part)
        if found is None or (found is not value and not isinstance(found, type)):
            return False
    return found is value


def _is_wrapper(value: Any) -> bool:
    """Such as what `jax.jit`, `jax.custom_jvp` and `functools.lru_cache` make of a function."""
    attributes = getattr(value, "__dict__", None)
    return callable(value) and isinstance(attributes, dict) and "__wrapped__" in attributes


def _is_sentinel(value: Any) -> bool:
    """Such as `Missing = _Missing()`, which equinox puts among the static fields."""
    cls = type(value)
    if getattr(value, "__dict__", None) or getattr(cls, "__slots__", ()) or cls.__itemsize__:
        return False
    if cls.__basicsize__ > object.__basicsize__ + 2 * struct.calcsize("P"):
        return False  # a C type may keep anything in there; two words are __dict__ and __weakref__
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "builtins":
        return False
    return any(v is value for v in tuple(object.__getattribute__(module, "__dict__").values()))


def take_apart(value: Any, arrays: list[Any], *, traced: bool = False) -> Hashable:
    """The key of an argument. Its arrays are appended to `arrays`, in order.

    Args:
        value: An argument, or a part of one.
        arrays: Receives the arrays.
        traced: Whether Python scalars in it are traced, because its author said so.

    Raises:
        Traced: There is a tracer in it.
        Plain: There is something in it that is neither an array nor static.
    """
    cls = type(value)
    if cls in _SCALARS and traced:
        arrays.append(value)
        return cls
    if cls is tuple or cls is list:
        return cls, tuple([take_apart(v, arrays, traced=traced) for v in value])
    if cls is dict:
        keys = tuple(map(static_key, value))
        return dict, keys, tuple([take_apart(v, arrays, traced=traced) for v in value.values()])
    handler = _STATIC.get(cls)
    if handler is not None:
        return handler(value)
    if _jax.is_array_class(cls):
        arrays.append(value)
        return ARRAY
    if _jax.is_tracer_class(cls):
        raise Traced
    node = _jax.one_level(value) if _jax.loaded() else None
    if node is not None:
        children, auxiliary = node
        parts = tuple([take_apart(child, arrays, traced=traced) for child in children])
        return cls, _auxiliary_key(value, auxiliary), parts
    return static_key(value)


def _auxiliary_key(value: Any, auxiliary: Any) -> Hashable:
    try:
        return static_key(auxiliary)
    except Plain as plain:
        raise Plain(f"{type_name(value)} with a static field of type {plain}") from None


_SCALARS = {int, float, complex, bool}


def putter(value: Any, weakly: Callable[[Any], Callable[[], Any]], *, traced: bool = False) -> Build:
    """A function that puts an argument like `value` together again from arrays or tracers.

    Takes the arrays in the order of `take_apart`, which must have accepted the value.

    Args:
        value: The argument, or a part of one.
        weakly: Makes a reference to a static value that has an identity. Nothing must live on for
            having been an argument.
        traced: As for `take_apart`.
    """
    cls = type(value)
    if _jax.is_array_class(cls) or (cls in _SCALARS and traced):
        return next
    if cls is tuple or cls is list:
        parts = [putter(v, weakly, traced=traced) for v in value]
        return lambda arrays: cls([part(arrays) for part in parts])
    if cls is dict:
        items = {key: putter(v, weakly, traced=traced) for key, v in value.items()}
        return lambda arrays: {key: part(arrays) for key, part in items.items()}
    node = None if cls in _STATIC or not _jax.loaded() else _jax.one_level(value)
    if node is not None:
        parts = [putter(child, weakly, traced=traced) for child in node[0]]
        rebuild = _jax.rebuilder(value)
        return lambda arrays: rebuild([part(arrays) for part in parts])
    if by_identity(value):
        reference = weakly(value)
        return lambda _: reference()
    return lambda _: value
