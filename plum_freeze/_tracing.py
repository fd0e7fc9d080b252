"""The methods of ours that are being traced on this thread, and what was inlined in each.

A method that is inlined in the trace of another leaves its effects and what it reads in there:
an effect means that the outer one must run plainly too, and the values that it read are guarded
in the outer one as well.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from plum_freeze._guard import Guard


class Stop(BaseException):
    """A method with an effect is about to be inlined: the trace ends before the effect happens.

    No `Exception`, so that the author's own `try` does not catch it.
    """


class Frame:
    """A method that is being traced."""

    __slots__ = ("effect", "guards")

    def __init__(self) -> None:
        # why the method cannot be compiled, once something inlined in it has an effect
        self.effect: str | None = None
        # what the inlined methods read, by the identity of the guard
        self.guards: dict[int, Guard] = {}

    def add(self, *guards: Guard) -> None:
        """A method with these guards is inlined."""
        self.guards.update((id(guard), guard) for guard in guards)

    def absorb(self, inner: Frame) -> None:
        """What was inlined in `inner` is inlined in this one too."""
        self.effect = self.effect or inner.effect
        self.guards.update(inner.guards)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.frames: list[Frame] = []


_thread = _Thread()

# How many methods are being traced in all threads. A hot call looks only at this list's truth.
anywhere: list[None] = []


def _nothing() -> None:
    pass


# Called when a thread starts to trace and when it has ended: look-ups of methods that need no frame
# of ours are watched meanwhile. Set by `_observe`.
on_first: Callable[[], None] = _nothing
on_last: Callable[[], None] = _nothing


def push() -> Frame:
    """Start to trace a method."""
    if not _thread.frames:
        on_first()
    frame = Frame()
    _thread.frames.append(frame)
    anywhere.append(None)
    return frame


def pop() -> None:
    """End it; the method that is being traced around it inherits what was found."""
    frame = _thread.frames.pop()
    anywhere.pop()
    if _thread.frames:
        _thread.frames[-1].absorb(frame)
    else:
        on_last()


def current() -> Frame | None:
    """The innermost method that is being traced on this thread."""
    return _thread.frames[-1] if _thread.frames else None
