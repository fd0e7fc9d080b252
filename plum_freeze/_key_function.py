"""Functions from arguments to keys, written for speed: they run at every call.

A key function is compiled from an expression for each argument, because a closure over a list of
small functions costs a call for each of them, and the key of an array takes no longer than two.
"""

from __future__ import annotations

import enum
import functools
import struct
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final

from plum_freeze import _dependencies, _jax, _jaxtyping, _tracing, _written
from plum_freeze._key_parts import KeyPart, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from plum_freeze._store import Entry


class _Uncached:
    def __repr__(self) -> str:
        return "UNCACHED"


UNCACHED: Final = _Uncached()
"""Returned by a key function in place of a key: this one call must not be cached."""

_BUSY = """\
try:
                    busy = {state}
                except AttributeError:
                    busy = first_on_thread()"""
_EXPRESSIONS = {
    # An interned aval is compared by identity, and holds no array: key and look-up take 140 ns, and
    # 210 to 230 with `(dtype.type, shape)` in its place. A weak type costs a second entry.
    KeyPart.AVAL: "aval if type(aval := {argument}.aval) is interned else aval_parts(aval)",
    KeyPart.ARRAY: (
        "(dtype.type, array.shape) if type(array := {argument}) is ndarray"
        " and (dtype := array.dtype).kind != 'V' else array_parts(array)"
    ),
    KeyPart.IDENTITY: "id({argument})",
    KeyPart.VALUE: "bits({argument})",
}


def keyed_entry(
    parts: tuple[KeyPart, ...],
    at: int | None,
    runners: dict[Any, Entry],
    resolve: Callable[[tuple[Any, ...], Hashable], Callable[..., Any]],
) -> Callable[..., Any] | None:
    """A function that looks the key of a call up in `runners`; None if there can be no key.

    Keys are to be compared between calls with equal types of arguments only. `UNCACHED` in place
    of a key says that this one call must not be cached. A key holds no argument alive, except
    `int`, `str` and `bytes` under `VALUE`; an `id` in it is good as long as `weak_parts` live.

    Args:
        parts: What the key consists of: one for each positional argument.
        at: The position of a tracer among them, if there is one.
        runners: What runs calls, by key.
        resolve: Finds what runs a call that has no runner yet.
    """
    whole = joined(parts)
    if KeyPart.NEVER in whole:
        return None
    make = _compiled(parts, whole, at, _jaxtyping.state())
    staged = None if at is None else _jax.staged_trace_class()
    return make(_tracing.anywhere, runners, resolve, _dependencies.anywhere, staged)


@functools.lru_cache(maxsize=1024)  # to compile takes 200 µs, and few functions differ in `parts`
def _compiled(
    parts: tuple[KeyPart, ...], whole: KeyPart, at: int | None, jaxtyping: tuple[Any, Any] | None
) -> Callable[..., Callable[..., Any]]:
    expressions = [
        f"({expression.format(argument=f'argument_{i}')})"
        for i, part in enumerate(parts)
        for flag, expression in _EXPRESSIONS.items()
        if flag in part
    ]
    names: dict[str, Any] = {"UNCACHED": UNCACHED, "Uncacheable": _Uncacheable, "bits": bits}
    names |= {"array_parts": _array_parts, "aval_parts": _aval_parts, "note": _dependencies.note}
    if KeyPart.AVAL in whole:
        # Without interned avals nothing is of this class, and every aval is taken apart.
        names["interned"] = _jax.interned_aval_class() or _Uncached
    if KeyPart.ARRAY in whole:
        names["ndarray"] = getattr(sys.modules.get("numpy"), "ndarray", _Uncached)
    state = _state_of_jaxtyping(whole, jaxtyping, names)
    return _written.by_key(
        len(parts),
        names,
        at,
        busy=_BUSY.format(state=state) if state else "pass",
        is_busy="busy" if state else "False",
        key=expressions[0] if len(expressions) == 1 else f"({','.join(expressions)})",
    )


def _state_of_jaxtyping(
    whole: KeyPart, storage: tuple[Any, Any] | None, names: dict[str, Any]
) -> str:
    """The expression that is true where what jaxtyping answers hangs on more than the array."""
    if storage is None or not whole & (KeyPart.AVAL | KeyPart.ARRAY | KeyPart.SCOPE):
        return ""
    scope, flattening = storage

    def first_on_thread() -> bool:
        """Whether it is busy, on a thread where jaxtyping has set nothing yet."""
        # What jaxtyping itself sets when it first pushes a scope, and after it flattened a tree.
        if not hasattr(scope, "memo_stack"):
            scope.memo_stack = []
        if not hasattr(flattening, "value"):
            flattening.value = False
        return bool(scope.memo_stack or flattening.value)

    names |= {"scope": scope, "flattening": flattening, "first_on_thread": first_on_thread}
    in_scope = "scope.memo_stack or " if KeyPart.SCOPE in whole else ""
    return f"{in_scope}flattening.value"


def weak_parts(args: tuple[Any, ...], parts: tuple[KeyPart, ...]) -> tuple[type, ...]:
    """The classes whose end must drop the entry, because the key names them by `id`."""
    return tuple(
        arg
        for arg, part in zip(args, parts, strict=True)
        if KeyPart.IDENTITY in part and issubclass(type(arg), type)
    )


class _Uncacheable(Exception):  # noqa: N818  not an error: it ends a key that cannot be
    pass


_EXACT = frozenset({int, bool, str, bytes, type(None)})


def bits(value: Any) -> Hashable:
    """A key that is equal for values of the same type and bits only, at any depth.

    Raises:
        _Uncacheable: No such key is known for this type.
    """
    cls = type(value)
    if cls in _EXACT:
        return cls, value
    if cls is float or cls is complex:
        return cls, struct.pack("dd", value.real, value.imag)
    if cls is tuple:
        return cls, tuple(map(bits, value))
    if cls is frozenset:
        return cls, frozenset(map(bits, value))
    # A member by its name: an `id` could be reused, and the member would keep its class alive.
    name = getattr(value, "_name_", None) if issubclass(cls, enum.Enum) else None
    if name is not None and cls.__members__.get(name) is value:
        return weakref.ref(cls), name
    raise _Uncacheable


def _array_parts(value: Any) -> Hashable:
    """What jaxtyping reads of an array: the name of the dtype, and the shape.

    `dtype` itself will not do: `longlong` equals `int64`, and an aligned structure equals one that
    is padded by hand, but the names differ.
    """
    numpy = sys.modules.get("numpy")
    try:
        dtype, shape = value.dtype, value.shape
    except Exception as error:  # a property of the user's; plum will meet the same
        raise _Uncacheable from error
    if numpy is None or not isinstance(dtype, numpy.dtype) or type(shape) is not tuple:
        raise _Uncacheable
    return str(dtype) if dtype.kind == "V" else dtype.type, _checked(shape)


def _aval_parts(aval: Any) -> Hashable:
    """The parts of an aval that is not interned: of a `Ref`, or of a type that a library made."""
    try:
        return type(aval), aval.dtype.type, _checked(aval.shape)
    except AttributeError as error:
        raise _Uncacheable from error


def _checked(shape: Any) -> Hashable:
    try:
        hash(shape)
    except TypeError as error:
        raise _Uncacheable from error
    return shape  # type: ignore[no-any-return]
