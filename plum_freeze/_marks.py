"""`@eager` and `@traced`: what the author of a method says about jitting it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from plum_freeze import _plum
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_ATTRIBUTE = "__plum_freeze__"

WRONG_ORDER = """\
@plum_freeze.{name} stands above @dispatch, and so it got {function}, a dispatched function with
all its methods.
It belongs under @dispatch, where it gets the one method that it is about:

    @dispatch
    @plum_freeze.{name}
    def {method}(...): ..."""

NOT_A_FUNCTION = """\
@plum_freeze.{name} takes a plain Python function, and this is {value!r}.
What to do: put it directly above `def`, under every other decorator."""

UNKNOWN_NAMES = """\
@plum_freeze.traced: {method} ({file}:{line}) has no parameter named {unknown}.
Its parameters are: {known}."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of a method's parameters, and what its author said about them.

    Attributes:
        eager: The method is never jitted.
        traced: Parameters whose Python scalars are traced.
        positional: The names of the positional parameters, in order.
        varargs: The name of `*args`, or "".
        sees_order: The method has `**kwargs`, and so it can see in which order keywords come.
    """

    eager: bool = False
    traced: frozenset[str] = frozenset()
    positional: tuple[str, ...] = ()
    varargs: str = ""
    sees_order: bool = True

    def name(self, position: int) -> str:
        """The name of a positional parameter, or its number where it has none."""
        if position < len(self.positional):
            return self.positional[position]
        return self.varargs or f"number {position + 1}"

    def traces(self, position: int) -> bool:
        """Whether Python scalars in this positional argument are traced."""
        return bool(self.traced) and self.name(position) in self.traced

    def in_order(self, keywords: dict[str, Any]) -> list[tuple[str, Any]]:
        """Keywords in an order of their own, unless the method can see that of the call."""
        items = list(keywords.items())
        return items if self.sees_order or len(items) <= 1 else sorted(items, key=itemgetter(0))


def marks_of(function: Any) -> Marks:
    """The marks of a method; without any for what is no plain Python function."""
    found = getattr(function, _ATTRIBUTE, None)
    if isinstance(found, Marks):
        return found
    code = getattr(function, "__code__", None)
    if code is None:
        return Marks()
    names = code.co_varnames
    has_varargs = code.co_flags & inspect.CO_VARARGS
    varargs = names[code.co_argcount + code.co_kwonlyargcount] if has_varargs else ""
    return Marks(
        positional=names[: code.co_argcount],
        varargs=varargs,
        sees_order=bool(code.co_flags & inspect.CO_VARKEYWORDS),
    )


def eager(method: F) -> F:
    """Mark a method that must never be jitted. Goes under `@dispatch`.

    For methods whose Python body must run at each call: they count, log, read state that changes,
    or do anything else that plum_freeze cannot see.

    Raises:
        FreezeError: It stands above `@dispatch`, or got something that is no plain function.
    """
    _check(method, "eager")
    setattr(method, _ATTRIBUTE, replace(marks_of(method), eager=True))
    return method


def traced(*names: str) -> Callable[[F], F]:
    """Let the Python scalars of these parameters be traced. Goes under `@dispatch`.

    Usually a Python scalar is static: each value that is met compiles the method once more. Of a
    parameter that is named here any `int`, `float`, `complex` or `bool` is passed as a weakly typed
    JAX scalar, and 20 calls with 20 time steps compile once. The results are XLA's arithmetic, not
    Python's, and the method must not need the value in Python (`if`, `range`, a shape).

    Raises:
        FreezeError: There is no such parameter, or no name; or it stands above `@dispatch`.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise FreezeError(
            f"plum_freeze.traced takes the names of parameters, and got {names!r}. Write"
            ' @plum_freeze.traced("dt") under @dispatch.'
        )

    def mark(method: F) -> F:
        """Note the names on the method.

        Raises:
            FreezeError: It is no function of one's own, or has no parameter of such a name.
        """
        _check(method, f"traced({', '.join(map(repr, names))})")
        code = method.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS)
        known = code.co_varnames[:count]
        unknown = [name for name in names if name not in known]
        if unknown and not code.co_flags & inspect.CO_VARKEYWORDS:
            raise FreezeError(
                UNKNOWN_NAMES.format(
                    method=method.__qualname__,
                    file=code.co_filename,
                    line=code.co_firstlineno,
                    unknown=" or ".join(map(repr, unknown)),
                    known=", ".join(known) or "(none)",
                )
            )
        old = marks_of(method)
        setattr(method, _ATTRIBUTE, replace(old, traced=old.traced | set(names)))
        return method

    return mark


def _check(method: Any, name: str) -> None:
    if _plum.is_function(method):
        text = WRONG_ORDER.format(name=name, function=_plum.name_of(method), method=method.__name__)
        raise FreezeError(text)
    if not isinstance(method, FunctionType):
        raise FreezeError(NOT_A_FUNCTION.format(name=name, value=method))
