"""Why a method runs plainly, in the words of the report, where finding the words takes a search."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plum_freeze import _apart, _guard, _jax

if TYPE_CHECKING:
    from collections.abc import Hashable

    from plum_freeze._marks import Marks

TOO_MANY = "more than {limit} sets of static values; argument {name} varies"
MAY_BE_TRACED = ": if it may be traced, write @plum_freeze.traced({name!r}) under @dispatch"
UNSTABLE = "reads {names}, which changed more than {limit} times"


def too_many(keys: list[Any], marks: Marks, limit: int) -> str:
    """That there are too many static values, and which argument varies most.

    Args:
        keys: The keys of `Compiled.key` that were met.
        marks: What is known of the parameters.
        limit: How many there may be.
    """
    seen: dict[str, set[Hashable]] = {}
    for parts, named in keys:
        for i, part in enumerate(parts):
            seen.setdefault(marks.name(i), set()).add(part)
        for name, part in named:
            seen.setdefault(name, set()).add(part)
    name = max(seen, key=lambda each: len(seen[each]))
    text = TOO_MANY.format(limit=limit, name=name)
    kinds = {part[0] for part in seen[name] if isinstance(part, tuple) and part}
    return text + MAY_BE_TRACED.format(name=name) if kinds <= _apart.SCALARS else text


def unstable(guard: _guard.Guard, limit: int) -> str:
    """That what a method reads changes too often, and which name that is now."""
    home = guard.check.__globals__
    names = [r.name for r in guard.reads if _guard.make_guard((r,), home).changed()]
    return UNSTABLE.format(names=", ".join(names) or "what", limit=limit)


def has_static_values(key: Any) -> bool:
    """Whether there is anything but arrays and containers in a key of `Compiled.key`."""
    parts, named = key
    return any(map(_is_static, parts)) or any(_is_static(part) for _, part in named)


def _is_static(part: Any) -> bool:
    if part == _apart.ARRAY or len(part) == 1:  # a traced Python scalar
        return False
    if part[0] in (tuple, list):
        return any(map(_is_static, part[1]))
    return bool(part != (type(None), None))


def untraceable(error: BaseException, function: Any) -> str:
    """Why a method could not be traced, with the line of it where that showed."""
    code = getattr(function, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if code is not None and frame.filename == code.co_filename and frame.name == code.co_name
    ]
    where = f" ({Path(code.co_filename).name}:{lines[-1]})" if code is not None and lines else ""
    if _jax.is_branching(error):
        return f"branches on a traced value{where}"
    text = str(error).strip().splitlines() or [""]
    return f"cannot be compiled: {type(error).__name__}: {text[0][:80]}{where}"
