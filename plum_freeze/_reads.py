"""What the global and captured names of a function stand for, and which of them to watch."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import TYPE_CHECKING, Any

from plum_freeze import _kinds
from plum_freeze._flow import NOTHING, Origin, Value
from plum_freeze._guard import Place, Read, is_empty

if TYPE_CHECKING:
    from collections.abc import Callable


class Names:
    """The names that one function can use, for `Body`; each value that it reads is noted."""

    def __init__(
        self,
        function: types.FunctionType,
        package: str,
        note: Callable[[Read], None],
        look: Callable[[Any], None],
    ) -> None:
        self._function: Any = function
        self._package = package
        self._note = note
        self._look = look

    def load_name(self, name: str) -> Value:
        """The value of a global or builtin name."""
        holder = self._function.__globals__
        builtins = self._function.__builtins__
        value = holder.get(name, builtins.get(name, NOTHING))
        if value is NOTHING:
            self._note(Read(Place.ABSENT, holder, name))
            self._note(Read(Place.ABSENT, builtins, name))
            return Value(name=name)
        self._note(Read(Place.NAME, holder, name, value))
        return self.value(value, name, "global")

    def load_cell(self, name: str) -> Value:
        """The value of a variable that the function captured."""
        index = self._function.__code__.co_freevars.index(name)
        cell = (self._function.__closure__ or ())[index]
        if is_empty(cell):
            self._note(Read(Place.ABSENT, cell, name))
            return Value(name=name)
        value = cell.cell_contents
        self._note(Read(Place.ATTRIBUTE, cell, "cell_contents", value))
        return self.value(value, name, "captured")

    def load_attribute(self, owner: Value, name: str) -> Value:
        """The value of an attribute of a known object: modules and classes are looked into."""
        known = owner.known
        path = f"{owner.name}.{name}"
        if isinstance(known, type):
            return self._class_attribute(known, name, path)
        if isinstance(known, types.ModuleType):
            return self._module_attribute(known, name, path)
        if isinstance(known, types.FunctionType) and name in vars(known):
            return self._item(vars(known), name, path)
        return Value(name=path)

    def load_module(self, name: str, level: Any, names: tuple[str, ...] | None) -> Value:
        """The module that an import statement gives, if it is there already.

        Importing what is not there yet may register methods, and happens once.
        """
        package = self._function.__globals__.get("__package__") or ""
        full = importlib.util.resolve_name("." * level + name, package) if level else name
        modules = [full, *(f"{full}.{part}" for part in names or ())]
        if full not in sys.modules:
            return Value(name=name, effect=f"imports {full}")
        module = sys.modules[full if names or level else full.partition(".")[0]]
        members = object.__getattribute__(module, "__dict__")
        for part, member in zip(names or (), modules[1:], strict=True):
            if part not in members and member not in sys.modules:
                return Value(name=name, effect=f"imports {member}")
        return Value(name=name, known=module)

    def value(self, value: Any, name: str, scope: str) -> Value:
        """A value that is read by name: a constant, state, a helper to look through."""
        impure = _kinds.impure_name(value)
        if impure:
            return Value(name=name, known=value, effect=f"calls {impure}")
        if _kinds.is_constant(value):
            self._look(value)
            plain = isinstance(value, (int, float, complex, str, bytes, tuple, frozenset))
            return Value(Origin.MADE if plain else Origin.GIVEN, name, value)
        state = Value(Origin.GIVEN, name, value, scope=scope)
        return Value(Origin.GIVEN, name, value, scope=scope, effect=f"reads {state}")

    def _is_own(self, members: dict[str, Any]) -> bool:
        return str(members.get("__name__", "")).partition(".")[0] == self._package

    def _item(self, holder: dict[str, Any], name: str, path: str) -> Value:
        """An entry of the `__dict__` of a module or a function."""
        value = holder[name]
        found = self.value(value, path, "global")
        if self._is_own(holder) or not (callable(value) or isinstance(value, types.ModuleType)):
            self._note(Read(Place.ITEM, holder, name, value))
        return found

    def _module_attribute(self, module: types.ModuleType, name: str, path: str) -> Value:
        # Not `getattr`: it runs a PEP 562 `__getattr__`, which may import.
        members = object.__getattribute__(module, "__dict__")
        if name in members:
            return self._item(members, name, path)
        submodule = sys.modules.get(f"{module.__name__}.{name}")
        if submodule is not None:
            return Value(name=path, known=submodule)
        self._note(Read(Place.ABSENT, members, name))
        # Another package's `__getattr__` is its own code; all of quaxed.numpy is made by one.
        made_up = self._is_own(members) and "__getattr__" in members
        return Value(name=path, effect=f"reads {path}, which is made up when asked for" * made_up)

    def _class_attribute(self, cls: type, name: str, path: str) -> Value:
        """Data of a class are read as data of a module are. Descriptors are left alone."""
        found = (vars(base)[name] for base in cls.__mro__ if name in vars(base))
        raw = next(found, NOTHING)
        if raw is NOTHING or isinstance(raw, property):
            return Value(name=path)
        if _kinds.layers(raw) or hasattr(type(raw), "__get__"):
            impure = _kinds.impure_name(raw)
            self._look(raw)
            return Value(name=path, known=raw, effect=f"calls {impure}" if impure else "")
        self._note(Read(Place.ATTRIBUTE, cls, name, raw))
        return self.value(raw, path, "global")
