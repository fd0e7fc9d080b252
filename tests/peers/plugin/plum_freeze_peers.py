"""A pytest plugin that freezes every function of plum but plum's own, for the suites of other packages.

It knows nothing of plum_freeze's own pytest plugin and of the packages, imports neither, raises no
warning, and takes nothing back after a test: a suite sees what its users would see. The environment
says what it does:

    PEERS_MODE     dispatch | jit | raise | counts (see `tests.peers`)
    PEERS_FREEZE   collected: when the tests are collected, and again before each test
                   called: each function when it is first called, also within a test
    PEERS_FACTS    a file for what the run found out, as JSON

A run may be in "raise" mode only if nothing is registered late in "dispatch" mode.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wrapt

import plum_freeze
from plum_freeze import _entries, _keys, _plum, _questions, _record, _table, _watch

MODE = os.environ["PEERS_MODE"]
WHEN = os.environ.get("PEERS_FREEZE", "collected")
POLICY: dict[str, Any] = {
    "jit": MODE == "jit",
    "on_late": "raise" if MODE == "raise" else "accept",
}
late: list[str] = []
counts: Counter[str] = Counter()
# One real call for each function and types, to time decisions with.
samples: dict[tuple[int, tuple[type, ...]], tuple[Any, tuple[Any, ...]]] = {}
MOST_SAMPLES = 300


def freeze() -> None:
    """Freeze what there is; a suite may import plum late, or never."""
    if "plum" in sys.modules and any(not _plum.is_plums_own(f) for f in _plum.functions()):
        plum_freeze.freeze("*", **POLICY)


def pytest_configure(config: pytest.Config) -> None:
    """See every registration from the import of plum on."""
    _record.listeners.append(_registered)
    if MODE == "counts":
        _table.kind = Counting
        _entries.resolve = _counted(_entries.resolve)
        _plum.chooser = _counted_chooser(_plum.chooser)
        _questions.asked = _counted_asked(_questions.asked)
    elif WHEN == "called":
        _table.kind = FreezesItself
    if WHEN == "called" or MODE == "counts":
        wrapt.when_imported("plum")(lambda _: _watch.watch_everything())


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze what the tests import."""
    if WHEN == "collected":
        freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Freeze what has come since."""
    if WHEN == "collected":
        freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was found out."""
    path = os.environ.get("PEERS_FACTS")
    if path is None or "plum" not in sys.modules:
        return
    functions = [f for f in _plum.functions() if not _plum.is_plums_own(f)]
    facts: dict[str, Any] = {
        "functions": len(functions),
        "methods": sum(len(_plum.entries(f)) for f in functions),
        "late": late,
    }
    if MODE == "counts":
        facts["counts"] = dict(counts)
        facts["decisions"] = decisions_per_second()
    Path(path).write_text(json.dumps(facts))


def _registered(function: Any, entry: Any, origin: Any, phase: str) -> None:
    if phase == "late":
        late.append(f"{_plum.name_of(function)}{_plum.signature_text(entry)} by {origin.module}")


class FreezesItself(_table.Table):
    """The table of a function that is frozen when it is first called."""

    __slots__ = ()

    def __missing__(self, types: tuple[type, ...]) -> tuple[Any, Any]:
        function = self.function
        if self.seal is None and not _plum.is_plums_own(function):
            plum_freeze.freeze(function, **POLICY)
        return super().__missing__(types)


# -- counting ------------------------------------------------------------------------------------


class Counting(FreezesItself if WHEN == "called" else _table.Table):  # type: ignore[misc]
    """A table that counts what is asked of it. Plum's compiled code comes by here too."""

    __slots__ = ()

    def __getitem__(self, types: tuple[type, ...]) -> Any:
        is_plums_own = _plum.is_plums_own(self.function)
        counts["calls"] += not is_plums_own
        try:
            return super().__getitem__(types)
        finally:
            counts["not frozen"] += self.seal is None and not is_plums_own


def _counted(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Count calls that the table could not answer, and why; and keep samples."""

    def counted(plan: Any, args: tuple[Any, ...], where: Any, key: Any) -> Any:
        if where is not None:
            counts["resolved: first of its kind"] += 1
        elif key is _keys.UNCACHED:
            counts["resolved: this value or scope cannot be a key"] += 1
        elif plan.types not in plan.table.decisions:  # otherwise the chooser has counted it
            counts["resolved: first of its kind"] += 1
        if len(samples) < MOST_SAMPLES and not any(map(_is_dead, args)):
            samples.setdefault((id(plan.table), plan.types), (plan.table.function, args))
        return resolve(plan, args, where, key)

    return counted


def _counted_chooser(chooser: Callable[..., Any]) -> Callable[..., Any]:
    def counted(function: Any) -> Any:
        choose = chooser(function)

        def choose_one(args: tuple[Any, ...]) -> Any:
            counts["resolved: hints that nothing decides"] += 1
            counts["undecided " + _plum.name_of(function)] += 1
            return choose(args)

        return choose_one

    return counted


def _counted_asked(asked: Callable[..., Any]) -> Callable[..., Any]:
    def counted(function: Any, target: Any) -> None:
        counts["asked by resolve_method, no call"] += not _plum.is_plums_own(function)
        asked(function, target)

    return counted


def _is_dead(value: Any) -> bool:
    from plum_freeze import _jax

    return bool(_jax.is_tracer(value)) or isinstance(value, types.GeneratorType)


def decisions_per_second() -> dict[str, float]:
    """Time the calls of the samples with methods of the same signatures that do nothing.

    Plain and frozen (dispatch only), in turns; the best of five.
    """
    import plum

    _table.kind = _table.Table
    calls: list[tuple[list[Any], tuple[Any, ...]]] = []
    for function, args in list(samples.values()):  # timing calls `resolve` as well
        pair = []
        for frozen in (False, True):
            shadow = plum.Function(_nothing)
            for method in _plum.resolved_methods(function):
                shadow.register(
                    _nothing, signature=method.signature, precedence=method.signature.precedence
                )
            if frozen:
                plum_freeze.freeze(shadow, jit=False, on_late="accept")
            else:
                _plum.set_cache(shadow, {})
            pair.append(shadow)
        try:
            for shadow in pair:
                shadow(*args)
        except Exception:  # noqa: BLE001  an inherited method, or an error that the test wanted
            counts["samples that could not be timed"] += 1
        else:
            calls.append((pair, args))
    best = [float("inf"), float("inf")]
    for _ in range(5):
        for which in (0, 1):
            start = time.perf_counter()
            for pair, args in calls:
                shadow = pair[which]
                for _ in range(20):
                    shadow(*args)
            best[which] = min(best[which], time.perf_counter() - start)
    made = 20 * len(calls)
    return {"samples": len(calls), "plain": made / best[0], "frozen": made / best[1]}


def _nothing(*args):  # type: ignore[no-untyped-def]  # plum would take an annotation for text
    pass
