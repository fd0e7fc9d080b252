"""`freeze`, `thaw`, `thawed`, `is_frozen`: sealing functions, and what it needs around them."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

from plum_freeze import (
    _hook,
    _invalidation,
    _late,
    _plum,
    _questions,
    _record,
    _report,
    _table,
    _targets,
    _waiting,
    _ways_in,
    _world,
)
from plum_freeze._errors import FreezeError
from plum_freeze._report import Report
from plum_freeze._table import Seal, Table

log = logging.getLogger("plum_freeze")

POLICIES = ("warn", "raise", "accept")
Jit = bool | Callable[[Callable[..., Any]], bool] | Collection[Callable[..., Any]]

WRONG_POLICY = """\
on_late={value!r} is no policy{source}. It is one of "warn", "raise", "accept":
  "warn":   a late registration is accepted, what it changes is compiled again, and a warning
            says so;
  "raise":  it is refused before anything changes;
  "accept": as "warn" without the warning, for packages that others extend."""

OTHER_POLICY = """\
{function} was frozen at {first} with {old}, and {second} asks for {new}.
What to do: freeze it once; or plum_freeze.thaw({name}) before it is frozen again."""

NOT_FROZEN = """\
thaw: {function} is not frozen.
What to do: name a function for which plum_freeze.is_frozen() is true, or leave the call out."""

UNKNOWN_PLUM = """\
This plum-dispatch {version} lacks what plum_freeze relies on: {names}.
Nothing is frozen, and every function runs as plain plum.
What to do: pip install 'plum-dispatch>=2.10.1,<3', or tell the developers of plum_freeze which
version this is."""


def is_off() -> bool:
    """Whether PLUM_FREEZE=0 turns everything into no-ops."""
    return os.environ.get("PLUM_FREEZE", "").strip().lower() in ("0", "false", "no", "off")


# -- watching ------------------------------------------------------------------------------------

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
        for table in _tables():
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


def _tables() -> list[Table]:
    return [t for t in map(_table.table_of, _plum.functions()) if t is not None]


def _seals() -> list[tuple[Table, Seal]]:
    """The tables of all frozen functions, with their seals: another thread may thaw meanwhile."""
    return [(table, seal) for table in _tables() if (seal := table.seal) is not None]


def latest() -> Seal | None:
    """The latest seal that is in force: conversions and promotions belong to every frozen function.

    Libraries freeze when they are imported, and the program that imports them has the last word.
    """
    seals = [seal for _, seal in _seals()]
    return max(seals, key=lambda seal: seal.order, default=None)


# -- freezing ------------------------------------------------------------------------------------

# Packages that were frozen with jit: their methods may be jitted wherever they are registered.
_order = itertools.count()
_jitting_packages: dict[str, Callable[[Any], bool]] = {}


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
    on_late = _policy(on_late)
    jits = _predicate(jit)
    _invalidation.check_switch()
    if is_off():
        return Report([])
    functions = _targets.find(targets, "freeze")
    if not watch_everything():
        return Report([])
    _waiting.settle()
    _check_policies(functions, on_late, verify, where)
    names = _targets.names(targets) - {"*"}
    packages = {_targets.package_of(name) for name in names}
    named = {
        id(f) for t in targets if (f := _plum.function_of(t) if not isinstance(t, str) else None)
    }
    for package in packages:
        _jitting_packages[package] = jits
    everything = "*" in targets
    for function in functions:
        table = _table.watch(function)
        if table.seal is None:
            all_methods = everything or id(function) in named
            jits_here = jits if all_methods else _of_frozen_packages
            seal = Seal(on_late, jits_here, verify, where, next(_order))
            try:
                table.change_seal(seal)
                log.debug("sealed %s", _plum.name_of(function))
            except Exception as error:  # noqa: BLE001  the others are sealed, this one stays plain
                table.seal = None
                _report.failed[table] = f"{type(error).__name__}: {error}"
    for table, seal in _seals():
        if seal.jits is _of_frozen_packages:
            table.jit_methods(seal)
    _hook.finder(_late.LISTENER).track_all()
    log.info("froze %d functions at %s", len(functions), where)
    return Report(functions)


def _of_frozen_packages(method: Callable[..., Any]) -> bool:
    package = _targets.package_of(getattr(method, "__module__", None) or "")
    jits = _jitting_packages.get(package)
    return jits is not None and jits(method)


def _policy(on_late: str) -> str:
    forced = os.environ.get("PLUM_FREEZE_ON_LATE")
    found = {"": on_late} | ({} if forced is None else {" (from PLUM_FREEZE_ON_LATE)": forced})
    for source, value in found.items():
        if value not in POLICIES:
            raise FreezeError(WRONG_POLICY.format(value=value, source=source))
    return forced or on_late


def _predicate(jit: Any) -> Callable[[Any], bool]:
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


# -- thawing -------------------------------------------------------------------------------------


def thaw(*targets: Any) -> None:
    """Unseal functions for good: they are plain plum again, and registrations are free.

    Args:
        *targets: As for `freeze`.

    Raises:
        FreezeError: A target is none, or a function that was named is not frozen.
    """
    if is_off():
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
    if is_off():
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
    if is_off():
        return False
    (found,) = _targets.find((function,), "is_frozen")
    table = _table.table_of(found)
    return table is not None and table.seal is not None
