"""What a global or captured value is: whether it can change in place, and whether it is impure."""

from __future__ import annotations

import abc
import builtins
import dataclasses
import datetime as dt
import enum
import functools
import inspect
import types
import weakref
from typing import TYPE_CHECKING, Any

from plum_freeze import _jax

if TYPE_CHECKING:
    from collections.abc import Sequence

# What cannot change in place. Subclasses count: numpy's float64 is a float, a struct_time a tuple.
_ATOMS = (
    *(int, float, complex, str, bytes, range, enum.Enum, types.NoneType, types.EllipsisType),
    *(types.NotImplementedType, types.CodeType, types.GenericAlias, types.UnionType),
)
# These compare by value, or as what they show, and are mutable all the same.
_MUTABLE = (list, dict, set, bytearray, memoryview, types.MappingProxyType, weakref.ref)
# What is called and has nothing that a caller changes: C functions, descriptors.
_C_CALLABLES = (
    *(types.WrapperDescriptorType, types.MethodWrapperType, types.MethodDescriptorType),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
)
_CALLABLE_PACKAGES = frozenset({"jax", "jaxlib", "numpy", "functools", "plum", "equinox", "quax"})
_TYPING = frozenset({"typing", "typing_extensions"})

_IMPURE_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in (
        *("print", "input", "open", "exec", "eval", "compile", "globals", "locals", "vars", "id"),
        *("setattr", "delattr", "breakpoint", "__import__"),
    )
)
_IMPURE_MODULES = frozenset({
    *("time", "random", "_random", "secrets", "uuid", "numpy.random", "logging", "warnings"),
    *("_warnings", "_py_warnings", "os", "posix", "nt", "sys", "io", "_io", "pathlib", "socket"),
    *("subprocess", "threading", "_thread", "tempfile", "shutil", "gc", "atexit", "_site_builtins"),
})  # fmt: skip
_CLOCKS = frozenset({"now", "utcnow", "today"})
_CLOCK_CLASSES = (dt.datetime, dt.date)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def package_of(function: types.FunctionType) -> str:
    """The top-level package whose code this is, whatever `functools.wraps` has written on it."""
    return str(function.__globals__.get("__name__", "")).partition(".")[0]


def layers(value: Any) -> list[types.FunctionType]:
    """A function and those that it wraps, the outermost first.

    What is jitted already is not looked into: it is traced once in plain plum too.
    """
    found: list[types.FunctionType] = []
    for _ in range(20):  # more is a cycle
        if isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, (staticmethod, classmethod, types.MethodType)):
            value = value.__func__
        elif not callable(value) or isinstance(value, type) or _jax.is_jitted(value):
            break
        else:
            if isinstance(value, types.FunctionType):
                found.append(value)
            value = inspect.getattr_static(value, "__wrapped__", None)
    return list(dict.fromkeys(found))


def is_constant(value: Any, depth: int = 8) -> bool:
    """Whether a value cannot change in place. Unsure means no."""
    if isinstance(value, _MUTABLE):
        return False
    if isinstance(value, (*_ATOMS, type, types.ModuleType, types.FunctionType, *_C_CALLABLES)):
        return True
    parts = _parts(value)
    if parts is not None:
        return depth > 0 and all(is_constant(part, depth - 1) for part in parts)
    cls = type(value)
    if callable(value) and (_package(cls) in _CALLABLE_PACKAGES or _jax.is_jitted(value)):
        return True
    return (
        cls is object  # a sentinel
        or _is_cython(value)
        or cls.__module__ in _TYPING
        or _jax.is_array_class(cls)
        or any(base.__name__ == "Primitive" and _package(base) == "jax" for base in cls.__mro__)
        # numpy's and JAX's `s_`, `r_`, `mgrid` are objects only because of their brackets.
        or "index_tricks" in cls.__module__
        or _has_value_hash(cls)
    )


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _parts(value: Any) -> Sequence[Any] | None:
    """What an immutable container holds; None if it is not one that is known."""
    match value:
        case tuple() | frozenset():
            return tuple(value)
        case slice():
            return value.start, value.stop, value.step
        case functools.partial():
            return value.func, *value.args, *value.keywords.values()
        case types.MethodType() | types.BuiltinMethodType():
            return (value.__self__,)
        case staticmethod() | classmethod():
            return (value.__func__,)
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return None
    # Not `getattr`, which may run code of the class. An unset field counts as mutable.
    unset: list[Any] = []
    names = [field.name for field in dataclasses.fields(value)]
    return [inspect.getattr_static(value, name, unset) for name in names]


def _has_value_hash(cls: Any) -> bool:
    """Whether a class says, by an equality and a hash of its own, that it is a value.

    Python's data model demands of such a class that what the hash is made of does not change.
    dtypes, units, `Fraction`, `Path` and `re.Pattern` are found by this.
    """
    own_equality = cls.__eq__ is not object.__eq__
    return own_equality and cls.__hash__ is not None and cls.__hash__ is not object.__hash__


def impure_name(value: Any) -> str | None:
    """What a builtin or a function of the standard library with effects is called, or None."""
    if any(value is impure for impure in _IMPURE_BUILTINS):
        return str(value.__name__)
    if isinstance(value, types.ClassMethodDescriptorType):
        clock = value.__name__ in _CLOCKS and value.__objclass__ in _CLOCK_CLASSES
        return f"datetime.{value.__name__}" if clock else None
    if isinstance(value, type):
        # Abstract classes and exceptions are there to be asked for, as in `isinstance`.
        if isinstance(value, abc.ABCMeta) or issubclass(value, BaseException):
            return None
    elif not (isinstance(value, _FUNCTIONS) or _is_cython(value)):
        return None
    # `random.random` is a method of a hidden object, `time.time` one of its module.
    owner = None if isinstance(value, type) else getattr(value, "__self__", None)
    of_object = owner is not None and not isinstance(owner, (type, types.ModuleType))
    module = str(getattr(type(owner) if of_object else value, "__module__", ""))
    parents = {module, *(module[:end] for end, dot in enumerate(module) if dot == ".")}
    return f"{module.lstrip('_')}.{value.__name__}" if parents & _IMPURE_MODULES else None


def _is_cython(value: Any) -> bool:
    """Whether this is a function that Cython compiled, as those of numpy.random are."""
    return type(value).__name__ == "cython_function_or_method"
