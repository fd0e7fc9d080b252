"""The blocks of a `Cache`: one notes the decisions of the calls in it, the other gives them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from plum_freeze import _choice, _observe, _plum, _table, _tracing
from plum_freeze._choice import Choice
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from plum_freeze._cache import Cache
    from plum_freeze._table import Table

PARTED = """\
The replay left the recorded path at call {number} of {total}, at {where}: {why}.
    recorded: {recorded}
    called:   {called}
What to do: replay only what takes the path that was recorded, the same calls in the same order;
or record again, with cache.record()."""

NESTED = """\
This cache is being recorded here already: the block around this one would be overwritten by it.
What to do: use another plum_freeze.Cache() for the inner block."""

NOTHING_RECORDED = """\
replay(): nothing has been recorded in this cache{why}.
What to do: run it once inside `with cache.record():`, or write `with cache:`, which
records first and replays afterwards."""


class ReplayError(FreezeError):
    """A replay left the path that was recorded, or a recorded decision is another one now.

    Attributes:
        number: Which call it was, counted from 1.
        function: Qualified name of the function that was called; "" if the block ended too early.
        where: File and line of the call.
    """

    def __init__(self, text: str, *, number: int = 0, function: str = "", where: str = "") -> None:
        super().__init__(text)
        self.number = number
        self.function = function
        self.where = where


ReplayError.__module__ = "plum_freeze"


# -- recording -----------------------------------------------------------------------------------


_MOST_TRIES = 8  # a hint that registers methods when it is asked must not go on for ever


class Recorder(_observe.Session):
    """Notes each decision in the order of the calls."""

    __slots__ = ("_known", "_methods", "_steps")

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache)
        self._steps: list[Choice] = []
        self._known: dict[Any, Choice] = {}
        # the methods of each function, as long as its table stays in the same state
        self._methods: dict[int, tuple[object, list[Any]]] = {}

    def check(self) -> None:
        """Raises FreezeError: A block around this one records into the same cache."""
        outer = self.outer
        while outer is not None:
            if outer.cache is self.cache and isinstance(outer, Recorder) and outer.is_here():
                raise FreezeError(NESTED)
            outer = outer.outer

    def decide(self, table: Table, types: tuple[type, ...]) -> tuple[Any, Any]:
        """An entry that resolves: it gets the arguments, and a lookup has only their types."""
        place = len(self._steps)
        self._steps.append(_UNSEEN)  # now: what the method calls comes after it

        def entry(*args: Any, **kwargs: Any) -> Any:
            """Decide for these arguments, note the step, and run it."""
            __tracebackhide__ = True
            choice = self._steps[place] = _observe.apart(self._take, table, types, args)
            if _tracing.anywhere:
                choice.note()
            return choice.pair[0](*args, **kwargs)

        return entry, Any

    def _take(self, table: Table, types: tuple[type, ...], args: tuple[Any, ...]) -> Choice:
        function = table.function
        assert function is not None  # noqa: S101 (it is calling us)
        for _ in range(_MOST_TRIES):
            generation = table.generation
            methods = self._methods_of(function, generation)
            method, inherited = _resolve(function, args)
            if generation is table.generation:
                break  # no other thread registered or cleared meanwhile
        found = method or inherited
        key = (id(function), types, id(method), id(inherited and inherited[0]), generation)
        known = self._known.get(key)
        if known is not None and found is not None:
            return known
        choice = Choice(function, types, method, inherited=inherited, methods=methods)
        choice.keep_in(table, generation)
        return self._known.setdefault(key, choice)

    def _methods_of(self, function: Any, generation: object) -> list[Any]:
        known = self._methods.get(id(function))
        if known is None or known[0] is not generation:
            known = self._methods[id(function)] = generation, _plum.settled_methods(function)
        return known[1]

    def end(self, error: BaseException | None) -> None:
        """Hand the recording to the cache, unless the block ended in an exception."""
        if error is None:
            self.cache.keep(tuple(step for step in self._steps if step is not _UNSEEN))
        elif self.cache._steps is None:
            self.cache.keep(None, f" (a recording was dropped, it ended in {type(error).__name__})")


def _resolve(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, Any] | None]:
    """The function's own method, or what it inherits; neither where the call raises LookupError."""
    try:
        return _plum.choose(function, args), None
    except LookupError:
        try:
            return None, _plum.choose_any(function, args)
        except LookupError:
            return None, None  # `Choice.pair` raises it at the call


# A lookup whose call never came: somebody asked plum's private `_resolve_method_with_cache`.
_UNSEEN: Any = object()


# -- replaying -----------------------------------------------------------------------------------


