"""From what users name to functions: packages, modules, functions, `"*"`, and who is calling."""

from __future__ import annotations

import difflib
import sys
from types import FrameType, ModuleType
from typing import Any

from plum_freeze import _plum
from plum_freeze._errors import FreezeError

SCRIPT = "__main__"

NOT_IMPORTED = """\
{call}({name!r}): no module of that name has been imported.
Targets are names of imported packages or modules, modules, dispatched functions of plum, or "*".
What to do: import {name} before.{close}"""

NOT_PLUMS = """\
{call}({value!r}): that is a {kind}, and no dispatched function of plum.
Targets are names of imported packages or modules, modules, dispatched functions of plum, or "*".
What to do: name a function that @dispatch made, or the package that defines it."""

EMPTY = """\
{call}({name!r}): no module of {name} defines a dispatched function.
What to do: import the modules that define them before; {name} was found and has none.{hint}"""


def caller() -> tuple[str, str]:
    """The module that called us, and the place as file:line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in (
        "plum_freeze",
        "contextlib",
    ):
        frame = frame.f_back
    if frame is None:
        return SCRIPT, "<unknown>:0"
    name = str(frame.f_globals.get("__name__", SCRIPT))
    return name, f"{frame.f_code.co_filename}:{frame.f_lineno}"


def package_of(module: str) -> str:
    """The top-level package of a module."""
    return module.partition(".")[0]


def is_within(module: str, package: str) -> bool:
    """Whether a module is `package` or lies in it."""
    return module == package or module.startswith(package + ".")


def find(targets: tuple[Any, ...], call: str, *, may_be_empty: bool = False) -> list[Any]:
    """The functions that the targets mean, each once.

    Args:
        targets: Names of packages or modules, modules, functions, or `"*"`. None at all: the
            top-level package of the caller, in a script or notebook what `__main__` defines.
        call: The public function that was called, for messages.
        may_be_empty: Whether a package without dispatched functions is all right.

    Raises:
        FreezeError: A target is none of these, or is not imported, or defines nothing.
    """
    if not targets:
        targets, may_be_empty = (package_of(caller()[0]),), True
    found: dict[int, Any] = {}
    for target in targets:
        functions = _of_one(target, call)
        if not functions and not may_be_empty:
            name = target.__name__ if isinstance(target, ModuleType) else target
            raise FreezeError(EMPTY.format(call=call, name=name, hint=_hint(str(name))))
        found.update((id(function), function) for function in functions)
    return list(found.values())


def names(targets: tuple[Any, ...]) -> set[str]:
    """The packages and modules among the targets, by name; the caller's package without any."""
    if not targets:
        return {package_of(caller()[0])}
    found = (t.__name__ if isinstance(t, ModuleType) else t for t in targets)
    return {name for name in found if isinstance(name, str)}


def _of_one(target: Any, call: str) -> list[Any]:
    if isinstance(target, ModuleType):
        return _defined_in(target.__name__)
    if isinstance(target, str):
        if target == "*":
            return [f for f in _plum.functions() if not _plum.is_plums_own(f)]
        if target not in sys.modules:
            close = _hint(target)
            raise FreezeError(NOT_IMPORTED.format(call=call, name=target, close=close))
        return _defined_in(target)
    function = _plum.function_of(target)
    if function is None:
        kind = type(target).__qualname__
        raise FreezeError(NOT_PLUMS.format(call=call, value=target, kind=kind))
    return [function]


def _defined_in(package: str) -> list[Any]:
    return [f for f in _plum.functions() if is_within(_plum.module_of(f), package)]


def _hint(name: str) -> str:
    defining = {_plum.module_of(f) for f in _plum.functions() if not _plum.is_plums_own(f)}
    known = {package_of(module) for module in defining} | defining
    close = difflib.get_close_matches(name, known, n=3)
    listed = close or sorted(package_of(module) for module in known)
    unique = ", ".join(dict.fromkeys(listed))
    return f"\nPackages that define dispatched functions: {unique}." if unique else ""
