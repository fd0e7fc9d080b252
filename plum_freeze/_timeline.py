"""When each module of an import started and ended, for the command line."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plum_freeze import _hook, _late

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@dataclass(slots=True)
class Span:
    """One module's body.

    Attributes:
        module: Its name.
        start: Seconds since the import began.
        end: The same for its end.
        depth: How many modules of the record were being imported around it.
    """

    module: str
    start: float
    end: float
    depth: int


class _Timed:
    """A listener that takes the time, and tells the real one."""

    def __init__(self, listener: _hook.Listener) -> None:
        self.listener = listener
        self.began = time.perf_counter()
        self.spans: list[Span] = []
        self.open: dict[str, Span] = {}

    def started(self, name: str) -> None:
        """A module begins to run: a span begins."""
        now = time.perf_counter() - self.began
        span = self.open[name] = Span(name, now, now, len(_hook.executing()))
        self.spans.append(span)
        self.listener.started(name)

    def ended(self, name: str, module: ModuleType | None, error: BaseException | None) -> None:
        """A module has run, or has raised this: its span ends after what the listener does."""
        __tracebackhide__ = True
        self.listener.ended(name, module, error)
        span = self.open.pop(name, None)
        if span is not None:
            span.end = time.perf_counter() - self.began


@contextlib.contextmanager
def recording() -> Iterator[list[Span]]:
    """Take the time of each module that the import hook sees inside."""
    real = _late.LISTENER
    timed = _Timed(real)
    # `freeze()` inside of the package puts the listener in place again: it is to find this one.
    _late.LISTENER = timed  # type: ignore[assignment]
    _hook.finder(timed)
    try:
        yield timed.spans
    finally:
        _late.LISTENER = real
        _hook.finder(real)
