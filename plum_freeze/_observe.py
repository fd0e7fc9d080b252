"""While a `Cache` is active anywhere, every lookup of every dispatched function comes by here.

Plum looks a call up with `self._cache[types]`, in C where it is compiled. A table sees only its
misses, by `__missing__`; but a class with a `__getitem__` is asked at each lookup, by the compiled
plum too. So observing means to change the tables' class, and to change it back afterwards: nothing
that is in a table moves, a table that is filled, cleared, sealed or thawed meanwhile is the same
table, and while nothing is observed a lookup is `dict`'s own, at no cost at all. (The alternative,
setting and deleting `Table.__getitem__`, leaves CPython with the slow slot for good.)

Entering and leaving costs about 0.5 us for each dispatched function of the process.
"""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Any

import wrapt

from plum_freeze import _dependencies, _plum, _seam, _store, _table, _tracing
from plum_freeze._table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from plum_freeze._cache import Cache


class Session:
    """One block in which a cache records or replays, in one thread and one task.

    Attributes:
        cache: The cache.
        outer: The block around it. Calls belong to the innermost block alone.
    """

    __slots__ = ("cache", "loop", "outer", "task", "thread")

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.outer: Session | None = current.get()
        self.thread = threading.get_ident()
        self.loop = _running_loop()
        self.task = None if self.loop is None else _current_task()

    def is_here(self) -> bool:
        """Whether this thread and task entered the block.

        A new task, and `asyncio.to_thread`, run in a copy of the context that they were made in.
        """
        return (
            self.thread == threading.get_ident()
            and self.loop is _running_loop()
            and (self.loop is None or self.task is _current_task())
        )

    def decide(self, table: Table, types: tuple[type, ...]) -> tuple[Any, Any]:
        """What plum calls for arguments of these types, and what it converts the result to.

        Raises:
            NotImplementedError: A kind of block does not say.
        """
        raise NotImplementedError


# Of asyncio, once it is imported: before, no loop can be running. (Importing it takes 30 ms.)
_running_loop: Callable[[], Any] = lambda: None  # noqa: E731
_current_task: Callable[[], Any] = lambda: None  # noqa: E731


def _have_loops(events: Any) -> None:
    global _running_loop  # noqa: PLW0603
    _running_loop = events._get_running_loop


def _have_tasks(tasks: Any) -> None:
    global _current_task  # noqa: PLW0603
    _current_task = tasks.current_task


wrapt.register_post_import_hook(_have_loops, "asyncio.events")
wrapt.register_post_import_hook(_have_tasks, "asyncio.tasks")

current: contextvars.ContextVar[Session | None] = contextvars.ContextVar(
    "plum_freeze_cache", default=None
)


class Observed(Table):
    """A table whose lookups go to the block that is active where the call is made, if any."""

    __slots__ = ()

    def __getitem__(self, types: tuple[type, ...]) -> tuple[Any, Any]:
        session = current.get()
        if session is not None and session.is_here():
            if _dependencies.anywhere:
                self.blind = True  # what a cache decides may end in a trace, and nobody notes it
            return session.decide(self, types)
        generation = self.generation
        # not `super()`: another thread may change the class back at any moment
        found: tuple[Any, Any] = dict.__getitem__(self, types)
        if types in self.telling:
            return found
        if _dependencies.anywhere:
            # Decisions that the types take: of this table, or of plum where it is only watched.
            self.note(generation, (types, types), types)
        if _tracing.anywhere:
            # A method itself is found, and a trace of ours may have to know that it is inlined.
            method = self.methods.get(id(found[0]))
            if method is not None and method.implementation is found[0]:
                return method.plain, found[1]
        return found


_lock = threading.RLock()  # a finaliser that traces may run anywhere
_blocks = 0


def start(*, but_telling: bool = False) -> None:
    """A block begins: observe every table from now on, and those of functions that are made.

    With `but_telling`, those are left out all of whose entries tell what is decided.
    """
    global _blocks  # noqa: PLW0603
    with _lock, _store.storing:
        _blocks += 1
        _table.kind = Observed
        for function in _plum.functions():
            table = _plum.cache_of(function)
            if type(table) is not Table:  # observed already, or not even watched
                table = _table.watch(function)
            if type(table) is Table and not (but_telling and len(table) == len(table.telling)):
                table.__class__ = Observed


def stop() -> None:
    """A block has ended: after the last one, lookups are the dictionary's own again."""
    global _blocks  # noqa: PLW0603
    with _lock, _store.storing:
        _blocks -= 1
        if _blocks:
            return
        _table.kind = Table
        for function in _plum.functions():
            table = _plum.cache_of(function)
            if isinstance(table, Observed):
                table.__class__ = Table  # type: ignore[assignment]


def start_trace() -> None:
    """A trace begins, maybe inside of another: then there is nothing to do but to count it."""
    global _blocks  # noqa: PLW0603
    with _lock:
        if _blocks:
            _blocks += 1
        else:
            start(but_telling=True)


_seam.on_begin, _seam.on_end = start_trace, stop
_tracing.on_first, _tracing.on_last = start_trace, stop


def apart(function: Any, *args: Any) -> Any:
    """Call `function` with no block active: what a resolver or a conversion calls is no step."""
    __tracebackhide__ = True
    token = current.set(None)
    try:
        return function(*args)
    finally:
        current.reset(token)
