"""Types of arguments with which a method always runs plainly, so that nothing else is tried."""

from __future__ import annotations

import dataclasses
import enum
import weakref
from types import MethodType
from typing import TYPE_CHECKING, Any

from plum_freeze import _apart, _jax
from plum_freeze._static import HANDLERS, Plain

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

MOST_REFUSED = 8
"""Calls that run plainly for the static fields of an argument, before its type is given up.

To take one of unxt's quantities apart only to find a unit in it costs 0.1 ms at each call: an orbit
of eager steps took longer than with dispatch only.
"""


class Opaque:
    """Those of one method. No class is kept alive."""

    def __init__(self) -> None:
        self.types: weakref.WeakSet[type] = weakref.WeakSet()
        self.refused: weakref.WeakKeyDictionary[type, int] = weakref.WeakKeyDictionary()

    def __contains__(self, cls: type) -> bool:
        return cls in self.types

    def learn(self, args: tuple[Any, ...], keys: Iterable[Any]) -> list[type]:
        """From a call that runs plainly: types of its arguments that are opaque from now on.

        Args:
            args: The positional arguments of the call.
            keys: Those of the method's variants.
        """
        new = [type(v) for v in args if type(v) not in self.types and self._is_opaque(v, keys)]
        self.types.update(new)
        return new

    def _is_opaque(self, value: Any, keys: Iterable[Any]) -> bool:
        if not has_opaque_fields(value):
            return is_opaque(value)
        # Another value of this class may have other static fields: see whether one was compiled.
        cls = type(value)
        self.refused[cls] = self.refused.get(cls, 0) + 1
        return self.refused[cls] >= MOST_REFUSED and not any(
            _is_of(part, cls) for positional, _ in keys for part in positional
        )


def has_opaque_fields(value: Any) -> bool:
    """Whether it is a pytree of a class of its own, whose static fields are no static values."""
    node = None if type(value) in (tuple, list, dict) else _node_of(value)
    if node is None:
        return False
    try:
        _apart.auxiliary_key(value, node[1])
    except Plain:
        return True
    return any(map(has_opaque_fields, node[0]))


def _node_of(value: Any) -> tuple[Any, Any] | None:
    try:
        return _apart.node_of(value)
    except Plain:
        return None


def _is_of(key: Hashable, cls: type) -> bool:
    """Whether the key that `take_apart` gave is that of a pytree of this class."""
    return type(key) is tuple and bool(key) and key[0] is cls


def is_opaque(value: Any) -> bool:
    """Whether any value of this type makes a call run plainly, as far as can be told."""
    try:
        return _is_opaque(value)
    except Plain:
        return False


def _is_opaque(value: Any) -> bool:
    cls = type(value)
    if cls in HANDLERS or cls in (list, dict) or callable(value) or dataclasses.is_dataclass(value):
        return False
    if isinstance(value, (enum.Enum, MethodType)) or _apart.node_of(value) is not None:
        return False
    return not (_apart.is_array_class(cls) or _jax.is_tracer_class(cls))
