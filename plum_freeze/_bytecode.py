"""What the bytecode of a function does to anything but what the call itself made."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from plum_freeze._flow import GIVEN, MADE, NOTHING, NULL, Flow, Origin, Value, joined, pop

if TYPE_CHECKING:
    import dis
    from collections.abc import Iterator, Mapping


class Names(Protocol):
    """Who knows what the global and captured names of a function stand for."""

    def load_name(self, name: str) -> Value:
        """The value of a global or builtin name."""

    def load_cell(self, name: str) -> Value:
        """The value of a variable that the function captured."""

    def load_attribute(self, owner: Value, name: str) -> Value:
        """The value of an attribute of a known object."""

    def load_module(self, name: str, level: int, names: tuple[str, ...] | None) -> Value:
        """The module that an import statement gives."""


@dataclass(slots=True)
class _Variable:
    """A variable that functions share. One origin stands for it, wherever it is read."""

    value: Value = MADE
    captured: bool = False  # it belongs to a function around the one that is looked at


# These change what they are called on (or, as functions, their first argument) whatever becomes
# of the result. `add` is not among them, for `x.at[i].add(1)` and `vector.add(other)` do not.
_MUTATORS = frozenset({
    *("append", "appendleft", "extend", "extendleft", "insert", "remove", "pop", "popleft"),
    *("popitem", "setdefault", "clear", "move_to_end", "setitem", "delitem", "write", "send"),
    *("__init__", "__setattr__", "__delattr__", "__setitem__", "__delitem__", "__setstate__"),
})  # fmt: skip
# What these return is new. A container of jax.tree.map is, even if its leaves are not.
_MAKER_PACKAGES = frozenset({"jax", "jaxlib", "numpy", "math", "cmath", "_operator"})
_MAKERS = frozenset({"copy", "deepcopy", "__new__"})
_MAKING_BUILTINS = (sorted, abs, len, round)
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Body(Flow):
    """The code of one function, and of the functions inside it, and the effects that it shows."""

    def __init__(
        self, code: types.CodeType, names: Names, around: Mapping[str, _Variable] | None = None
    ) -> None:
        super().__init__(code)
        self._names = names
        self._effects: dict[int, str] = {}  # by the index of the instruction
        self._in_place = -9  # the last `+=` on something that was not made here
        if around is None:
            around = {name: _Variable(captured=True) for name in code.co_freevars}
        self._shared = {name: around[name] for name in code.co_freevars}
        self._shared |= {
            name: _Variable(self.arguments.get(name, MADE)) for name in code.co_cellvars
        }
        inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
        self._inner = [Body(const, names, self._shared) for const in inner]

    def effects(self) -> Iterator[tuple[str, int]]:
        """Each effect and its line, in the order of the code, inner functions last."""
        while any([body._learns() for body in self._bodies()]):  # noqa: C419  # each one must run
            pass
        for body in self._bodies():
            for index, what in sorted(body._effects.items()):
                positions = body.instructions[index].positions
                yield what, (positions and positions.lineno) or body.code.co_firstlineno

    def _bodies(self) -> Iterator[Body]:
        yield self
        for body in self._inner:
            yield from body._bodies()

    def _learns(self) -> bool:
        """Follow the code; whether a variable that functions share is less known afterwards."""
        before = [variable.value for variable in self._shared.values()]
        self.follow_paths()
        after = [variable.value for variable in self._shared.values()]
        return any(old is not new for old, new in zip(before, after, strict=True))

    def _effect(self, what: str, site: int = -1) -> None:
        """Note an effect, here or where its object was read (which says less than its use)."""
        self._effects[self.at if site < 0 else site] = what

    def _write(self, owner: Value, what: str) -> None:
        """A part of `owner` is written to or deleted."""
        if owner.origin is not Origin.MADE:
            # `self.n += 1` ends in BINARY_OP, SWAP, STORE_ATTR: one effect, and this is its name.
            augmented = self._in_place if self.at - self._in_place <= 3 else -1  # noqa: PLR2004
            self._effect(f"{what} of {owner}", owner.site if owner.scope else augmented)

    def _read(self, value: Value) -> Value:
        """A global or captured value is read."""
        if value.effect:
            self._effects.setdefault(self.at, value.effect)
        return replace(value, site=self.at) if value.scope else value

    # Constants, globals, imports, and variables that are shared with inner functions.

    def _load_const(self, ins: dis.Instruction, stack: list[Value]) -> None:
        stack.append(Value(Origin.MADE, "a constant", ins.argval))

    _load_small_int = _load_const

    def _push_null(self, _ins: dis.Instruction, stack: list[Value]) -> None:
        stack.append(NULL)

    def _load_global(self, ins: dis.Instruction, stack: list[Value]) -> None:
        stack.append(self._read(self._names.load_name(ins.argval)))
        if ins.opname == "LOAD_GLOBAL" and (ins.arg or 0) & 1:
            stack.append(NULL)  # CPython puts it below the value until 3.12; `_call` takes both

    _load_name = _load_global

    def _store_global(self, ins: dis.Instruction, stack: list[Value]) -> None:
        pop(stack)
        self._effect(f"writes global {ins.argval}")

    def _delete_global(self, ins: dis.Instruction, _stack: list[Value]) -> None:
        self._effect(f"deletes global {ins.argval}")

    def _import_name(self, ins: dis.Instruction, stack: list[Value]) -> None:
        names, level = pop(stack).known, pop(stack).known
        names = names if isinstance(names, tuple) else None
        stack.append(self._read(self._names.load_module(ins.argval, level, names)))

    def _import_from(self, ins: dis.Instruction, stack: list[Value]) -> None:
        stack.append(self._attribute(stack[-1], ins.argval))

    def _load_build_class(self, _ins: dis.Instruction, stack: list[Value]) -> None:
        self._effect("defines a class")  # which may register it anywhere
        stack.append(GIVEN)

    def _load_deref(self, ins: dis.Instruction, stack: list[Value]) -> None:
        variable = self._shared[ins.argval]
        captured = variable.captured
        stack.append(self._read(self._names.load_cell(ins.argval)) if captured else variable.value)

    def _load_closure(self, _ins: dis.Instruction, stack: list[Value]) -> None:
        stack.append(MADE)

    def _store_deref(self, ins: dis.Instruction, stack: list[Value]) -> None:
        variable = self._shared[ins.argval]
        if variable.captured:
            self._effect(f"writes captured {ins.argval}")
        variable.value = joined(variable.value, pop(stack))

    def _delete_deref(self, ins: dis.Instruction, _stack: list[Value]) -> None:
        if self._shared[ins.argval].captured:
            self._effect(f"deletes captured {ins.argval}")

    # Attributes, items and operators.

    def _attribute(self, owner: Value, name: str, *, called: bool = False) -> Value:
        if owner.scope:
            chain = f"reads attribute chain {owner.name}.{name} of a {owner.scope} object"
            self._effect(f"calls {name} on {owner}" if called else chain, owner.site)
        elif owner.known is not NOTHING:
            return self._read(self._names.load_attribute(owner, name))
        elif name in _MUTATORS and owner.origin is not Origin.MADE:
            self._effect(f"calls {name} on {owner}")
        origin = max(owner.origin, Origin.GIVEN)
        return Value(origin, f"{owner.name}.{name}", receiver=owner.origin)

    def _load_attr(self, ins: dis.Instruction, stack: list[Value]) -> None:
        flagged = sys.version_info >= (3, 12) and bool((ins.arg or 0) & 1)
        called = ins.opname == "LOAD_METHOD" or flagged
        stack.append(self._attribute(pop(stack), ins.argval, called=called))
        if called:
            stack.append(NULL)  # or the object itself: nothing here asks which

    _load_method = _load_attr

    def _load_super_attr(self, ins: dis.Instruction, stack: list[Value]) -> None:
        del stack[-3:]
        name = f"super().{ins.argval}"
        stack.append(Value(Origin.ARGUMENT, name, receiver=Origin.ARGUMENT))
        stack.extend([NULL] * ((ins.arg or 0) & 1))

    def _store_attr(self, ins: dis.Instruction, stack: list[Value]) -> None:
        self._write(pop(stack), f"writes attribute {ins.argval}")
        pop(stack)

    def _delete_attr(self, ins: dis.Instruction, stack: list[Value]) -> None:
        self._write(pop(stack), f"deletes attribute {ins.argval}")

    def _store_subscr(self, ins: dis.Instruction, stack: list[Value]) -> None:
        for _key in range(2 if ins.opname == "STORE_SLICE" else 1):
            pop(stack)
        self._write(pop(stack), "writes item")
        pop(stack)

    _store_slice = _store_subscr

    def _delete_subscr(self, _ins: dis.Instruction, stack: list[Value]) -> None:
        pop(stack)
        self._write(pop(stack), "deletes item")

    def _binary_subscr(self, _ins: dis.Instruction, stack: list[Value]) -> None:
        pop(stack)
        owner = pop(stack)
        stack.append(Value(max(owner.origin, Origin.GIVEN), f"{owner.name}[...]"))

    def _binary_op(self, ins: dis.Instruction, stack: list[Value]) -> None:
        if ins.argrepr == "[]":  # from 3.14 on
            self._binary_subscr(ins, stack)
            return
        pop(stack)
        left = pop(stack)
        if ins.argrepr.endswith("=") and left.origin is not Origin.MADE:
            self._in_place = self.at
            self._effect(f"changes {left} in place")
            stack.append(GIVEN)
        else:
            stack.append(MADE)

    # Functions and calls, and what moves values about.

    def _make_function(self, ins: dis.Instruction, stack: list[Value]) -> None:
        code = pop(stack)
        if sys.version_info < (3, 13):
            del stack[len(stack) - (ins.arg or 0).bit_count() :]
        stack.append(Value(Origin.MADE, "a function", code.known))

    def _set_function_attribute(self, _ins: dis.Instruction, stack: list[Value]) -> None:
        function = pop(stack)
        pop(stack)
        stack.append(function)

    def _call(self, ins: dis.Instruction, stack: list[Value]) -> None:
        count = (ins.arg or 0) + (ins.opname == "CALL_KW")
        self._call_with(stack, stack[len(stack) - count :] if count else [], count)

    _call_kw = _call

    def _call_function_ex(self, ins: dis.Instruction, stack: list[Value]) -> None:
        always = sys.version_info >= (3, 14)
        self._call_with(stack, [], 2 if always or (ins.arg or 0) & 1 else 1)

    def _call_with(self, stack: list[Value], arguments: list[Value], count: int) -> None:
        """A call: two values below the arguments, one of which is what is called."""
        del stack[len(stack) - count :]
        upper, lower = pop(stack), pop(stack)
        callee = upper if lower is NULL else lower
        owner, _, name = callee.name.rpartition(".")
        if callee.known is NOTHING:
            # A method that is called for nothing is called for its effect.
            discarded = self.instructions[self.at + 1].opname == "POP_TOP"
            if discarded and callee.receiver is not Origin.MADE:
                self._effect(f"calls {name} on {replace(callee, name=owner)}")
        elif name in _MUTATORS and arguments:
            self._write(arguments[0], f"calls {callee.name}, which writes a part")
        elif callee.known is getattr and arguments and arguments[0].known is not NOTHING:
            stack.append(self._named_attribute(*arguments[:2]))
            return
        for argument in arguments:
            if isinstance(argument.known, types.ModuleType) and not _is_maker(argument.known):
                self._effect(f"hands on module {argument.name}")  # who reads it is not seen
        stack.append(_result(callee, name))

    def _named_attribute(self, owner: Value, name: Value) -> Value:
        """`getattr` of a known object."""
        if isinstance(name.known, str):
            return self._attribute(owner, name.known)
        if not _is_maker(owner.known):
            self._effect(f"reads attributes of {owner.name} with getattr")
        return GIVEN

    def _copy(self, ins: dis.Instruction, stack: list[Value]) -> None:
        depth = ins.arg or 1
        stack.append(stack[-depth] if depth <= len(stack) else GIVEN)

    def _swap(self, ins: dis.Instruction, stack: list[Value]) -> None:
        depth = ins.arg or 1
        if depth <= len(stack):
            stack[-1], stack[-depth] = stack[-depth], stack[-1]


def _is_maker(known: Any) -> bool:
    """Whether this is a module or a function of numpy, JAX and the like."""
    named = "__name__" if isinstance(known, types.ModuleType) else "__module__"
    try:
        module = getattr(known, named, "")
    except Exception:  # noqa: BLE001  the compiled plum raises TypeError where there is no module
        return False
    return str(module).partition(".")[0] in _MAKER_PACKAGES


def _result(callee: Value, name: str) -> Value:
    """What is known of the result of a call."""
    known = callee.known
    if known is super:
        return Value(Origin.ARGUMENT, "super()")
    made = (
        (isinstance(known, type) and known is not type)
        or (isinstance(known, types.CodeType) and known.co_name in _COMPREHENSIONS)
        or (known is not NOTHING and _is_maker(known))
        or any(known is builtin for builtin in _MAKING_BUILTINS)
        or name in _MAKERS
    )
    return MADE if made else Value(Origin.GIVEN, f"the result of {callee.name}")
