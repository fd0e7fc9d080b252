"""`freeze`, `thaw`, `thawed`, `is_frozen`: sealing functions, and what it needs around them."""

from __future__ import annotations

import contextlib
import itertools
import logging
from typing import TYPE_CHECKING, Any

from plum_freeze import (
    _hook,
    _invalidation,
    _late,
    _plum,
    _policy,
    _report,
    _table,
    _targets,
    _waiting,
    _watch,
)
from plum_freeze._errors import FreezeError
from plum_freeze._report import Report
from plum_freeze._table import Seal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plum_freeze._policy import Jit

log = logging.getLogger("plum_freeze")

OTHER_POLICY = """\
{function} was frozen at {first} with {old}, and {second} asks for {new}.
What to do: freeze it once; or plum_freeze.thaw({name}) before it is frozen again."""

NOT_FROZEN = """\
thaw: {function} is not frozen.
What to do: name a function for which plum_freeze.is_frozen() is true, or leave the call out."""

_order = itertools.count()


def freeze(*targets: Any, jit: Jit = True, on_late: str = "warn", verify: bool = False) -> Report:
    """Seal dispatched functions, so that calls go straight to methods that are resolved and jitted.

    Results stay those of plain plum, also after late registrations: what those change is compiled
    again, or they are refused.

    Args:
        *targets: Names of packages or modules that are imported, modules, functions of plum, or
            `"*"` for every function but plum's own. Default: the functions of the caller's
            top-level package; in a script or a notebook those that `__main__` defines. A package's
            freeze seals the functions that it defines, and jits the methods that it implements.
        jit: Whether resolved methods are jitted; or the methods that are, as a collection of
            implementations or as a predicate of one. `@eager` methods never are.
        on_late: What a late registration does: `"warn"`, `"raise"` or `"accept"`. The environment
            variable PLUM_FREEZE_ON_LATE=raise overrides it.
        verify: Run each newly compiled call plainly as well and compare, for test suites.

    Returns:
        The report on the functions.

    Raises:
        FreezeError: A target or the policy is none, or a function is frozen already with another
            policy. Nothing was sealed then.
    """
    where = _targets.caller()[1]
    on_late = _policy.policy(on_late)
    jits = _policy.predicate(jit)
    _invalidation.check_switch()
    if _watch.is_off():
        return Report([])
    functions = _targets.find(targets, "freeze")
    if not _watch.watch_everything():
        return Report([])
    _waiting.settle()
    _check_policies(functions, on_late, verify, where)
    for name in _targets.names(targets) - {"*"}:
        _policy.jitting_packages[_targets.package_of(name)] = jits
    everything = "*" in targets
    named = {id(f) for t in targets if not isinstance(t, str) and (f := _plum.function_of(t))}
    for function in functions:
        all_methods = everything or id(function) in named
        jits_here = jits if all_methods else _policy.of_frozen_packages
        _seal(function, Seal(on_late, jits_here, verify, where, next(_order)))
    for table, seal in _watch.seals():
        if seal.jits is _policy.of_frozen_packages:
            table.jit_methods(seal)
    _hook.finder(_late.LISTENER).track_all()
    log.info("froze %d functions at %s", len(functions), where)
    return Report(functions)


def _seal(function: Any, seal: Seal) -> None:
    """Seal a function, if it is not sealed yet. If that fails it stays plain, and others do not."""
    table = _table.watch(function)
    if table.seal is not None:
        return
    try:
        table.change_seal(seal)
        log.debug("sealed %s", _plum.name_of(function))
    except Exception as error:  # noqa: BLE001  whatever it is, the report says it
        table.seal = None
        _report.failed[table] = f"{type(error).__name__}: {error}"


def _check_policies(functions: list[Any], on_late: str, verify: bool, where: str) -> None:
    for function in functions:
        table = _table.table_of(function)
        seal = None if table is None else table.seal
        if seal is not None and (seal.on_late, seal.verify) != (on_late, verify):
            raise FreezeError(
                OTHER_POLICY.format(
                    function=_plum.name_of(function),
                    name=function.__name__,
                    first=seal.where,
                    second=where,
                    old=f"on_late={seal.on_late!r}, verify={seal.verify}",
                    new=f"on_late={on_late!r}, verify={verify}",
                )
            )


def thaw(*targets: Any) -> None:
    """Unseal functions for good: they are plain plum again, and registrations are free.

    Args:
        *targets: As for `freeze`.

    Raises:
        FreezeError: A target is none, or a function that was named is not frozen.
    """
    if _watch.is_off():
        return
    functions = _targets.find(targets, "thaw")
    for function in functions:
        if not is_frozen(function) and any(
            _plum.function_of(t) is function for t in targets if not isinstance(t, str)
        ):
            raise FreezeError(NOT_FROZEN.format(function=_plum.name_of(function)))
    for function in functions:
        table = _table.table_of(function)
        if table is not None and table.seal is not None:
            table.change_seal(None)


@contextlib.contextmanager
def thawed(*targets: Any) -> Iterator[None]:
    """Unseal functions inside a `with` block, and seal them again after it, as they were.

    What is registered inside is free: it gives no warning and is not refused, and what it changes
    is compiled again.

    Raises:
        FreezeError: A target is none.
    """
    if _watch.is_off():
        yield
        return
    functions = _targets.find(targets, "thawed")
    seals = [
        (function, seal)
        for function in functions
        if (table := _table.table_of(function)) is not None and (seal := table.seal) is not None
    ]
    for function, _ in seals:
        _table.watch(function).change_seal(None)
    try:
        yield
    finally:
        for function, seal in seals:
            table = _table.watch(function)
            if table.seal is None:
                table.change_seal(seal)


def is_frozen(function: Any) -> bool:
    """Whether a function of plum, or one bound to an instance, is sealed.

    Raises:
        FreezeError: It is no function of plum.
    """
    if _watch.is_off():
        return False
    (found,) = _targets.find((function,), "is_frozen")
    table = _table.table_of(found)
    return table is not None and table.seal is not None