class Replayer(_observe.Session):
    """Gives each call the method that is next."""

    __slots__ = ("_error", "_position", "_steps")

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache)
        self._steps = cache.steps
        self._position = 0
        self._error: ReplayError | None = None

    def check(self) -> None:
        """Before the block begins: whether every decision still holds.

        Raises:
            FreezeError: Nothing is recorded.
            ReplayError: A registration changed a decision.
        """
        __tracebackhide__ = True
        if self.cache._steps is None:
            raise FreezeError(NOTHING_RECORDED.format(why=self.cache._why_empty))
        for number, choice in enumerate({id(c): c for c in self._steps}.values()):
            table = _table.watch(choice.function)
            if choice.generation is not table.generation or choice.parents:
                first = next(i for i, c in enumerate(self._steps) if c is choice) if number else 0
                self._position = first + 1
                self._hold(choice, table)
        self._position = 0

    def decide(self, table: Table, types: tuple[type, ...]) -> tuple[Any, Any]:
        """What comes next, if this is it."""
        __tracebackhide__ = True
        position = self._position
        self._position = position + 1
        if position < len(self._steps) and self._error is None:
            choice = self._steps[position]
            if (
                choice.generation is table.generation
                and len(choice.types) == len(types)
                and not choice.slow
                and not _tracing.anywhere
            ):
                return choice.pair
        return self._decide_slowly(table, types)

    def _decide_slowly(self, table: Table, types: tuple[type, ...]) -> tuple[Any, Any]:
        __tracebackhide__ = True
        if self._error is not None:
            raise self._error
        total = len(self._steps)
        if self._position > total:
            self._part(
                f"only {total} {'call was' if total == 1 else 'calls were'} recorded", table, types
            )
        choice = self._steps[self._position - 1]
        if choice.function is not table.function:
            self._part("it is another function", table, types)
        if len(choice.types) != len(types):
            self._part("it has another number of arguments", table, types)
        self._hold(choice, table, types)
        if _tracing.anywhere:
            choice.note()
        if choice.implementation is _choice.NOTHING:
            return self._asking(choice, table, types), Any
        return choice.pair

    def _hold(self, choice: Choice, table: Table, types: tuple[type, ...] | None = None) -> None:
        """Make sure that no registration changed a decision since it was last looked at."""
        __tracebackhide__ = True
        while choice.generation is not table.generation or choice.parents:
            generation = table.generation
            why = _observe.apart(choice.what_changed)
            if why is not None:
                self._part(why, table, types)
            if generation is table.generation:
                choice.keep_in(table, generation)
                return

    def _asking(self, choice: Choice, table: Table, types: tuple[type, ...]) -> Callable[..., Any]:
        def ask(*args: Any, **_: Any) -> Any:
            __tracebackhide__ = True
            _observe.apart(_plum.choose_any, choice.function, args)
            self._part("a method applies to the arguments now", table, types)

        return ask

    def _part(self, why: str, table: Table | None, types: tuple[type, ...] | None) -> NoReturn:
        """Leave the path for good: what is called after it cannot be right either.

        Raises:
            ReplayError: Always.
        """
        __tracebackhide__ = True
        number, total = self._position, len(self._steps)
        function = None if table is None else table.function
        name = "" if function is None else _plum.name_of(function)
        where = _caller()
        called = "nothing: the block ended"
        if types is not None:
            called = f"{name}({', '.join(each.__qualname__ for each in types)})"
        elif table is not None:
            called = "nothing yet: the block begins"
        self._error = ReplayError(
            PARTED.format(
                number=number,
                total=total,
                where=where,
                why=why,
                recorded=told(self._steps[number - 1]) if number <= total else "nothing more",
                called=called,
            ),
            number=number,
            function=name,
            where=where,
        )
        raise self._error

    def end(self, error: BaseException | None) -> None:
        """Make sure that the whole path was taken, unless the block ended in an exception.

        Raises:
            ReplayError: It was not; or it was left before, and something swallowed the error.
        """
        __tracebackhide__ = True
        if error is not None:
            return
        if self._error is not None:
            raise self._error
        if self._position < len(self._steps):
            self._position += 1
            self._part("the block ended before it", None, None)


def told(choice: Choice) -> str:
    """A decision in words: the call, and the method that was chosen for it."""
    if choice.method is not None:
        chosen = _choice.text(choice.method)
    elif choice.implementation is not _choice.NOTHING:
        chosen = f"{_choice.place(choice.implementation)}, inherited"
    else:
        chosen = "no method"
    return f"{_choice.describe(choice)} -> {chosen}"


def _caller() -> str:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in (
        "plum_freeze",
        "plum",
    ):
        frame = frame.f_back
    return "<unknown>" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
