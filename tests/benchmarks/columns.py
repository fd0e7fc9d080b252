"""The ways to write one program: plain plum, frozen, by hand, and with other libraries.

A row says once how its function is defined, as `define(dispatch)`, and each column brings its own
`dispatch`. A column that cannot express a row gives an `Absent` with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import plum

import plum_freeze

from .measure import Call

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN, OVER, UNDER, INVOKE = "plum", "jit over", "jit under", "invoke"
FILTER, OVLD, MULTI = "filter_jit", "ovld", "multipledispatch"
FROZEN, FLOOR, HAND = "frozen", "floor", "by hand"

COLUMNS = {
    PLAIN: "plain plum",
    OVER: "jax.jit over the dispatched function",
    UNDER: "@dispatch over @jax.jit methods",
    INVOKE: "a handle from Function.invoke",
    FILTER: "equinox.filter_jit over the dispatched function",
    OVLD: "ovld, methods plain",
    MULTI: "multipledispatch, methods plain",
    FROZEN: "frozen",
    FLOOR: "plum's own call, with the method by hand right in its cache: no dispatch through plum "
    "is faster",
    HAND: "the method itself, jitted by hand where it takes arrays: the limit",
}


@dataclass(frozen=True)
class Absent:
    """A cell that is empty, and why."""

    why: str


@dataclass(frozen=True)
class Program:
    """What a row calls.

    Attributes:
        define: Registers the methods with the decorator that it is given, and returns the names
            that the statement uses: `f`, or an object whose class has the methods.
        statement: The call.
        hand: The same names, without dispatch. It is given `jax.jit`, or a decorator that does
            nothing where jit has no place.
        values: The other names: arguments.
        hints: For `Function.invoke`; None where the row has several methods, or is about a keyword.
        functions: What to freeze, from the names.
        calls: How many calls the statement makes.
        absent: Columns that make no sense here, with the reason.
    """

    define: Callable[[Any], dict[str, Any]]
    statement: str
    hand: Callable[[], dict[str, Any]]
    values: Callable[[], dict[str, Any]]
    hints: tuple[Any, ...] | None = None
    functions: Callable[[dict[str, Any]], list[Any]] = lambda names: [names["f"]]
    calls: int = 1
    absent: dict[str, str] = field(default_factory=dict)

    def column(self, name: str) -> Call | Absent:
        """One way to run the program, or why there is none."""
        if name in self.absent:
            return Absent(self.absent[name])
        try:
            names = _WAYS[name](self)
        except ImportError as error:
            return Absent(f"{error.name} is not installed")
        except Cannot as error:
            return Absent(str(error))
        return Call(self.statement, {**self.values(), **names}, self.calls)

    def columns(self) -> dict[str, Call | Absent]:
        """All of them, as far as they give the answer that plain plum gives."""
        # Frozen first: `freeze` watches every function that there is, and the others are to be
        # what they are in a program without plum_freeze.
        frozen = self.column(FROZEN)
        found = {name: frozen if name == FROZEN else self.column(name) for name in COLUMNS}
        plain = found[PLAIN]
        assert isinstance(plain, Call)
        expected = _text(plain.result())
        for name, way in found.items():
            if isinstance(way, Call):
                found[name] = _checked(way, expected)
        return found


class Cannot(Exception):
    """A column cannot express a row."""


def _checked(way: Call, expected: str) -> Call | Absent:
    try:
        given = _text(way.result())
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        return Absent(f"raises {type(error).__name__}: {line[:70]}")
    return way if given == expected else Absent(f"gives {given}, not {expected}"[:90])


def _text(value: Any) -> str:
    """Value and kind of a result, as far as a benchmark checks them."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    return f"{type(value).__name__} {value}"


# -- the ways ------------------------------------------------------------------------------------


def _plain(program: Program) -> dict[str, Any]:
    names = program.define(plum.Dispatcher())
    for function in program.functions(names):
        untouched(function)
    return names


def untouched(function: Any, cache: dict[Any, Any] | None = None) -> None:
    """Make a function what it is in a program without plum_freeze, with plum's own method cache.

    It is taken out of plum's list of functions: what is in there is watched when JAX traces.
    """
    function._resolve_pending_registrations()
    function._cache = {} if cache is None else cache
    every = plum.Function._instances
    every[:] = [each for each in every if each is not function]


def _under(program: Program) -> dict[str, Any]:
    import jax

    dispatch = plum.Dispatcher()
    names = program.define(lambda method: dispatch(jax.jit(method)))
    for function in program.functions(names):
        untouched(function)
    return names


def _over(program: Program) -> dict[str, Any]:
    import jax

    return _wrapped(program, jax.jit)


def _filter(program: Program) -> dict[str, Any]:
    import equinox

    return _wrapped(program, equinox.filter_jit)


def _wrapped(program: Program, jit: Any) -> dict[str, Any]:
    names = _plain(program)
    if "f" not in names:
        raise Cannot("the object would have to be an argument")
    return {**names, "f": jit(names["f"])}


def _invoke(program: Program) -> dict[str, Any]:
    if program.hints is None:
        raise Cannot("a handle is for one method, called by position")
    names = _plain(program)
    if "f" in names:
        return {**names, "f": names["f"].invoke(*program.hints)}
    raise Cannot("the statement would be another one")


def _ovld(program: Program) -> dict[str, Any]:
    import ovld

    class Dispatch:
        function: Any = None

        def __call__(self, method: Any) -> Any:
            self.function = self.function or ovld.Ovld()
            self.function.register(method)
            return self.function

    names = program.define(Dispatch())
    if "f" not in names:
        raise Cannot("its methods are made by a metaclass of its own")
    names["f"].compile()
    return {**names, "f": names["f"].dispatch}  # what its decorator returns


def _multi(program: Program) -> dict[str, Any]:
    import inspect

    import multipledispatch

    found = multipledispatch.Dispatcher("f")

    def dispatch(method: Any) -> Any:
        parameters = inspect.signature(method).parameters.values()
        hints = [p.annotation for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        if not all(map(_is_plain, hints)):
            raise Cannot("dispatches on classes alone")
        found.add(tuple(hints), method)
        return found

    names = program.define(dispatch)
    if "f" not in names:
        raise Cannot("its methods are registered by name in a namespace")
    return names


def _is_plain(hint: Any) -> bool:
    return type(hint) in (type, __import__("jax").Array.__class__)


def _frozen(program: Program) -> dict[str, Any]:
    names = program.define(plum.Dispatcher())
    plum_freeze.freeze(*program.functions(names))
    return names


class _Everything(dict[Any, Any]):
    """A method cache that has the same method for whatever it is asked."""

    def __init__(self, method: Any) -> None:
        super().__init__()
        self.method = method

    def __missing__(self, types: Any) -> Any:
        self[types] = found = (self.method, Any)
        return found


def _floor(program: Program) -> dict[str, Any]:
    names, hand = program.define(plum.Dispatcher()), program.hand()
    (function,) = program.functions(names)
    method = hand.get("f") or getattr(type(next(iter(hand.values()))), function.__name__)
    untouched(function, _Everything(method))
    Call(program.statement, {**program.values(), **names}).result()
    untouched(function, dict(function._cache))  # plum looks into a plain dict, and nothing else
    return names


_WAYS: dict[str, Callable[[Program], dict[str, Any]]] = {
    PLAIN: _plain,
    OVER: _over,
    UNDER: _under,
    INVOKE: _invoke,
    FILTER: _filter,
    OVLD: _ovld,
    MULTI: _multi,
    FROZEN: _frozen,
    FLOOR: _floor,
    HAND: lambda program: program.hand(),
}
