"""What came out of a step, as plain data, and how two outcomes differ.

A value is described inside its own world, at once: what is compared afterwards are tuples of
strings, which cannot change and keep nothing alive. The description holds everything the contract
promises: value (as bytes), Python type, dtype, weak type, shape, structure, exception and message.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import struct
import types
from enum import Enum
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import plum

if TYPE_CHECKING:
    from collections.abc import Callable

_NORMALISE = (
    (re.compile(r"\boracle_worlds\.\w+"), "<world>"),
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile(r"object id \d+"), "object id"),
    # XLA names an executable after the function; the line of an outer caller is ours, not theirs.
    (re.compile(r"(/[\w.-]+)+\.py:\d+(:\d+)?"), "<file>"),
    (re.compile(r"\s+"), " "),  # rich breaks lines by the length of a path
)


def normalised(text: str) -> str:
    """`text` without what differs between two worlds or two runs for no reason of ours."""
    for pattern, replacement in _NORMALISE:
        text = pattern.sub(replacement, text)
    return text.strip()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a step gave: `returned` or `raised`, described."""

    kind: str
    what: Any

    def __str__(self) -> str:
        return f"{self.kind} {show(self.what)}"


def outcome(thunk: Callable[[], Any], *, arguments: tuple[Any, ...] = ()) -> Outcome:
    """Run `thunk`, and describe what it gave and what it left in the arguments.

    Raises nothing but what is not an `Exception`.
    """
    try:
        value = thunk()
    except Exception as error:
        return Outcome("raised", describe_error(error))
    return Outcome("returned", described(value, arguments))


def described(value: Any, arguments: tuple[Any, ...] = ()) -> Any:
    """`value`, which parts of it are arguments handed back, and what was left in the arguments."""
    same_object = tuple(
        f"result is argument {i}" for i, a in enumerate(arguments) if is_mutable(a) and a is value
    )
    left = tuple(describe(a) for a in arguments if is_mutable(a))
    what = describe(value)
    return ("call", what, same_object, left) if arguments else what


def is_mutable(value: Any) -> bool:
    """Whether a program can tell this object from an equal one by more than `is`."""
    return isinstance(value, list | dict | np.ndarray) or hasattr(value, "__dict__")


def describe_error(error: BaseException) -> tuple[str, str]:
    """Type and message."""
    return type_name(type(error)), normalised(str(error))


def type_name(cls: type) -> str:
    """The name of a class, the same in every world."""
    module = normalised(cls.__module__)
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


@functools.singledispatch
def describe(value: Any) -> Any:
    """`value` as nested tuples of strings."""
    if isinstance(value, jax.core.Tracer):
        return ("a leaked tracer", str(value.aval))
    if isinstance(value, jax.Array):
        return _array(value)
    if isinstance(value, tuple):
        children = tuple(describe(v) for v in value)
        return (type_name(type(value)), *children)
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        state = {k: v for k, v in vars(value).items() if not k.startswith("__")}
        return (type_name(type(value)), *((k, describe(v)) for k, v in sorted(state.items())))
    return (type_name(type(value)), normalised(repr(value)))


def _array(value: jax.Array) -> Any:
    raw = np.asarray(value)
    weak = "weak" if value.weak_type else "strong"
    return ("jax.Array", weak, str(value.dtype), str(value.shape), str(raw.tolist()), raw.tobytes())


@describe.register
def _(value: np.ndarray) -> Any:
    return ("np.ndarray", str(value.dtype), str(value.shape), str(value.tolist()), value.tobytes())


@describe.register
def _(value: np.generic) -> Any:
    return (type_name(type(value)), repr(value), value.tobytes())


@describe.register
def _(value: float) -> Any:
    return (type_name(type(value)), repr(value), struct.pack("d", value))


@describe.register(list)
@describe.register(set)
def _(value: Any) -> Any:
    return (type_name(type(value)), *(describe(v) for v in value))


@describe.register
def _(value: dict) -> Any:
    # In its order: a dict that came through JAX's pytrees has its keys sorted.
    return (type_name(type(value)), *((describe(k), describe(v)) for k, v in value.items()))


@describe.register
def _(value: Enum) -> Any:
    return (type_name(type(value)), value.name)


@describe.register(type)
def _(value: type) -> Any:
    return ("class", type_name(value))


@describe.register(types.FunctionType)
@describe.register(types.BuiltinFunctionType)
@describe.register(types.MethodType)
def _(value: Any) -> Any:
    return ("function", value.__name__, inspect.getdoc(value))


@describe.register
def _(value: plum.Function) -> Any:
    return ("plum function", value.__name__)


@describe.register
def _(value: jax.ShapeDtypeStruct) -> Any:
    return ("shape", str(value.dtype), str(value.shape), str(value.weak_type))


def show(what: Any) -> str:
    """A description, for people."""
    if isinstance(what, bytes):
        return what.hex()
    if isinstance(what, tuple):
        return "(" + ", ".join(show(w) for w in what) + ")"
    return str(what)


def difference(wanted: Any, got: Any, path: str = "") -> str:
    """Where two descriptions part first, or `""` if they are the same."""
    if isinstance(wanted, Outcome) and isinstance(got, Outcome):
        if wanted.kind != got.kind:
            return f"wanted: {wanted}\n   got: {got}"
        return difference(wanted.what, got.what, wanted.kind)
    if isinstance(wanted, tuple) and isinstance(got, tuple) and len(wanted) == len(got):
        for i, pair in enumerate(zip(wanted, got, strict=True)):
            if said := difference(*pair, f"{path}[{i}]"):
                return said
        return ""
    if type(wanted) is type(got) and wanted == got:
        return ""
    return f"at {path}\nwanted: {show(wanted)}\n   got: {show(got)}"


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two outcomes are the same in everything that the contract promises."""
    return not difference(a, b)
