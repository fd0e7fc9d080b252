"""What a decision depends on: a plan per call, and the words for it in the report."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from plum_freeze import _jaxtyping
from plum_freeze._key_function import UNCACHED, bits, keyed_entry, weak_parts
from plum_freeze._key_parts import (
    KeyPart,
    checks_types,
    is_honest,
    is_loud,
    is_union,
    looks_at_items,
    unwrapped,
    verdict,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "UNCACHED",
    "KeyPart",
    "bits",
    "certain",
    "depends",
    "keyed_entry",
    "plan",
    "reason",
    "weak_parts",
]


def certain(hint: object, cls: type) -> bool | None:
    """Whether values of exactly this class match `hint`; None if the class does not decide it."""
    found = verdict(hint, cls)
    return found if isinstance(found, bool) else None


def depends(hint: object, cls: type) -> KeyPart:
    """What plum's check of a value of exactly this class against `hint` depends on."""
    found = verdict(hint, cls)
    return found if isinstance(found, KeyPart) else KeyPart.TYPE


def plan(
    hints_by_method: Sequence[tuple[tuple[object, ...], object | None]], types: tuple[type, ...]
) -> tuple[KeyPart, ...]:
    """What the choice of a method depends on, for a call with positional arguments of these types.

    Each method is given by its fixed hints and that of its `*args`, None if there is none.
    A method that the types alone rule out asks for nothing: one hint that is not cacheable does
    not slow down the calls that it cannot match.
    """
    total = [0] * len(types)  # plain integers: `|` of flags is Python code, and takes 1 µs
    # A function has few different hints and many methods. The hints live as long as this call.
    known: dict[tuple[int, type], bool | KeyPart] = {}

    def look_up(hint: object, cls: type) -> bool | KeyPart:
        key = (id(hint), cls)
        if key not in known:
            known[key] = verdict(hint, cls)
        return known[key]

    for fixed, varargs in hints_by_method:
        missing = len(types) - len(fixed)
        if missing < 0 or (missing and varargs is None):
            continue
        hints = fixed + (varargs,) * missing
        verdicts = [look_up(hint, cls) for hint, cls in zip(hints, types, strict=True)]
        end = verdicts.index(False) if False in verdicts else len(types)
        for i, found in enumerate(verdicts[:end]):
            if not isinstance(found, KeyPart):
                continue
            if end == len(types):
                total[i] |= found.value
            # Plum looks at this argument before it comes to the one that rules the method out.
            # That matters only where looking has an effect: binds a name, or raises.
            elif is_loud(hints[i], types[i]):
                total[i] |= KeyPart.NEVER.value
            else:
                total[i] |= found.value & KeyPart.SCOPE.value
    return tuple(map(KeyPart, total))


_WORDS = {
    KeyPart.AVAL: "the dtype and shape of the JAX array",
    KeyPart.ARRAY: "the dtype and shape of the array",
    KeyPart.SCOPE: "the axis names that are bound where it is called inside a jaxtyped function",
    KeyPart.IDENTITY: "which class the argument is",
    KeyPart.VALUE: "the value of the argument",
}


def reason(hint: object, cls: type) -> str:
    """What a decision depends on, in plain words, and what to write where nothing is cached."""
    found = depends(hint, cls)
    if not found:
        return f"decided by the class {cls.__qualname__}"
    if KeyPart.NEVER in found:
        return _why_never(hint, cls)
    return "depends on " + " and ".join(words for part, words in _WORDS.items() if part in found)


def _why_never(hint: Any, cls: type) -> str:
    while (inner := unwrapped(hint)) is not hint:
        hint = inner
    if is_union(hint):
        hint = next((m for m in get_args(hint) if KeyPart.NEVER in depends(m, cls)), hint)
    if get_origin(hint) is Annotated:
        return f"{hint} runs a validator on each value: write the bare type, and check in the body"
    if issubclass(type(hint), type):
        return _why_class_never(hint, cls)
    if not is_honest(cls):
        return _DISHONEST.format(cls=cls.__qualname__)
    origin = get_origin(hint)
    if isinstance(origin, type):
        return f"{hint} looks inside each value: write {origin.__name__}, and check in the body"
    return f"what plum makes of {hint} is not known to be decided by what a key can hold"


_DISHONEST = (
    "values of {cls} can pretend to be of another class, because it overrides __class__ or "
    "__getattribute__: unwrap them before the call"
)


def _why_class_never(hint: type, cls: type) -> str:
    name = hint.__qualname__
    array = _jaxtyping.array_hint(hint)
    if array is not None and array.computes:
        return f"{name} has an axis that is computed or depends on a tree path: name the axis"
    if _jaxtyping.is_pytree_hint(hint):
        return f"{name} looks at each leaf: write PyTree, or the class of the tree"
    if not getattr(hint, "__faithful__", True):
        return f"{name} says of itself that it is not faithful (__faithful__ = False)"
    if looks_at_items(hint):
        return f"{name} derives from a type with items, which beartype checks one by one"
    if getattr(hint, "_is_protocol", False) and issubclass(type(hint), type(typing.Protocol)):
        return f"{name} is a protocol, and looks at the attributes of each value: write an ABC"
    if not checks_types(hint) and array is None:
        return (
            f"{type(hint).__qualname__}, the metaclass of {name}, has an __instancecheck__ of its "
            f"own: set __faithful__ = True on {name} if the type of a value decides"
        )
    if not is_honest(cls):
        return _DISHONEST.format(cls=cls.__qualname__)
    return f"{name} looks at each value of {cls.__qualname__}"
