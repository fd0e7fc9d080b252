"""Which values are static, and when two are the same: DESIGN, section 6, rules 2 and 3.

Compared by type and bits at any depth: `1`, `True` and `1.0` differ, and so do `0.0` and `-0.0`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import struct
import sys
import weakref
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Plain(Exception):  # noqa: N818 (control flow, never seen by users)
    """This call runs plainly. The text says why, in the words of the report."""


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
    return frozenset, tuple(map(static_key, value))  # equal ones may be iterated in another order


def _range(value: range) -> Hashable:
    return range, static_key(value.start), static_key(value.stop), static_key(value.step)


def _slice(value: slice) -> Hashable:
    return slice, static_key(value.start), static_key(value.stop), static_key(value.step)


def _tuple(value: tuple[Any, ...]) -> Hashable:
    return tuple, tuple(map(static_key, value))


HANDLERS: dict[type, Callable[[Any], Hashable]] = {
    **dict.fromkeys((int, bool, str, bytes), _by_value),
    **dict.fromkeys((type(None), type(...), type(NotImplemented)), _by_value),
    range: _range,
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
    handler = HANDLERS.get(type(value))
    if handler is not None:
        return handler(value)
    known = _identified.get(id(value))
    if (known is not None and known() is value) or by_identity(value):
        return type(value), id(value)
    if _is_dtype(value):
        return type(value), value, value.char  # two of the same width are equal
    if _is_frozen_dataclass(value):
        fields = dataclasses.fields(value)
        return type(value), tuple(static_key(getattr(value, field.name)) for field in fields)
    raise Plain(type_name(value))


def copied(value: Any) -> Any:
    """An equal static value, to keep in place of an argument that may be waited for to go."""
    if type(value) is tuple:
        return tuple(map(copied, value))
    if by_identity(value) or not _is_frozen_dataclass(value):
        return value
    copy = object.__new__(type(value))
    for field in dataclasses.fields(value):
        object.__setattr__(copy, field.name, copied(getattr(value, field.name)))
    return copy


def by_identity(value: Any) -> bool:
    """Whether the key of this static value holds nothing but its identity."""
    if type(value) in HANDLERS:
        return False
    known = _identified.get(id(value))
    if known is not None and known() is value:
        return True
    if not lives_in_its_module(type(value) if isinstance(value, enum.Enum) else value):
        return False
    key = id(value)
    with contextlib.suppress(TypeError):  # a member of an `IntEnum` is looked at each time
        _identified[key] = weakref.ref(value, lambda _: _identified.pop(key, None))
    return True


_identified: dict[int, weakref.ref[Any]] = {}
"""What was found to be static by its identity: to look costs 2 to 6 us."""


def _is_dtype(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.dtype) and value.metadata is None


def _is_frozen_dataclass(value: Any) -> bool:
    """Whether its author declared it immutable, and it is nothing but its fields."""
    cls = type(value)
    parameters = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.frozen or not lives_in_its_module(cls):
        return False
    names = {field.name for field in dataclasses.fields(value)}
    slots = {name for base in cls.__mro__ for name in _slots(base)}
    is_pure = all(base is object or base.__flags__ & _HEAP_TYPE for base in cls.__mro__)
    return is_pure and names.issuperset(slots) and names.issuperset(getattr(value, "__dict__", ()))


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a `class` statement, and no builtin


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def lives_in_its_module(value: Any) -> bool:
    """Whether the value is a class, a function or a stateless object that its module holds.

    Only those are static by identity: the module keeps them alive anyway, and they are the same
    thing for as long as it does. Local lambdas, closures and bound methods are not.
    """
    if not isinstance(value, (type, FunctionType, BuiltinFunctionType)) and not _is_wrapper(value):
        return _is_sentinel(value)
    name = getattr(value, "__qualname__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or not isinstance(name, str):
        return False
    names = object.__getattribute__(module, "__dict__")
    if isinstance(value, FunctionType) and "<" in name:
        return _is_held(value, names)
    found: Any = names
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else vars(found).get(part)
        if found is None or (found is not value and not isinstance(found, type)):
            return False
    return found is value


def _is_held(value: FunctionType, names: dict[str, Any]) -> bool:
    """Whether a module holds this lambda under any name, as equinox does with `MLP`'s identity."""
    return not value.__closure__ and any(each is value for each in tuple(names.values()))


_WRAPPERS = frozenset({"jax", "jaxlib", "functools", "equinox"})


def _is_wrapper(value: Any) -> bool:
    """Such as what `jax.jit`, `jax.custom_jvp` and `functools.lru_cache` make of a function.

    Not an object of just any class that imitates a function: it may count its calls.
    """
    attributes = getattr(value, "__dict__", None)
    if not callable(value) or not isinstance(attributes, dict):
        return False
    return "__wrapped__" in attributes and type(value).__module__.partition(".")[0] in _WRAPPERS


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
