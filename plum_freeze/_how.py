"""How a method of a sealed function runs, and why; before it is called, what its code shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _decisions,
    _jax,
    _marks,
    _policy,
    _remedies,
    _screen,
    _targets,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from plum_freeze._jit import Compiled
    from plum_freeze._table import Seal, Table


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a method, or some of its calls, run plainly.

    Attributes:
        text: In words, such as `returns int`.
        remedy: What its author can do about it; "" if there is nothing to do.
        count: How often it was found; 0 if it shows in the code, before any call.
    """

    text: str
    remedy: str
    count: int = 0


NOT_OURS = "not this package's to jit"
NOT_OURS_REMEDY = (
    "freeze the package that implements it as well, or name the function in freeze(); its author"
    " decides"
)


def runs(table: Table | None, implementation: Callable[..., Any]) -> tuple[str, int, list[Reason]]:
    """How a method runs in words, in how many variants compiled, and why not (all) of them."""
    seal = None if table is None else table.seal
    if table is None or seal is None:
        return "not frozen", 0, []
    if _jax.is_jitted(implementation):
        return "jitted by its author", 0, []
    found = _compiled(table, implementation)
    if found is None:
        return "not called yet", 0, _reasons_ahead(seal, implementation)
    if not found.jits:
        never = _never(found.why_never(), found.effect)
        return "plain", 0, [never or _refused(seal, implementation)]
    reasons = [
        Reason(text, _remedies.remedy(text), count) for text, count in found.reasons.most_common()
    ]
    if found.compiled:
        return ("partly jitted" if reasons else "jitted"), found.compiled, reasons
    if not reasons and any(not v.ready and v.plain is None for v in found.variants.values()):
        return "called once", 0, []
    return (
        "plain",
        0,
        reasons or [Reason("no call had concrete JAX arrays among its arguments", "")],
    )


def _compiled(table: Table, implementation: Callable[..., Any]) -> Compiled | None:
    """How the method runs, or the one that the same source gave when it ran before."""
    found = table.methods.get(id(implementation))
    if found is not None:
        return found
    same = _decisions.is_same_code
    each = list(table.methods.values())
    return next((c for c in each if same(c.implementation, implementation)), None)


def _reasons_ahead(seal: Seal, implementation: Callable[..., Any]) -> list[Reason]:
    """What the code shows before any call."""
    if _marks.marks_of(implementation).eager:
        return [Reason("marked with @eager", "")]
    if not seal.jits(implementation):
        return [_refused(seal, implementation)]
    effect, _ = _screen.examine(implementation)
    return [] if effect is None else [Reason(str(effect), effect.remedy)]


def _never(why: str | None, effect: _screen.Effect | None) -> Reason | None:
    if why is None:
        return None
    return Reason(why, effect.remedy if effect is not None and why == str(effect) else "")


def _refused(seal: Seal, implementation: Callable[..., Any]) -> Reason:
    """The method may not be jitted, by what `freeze()` was told."""
    if seal.jits is _policy.of_frozen_packages:
        package = _targets.package_of(getattr(implementation, "__module__", None) or "")
        if package not in _policy.jitting_packages:
            return Reason(NOT_OURS, NOT_OURS_REMEDY)
    return Reason("freeze(jit=...) leaves it out", "")
