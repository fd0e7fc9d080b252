"""Where the values in a function come from: the paths through its bytecode, followed unrun.

The bytecode and not the source, because the source may be missing, or another one than what runs.
Each place on the stack and each local variable has an origin: made by this call, or not. Where
two paths meet the origins are joined, and what is unknown counts as not made by this call. So an
opcode that nothing is known about can only add an effect, never hide one.

Opcodes are known by their names, in all versions from 3.11 to 3.14. What an opcode means is in
`_bytecode.py`; this module knows how many values it takes and leaves, and where it goes next.
"""

from __future__ import annotations

import dis
import enum
import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import types
    from collections.abc import Mapping

NOTHING: Any = object()


class Origin(enum.IntEnum):
    """Where a value comes from. The larger one is the less that is known."""

    MADE = 0  # made by this call, or immutable: writing to it is nobody else's business
    GIVEN = 1  # came back from a call or out of a container: may be anybody's
    ARGUMENT = 2  # an argument, or a part of one


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is known about one value."""

    origin: Origin = Origin.GIVEN
    name: str = "a value that was not made here"  # how the code spells it
    known: Any = NOTHING  # the object itself, where it is a global, a captured one or a constant
    receiver: Origin = Origin.MADE  # the origin of the object that this is an attribute of
    effect: str = ""  # the effect that reading it is
    scope: str = ""  # "global" or "captured", where the object is mutable
    site: int = -1  # the instruction that read it

    def __str__(self) -> str:
        """What an effect calls it."""
        if self.scope:
            return f"{self.scope} {self.name} ({type(self.known).__name__})"
        return f"argument {self.name}" if self.origin is Origin.ARGUMENT else self.name


NULL = Value(Origin.MADE, "NULL")
MADE = Value(Origin.MADE)
GIVEN = Value(Origin.GIVEN)


def joined(old: Value, new: Value) -> Value:
    """What is known of a value that is `old` or `new`: `old` itself where `new` adds nothing."""
    origin = max(old.origin, new.origin)
    receiver = max(old.receiver, new.receiver)
    known = old.known if new.known is old.known else NOTHING
    if (origin, receiver) == (old.origin, old.receiver) and known is old.known:
        return old
    worse = new if new.origin > old.origin else old
    return replace(worse, known=known, receiver=receiver, scope="")


def pop(stack: list[Value]) -> Value:
    """The top of the stack, which is unknown where the stack could not be followed."""
    return stack.pop() if stack else GIVEN


def resize(stack: list[Value], effect: int) -> None:
    """Take values off the stack, or put unknown ones on it."""
    if effect < 0:
        del stack[effect:]
    else:
        stack.extend([GIVEN] * effect)


def exchange(stack: list[Value], effect: int, result: Value) -> None:
    """Take operands off the stack and leave `result`: what most opcodes do.

    The few that leave more than one value take one at most.
    """
    taken = max(1 - effect, 0 if result is MADE else 1)
    del stack[max(len(stack) - taken, 0) :]
    stack.extend([result] * (effect + taken))


_JUMPS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
_ENDS = _JUMPS | {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
_NEUTRAL = _JUMPS | {
    *("RESUME", "NOP", "NOT_TAKEN", "CACHE", "EXTENDED_ARG", "MAKE_CELL", "COPY_FREE_VARS"),
    *("PRECALL", "KW_NAMES", "SETUP_ANNOTATIONS"),
}
_RESIZES = (
    *("POP_", "JUMP_IF_", "LIST_", "SET_ADD", "SET_UPDATE", "MAP_ADD", "DICT_", "END_FOR"),
    *("FOR_ITER", "LOAD_", "RETURN_", "RAISE_", "RERAISE"),
)
_MAKES = (
    *("BUILD_", "UNARY_", "COMPARE_", "IS_OP", "CONTAINS_OP", "FORMAT_", "CONVERT_"),
    *("BINARY_SLICE", "TO_BOOL"),
)
_State = tuple[list[Value], dict[str, Value]]


class Flow:
    """The paths through one code object. A subclass says what its opcodes mean."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.arguments = _arguments(code)
        self.instructions = list(dis.get_instructions(code))
        self.index = {ins.offset: index for index, ins in enumerate(self.instructions)}
        self.at = 0  # the index of the instruction that is followed
        bytecode: Any = dis.Bytecode(code)  # typeshed does not know the next attribute
        self._handlers = bytecode.exception_entries
        self._states: dict[int, _State] = {}
        self._todo: list[int] = []

    def follow_paths(self) -> None:
        """Follow each path from the first instruction on, until nothing more is learnt."""
        self._states.clear()
        self._meet(0, [], self.arguments)
        while self._todo:
            self._follow(self._todo.pop())

    def _follow(self, start: int) -> None:
        """Follow one path to where it ends or meets another one."""
        stack, local = self._states[start][0].copy(), self._states[start][1].copy()
        for index, ins in enumerate(self.instructions[start:], start):
            if index != start and (ins.is_jump_target or index in self._states):
                self._meet(index, stack, local)
                return
            self.at = index
            for entry in self._handlers:
                if entry.start <= ins.offset < entry.end:
                    caught = [GIVEN] * (2 if entry.lasti else 1)
                    self._meet(self.index[entry.target], stack[: entry.depth] + caught, local)
            if ins.opcode in dis.hasjrel or ins.opcode in dis.hasjabs:
                after = stack.copy()
                resize(after, dis.stack_effect(ins.opcode, ins.arg, jump=True))
                self._meet(self.index[ins.argval], after, local)
            self._step(ins, stack, local)
            if ins.opname in _ENDS:
                return

    def _meet(self, index: int, stack: list[Value], local: Mapping[str, Value]) -> None:
        """Arrive at an instruction with these values, and follow it if they add something."""
        if index not in self._states:
            self._states[index] = stack.copy(), dict(local)
            self._todo.append(index)
            return
        old_stack, old_local = self._states[index]
        new_stack = [joined(old, new) for old, new in zip(old_stack, stack, strict=False)]
        new_local = old_local | {
            name: joined(old_local.get(name, value), value) for name, value in local.items()
        }
        same = all(old is new for old, new in zip(old_stack, new_stack, strict=False))
        if not same or any(old_local.get(name) is not new for name, new in new_local.items()):
            self._states[index] = new_stack, new_local
            self._todo.append(index)

    def _step(self, ins: dis.Instruction, stack: list[Value], local: dict[str, Value]) -> None:
        """Do to the stack and the local variables what one instruction does."""
        name = ins.opname
        special = getattr(self, f"_{name.lower()}", None)
        if special is not None:
            special(ins, stack)
        elif name.startswith(("LOAD_FAST", "STORE_FAST", "DELETE_FAST")):
            _move_locals(ins, stack, local)
        elif name not in _NEUTRAL:
            effect = dis.stack_effect(ins.opcode, ins.arg, jump=False)
            if name.startswith(_RESIZES):
                resize(stack, effect)
            else:
                exchange(stack, effect, MADE if name.startswith(_MAKES) else GIVEN)


def _move_locals(ins: dis.Instruction, stack: list[Value], local: dict[str, Value]) -> None:
    """Load and store one local variable, or two as STORE_FAST_LOAD_FAST does."""
    names = ins.argval if isinstance(ins.argval, tuple) else (ins.argval,)
    actions = [part for part in ins.opname.split("_") if part in {"LOAD", "STORE", "DELETE"}]
    for action, name in zip(actions, names, strict=True):
        if action == "STORE":
            local[name] = pop(stack)
        elif action == "LOAD":
            # Unbound on the paths seen so far; a path that binds it is followed again from there.
            stack.append(local.get(name, MADE))


def _arguments(code: types.CodeType) -> dict[str, Value]:
    """The parameters. The dict behind `**kwargs` is new at each call."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS)
    values = {name: Value(Origin.ARGUMENT, name) for name in code.co_varnames[:count]}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        values[code.co_varnames[count]] = Value(Origin.MADE, code.co_varnames[count])
    return values
