"""Whether a class can derive from two classes, by Python's own rules. No class is made for it."""

from __future__ import annotations

import enum
import functools

_IS_BASE_TYPE = 1 << 10  # Py_TPFLAGS_BASETYPE
_IS_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_WORD = object.__basicsize__ // 2  # an empty object is two words


@functools.lru_cache(maxsize=65536)
def can_combine(left: type, right: type) -> bool:
    """Whether `class Both(left, right)` could be written."""
    if _is_final(left) or _is_final(right):
        return False
    if not (
        issubclass_plainly(type(left), type(right)) or issubclass_plainly(type(right), type(left))
    ):
        return False  # metaclass conflict
    solid = _solid_base(left), _solid_base(right)
    if solid[0] not in solid[1].__mro__ and solid[1] not in solid[0].__mro__:
        return False  # instance lay-out conflict
    return _has_mro(left, right) or _has_mro(right, left)


def issubclass_plainly(cls: type, base: type) -> bool:
    """`issubclass` without asking the metaclass."""
    return base in cls.__mro__


def _is_final(cls: type) -> bool:
    if not cls.__flags__ & _IS_BASE_TYPE or cls.__dict__.get("__final__") is True:
        return True  # bool, NoneType, and what is marked with typing.final
    return isinstance(cls, enum.EnumMeta) and bool(cls.__members__)


def _solid_base(cls: type) -> type:
    """The ancestor that says what an instance looks like in memory, as CPython's `solid_base`."""
    while cls.__base__ is not None and not _adds_fields(cls, cls.__base__):
        cls = cls.__base__
    return cls


def _adds_fields(cls: type, base: type) -> bool:
    """CPython's `extra_ivars`: whether instances hold more than `__dict__` and weak references."""
    size, before = cls.__basicsize__, base.__basicsize__
    if cls.__itemsize__ or base.__itemsize__:
        return size != before or cls.__itemsize__ != base.__itemsize__
    if not cls.__flags__ & _IS_HEAP_TYPE:
        return size != before
    if (
        cls.__weakrefoffset__
        and not base.__weakrefoffset__
        and cls.__weakrefoffset__ + _WORD == size
    ):
        size -= _WORD
    if cls.__dictoffset__ and not base.__dictoffset__ and cls.__dictoffset__ + _WORD == size:
        size -= _WORD
    return size != before


def _has_mro(left: type, right: type) -> bool:
    """Whether the C3 linearisation of `(left, right)` exists."""
    rows = [list(left.__mro__), list(right.__mro__), [left, right]]
    while rows := [row for row in rows if row]:
        heads = [row[0] for row in rows]
        head = next((h for h in heads if not any(h in row[1:] for row in rows)), None)
        if head is None:
            return False
        rows = [row[1:] if row[0] is head else row for row in rows]
    return True
