"""`freeze(..., verify=True)`: each newly compiled call is also run plainly, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plum_freeze import _jax
from plum_freeze._errors import FreezeError
from plum_freeze._static import type_name

if TYPE_CHECKING:
    from plum_freeze._jit import Compiled

DIFFERS = """\
{method} ({where}) gives something else compiled than plainly{path}:
    plainly:  {plain}
    compiled: {compiled}
The likely reason: {reason}.
What to do: put @plum_freeze.eager under @dispatch of this method, so that it is never compiled."""


def compare(method: Compiled, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run the method plainly, and compare leaf by leaf.

    Raises:
        FreezeError: The two differ, by more than rounding for floats.
    """
    plain = method.plain(*args, **kwargs)
    found = _difference(plain, compiled, "")
    if found is None:
        return
    path, left, right = found
    again = method.plain(*args, **kwargs)
    code = getattr(method.implementation, "__code__", None)
    raise FreezeError(
        DIFFERS.format(
            method=getattr(method.implementation, "__qualname__", method.implementation),
            where=f"{code.co_filename}:{code.co_firstlineno}" if code else "no source",
            path=f" at {path}" if path else "",
            plain=left,
            compiled=right,
            reason=_likely(plain, again, method),
        )
    )


def _likely(plain: Any, again: Any, method: Compiled) -> str:
    if _difference(plain, again, "") is not None:
        return "it is not a function of its arguments (state, or randomness): two plain runs differ"
    if method.marks.traced:
        names = ", ".join(sorted(method.marks.traced))
        return f"@traced: Python's arithmetic on {names} is not XLA's"
    return "precision: XLA fuses and reorders what the method computes step by step"


def _difference(left: Any, right: Any, path: str) -> tuple[str, Any, Any] | None:
    """The first difference, with its path; None if there is none."""
    if type(left) is not type(right):
        return path, f"{left!r} ({type_name(left)})", f"{right!r} ({type_name(right)})"
    if _jax.is_array(left):
        same = (left.shape, left.dtype, left.weak_type) == (
            right.shape,
            right.dtype,
            right.weak_type,
        ) and _jax.close(left, right)
        return None if same else (path, repr(left), repr(right))
    if isinstance(left, dict):
        if list(left) != list(right):
            return path, list(left), list(right)
        pairs = [(f"{path}[{key!r}]", left[key], right[key]) for key in left]
    elif isinstance(left, (list, tuple)):
        if len(left) != len(right):
            return path, left, right
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(left, right, strict=True))]
    else:
        nodes = _jax.one_level(left), _jax.one_level(right)
        if nodes[0] is None or nodes[1] is None:
            return None if left is right or left == right else (path, left, right)
        pairs = [
            (f"{path}.{i}", a, b)
            for i, (a, b) in enumerate(zip(nodes[0][0], nodes[1][0], strict=True))
        ]
    return next(filter(None, (_difference(a, b, p) for p, a, b in pairs)), None)
