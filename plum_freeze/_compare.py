"""Methods compared by plum's own rules, and their signatures as people write them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from plum_freeze import _plum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plum_freeze._plum import Method


def method_text(method: Method) -> str:
    """The signature of a resolved method as people write it: `(x: int, y: Any, *z: Array)`."""
    code = getattr(method.implementation, "__code__", None)
    names = code.co_varnames if code is not None else ()
    count = code.co_argcount if code is not None else 0
    signature = method.signature
    hints = [_plum.hint_text(hint) for hint in signature.types]
    parts = [f"{names[i]}: {hint}" if i < count else hint for i, hint in enumerate(hints)]
    if signature.has_varargs:
        is_named = code is not None and code.co_flags & inspect.CO_VARARGS
        star = names[count + code.co_kwonlyargcount] if code is not None and is_named else ""
        parts.append(f"*{star}: {_plum.hint_text(signature.varargs)}")
    return "(" + ", ".join(parts) + ")"


def contenders(methods: Sequence[Method]) -> list[Method]:
    """What is left of methods that all apply to a call: one that is chosen, or several.

    These are the rules of `plum._resolver.Resolver.resolve`, after it asked which methods apply:
    what is strictly more general than another goes, and then the highest precedence decides.
    """
    candidates: list[Method] = []
    for method in methods:
        if not any(c.signature.is_comparable(method.signature) for c in candidates):
            candidates.append(method)
            continue
        kept = [c for c in candidates if not method.signature < c.signature]
        if any(method.signature <= c.signature for c in candidates):
            kept.append(method)
        candidates = kept
    highest = max((c.signature.precedence for c in candidates), default=0)
    return [c for c in candidates if c.signature.precedence == highest]


def compare(left: Method, right: Method) -> tuple[bool, bool]:
    """Whether plum takes `left` for at least as specific as `right`, and the other way round."""
    one, other = left.signature, right.signature
    return bool(one <= other), bool(other <= one)


def expanded(method: Method, count: int) -> tuple[Any, ...] | None:
    """The hints for a call with this many positional arguments; None if it takes another number."""
    signature = method.signature
    missing = count - len(signature.types)
    if missing < 0 or (missing and not signature.has_varargs):
        return None
    return tuple(signature.expand_varargs(count))


def takes_all(method: Method, hints: Sequence[Any]) -> bool:
    """Whether a method applies to every call with values of these hints."""
    return bool(_plum.signature(tuple(hints)) <= method.signature)
