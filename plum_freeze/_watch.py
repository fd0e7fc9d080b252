"""Watching: every function's decisions are recorded, and every registration is seen."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _invalidation,
    _late,
    _plum,
    _questions,
    _record,
    _table,
    _ways_in,
    _world,
)

if TYPE_CHECKING:
    from plum_freeze._table import Seal, Table

UNKNOWN_PLUM = """\
This plum-dispatch {version} lacks what plum_freeze relies on: {names}.
Nothing is frozen, and every function runs as plain plum.
What to do: pip install 'plum-dispatch>=2.10.1,<3', or tell the developers of plum_freeze which
version this is."""


def is_off() -> bool:
    """Whether PLUM_FREEZE=0 turns everything into no-ops."""
    return os.environ.get("PLUM_FREEZE", "").strip().lower() in ("0", "false", "no", "off")


_is_known_plum: list[bool] = []


def watch_everything() -> bool:
    """Have every function's decisions recorded, and every registration seen.

    Says False, with a warning, if this plum is none that we know: then everything stays plain.
    """
    if not _is_known_plum:
        missing = _plum.unknown_names()
        if missing:
            text = UNKNOWN_PLUM.format(version=_plum.version(), names=", ".join(missing))
            warnings.warn(text, UserWarning, stacklevel=3)
        _is_known_plum.append(not missing)
    if not _is_known_plum[0]:
        return False
    if not _late.watching.is_set():
        patch()
        _world.watch()
        _table.listen(_before_miss, _world.settle_promises)
        _late.latest_seal = latest
        _late.watching.set()
    for function in _plum.functions():
        _table.watch(function)
        _record.adopt(function)
    # Last: what is compiled before this moment is compiled again, and from then on all is recorded.
    if _invalidation.start():
        for table in tables():
            table.blind = False
    return True


class _Listener:
    """What the ways in tell."""

    registering = staticmethod(_late.registering)
    delivered = staticmethod(_world.delivered)

    @staticmethod
    def invoking(function: Any, types: tuple[Any, ...]) -> Any:
        __tracebackhide__ = True
        return _plum.invoked(function, *_questions.invoke(function, types))

    @staticmethod
    def resolving(function: Any, target: Any) -> Any:
        __tracebackhide__ = True
        _questions.asked(function, target)
        return _plum.choose_any(function, target)


def patch() -> None:
    """Have every registration told, from now on."""
    _ways_in.watch(_Listener())


def _before_miss(table: Table) -> None:
    _late.find_unseen(table)
    _world.check_token()


def tables() -> list[Table]:
    """Those of all functions that are watched or sealed."""
    return [t for t in map(_table.table_of, _plum.functions()) if t is not None]


def seals() -> list[tuple[Table, Seal]]:
    """The tables of all frozen functions, with their seals: another thread may thaw meanwhile."""
    return [(table, seal) for table in tables() if (seal := table.seal) is not None]


def latest() -> Seal | None:
    """The latest seal that is in force: conversions and promotions belong to every frozen function.

    Libraries freeze when they are imported, and the program that imports them has the last word.
    """
    return max((seal for _, seal in seals()), key=lambda seal: seal.order, default=None)
