"""`Cache`: dispatch decisions that are recorded once and taken again without looking at arguments.

The idea is from plum's issue 154. See DESIGN, section 7; `_observe.py` has the way in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plum_freeze import _late, _observe, _session, _watch
from plum_freeze._errors import FreezeError
from plum_freeze._session import NOTHING_RECORDED, Recorder, Replayer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike
    from types import TracebackType

    from plum_freeze._choice import Choice

CROSSED = """\
A block of this cache ends that is not the innermost one here. Blocks must end in the thread
and task that entered them, in reverse order (a generator that yields inside of one leaves it
open in its caller)."""


class Cache:
    """Remembers which methods were chosen, and chooses them again.

    A plain `with cache:` records while the cache is empty, and replays afterwards:

        with plum_freeze.Cache() as cache:
            f(x)            # each decision of each dispatched call, in order
        with cache:
            f(y)            # the same methods: no resolver, no look at the arguments

    It works on every function of plum, frozen or not. While it is active, in this thread and task,
    methods run plainly, also those of frozen functions: a jitted method takes the decisions inside
    it only when it is traced. What `jax.jit` traces is recorded when it is traced; put the block
    inside of the jitted function. Decisions that a resolver or a return conversion causes, and
    those of `invoke` and `resolve_method`, are taken as always. Blocks nest, and each call belongs
    to the innermost one. Entering a block costs about 0.5 us for each dispatched function that
    there is, so put it around many calls.
    """

    def __init__(self) -> None:
        self._steps: tuple[Choice, ...] | None = None
        self._why_empty = ""

    # -- blocks ----------------------------------------------------------------------------------

    def record(self) -> Block:
        """A block that records, in place of what the cache holds.

        If it ends in an exception the recording is dropped, and the cache holds what it held.
        """
        return Block(self, Recorder)

    def replay(self) -> Block:
        """A block that replays.

        Entering it raises `FreezeError` if nothing is recorded, and `ReplayError` if a recorded
        decision is another one now. Calls in it, and its end, raise `ReplayError` if they leave
        the path.
        """
        return Block(self, Replayer)

    def __enter__(self) -> Self:
        (Block(self, Replayer) if self._steps else Block(self, Recorder)).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if not _watch.is_off():
            _end(self, _observe.current.get(), error)

    # -- contents --------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[Choice, ...]:
        """The recorded decisions, in order."""
        return self._steps or ()

    def keep(self, steps: tuple[Choice, ...] | None, why_empty: str = "") -> None:
        """Hold this recording from now on."""
        self._steps, self._why_empty = steps, why_empty

    def clear(self) -> None:
        """Forget the recording."""
        self.keep(None)

    def __len__(self) -> int:
        """How many decisions are recorded."""
        return len(self.steps)

    def __bool__(self) -> bool:
        return True  # a cache is a cache, also while it is empty

    def __iter__(self) -> Iterator[str]:
        """The recorded decisions as text, in order."""
        return (_session.told(choice) for choice in self.steps)

    def __repr__(self) -> str:
        functions = {id(choice.function) for choice in self.steps}
        return f"<plum_freeze.Cache: {len(self)} decisions of {len(functions)} functions>"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the recording to a file, as JSON.

        Raises:
            FreezeError: Nothing is recorded, or a function or method has no name to find it by.
        """
        from plum_freeze import _cache_file

        if self._steps is None:
            raise FreezeError(NOTHING_RECORDED.format(why=self._why_empty))
        _cache_file.save(self._steps, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Cache:
        """A cache from a file. The modules that are named in it must be imported.

        Raises:
            FreezeError: The file is none of ours; or the program has changed since, and what.
        """
        from plum_freeze import _cache_file

        cache = cls()
        if not _watch.is_off() and _is_watching():
            cache.keep(_cache_file.load(path))
        return cache


class Block:
    """What `record()` and `replay()` return: a context manager that gives the cache."""

    def __init__(self, cache: Cache, kind: Callable[[Cache], Recorder | Replayer]) -> None:
        self._cache = cache
        self._kind = kind
        self._sessions: list[Recorder | Replayer] = []

    def __enter__(self) -> Cache:
        __tracebackhide__ = True
        if _watch.is_off() or not _is_watching():
            return self._cache
        session = self._kind(self._cache)
        _observe.start()
        try:
            session.check()
        except BaseException:
            _observe.stop()
            raise
        self._sessions.append(session)
        _observe.current.set(session)
        return self._cache

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if self._sessions:
            self._sessions.pop()
            _end(self._cache, _observe.current.get(), error)


def _is_watching() -> bool:
    return _late.watching.is_set() or _watch.watch_everything()


def _end(cache: Cache, session: Any, error: BaseException | None) -> None:
    __tracebackhide__ = True
    if session is None or session.cache is not cache or not session.is_here():
        raise FreezeError(CROSSED)
    _observe.current.set(session.outer)
    _observe.stop()
    session.end(error)
