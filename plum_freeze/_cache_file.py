"""A recorded `Cache` as a JSON file: methods by module, qualified name and signature.

A file holds everything that the decisions rested on, and is refused where that is different now.
Loading imports nothing.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plum_freeze import _choice, _plum
from plum_freeze._choice import Choice
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from os import PathLike

    from plum_freeze._plum import Function, Method

FORMAT = "plum_freeze.Cache"
VERSION = 1

NOT_OURS = """\
{path} is no recording of plum_freeze: {why}.
What to do: load a file that plum_freeze.Cache.save() wrote."""

CHANGED = """\
{path} was recorded with another program than this one: {what}.
What to do: record again, and save that; or import what the recorded program had imported."""

NAMELESS = """\
{function} cannot be saved: {why}, so a file could not say which one is meant.
What to do: give it a module and a name of its own, or keep this cache in memory."""


class _ChangedError(Exception):
    """What is different in this program."""


# -- saving --------------------------------------------------------------------------------------


def save(steps: tuple[Choice, ...], path: str | PathLike[str]) -> None:
    """Write a recording.

    Raises:
        FreezeError: A function has no module, or shares its name with another one.
    """
    functions: dict[int, int] = {}
    choices: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []
    for choice in steps:
        if id(choice) in choices:
            continue
        function = choice.function
        if id(function) not in functions:
            functions[id(function)] = len(tables)
            tables.append(_function_row(choice))
        choices[id(choice)] = len(rows)
        rows.append(_choice_row(choice, functions[id(function)]))
    data = {
        "format": FORMAT,
        "version": VERSION,
        "plum": _plum.version(),
        "functions": tables,
        "choices": rows,
        "steps": [choices[id(choice)] for choice in steps],
    }
    Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _function_row(choice: Choice) -> dict[str, Any]:
    function = choice.function
    module, name = _plum.module_of(function), function.__qualname__
    try:
        found = _find_function(module, name)
    except _ChangedError as error:
        raise FreezeError(
            NAMELESS.format(function=_plum.name_of(function), why=str(error))
        ) from None
    if found is not function:
        raise FreezeError(NAMELESS.format(function=f"{module}.{name}", why=_SHARED))
    methods = sorted(map(_choice.text, choice.methods))
    if len(set(methods)) < len(methods):
        raise FreezeError(NAMELESS.format(function=f"{module}.{name}", why=_SAME_TEXT))
    return {"module": module, "name": name, "methods": methods}


def _choice_row(choice: Choice, function: int) -> dict[str, Any]:
    row: dict[str, Any] = {"function": function, "types": [_type_name(t) for t in choice.types]}
    if choice.method is not None:
        row["method"] = _choice.text(choice.method)
    elif choice.implementation is not _choice.NOTHING:
        row["inherited"] = _choice.place(choice.implementation)
    return row


def _type_name(cls: type | None) -> list[str] | None:
    if cls is None:
        return None
    name = [cls.__module__, cls.__qualname__]
    return name if _find_type(name) is cls else None


# -- loading -------------------------------------------------------------------------------------


def load(path: str | PathLike[str]) -> tuple[Choice, ...]:
    """Read a recording, and find everything in it again.

    Raises:
        FreezeError: The file is none of ours, or the program has changed; the text says what.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FreezeError(NOT_OURS.format(path=path, why=error)) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FreezeError(NOT_OURS.format(path=path, why=f'it has no "format": "{FORMAT}"'))
    if data.get("version") != VERSION:
        why = f"it has version {data.get('version')}, and this plum_freeze reads {VERSION}"
        raise FreezeError(NOT_OURS.format(path=path, why=why))
    try:
        return _read(data)
    except _ChangedError as changed:
        raise FreezeError(CHANGED.format(path=path, what=changed)) from None
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        why = f"a part of it is missing or wrong ({type(error).__name__}: {error})"
        raise FreezeError(NOT_OURS.format(path=path, why=why)) from error


def _read(data: dict[str, Any]) -> tuple[Choice, ...]:
    if data["plum"] != _plum.version():
        raise _ChangedError(f"plum-dispatch was {data['plum']}, and is {_plum.version()}")
    functions = [_read_function(row) for row in data["functions"]]
    choices = [_read_choice(row, *functions[row["function"]]) for row in data["choices"]]
    return tuple(choices[step] for step in data["steps"])


def _read_function(row: dict[str, Any]) -> tuple[Function, dict[str, Method]]:
    """A function, and its methods by their text, which must be those that it had."""
    function = _find_function(row["module"], row["name"])
    found = _plum.settled_methods(function)
    methods = {_choice.text(method): method for method in found}
    gone = [text for text in row["methods"] if text not in methods]
    new = [text for text in methods if text not in row["methods"]]
    changes = [f"{_plum.name_of(function)} has no method {text} any more" for text in gone]
    changes += [f"{_plum.name_of(function)} has a new method {text}" for text in new]
    if len(methods) < len(found):
        changes.append(f"{_plum.name_of(function)}: {_SAME_TEXT}")
    if changes:
        raise _ChangedError("; ".join(changes))
    return function, methods


def _read_choice(row: dict[str, Any], function: Function, methods: dict[str, Method]) -> Choice:
    classes = [None if name is None else _find_type(name) for name in row["types"]]
    method = methods[row["method"]] if "method" in row else None
    inherited = None
    if "inherited" in row:
        inherited = _find_inherited(function, row["inherited"])
    return Choice(function, classes, method, inherited=inherited, methods=[*methods.values()])


def _find_inherited(function: Function, recorded: str) -> tuple[Any, Any]:
    name = _plum.first_implementation(function).__name__
    parents = _plum.parents_holding(function)
    value = getattr(parents[-1][0], name, None) if parents else None
    if value is None or _choice.place(value) != recorded:
        now = "nothing" if value is None else _choice.place(value)
        raise _ChangedError(f"{_plum.name_of(function)} inherited {recorded}, and inherits {now}")
    return value, object


_OTHER_BUILTINS = {
    each.__qualname__: each
    for each in vars(types).values()
    if isinstance(each, type) and each.__module__ == "builtins"
}
_SAME_TEXT = "two of its methods have the same name and signature in writing"
_SHARED = "several dispatched functions have this name"


def _find_function(module: str, name: str) -> Function:
    """The function that goes by this name: the one that the module holds, or the only one."""
    if module not in sys.modules:
        raise _ChangedError(f"the module {module or 'of the function'} is not imported")
    held = _look_up(module, name)
    if held is not None and _plum.is_function(held):
        return held  # type: ignore[no-any-return]
    found = [
        function
        for function in _plum.functions()
        if _plum.module_of(function) == module and function.__qualname__ == name
    ]
    if not found:
        raise _ChangedError(f"{module} defines no dispatched function {name} any more")
    if len(found) > 1:
        raise _ChangedError(f"{module}.{name}: {_SHARED}")
    return found[0]


def _find_type(name: list[str]) -> type | None:
    """A class by its name; None for one that cannot be found so, which counts as any class."""
    module, qualname = name
    found = _look_up(module, qualname)
    if found is None and module == "builtins":  # NoneType, function, ...: `types` has those
        return _OTHER_BUILTINS.get(qualname)
    return found if isinstance(found, type) else None


def _look_up(module: str, name: str) -> Any:
    # Not `getattr` on the module: that runs PEP 562 functions and lazy modules.
    found: Any = None
    space: Any = getattr(sys.modules.get(module), "__dict__", {})
    for part in name.split("."):
        found = space.get(part)
        space = getattr(found, "__dict__", {})
    return found
