"""The purity screen: which methods must not be jitted, as far as their own code shows it.

A jitted method runs when it is traced, and never again for the same kind of arguments. So a method
with an effect, or one that reads what can change in place, is left as its author wrote it (DESIGN,
section 6, rule 9). Unsure means that it has an effect: to run plainly is always right.

What the method calls is looked through where it is a plain function of the same top-level package.
Other packages' code is not: their effects are the author's to mark with `eager`.
"""

from __future__ import annotations

import inspect
import os
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plum_freeze import _jax, _kinds
from plum_freeze._bytecode import Body
from plum_freeze._guard import Guard, Place, Read, make_guard
from plum_freeze._reads import Names

if TYPE_CHECKING:
    from collections.abc import Callable

# More functions than this are not looked through, and the method runs plainly. Each costs a guard
# of 20 ns at every call; the most that a method of quax, unxt or coordinax calls is 4 [measured].
MOST_FUNCTIONS = 64


@dataclass(frozen=True, slots=True)
class Effect:
    """One reason not to jit a method, and where its code shows it."""

    what: str
    file: str
    line: int

    def __str__(self) -> str:
        """As in `writes global COUNT (fields.py:12)`."""
        return f"{self.what} ({os.path.basename(self.file)}:{self.line})"  # noqa: PTH119

    @property
    def remedy(self) -> str:
        """What the author can do about it, in words."""
        return next(remedy for word, remedy in _REMEDIES.items() if word in self.what)


_REMEDIES = {
    "plain Python function": "register a plain function, or mark the method with @eager",
    "generator": "return an array instead, or mark the method with @eager",
    "coroutine": "await outside of the method, or mark it with @eager",
    "print": "use jax.debug.print, which prints at each call, or mark the method with @eager",
    "random": "pass a key and use jax.random, or mark the method with @eager",
    "import": "import at the top of the module, or mark the method with @eager",
    "argument": "return a new value (for an array: x.at[i].set(v)), or mark the method with @eager",
    "reads": "pass the value as an argument, or make it immutable (a number, a tuple, a JAX array,"
    " a frozen dataclass), or mark the method with @eager",
    "too many": "jit a part of it with jax.jit yourself, or mark the method with @eager",
    "": "return what is computed and keep it outside of the method, or mark the method with @eager",
}


def screen(function: Callable[..., Any]) -> Effect | None:
    """The first reason why this method must not be jitted, or None if its code shows none.

    Methods that are jitted already have no reason here: they are not jitted again.
    """
    return examine(function)[0]


def guard(function: Callable[..., Any]) -> Guard:
    """What this method reads by name, and a closure that says whether any of it has changed.

    When it has, the method is to be examined again: a number may have become a list.
    """
    return examine(function)[1]


def examine(function: Callable[..., Any]) -> tuple[Effect | None, Guard]:
    """What `screen` and `guard` say, for the price of one (0.5 to 2 ms)."""
    if not isinstance(function, types.FunctionType):
        effect = Effect("is not a plain Python function", *_place_of(function))
        return None if _jax.is_jitted(function) else effect, make_guard((), {})
    scan = _Scan(function)
    return next(iter(scan.effects), None), make_guard(scan.reads, function.__globals__)


_KINDS_OF_FUNCTION = {
    inspect.CO_GENERATOR: "is a generator",
    inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE: "is a coroutine",
    inspect.CO_ASYNC_GENERATOR: "is an asynchronous generator",
}


def _place_of(function: Any) -> tuple[str, int]:
    """File and line of a function, or of what it wraps."""
    found = _kinds.layers(getattr(function, "func", function))
    code = found[-1].__code__ if found else None
    return (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)


class _Scan:
    """A method and the helpers of its package: their effects, and what they read.

    A wrapper of another package that stands before the author's own code (`functools.wraps` tells)
    is not looked through either.
    """

    def __init__(self, method: types.FunctionType) -> None:
        self.effects: list[Effect] = []
        self.reads: list[Read] = []
        self._method = method
        self._package = _kinds.package_of(_kinds.layers(method)[-1])
        self._functions: list[types.FunctionType] = []
        flags = method.__code__.co_flags
        kinds = [what for flag, what in _KINDS_OF_FUNCTION.items() if flags & flag]
        self.effects.extend(Effect(what, *_place_of(method)) for what in kinds)
        self._look(method)
        if method not in self._functions:
            self._read_parts(method)
        for function in self._functions:  # it grows: what a function calls is looked through too
            names = Names(function, self._package, self.reads.append, self._look)
            self._read_parts(function)
            self._default_effects(function, names)
            place = function.__code__.co_filename
            effects = Body(function.__code__, names).effects()
            self.effects.extend(Effect(what, place, line) for what, line in effects)

    def _look(self, value: Any) -> None:
        """Look through a function later, if it is of this package and was not seen before."""
        for function in _kinds.layers(value):
            if _kinds.package_of(function) != self._package or function in self._functions:
                continue
            if len(self._functions) == MOST_FUNCTIONS:
                what = f"calls too many functions to look through (more than {MOST_FUNCTIONS})"
                self.effects.append(Effect(what, *_place_of(self._method)))
                return
            self._functions.append(function)

    def _read_parts(self, function: types.FunctionType) -> None:
        """The code and the defaults are read: autoreload swaps them in place.

        Where there are no defaults every call gives the argument, so new ones change nothing.
        """
        parts = ["__code__", "__defaults__", "__kwdefaults__"]
        values = {name: getattr(function, name) for name in parts}
        used = [name for name in parts if values[name] is not None]
        self.reads.extend(Read(Place.ATTRIBUTE, function, name, values[name]) for name in used)
        keywords = function.__kwdefaults__ or {}
        self.reads.extend(Read(Place.ITEM, keywords, name, keywords[name]) for name in keywords)

    def _default_effects(self, function: types.FunctionType, names: Names) -> None:
        """A default that can change in place is state, whether or not a call uses it."""
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        values = function.__defaults__ or ()
        defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        for name, value in (defaults | (function.__kwdefaults__ or {})).items():
            effect = names.value(value, name, "default").effect
            if effect:
                self.effects.append(Effect(effect, code.co_filename, code.co_firstlineno))
