"""One decision that a `Cache` remembers: how it is taken again, and whether it still holds."""

from __future__ import annotations

import abc
import re
from typing import TYPE_CHECKING, Any

from plum_freeze import _decisions, _dependencies, _observe, _plum
from plum_freeze._decisions import Decision
from plum_freeze._jit import Compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plum_freeze._plum import Function, Method
    from plum_freeze._table import Table

NOTHING = object()
"""In place of an implementation: no method applied, or several did."""


class Choice:
    """A function and what it chose for some arguments. Calls with the same choice share it.

    Attributes:
        function: The function.
        types: The types of the positional arguments when it was recorded; None for one that cannot
            be named any more, in a cache that was loaded.
        method: What was chosen of the function's own methods, if one of them was.
        implementation: What runs: the method's function, or what a parent class holds; `NOTHING`
            if the call raised plum's lookup error.
        methods: The methods that the function had when it chose.
        parents: The classes that were asked for an inherited method, with what they held.
        pair: What plum gets in a replay: what to call, and the type to convert to.
        generation: The state of the function's table for which the choice was last found to hold.
        slow: Whether each replay has to look at more than that.
    """

    __slots__ = (
        "_compiled", "_token", "function", "generation", "implementation", "method", "methods",
        "pair", "parents", "slow", "types",
    )  # fmt: skip

    def __init__(
        self,
        function: Function,
        types: Sequence[type | None],
        method: Method | None,
        *,
        inherited: tuple[Any, Any] | None = None,
        methods: Sequence[Method],
    ) -> None:
        self.function = function
        self.types = tuple(types)
        self.method = method
        self.methods = tuple(methods)
        self.parents = _plum.parents_holding(function) if inherited else []
        self.generation: object = None
        self._token = abc.get_cache_token()
        self._compiled: Compiled | None = None
        self.implementation: Any = NOTHING
        self.pair: tuple[Any, Any] = (self._ask_again, Any)
        if method is not None:
            inherited = method.implementation, method.return_type
        if inherited is not None:
            self.implementation, return_type = inherited
            # Never jitted while a cache is active: an inner decision of a jitted method is taken
            # when it is traced and not when it runs, so the steps would depend on JAX's caches.
            self._compiled = Compiled(self.implementation, return_type, jit=False)
            self.pair = (_runner(self._compiled), Any)
        self.slow = inherited is None or bool(self.parents)

    def _ask_again(self, *args: Any, **kwargs: Any) -> Any:
        """No method applied: have plum say so again, about these arguments.

        Raises:
            LookupError: As plain plum.
        """
        __tracebackhide__ = True
        found = _observe.apart(_plum.choose_any, self.function, args)
        return Compiled(*found, jit=False).plain(*args, **kwargs)  # a hint that changes its mind

    def note(self) -> None:
        """The method is about to be inlined in a method of ours that is being traced."""
        compiled = self._compiled
        if compiled is not None:
            if compiled.changed():
                compiled.guard_again()
            compiled.note()

    @property
    def decision(self) -> Decision:
        """For the record of the table, so that traces with it baked in do not outlive it."""
        found = None if self.method is None else self.method.implementation
        return Decision(self.types, (None,) * len(self.types), found)

    def keep_in(self, table: Table, generation: object) -> None:
        """The choice holds for this state of the table."""
        if None in self.types:
            table.blind = True
        else:
            key = ("cache", self.types, id(self.implementation))
            table.record(key, self.decision, generation)
        self.generation, self._token = generation, abc.get_cache_token()

    def what_changed(self) -> str | None:
        """What keeps the choice from holding now, as text. Unsure means that it does not hold.

        Raises:
            Exception: What plum raises where it cannot resolve a registration that waits.
        """
        name = _plum.first_implementation(self.function).__name__
        for parent, value in self.parents:
            if parent.__dict__.get(name) is not value:
                return f"{parent.__qualname__}.{name}, which was inherited, is another one now"
        now = _plum.settled_methods(self.function)
        new = [method for method in now if not _is_among(method, self.methods)]
        if self.method is not None:
            found = self.method.implementation
            if not any(_decisions.is_same_code(each.implementation, found) for each in now):
                return f"its method {text(self.method)} is gone" + _registered(new)
        if new and (None in self.types or self.decision.changes(now, new)):
            return "another method may be the right one now" + _registered(new)
        if self._token != abc.get_cache_token() and None not in self.types:
            return self._changed_by_abc(now)
        return None

    def _changed_by_abc(self, methods: Sequence[Method]) -> str | None:
        """Whether a class was made a virtual subclass, and another method is the right one by it.

        What depends on more than the types is taken to hold: imports register classes all the time.
        """
        decision = self.decision
        applies = [decision.applies(method) for method in methods]
        if None in applies:
            return None
        applicable = [m for m, does in zip(methods, applies, strict=True) if does]
        chosen = _plum.choose_among(applicable, decision.types)
        expected = decision.implementation
        if chosen is None or expected is None:
            changed = (chosen is None) != (expected is None)
        else:
            changed = not _decisions.is_same_code(chosen.implementation, expected)
        return (
            "a class was registered with an ABC, and the decision is another one" * changed or None
        )


def _is_among(method: Method, known: Sequence[Method]) -> bool:
    return any(
        each is method
        or (each.implementation is method.implementation and each.signature == method.signature)
        for each in known
    )


def _registered(methods: Sequence[Method]) -> str:
    if not methods:
        return ""
    return "; registered since: " + ", ".join(map(text, methods))


def _runner(compiled: Compiled) -> Callable[..., Any]:
    """The method with its result converted; the method itself where nothing is converted."""
    implementation, convert = compiled.implementation, compiled.convert
    if convert is None:
        return implementation
    unchanged = convert.unchanged

    def converted(*args: Any, **kwargs: Any) -> Any:
        """The method, and what plum makes of its result."""
        __tracebackhide__ = True
        result = implementation(*args, **kwargs)
        if id(type(result)) in unchanged and not _dependencies.anywhere:
            return result
        # What a conversion rule calls is no step: our shortcut above leaves the rule out.
        return _observe.apart(convert, result)

    return converted


# -- texts ---------------------------------------------------------------------------------------

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def signature(method: Method) -> str:
    """The signature of a method, the same in every process."""
    hints = [*map(_plum.hint_text, method.signature.types)]
    if method.signature.has_varargs:
        hints.append(f"*{_plum.hint_text(method.signature.varargs)}")
    precedence = method.signature.precedence
    suffix = f" precedence {precedence}" if precedence else ""
    return _ADDRESS.sub("", f"({', '.join(hints)}){suffix}")


def place(function: Any) -> str:
    """Module and qualified name of what a method runs."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}.{name}" if isinstance(module, str) and module else name


def text(method: Method) -> str:
    """Name and signature of a method."""
    return place(method.implementation) + signature(method)


def describe(choice: Choice) -> str:
    """The function, and what it was called with."""
    kinds = ", ".join("?" if t is None else t.__qualname__ for t in choice.types)
    return f"{_plum.name_of(choice.function)}({kinds})"
