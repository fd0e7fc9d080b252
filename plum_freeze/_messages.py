"""The texts about late registrations: which function and signature, who, what changes, what now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plum_freeze import _plum
from plum_freeze._errors import LateRegistrationError
from plum_freeze._invalidation import Forecast

if TYPE_CHECKING:
    from plum_freeze._late import Late

MOST_LINES = 12

REFUSED = """\
{function} was frozen at {frozen_at} with on_late="raise", and {origin} registers
    {signature}
on it. The registration was refused; nothing has changed.{changes}
What to do, one of:
  - {first};
  - freeze(..., on_late="warn"), if what late methods change may be compiled again;
  - freeze(..., on_late="accept"), if others are meant to extend {name};
  - with plum_freeze.thawed({name}): ..., around this registration."""

WARNED = """\
{count} registered late, on {functions}:
{methods}{changes}
Results stay right. What to do, one of:
  - {first}, then nothing is late;
  - freeze(..., on_late="accept"), if others are meant to extend the package;
  - freeze(..., on_late="raise"), to refuse what comes late."""

CHANGED = """
Decisions already taken that change:
{decisions}
{consequence}"""

AGAIN = "retraces: {what}"
WOULD = "would retrace: {what}"


def refusal(late: Late) -> LateRegistrationError:
    """The error for a registration that was refused."""
    name = _plum.name_of(late.function)
    signature = "\n    ".join(map(_plum.signature_text, late.entries))
    where = f"{late.origin.file}:{late.origin.line}"
    text = REFUSED.format(
        function=name,
        name=late.function.__name__,
        frozen_at=late.seal.where,
        origin=f"{late.origin.module} ({where})",
        first=_before(late),
        signature=f"{late.function.__name__}{signature}",
        changes=_changes([late], WOULD),
    )
    return LateRegistrationError(
        text,
        function=name,
        signature=signature,
        where=where,
        frozen_at=late.seal.where,
        changes=late.changes,
    )


def warning(found: list[Late]) -> str:
    """The text of one warning for all of these."""
    methods = [
        f"    {late.function.__name__}{_plum.signature_text(entry)}"
        f"  at {late.origin.file}:{late.origin.line}"
        for late in found
        for entry in late.entries
    ]
    functions = {
        f"{_plum.name_of(late.function)} (frozen at {late.seal.where})": None for late in found
    }
    count = f"{len(methods)} method was" if len(methods) == 1 else f"{len(methods)} methods were"
    return WARNED.format(
        count=count,
        functions=_some(list(functions), ", "),
        methods=_some(methods, "\n"),
        changes=_changes(found, AGAIN),
        first=_before(found[0]),
    )


def _before(late: Late) -> str:
    if late.origin.executing and late.origin.module != "__main__":
        return f"import {late.origin.module} before freeze()"
    return "register it before freeze()"


def first_line(late: Late) -> str:
    """For the log: who registers what on which function."""
    return (
        f"{_plum.name_of(late.function)}{_plum.signature_text(late.entries[0])} late by"
        f" {late.origin.module} ({late.origin.file}:{late.origin.line}),"
        f" {len(late.changes)} decisions change"
    )


def _changes(found: list[Late], consequence: str) -> str:
    changing = [late for late in found if late.changes]
    if not changing:
        return "\nNo decision taken so far changes: nothing is traced again."
    lines = dict.fromkeys(f"    {change}" for late in changing for change in late.changes)
    why = next((each.forecast.everything for each in changing if each.forecast.everything), "")
    sites = dict.fromkeys(site for late in changing for site in late.forecast.sites)
    what = str(Forecast(tuple(sites), why))
    return CHANGED.format(
        decisions=_some(list(lines), "\n"), consequence=consequence.format(what=what)
    )


def _some(parts: list[str], separator: str) -> str:
    more = len(parts) - MOST_LINES
    shown = parts[:MOST_LINES]
    return separator.join(shown) + (f"{separator}    and {more} more" if more > 0 else "")
