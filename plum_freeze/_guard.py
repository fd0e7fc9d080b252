"""The identity guard: whether everything a method reads by name is still what it was.

A jitted method has the globals, captured variables and defaults that it read baked in. The guard
is a closure, written for one method, that compares each of them by identity. It runs at every
call, so it has no loop, and it reads the globals of the method as the method itself does: Python
caches a global lookup (2 ns), and a `dict` item costs five times that.
"""

from __future__ import annotations

import builtins
import enum
import functools
import keyword
import types
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plum_freeze._variant import Variant


class Place(enum.Enum):
    """Where a value was read."""

    NAME = "global name"  # the holder is a function's `__globals__`, with the builtins behind it
    ITEM = "item"  # the holder is the `__dict__` of a module or a function, or keyword defaults
    ATTRIBUTE = "attribute"  # the holder is a class, a function or a cell
    ABSENT = "absent"  # the holder is a dict, or a cell that is empty, and the value is nothing


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """One value that a method read: from where, under which name, and what it was."""

    place: Place
    holder: Any
    name: str
    value: Any = None

    @property
    def key(self) -> tuple[Place, int, str]:
        """Equal for two reads of the same place."""
        return self.place, id(self.holder), self.name


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """What a method reads, and a closure that says whether any of it has changed.

    `check` and `changed` are the same closure, which returns True as soon as one value is another
    object than before, or is gone, or is there at last. It holds the values that were read, and
    never an argument of a call. `dependents` have those values baked in.
    """

    reads: tuple[Read, ...]
    check: Callable[[], bool]
    changed: Callable[[], bool]
    dependents: weakref.WeakSet[Variant] = field(default_factory=weakref.WeakSet)


def make_guard(reads: Iterable[Read], home: dict[str, Any]) -> Guard:
    """The guard of these reads; those of globals in `home` are the fastest."""
    distinct = tuple({read.key: read for read in reads}.values())
    check = _compiled(distinct, home)
    return Guard(distinct, check, check)


def joined(*guards: Guard) -> Guard:
    """One guard for what several methods read: a method and those it calls while it is traced."""
    reads = [read for guard in guards for read in guard.reads]
    return make_guard(reads, guards[0].check.__globals__)


def is_empty(cell: types.CellType) -> bool:
    """Whether a captured variable has no value (yet)."""
    try:
        cell.cell_contents  # noqa: B018  # reading it is the test
    except ValueError:
        return True
    return False


_BUILTINS = vars(builtins)
_OURS = "_plum_freeze_"  # every local name of the closure begins so; all others are the method's
_SOURCE = f"""
def {_OURS}make({{names}}):
    def {_OURS}changed():
        try:
            return {{test}}
        except (NameError, KeyError, AttributeError, ValueError):
            return True
    return {_OURS}changed
"""


def _compiled(reads: tuple[Read, ...], home: dict[str, Any]) -> Callable[[], bool]:
    """A closure that runs with `home` as its globals, without leaving a name there."""
    cells: dict[str, types.CellType] = {}

    def captured(cell: types.CellType) -> str:
        name = f"{_OURS}{len(cells)}"
        cells[name] = cell
        return name

    tests = [_test(read, home, captured) for read in reads]
    source = _SOURCE.format(names=", ".join(cells), test=" or ".join(tests) or "False")
    code = _code(source, home.get("__name__"))
    return types.FunctionType(code, home, closure=tuple(map(cells.__getitem__, code.co_freevars)))


@functools.lru_cache(maxsize=1024)
def _code(source: str, module: object) -> types.CodeType:  # noqa: ARG001
    """The code of a closure; one for all methods of a module that read alike.

    It takes 200 us to compile, and what runs often is fast. But Python remembers in it where the
    globals of one module are.
    """
    code = compile(source, "<plum_freeze guard>", "exec")
    for _ in ("make", "changed"):
        code = next(const for const in code.co_consts if isinstance(const, types.CodeType))
    return code


def _can_be_named(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith(_OURS)


def _test(read: Read, home: dict[str, Any], captured: Callable[[types.CellType], str]) -> str:
    """The expression that is true where the value of `read` is another one now.

    `captured` gives a name to a variable that the closure captures.
    """
    name = read.name

    def variable(value: Any) -> str:
        return captured(types.CellType(value))

    match read.place:
        # pytest's rewritten `assert` reads globals like `@pytest_ar`, which no source can name.
        case Place.NAME if read.holder is home and _can_be_named(name):
            return f"{name} is not {variable(read.value)}"
        case Place.NAME if name not in read.holder:
            shadowed = f"{name!r} in {variable(read.holder)}"
            return f"{shadowed} or {variable(_BUILTINS)}[{name!r}] is not {variable(read.value)}"
        case Place.NAME | Place.ITEM:
            return f"{variable(read.holder)}[{name!r}] is not {variable(read.value)}"
        case Place.ATTRIBUTE if isinstance(read.holder, types.CellType):  # read as the method does
            return f"{captured(read.holder)} is not {variable(read.value)}"
        case Place.ATTRIBUTE if _can_be_named(name):
            return f"{variable(read.holder)}.{name} is not {variable(read.value)}"
        case Place.ATTRIBUTE:
            of = f"{variable(getattr)}({variable(read.holder)}, {name!r})"
            return f"{of} is not {variable(read.value)}"
        case Place.ABSENT if isinstance(read.holder, types.CellType):
            return f"not {variable(is_empty)}({variable(read.holder)})"
        case Place.ABSENT:
            return f"{name!r} in {variable(read.holder)}"
