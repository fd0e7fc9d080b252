"""From decisions that change to what JAX has compiled with them: exactly, or everything.

The interface between the record of decisions and JAX is `invalidate`: decisions go in, and none of
what was compiled with them is ever used again. There are two ways. `_seam` has exactly that traced
again which depends on the decisions; `_epoch` has everything, and is what is left where the seam
does not work in this JAX, or cannot say what depends on a decision.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import wrapt

from plum_freeze import _asked, _dependencies, _seam, _selftest
from plum_freeze._epoch import epoch
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from collections.abc import Collection

    from plum_freeze._dependencies import Baked, Site

log = logging.getLogger("plum_freeze")

SWITCH = "PLUM_FREEZE_INVALIDATION"
WRONG_SWITCH = """\
{switch}={value!r} is no way of invalidation. It is one of "exact", "epoch":
  "exact": what a late registration changes is compiled again, and nothing else (the default);
  "epoch": everything that JAX has compiled is compiled again."""

_lock = threading.Lock()
_installed = threading.Event()
# Why everything is compiled again at a change: "" means that it is not, None that it was not tried.
_why_not: str | None = None
exact = 0
"""How many changes were invalidated exactly."""


def check_switch() -> None:
    """Raises FreezeError: The environment asks for a way of invalidation that there is not."""
    value = os.environ.get(SWITCH, "exact")
    if value not in ("exact", "epoch"):
        raise FreezeError(WRONG_SWITCH.format(switch=SWITCH, value=value))


def start() -> bool:
    """Record what traces depend on, and guard what is compiled; once JAX is there.

    Says whether that was now. Nothing that was compiled before is ever used again then.
    """
    if not _installed.is_set():
        _installed.set()
        wrapt.register_post_import_hook(_install, "jax")
    return epoch.start()


def _install(_: Any) -> None:
    global _why_not  # noqa: PLW0603
    if os.environ.get(SWITCH) == "epoch":
        _why_not = f"{SWITCH}=epoch"
    elif not getattr(sys, "_is_gil_enabled", lambda: True)():
        _why_not = "this Python runs without the global interpreter lock"
    else:
        _why_not = _seam.install()
    tracebacks: Any = sys.modules["jax._src.traceback_util"]
    tracebacks.register_exclusion(str(Path(__file__).parent))  # JAX leaves out our frames, too
    if _why_not:
        _asked.count_traces()


class Forecast(NamedTuple):
    """What a change of decisions will have traced again.

    Attributes:
        sites: The functions that have them baked in, as far as that is known.
        everything: Why everything is compiled again, "" if only those are.
    """

    sites: tuple[Site, ...]
    everything: str

    def __str__(self) -> str:
        if self.everything:
            return f"everything that JAX has compiled ({self.everything})"
        return ", ".join(map(str, self.sites)) or "nothing, it is in no compiled function"


def forecast(decisions: Collection[Baked], *, blind: bool) -> Forecast:
    """What will be traced again if these decisions change.

    Args:
        decisions: The decisions.
        blind: Whether decisions of their function were taken that are not in the record.
    """
    if "jax" not in sys.modules:
        return Forecast((), "")
    sites = tuple(_dependencies.dependents(decisions))
    if blind:
        return Forecast(sites, "decisions were taken that nobody took note of")
    if not _why_not and any(decision.everywhere for decision in decisions):
        return Forecast(sites, "it is in a rule or a thread, of which JAX keeps traces unseen")
    return Forecast(sites, _why_not or "")


def invalidate(decisions: Collection[Baked], *, blind: bool) -> None:
    """Nothing that was compiled with one of these decisions is ever used again.

    Args:
        decisions: The decisions.
        blind: As for `forecast`: then nothing at all.
    """
    global exact  # noqa: PLW0603
    sites = _dependencies.dependents(decisions) if log.isEnabledFor(logging.INFO) else []
    changed = [*decisions, _dependencies.anything()] if decisions else []
    for each in changed:
        each.valid = False
    if blind:
        everything()
        return
    if "jax" not in sys.modules or not changed:
        return
    if why_not() == "" and _seam.invalidate(changed):
        exact += 1
        log.info("compiled again at the next call: %s", ", ".join(map(str, sites)) or "nothing")
    else:
        everything()


def everything() -> None:
    """Nothing that was compiled so far is ever used again."""
    epoch.move()


def why_not() -> str | None:
    """Why invalidation is not exact; "" if it is, None if that is still to be found out."""
    global _why_not  # noqa: PLW0603
    with _lock:
        if _why_not is None and _installed.is_set() and _selftest.can_run():
            try:
                _why_not = _selftest.failure() or ""
            except Exception as error:  # noqa: BLE001  whatever a JAX that we do not know does
                _why_not = f"{type(error).__name__}: {error}"
            if _why_not:
                _asked.count_traces()
            log.info("invalidation is %s", f"by epoch: {_why_not}" if _why_not else "exact")
        return _why_not


def facts() -> dict[str, object]:
    """For the report: which way is in force, why, and how often it was used."""
    return {
        "by": "epoch" if _why_not else "exact",
        "why": _why_not,
        "exact": exact,
        "moves": epoch.moves,
        "asked": _asked.count(),
        "jax": "jax" in sys.modules,
    }
