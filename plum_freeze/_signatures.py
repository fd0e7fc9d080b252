"""Registrations and their signatures, by plum's public names alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

    import plum

    Method: TypeAlias = plum.Method
    Signature: TypeAlias = plum.Signature


@dataclass(frozen=True, slots=True)
class Entry:
    """One registration as plum keeps it: the arguments of `Function.register`."""

    implementation: Callable[..., Any]
    signature: Signature | None
    precedence: int | None

    def is_same(self, other: Entry) -> bool:
        """Whether both are the very same registration."""
        return (
            self.implementation is other.implementation
            and self.signature is other.signature
            and self.precedence == other.precedence
        )

    @property
    def key(self) -> tuple[int, int, int | None]:
        """Identifies the registration for as long as plum keeps it."""
        return id(self.implementation), id(self.signature), self.precedence


def methods_of(entry: Entry, name: str) -> list[Method]:
    """The methods that a registration will give: one, and one for each default value.

    Annotations are resolved on a copy, so that plum still resolves the originals when it would.

    Raises:
        Exception: An annotation cannot be resolved yet, or plum will refuse the method.
    """
    from plum import Method as PlumMethod
    from plum import Signature as PlumSignature
    from plum import append_default_args, extract_return_type

    function = _with_own_annotations(entry.implementation)
    _check_promises(function)
    signature = entry.signature
    if signature is None:
        signature = PlumSignature.from_callable(function, precedence=entry.precedence or 0)
    return_type = extract_return_type(function)
    return [
        PlumMethod(entry.implementation, each, function_name=name, return_type=return_type)
        for each in append_default_args(signature, function)
    ]


def waits_for_a_name(hint: Any) -> bool:
    """Whether a hint refers forward to a class that is not there yet.

    Beartype keeps what it raises when such a hint is compared, and raises it again once the class
    is there. To look for an instance does no harm.
    """
    if isinstance(hint, type) and type(hint).__module__.startswith("beartype."):
        try:
            isinstance(None, hint)
        except Exception:  # noqa: BLE001  beartype has several, and all say this
            return True
    if isinstance(hint, list):  # the parameters of a `Callable`
        return any(map(waits_for_a_name, hint))
    return any(map(waits_for_a_name, getattr(hint, "__args__", None) or ()))


def _check_promises(function: Any) -> None:
    """Plum resolves a `PromisedType` that was not delivered without end, compiled to a crash.

    Raises:
        NameError: There is one among the annotations.
    """
    from plum import PromisedType

    hints = getattr(function, "__annotations__", None) or {}
    if any(isinstance(hint, str) for hint in hints.values()):
        hints = get_type_hints(function, include_extras=True)
    open_ = list(hints.values())
    while open_:
        hint = open_.pop()
        if isinstance(hint, PromisedType) and hint.resolve() is hint:
            raise NameError(f"{hint!r} is not delivered yet")
        open_.extend(getattr(hint, "__args__", None) or ())


def _with_own_annotations(function: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(function, FunctionType):
        return function
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = dict(function.__annotations__)
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__type_params__ = getattr(function, "__type_params__", ())  # type: ignore[attr-defined]
    return copy


def with_types_swapped(method: Method) -> Method:
    """The same method for two arguments in the other order."""
    from plum import Method as PlumMethod
    from plum import Signature as PlumSignature

    swapped = PlumSignature(
        *reversed(method.signature.types), precedence=method.signature.precedence
    )
    return PlumMethod(
        method.implementation,
        swapped,
        function_name=method.function_name,
        return_type=method.return_type,
    )


def signature_text(entry: Entry) -> str:
    """The signature as people write it, also where it cannot be resolved yet."""
    if entry.signature is not None:
        texts = list(map(hint_text, entry.signature.types))
        if entry.signature.has_varargs:
            texts.append(f"*{hint_text(entry.signature.varargs)}")
        return "(" + ", ".join(texts) + ")"
    function = _unwrapped(entry.implementation)  # plum reads the signature beneath wrappers, too
    code = getattr(function, "__code__", None)
    if code is None:
        return "(...)"
    annotations = getattr(function, "__annotations__", {})
    names = code.co_varnames[: code.co_argcount]
    parts = [
        f"{name}: {hint_text(annotations[name])}" if name in annotations else name for name in names
    ]
    if code.co_flags & 0x04:  # CO_VARARGS
        name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        hint = f": {hint_text(annotations[name])}" if name in annotations else ""
        parts.append(f"*{name}{hint}")
    return "(" + ", ".join(parts) + ")"


def _unwrapped(function: Any) -> Any:
    for _ in range(32):  # a chain of `__wrapped__` may be a ring
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    return function


def hint_text(hint: Any) -> str:
    """A hint as plum shows it, shortly."""
    if isinstance(hint, str):
        return hint
    from plum.repr import repr_short

    # JAX 0.10 shows its array class by another name than JAX 0.12, and jaxtyping shows it as well.
    text = repr_short(hint).replace("jaxlib._jax.Array", "jax.Array")
    return re.sub(r"jaxtyping\.(\w+\[)(?:jax\.)?", r"\1", text)
