"""Every public name, as a type checker sees it. Checked by mypy and pyright, and never run."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

import plum_freeze
from plum_freeze import (
    Cache,
    FreezeError,
    InvalidationWarning,
    LateRegistrationError,
    LateRegistrationWarning,
    Registration,
    ReplayError,
    Report,
)


@plum_freeze.eager
def counts(x: int, *, by: float = 1.0) -> str:
    return str(x * by)


@plum_freeze.traced("dt", "n")
def step(x: float, dt: float, n: int = 1) -> float:
    return x + dt * n


# A decorator keeps the signature of what it decorates.
assert_type(counts(1, by=2.0), str)
assert_type(step(1.0, 0.5), float)


def freezing() -> None:
    assert_type(plum_freeze.freeze(), Report)
    assert_type(plum_freeze.freeze("pkg", step, jit=False, on_late="raise", verify=True), Report)
    plum_freeze.freeze(jit=lambda method: method is step)
    plum_freeze.freeze(jit={step})
    assert_type(plum_freeze.thaw("pkg"), None)
    with plum_freeze.thawed("pkg") as nothing:
        assert_type(nothing, None)
    assert_type(plum_freeze.is_frozen(step), bool)


def installing() -> None:
    with plum_freeze.install("pkg") as installation:
        assert_type(installation.packages, tuple[str, ...])
        installation.uninstall()
    found = plum_freeze.registrations("pkg")
    assert_type(found, list[Registration])
    assert_type(found[0].line, int)
    assert_type(found[0].precedence, int | None)


def reporting() -> None:
    report = plum_freeze.report()
    assert_type(report, Report)
    assert_type(report.as_dict(), dict[str, Any])
    assert_type(report.to_json(), str)
    assert_type(len(report), int)


def remembering() -> None:
    with Cache() as cache:
        assert_type(cache, Cache)
    with cache.record():
        pass
    with cache.replay():
        pass
    assert_type(len(cache), int)


def failing() -> None:
    try:
        plum_freeze.freeze()
    except (LateRegistrationError, ReplayError, FreezeError) as error:
        assert_type(str(error), str)
    warning: type[LateRegistrationWarning] = InvalidationWarning
    assert issubclass(warning, Warning)
