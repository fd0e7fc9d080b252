"""Who makes a registration: the module, the file and the line, read from the frames.

The top of the import stack does not say it: of the 525 registrations during `import unxt`, 116
are made while another package's module is executing.
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from plum_freeze import _hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

# Between a registration and who makes it lie frames of these. A compiled plum has none.
_MACHINERY = frozenset({"beartype", "functools", "plum", "plum_freeze", "wrapt"})
_SCRIPTS = ("__main__", "__mp_main__")
_MOST_WRAPPERS = 100  # a chain of `__wrapped__` may be a ring

# An input of IPython in a terminal, of Python's own prompt since 3.13, or a cell of Jupyter's.
_CELL = re.compile(r"<i?python-input-|.*[/\\]ipykernel_\d+[/\\]\d+\.py$")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a registration, and where.

    `executing` says that the body of `module` is on the stack and has not ended: the registration
    is made by an import, and not by a function that is called later. `spec` is that body's own,
    a new one for each import; None for scripts, and where nothing is executing.
    """

    module: str
    file: str
    line: int
    executing: bool
    spec: Any = field(default=None, compare=False, repr=False)


def find(function: Callable[..., Any] | None) -> Origin:
    """The origin of a registration of `function` that this call is part of.

    The module is the nearest one whose body is executing. A script, a test or a thread has none;
    then it is the module whose code makes the call.

    File and line are those of the function's own code, if code of the same file makes the call
    (for itself or through a helper, as with `quax.register`). Otherwise, and for what is no
    Python function, they are those of the call.
    """
    caller: FrameType | None = sys._getframe(1)
    while caller is not None and _name(caller).partition(".")[0] in _MACHINERY:
        caller = caller.f_back
    # Innermost last, so that it wins where a decorator is written in the same file.
    codes = {code.co_filename: code for code in _codes(function)}
    if caller is None:
        code = next(reversed(codes.values()), None)
        return Origin("<unknown>", *(_place(code) if code else ("<unknown>", 0)), executing=False)

    place: tuple[str, int] | None = None
    frame: FrameType | None = caller
    while frame is not None:
        code = codes.get(frame.f_code.co_filename)
        place = place or (code and _place(code))
        if frame.f_code.co_name == "<module>" and _is_executing(frame, caller, codes):
            break
        frame = frame.f_back
    file, line = place or (caller.f_code.co_filename, caller.f_lineno)
    spec = None if frame is None else frame.f_globals.get("__spec__")
    return Origin(_name(frame or caller), file, line, executing=frame is not None, spec=spec)


def source_of(file: str) -> str:
    """The name of a file as it is when the same source runs again.

    The name of a cell has its number, or a hash of all its text.
    """
    return "<cell>" if _CELL.match(file) else file


def written(function: Any) -> Origin:
    """The origin of a registration that nobody saw: where the function itself was written.

    Of a function and what it wraps, that is the code in its own module's file (a type checker's
    wrapper takes the module's name over, and lies in another file), otherwise the innermost.
    """
    module = str(getattr(function, "__module__", None) or "<unknown>")
    codes = list(_codes(function))
    own = [code for code in codes if code.co_filename == _file_of(module)]
    file, line = _place((own or codes)[-1]) if codes else ("<unknown>", 0)
    return Origin(module, file, line, executing=False)


def _file_of(module: str) -> Any:
    """The file of a module by its name. Asks the module for nothing: it may be lazy."""
    try:
        return object.__getattribute__(sys.modules[module], "__dict__").get("__file__")
    except (AttributeError, KeyError):
        return None


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "<unknown>"))


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_filename, code.co_firstlineno


def _is_executing(body: FrameType, caller: FrameType, codes: dict[str, CodeType]) -> bool:
    """Whether this frame is the body of a module that has not ended.

    A frame that is called `<module>` may also be an `exec`, a doctest or a notebook's cell.
    """
    name = _name(body)
    if name in _SCRIPTS:
        # A script's body is on the stack of everything, also of a test that pytest calls: only
        # what is the script's own comes from it.
        return _name(caller) == name or body.f_code.co_filename in codes
    # From the frame's globals and not from `sys.modules`, where a module may have put something
    # else, and where asking for an attribute may import (PEP 562, lazy modules).
    spec = body.f_globals.get("__spec__")
    return getattr(spec, "_initializing", False) or name in _hook.executing()


def _codes(function: Any) -> Iterator[CodeType]:
    """The code of a function and of all that it wraps, outermost first."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(function, FunctionType):
            yield function.__code__
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        else:
            function = getattr(function, "__wrapped__", None)
        if function is None:
            return
