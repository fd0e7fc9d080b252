"""Warnings that wait for the end of a module, so that one names all that it registered late."""

from __future__ import annotations

import atexit
import re
import threading
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plum_freeze import _messages
from plum_freeze._errors import InvalidationWarning, LateRegistrationWarning

if TYPE_CHECKING:
    from plum_freeze._late import Late
    from plum_freeze._origin import Origin


@dataclass(slots=True, eq=False)  # `frozen` would make each module take a microsecond longer
class Body:
    """The body of a module while it runs, and what waits for its end.

    Attributes:
        name: The module.
        late: What it registered late. One warning will name all of it.
        run: Stands for this run of the body in the record, and keeps nothing alive.
    """

    name: str
    late: list[Late] = field(default_factory=list)
    run: object = field(default_factory=object)


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.bodies: list[Body] = []  # those that this thread executes, outermost first


_per_thread = _PerThread()
# The same for bodies that do not pass the import hook, by the id of their spec.
unwatched: dict[int, tuple[Any, list[Late]]] = {}


def bodies() -> list[Body]:
    """The bodies that this thread executes through the import hook, outermost first."""
    return _per_thread.bodies


def _body_of(origin: Origin) -> Body | None:
    return next((body for body in reversed(bodies()) if body.name == origin.module), None)


def execution(origin: Origin) -> object:
    """Stands for the run of a module's body that makes a registration; None for other code."""
    if not origin.executing:
        return None
    body = _body_of(origin)
    return origin.spec if body is None else body.run


def warn(found: list[Late]) -> None:
    """One warning for all of these, at the place of the first."""
    __tracebackhide__ = True
    origin = found[0].origin
    warnings.warn_explicit(
        _messages.warning(found), _category(found), origin.file, origin.line, module=origin.module
    )


def _category(found: list[Late]) -> type[LateRegistrationWarning]:
    changes = any(late.changes for late in found)
    return InvalidationWarning if changes else LateRegistrationWarning


def _would_raise(late: Late) -> bool:
    """Whether the warning is turned into an error, by the filters that are in force now."""
    origin, category = late.origin, _category([late])
    for action, message, wanted, module, line in warnings.filters:
        if (
            issubclass(category, wanted)
            and line in (0, origin.line)
            and (module is None or re.match(module, origin.module))
            and (message is None or re.match(message, _messages.warning([late])))
        ):
            return action == "error"
    return False


def list_for(late: Late) -> list[Late] | None:
    """Where a warning waits for the end of the module; None if it must not wait."""
    origin = late.origin
    if not origin.executing:
        return None
    body = _body_of(origin)
    if body is not None:
        return body.late
    # The end of this one comes unseen: its package calls `install` itself, or the hook was passed
    # by. Where warnings are errors that would be too late, for nothing could be refused then.
    if not getattr(origin.spec, "_initializing", False) or _would_raise(late):
        return None
    return unwatched.setdefault(id(origin.spec), (origin.spec, []))[1]


def settle() -> None:
    """Warn about the modules whose end came unseen.

    Raises:
        LateRegistrationWarning: Where warnings have become errors meanwhile. Nothing is taken back.
    """
    __tracebackhide__ = True
    for key, (spec, _) in list(unwatched.items()):
        if not getattr(spec, "_initializing", False):
            _, found = unwatched.pop(key, (None, []))  # another thread may have been faster
            if found:
                warn(found)


atexit.register(settle)  # the last event that there is
