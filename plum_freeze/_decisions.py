"""The record of decisions: which method a function chose for which arguments, and what changes it.

Compiled code has decisions baked in. A registration that changes none of those recorded moves
nothing; one that may change one invalidates. Unsure means that it may. The idea is Dylan's sealed
domain and Julia's method invalidation.
"""

from __future__ import annotations

import abc
import weakref
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from plum_freeze import _jax, _keys, _origin, _plum
from plum_freeze._dependencies import Baked
from plum_freeze._keys import KeyPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plum_freeze._plum import Method

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Abstract:
    """Stands for a JAX array in the record: an array of this dtype and shape."""

    dtype: Any
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """Stands for a value that a decision depends on: it is small and immutable."""

    value: Any


@dataclass(eq=False, slots=True)
class Decision(Baked):
    """One decision that a function took.

    Attributes:
        types: The types of the positional arguments, or the hints that `invoke` was given.
        witnesses: What stands for each argument where the type does not decide; None where the
            type does, or where nothing can stand for it.
        implementation: The method; None if there was none; `UNKNOWN` if plum took the decision.
        invoked: Whether the types are hints, from `Function.invoke`.
    """

    types: tuple[Any, ...]
    witnesses: tuple[Any, ...]
    implementation: Any
    invoked: bool = False

    def __post_init__(self) -> None:
        Baked.__init__(self)

    def applies(self, method: Method) -> bool | None:
        """Whether a method applies to what this decision was about; None if unsure."""
        signature = method.signature
        missing = len(self.types) - len(signature.types)
        if missing < 0 or (missing and not signature.has_varargs):
            return False
        hints = signature.expand_varargs(len(self.types))
        answers = (
            map(_is_within, self.types, hints)
            if self.invoked
            else map(_matches, self.types, self.witnesses, hints)
        )
        applies: bool | None = True
        for answer in answers:
            if answer is False:  # the others need not be compared
                return False
            if answer is None:
                applies = None
        return applies

    def changes(self, methods: Sequence[Method], new: Sequence[Method]) -> bool:
        """Whether it may be taken differently once the function has the methods `new` as well.

        Beartype keeps for good what comes out when two hints are compared, an error too; and a
        class can be registered with an ABC, and a name defined, before plum compares them. So only
        those methods are compared that plum would compare for these arguments.

        Args:
            methods: The methods of the function.
            new: Those that are new since the decision was taken.
        """
        coming = {id(method): self.applies(method) for method in new}
        if all(applies is False for applies in coming.values()):
            return False
        if self.implementation is UNKNOWN or self.implementation is None:
            return True
        present = {id(m): self.applies(m) for m in methods if id(m) not in coming}
        if None in coming.values() or None in present.values():
            return True
        try:
            applicable = _plum.methods_after(
                [method for method in methods if present.get(id(method))],
                [method for method in new if coming[id(method)]],
            )
            chosen = _plum.choose_among(applicable, self.types)
        except Exception:  # noqa: BLE001  whatever a hint does when it is compared: we are unsure
            return True
        return chosen is None or not is_same_code(chosen.implementation, self.implementation)

    def __str__(self) -> str:
        if self.invoked:
            return f".invoke({', '.join(map(_plum.hint_text, self.types))})"
        return f"({', '.join(map(_kind, self.types, self.witnesses))})"

    @property
    def chosen(self) -> str:
        """The method that was chosen, as `file:line`; or what happened in its place."""
        if self.implementation is None:
            return "no method"
        code = getattr(self.implementation, "__code__", None)
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else "plum's choice"


def _kind(cls: type, witness: Any) -> str:
    """An argument in words: `float64[3]`, `traced float64[3]`, `int`, `Literal['a']`."""
    traced = "traced " if _jax.is_tracer_class(cls) else ""
    if isinstance(witness, Abstract):
        return f"{traced}{witness.dtype}[{','.join(map(str, witness.shape))}]"
    if isinstance(witness, Value):
        return repr(witness.value)
    if isinstance(witness, weakref.ref):
        value = witness()
        return "a class that is gone" if value is None else f"type[{_plum.hint_text(value)}]"
    if traced or _jax.is_array_class(cls):
        return f"{traced}array"
    return _plum.hint_text(cls)


def _is_within(asked: Any, hint: Any) -> bool | None:
    """Whether `Function.invoke` for the hint `asked` finds a method for `hint`; None if unsure."""
    if type(asked) in (type, abc.ABCMeta):
        found = _keys.certain(hint, asked)
        if found is not None:
            return found
    if _plum.waits_for_a_name(hint):
        return None
    try:
        return bool(_plum.signature((asked,)) <= _plum.signature((hint,)))
    except Exception:  # noqa: BLE001  whatever a hint does when it is compared: unsure
        return None


def _matches(cls: Any, witness: Any, hint: Any) -> bool | None:
    found = _keys.certain(hint, cls)
    if found is not None or witness is None:
        return found
    try:
        if isinstance(witness, weakref.ref):
            value = witness()
            return None if value is None else _plum.matches(value, hint)
        if isinstance(witness, Value):
            return _plum.matches(witness.value, hint)
        return bool(
            _jax.with_abstract(witness.dtype, witness.shape, lambda x: _plum.matches(x, hint))
        )
    except Exception:  # noqa: BLE001  a hint that raises may do so at the call as well: unsure
        return None


def witness(value: Any, part: KeyPart) -> Any:
    """What stands for an argument in the record, without keeping it alive."""
    if part & KeyPart.NEVER:
        return None
    if part & KeyPart.AVAL:
        shape_and_dtype = _jax.abstract(value)
        return None if shape_and_dtype is None else Abstract(*shape_and_dtype)
    if part & KeyPart.IDENTITY:
        return weakref.ref(value) if isinstance(value, type) else None
    if part & KeyPart.VALUE:
        return Value(value)
    return None


def is_same_code(left: Any, right: Any) -> bool:
    """Whether two functions are the same, or one is what running the same source again gives.

    That is the same code, defaults and globals, and closures with identical contents.
    """
    if left is right:
        return True
    if not (isinstance(left, FunctionType) and isinstance(right, FunctionType)):
        return False
    return (
        left.__code__ == right.__code__
        and _origin.source_of(left.__code__.co_filename)
        == _origin.source_of(right.__code__.co_filename)
        and left.__globals__ is right.__globals__
        and _are_identical(left.__defaults__ or (), right.__defaults__ or ())
        and _are_identical(
            [*sorted((left.__kwdefaults__ or {}).items())],
            [*sorted((right.__kwdefaults__ or {}).items())],
        )
        and _are_identical(_contents(left), _contents(right))
    )


def _are_identical(left: Sequence[Any], right: Sequence[Any]) -> bool:
    if len(left) != len(right):
        return False
    return all(
        _are_identical(a, b)
        if type(a) is tuple and type(b) is tuple
        else a is b or (type(a) is type(b) and type(a) in _PLAIN and repr(a) == repr(b))
        for a, b in zip(left, right, strict=True)
    )


# Equal text is equal type and bits for these, and only for these.
_PLAIN = (int, float, bool, complex, str, bytes, type(None))
_EMPTY = object()


def _contents(function: FunctionType) -> list[Any]:
    def content(cell: Any) -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return _EMPTY

    return [content(cell) for cell in function.__closure__ or ()]
