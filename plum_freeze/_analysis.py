"""What the choice of a method depends on beyond types, and which hints make every call slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import _keys, _overlap, _plum
from plum_freeze._ambiguity import place_of
from plum_freeze._keys import KeyPart

if TYPE_CHECKING:
    from plum_freeze._plum import Method


@dataclass(frozen=True, slots=True)
class Depends:
    """What the choice of a method depends on beyond the type of an argument.

    Attributes:
        argument: Which argument, from 1; 0 for any of `*args`.
        on: "dtype and shape", "value", "which class", "axis names in scope" or "not cacheable".
        hint: The hint that makes it so.
        why: In words, with what to write instead where nothing can be cached.
        places: The methods with that hint, as `core.py:12`.
    """

    argument: int
    on: str
    hint: str
    why: str
    places: list[str]

    @property
    def is_slow(self) -> bool:
        """Whether plum has to resolve each call that this hint may match."""
        return self.on == NOT_CACHEABLE


NOT_CACHEABLE = "not cacheable"
_WORDS = {
    KeyPart.AVAL: "dtype and shape",
    KeyPart.ARRAY: "dtype and shape",
    KeyPart.IDENTITY: "which class",
    KeyPart.VALUE: "value",
    KeyPart.SCOPE: "axis names in scope",
}


def depends(methods: list[Method]) -> list[Depends]:
    """What the choice among these methods depends on, beyond types: one for each hint."""
    found: dict[tuple[int, str], Depends] = {}
    for method in methods:
        signature = method.signature
        hints = [*enumerate(signature.types, 1)]
        if signature.has_varargs:
            hints.append((0, signature.varargs))
        for argument, hint in hints:
            for each in _of_hint(argument, hint):
                kept = found.setdefault((argument, each.hint), each)
                place = place_of(method.implementation)
                if place not in kept.places:
                    kept.places.append(place)
    return sorted(found.values(), key=lambda each: (each.argument or 99, each.hint))


def _of_hint(argument: int, hint: Any) -> list[Depends]:
    for member in _overlap.members(hint):
        for cls in _overlap.representatives(member):
            part = _keys.depends(member, cls)
            if not part:
                continue
            words = [words for key, words in _WORDS.items() if key in part]
            on = NOT_CACHEABLE if KeyPart.NEVER in part else " and ".join(dict.fromkeys(words))
            return [Depends(argument, on, _plum.hint_text(hint), _keys.reason(member, cls), [])]
    return []


def in_short(found: list[Depends]) -> str:
    """What decides, in a few words."""
    kinds = list(dict.fromkeys(each.on for each in found if not each.is_slow))
    slow = sorted({each.argument for each in found if each.is_slow})
    parts = ["type", *dict.fromkeys(part for kind in kinds for part in kind.split(" and "))]
    text = ", ".join(parts)
    if slow:
        names = ", ".join("*args" if n == 0 else str(n) for n in slow)
        text += f"; not cacheable: {names}"
    return text
