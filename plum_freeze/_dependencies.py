"""Which decisions each trace has baked in.

A trace of JAX is open while the Python function runs that it traces. Decisions that are taken
meanwhile on the same thread belong to it; what JAX makes of it (a jaxpr) depends on them, and so
does each outer trace that the jaxpr becomes a part of. `_seam` tells when traces begin and end, the
tables tell the decisions. The idea is the backedges of Julia's method invalidation.

What cannot be attributed to a trace for certain counts as baked in *everywhere*.
"""

from __future__ import annotations

import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plum_freeze import _asked, _kinds, _stack
from plum_freeze._epoch import epoch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import FrameType


class Baked:
    """Something that traces have baked in.

    Attributes:
        valid: Whether it is still so. A trace with something that is not is never used again.
        everywhere: Whether traces may have it baked in that we know nothing of.
        is_told: Whether somebody tells of its change. If nobody does, each call of a jitted
            function that has it baked in asks whether it holds; each of any (see `_asked`) if it
            may be baked in everywhere.
    """

    __slots__ = ("__weakref__", "everywhere", "valid")
    is_told = True

    def __init__(self) -> None:
        self.valid = True
        self.everywhere = False

    @property
    def subject(self) -> object:
        """What is decided: equal for two of them that hold as long as each other."""
        return self

    def holds(self) -> bool:
        """Whether it is still so, as far as anyone can see."""
        return self.valid


class Trace:
    """A trace that is open.

    Attributes:
        decisions: What was baked into it so far.
        boundary: The frame of ours below which it runs.
        seen: A frame below that, with nothing in between that keeps traces unseen.
    """

    __slots__ = ("boundary", "decisions", "seen")

    def __init__(self, boundary: FrameType) -> None:
        self.decisions: set[Baked] = set()
        self.boundary: FrameType | None = boundary
        self.seen: FrameType | None = None


class _Thread(threading.local):
    def __init__(self) -> None:
        self.traces: list[Trace] = []


_thread = _Thread()

# The traces that are open in all threads. A hot call looks only at this list's truth.
anywhere: list[Trace] = []

# Baked into traces of which we do not know all: it changes with every decision.
_anything = Baked()
_lock = threading.Lock()


class Site(NamedTuple):
    """A function that was traced."""

    name: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} ({Path(self.file).name}:{self.line})"


class _Dependent(NamedTuple):
    jaxpr: weakref.ref[Any]
    decisions: frozenset[Baked]
    site: Site | None


# By the id of a jaxpr; an entry goes when its jaxpr goes.
_dependents: dict[int, _Dependent] = {}


def traces() -> list[Trace]:
    """The traces that are open on this thread, the innermost last."""
    return _thread.traces


def collect(function: Any, args: Any, kwargs: Any) -> tuple[Any, set[Baked]]:
    """Call a function of JAX that traces, and say what is baked into the trace as well."""
    trace = Trace(sys._getframe())
    _thread.traces.append(trace)
    anywhere.append(trace)
    try:
        result = function(*args, **kwargs)
    except BaseException:
        _close(trace)
        inherit(trace.decisions)  # that it failed may be baked into the trace around it
        raise
    _close(trace)
    return result, trace.decisions


def _close(trace: Trace) -> None:
    trace.boundary = trace.seen = None
    _thread.traces.pop()
    anywhere.remove(trace)


def note(decision: Baked, depth: int = 1) -> None:
    """A decision is taken now; some trace is open, here or on another thread.

    The frames of this many callers are ours, and need not be looked at.
    """
    traces = _thread.traces
    if not traces:
        # What is baked into compiled code that this thread runs may end in the trace as well.
        bake_anything()
        bake_everywhere(decision)
    else:
        inner = traces[-1]
        inner.decisions.add(decision)
        if decision.everywhere:
            if not decision.is_told:
                _asked.add(decision)  # again, if the epoch has moved since
        else:
            frame = sys._getframe(depth)
            if frame is not inner.seen and _stack.is_below_unknown(frame, inner):
                bake_everywhere(decision)


def inherit(decisions: Collection[Baked]) -> None:
    """A trace with these decisions becomes a part of the one around it, if there is one."""
    if not decisions:
        return
    outer = _thread.traces[-1] if _thread.traces else None
    if outer is not None:
        outer.decisions.update(decisions)
    elif anywhere:
        bake_anything()
    if _stack.is_below_unknown(sys._getframe(1), outer):
        for decision in list(decisions):
            bake_everywhere(decision)


def bake_anything() -> None:
    """Something is found that nobody sees, and may end in any trace that is open.

    A thread without one finds something: did a traced function start it, and wait for it?
    """
    for trace in [*anywhere]:
        trace.decisions.add(_anything)


def bake_everywhere(decision: Baked) -> None:
    """Traces may have a decision baked in that we know nothing of."""
    decision.everywhere = True
    if not decision.is_told:
        _asked.add(decision)
    elif not decision.holds():  # it has changed meanwhile, and whoever changed it did not know this
        epoch.move()


def anything() -> Baked:
    """Some decision changes, and with it what stands for any of them. There is a new one then."""
    global _anything
    new = Baked()
    with _lock:
        changed, _anything = _anything, new
    return changed


def of(jaxpr: Any) -> frozenset[Baked]:
    """What a jaxpr depends on."""
    found = _dependents.get(id(jaxpr))
    return found.decisions if found is not None and found.jaxpr() is jaxpr else frozenset()


def settle(jaxpr: Any, function: Any, collected: Collection[Baked]) -> frozenset[Baked]:
    """A call has made `jaxpr`, or has found it: what it depends on from now on."""
    known = of(jaxpr)
    if known.issuperset(collected):
        return known
    key = id(jaxpr)
    found = _Dependent(
        weakref.ref(jaxpr, lambda gone: _forget(key, gone)),
        known.union(collected),
        _site(function),
    )
    _dependents[key] = found
    return found.decisions


def _forget(key: int, gone: weakref.ref[Any]) -> None:
    found = _dependents.get(key)
    if found is not None and found.jaxpr is gone:
        _dependents.pop(key, None)


def dependents(decisions: Iterable[Baked]) -> list[Site]:
    """The functions whose traces have one of these decisions baked in, by file and line."""
    wanted = set(decisions)
    if not wanted:
        return []
    wanted.add(_anything)
    found = {d.site for d in list(_dependents.values()) if d.site and wanted & d.decisions}
    return sorted(found, key=lambda site: (site.file, site.line, site.name))


def _site(function: Any) -> Site | None:
    """Where a traced function was written; None if it is no function of Python."""
    found = _kinds.layers(function)
    if not found:
        return None
    # what is traced for a frozen method is a function of ours, which says for which
    found = _kinds.layers(getattr(found[-1], "plum_freeze_method", None)) or found
    code = found[-1].__code__
    outside, _, name = found[-1].__qualname__.rpartition("<locals>.")
    module = found[-1].__module__
    if module and module != "__main__" and not outside:
        name = f"{module}.{name}"
    return Site(name, code.co_filename, code.co_firstlineno)
