"""What `freeze` is asked for: which methods are jitted, and what a late registration does."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Any

from plum_freeze import _targets
from plum_freeze._errors import FreezeError

POLICIES = ("warn", "raise", "accept")
Jit = bool | Callable[[Callable[..., Any]], bool] | Collection[Callable[..., Any]]

WRONG_POLICY = """\
on_late={value!r} is no policy{source}. It is one of "warn", "raise", "accept":
  "warn":   a late registration is accepted, what it changes is compiled again, and a warning
            says so;
  "raise":  it is refused before anything changes;
  "accept": as "warn" without the warning, for packages that others extend."""

# Packages that were frozen with jit: their methods may be jitted wherever they are registered.
jitting_packages: dict[str, Callable[[Any], bool]] = {}


def of_frozen_packages(method: Callable[..., Any]) -> bool:
    """Whether a method is one that the freeze of its own package jits."""
    package = _targets.package_of(getattr(method, "__module__", None) or "")
    jits = jitting_packages.get(package)
    return jits is not None and jits(method)


def policy(on_late: str) -> str:
    """What a late registration does: as was asked for, or as the environment says.

    Raises:
        FreezeError: It is no policy.
    """
    forced = os.environ.get("PLUM_FREEZE_ON_LATE")
    found = {"": on_late} | ({} if forced is None else {" (from PLUM_FREEZE_ON_LATE)": forced})
    for source, value in found.items():
        if value not in POLICIES:
            raise FreezeError(WRONG_POLICY.format(value=value, source=source))
    return forced or on_late


def predicate(jit: Any) -> Callable[[Any], bool]:
    """Which methods are jitted, as a function that says so for one.

    Raises:
        FreezeError: It is none of what `freeze` takes.
    """
    if isinstance(jit, bool):
        return _always if jit else _never
    if callable(jit):
        return jit  # type: ignore[no-any-return]
    if isinstance(jit, Collection) and all(map(callable, jit)):
        wanted = list(jit)
        return lambda method: any(method is each for each in wanted)
    raise FreezeError(
        f"jit={jit!r} is none of these: True, False, a collection of methods, or a function that"
        " says for a method whether it is jitted."
    )


def _always(_: Any) -> bool:
    return True


def _never(_: Any) -> bool:
    return False
