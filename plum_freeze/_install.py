"""`install` and `registrations`: recording who registers what, from the import on."""

from __future__ import annotations

import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Self

from plum_freeze import _hook, _invalidation, _late, _record, _targets, _waiting, _watch
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from types import TracebackType

    from plum_freeze._record import Registration

EVERYTHING = "*"
MOST_NAMES = 10

_installed: dict[str, int] = {}  # how many installations a package has
_lock = threading.Lock()
_told: set[str] = set()  # modules that the warning below has named

EARLY = """\
install({package}) came after {count} had registered methods: {names}.
These registrations are adopted: their functions can be frozen, and results are right. But each is
recorded under the module that implements the method, and not in the order of the imports.
What to do: call plum_freeze.install({package}) before these modules are imported; in a package at
the top of its __init__."""


class Installation:
    """What `install` returns. Leaving it as a context manager, or `uninstall()`, ends it."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages
        self._is_on = bool(packages)

    def uninstall(self) -> None:
        """Stop following the imports of these packages. Calling it again is all right.

        What is recorded and what is frozen stays so, and so does what other installations, and
        `freeze()`, follow.
        """
        with _lock:
            if not self._is_on:
                return
            self._is_on = False
            finder = _hook.finder(_late.LISTENER)
            for package in self.packages:
                _installed[package] -= 1
                if package == EVERYTHING:
                    finder.forget_all()
                elif not _installed[package]:
                    finder.forget(package)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.uninstall()

    def __repr__(self) -> str:
        state = "recording" if self._is_on else "ended"
        return f"<plum_freeze installation ({state}): {', '.join(self.packages)}>"


def install(*packages: str) -> Installation:
    """Record the registrations that packages make while they are imported.

    Put it at the top of a package's `__init__`. It is idempotent, and adopts what is registered
    already. From here on jit caches are safe: a registration that changes a decision makes what
    was compiled with it compile again, on frozen functions and on others.

    Args:
        *packages: Names of top-level packages, or of packages in them. Default: the caller's
            top-level package; from a script, a notebook or the prompt everything.

    Returns:
        A context manager with an idempotent `uninstall()`.

    Raises:
        FreezeError: A name is empty or relative, or PLUM_FREEZE_INVALIDATION is no way of it.

    Warns:
        UserWarning: Modules of the packages registered methods before. It names each once.
    """
    _invalidation.check_switch()
    if _watch.is_off():
        return Installation(())
    caller = _targets.caller()[0]
    if not packages:
        package = _targets.package_of(caller)
        packages = (EVERYTHING if package == _targets.SCRIPT else package,)
    for package in packages:
        if not isinstance(package, str) or not all(package.split(".")):
            raise FreezeError(
                f"install({package!r}): that is no absolute name of a package. Write"
                ' install("mypkg"), or install() at the top of its __init__.'
            )
    if not _watch.watch_everything():
        return Installation(())
    _waiting.settle()
    _warn_of_early_modules(packages, caller)
    with _lock:
        finder = _hook.finder(_late.LISTENER)
        for package in packages:
            _installed[package] = _installed.get(package, 0) + 1
            if package == EVERYTHING:
                finder.track_all()
            else:
                finder.track(package)
    return Installation(packages)


def _warn_of_early_modules(packages: tuple[str, ...], caller: str) -> None:
    """Say which modules registered methods before anybody followed their imports."""
    early = {
        r.module: None
        for r in _record.all_of()
        if r.phase in ("adopted", "import") and _is_early(r.module, packages, caller)
    }
    if not early:
        return
    names = list(early)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    text = EARLY.format(
        package=", ".join("" if p == EVERYTHING else f'"{p}"' for p in packages),
        count="1 module" if len(names) == 1 else f"{len(names)} modules",
        names=", ".join(names[:MOST_NAMES]) + more,
    )
    warnings.warn(text, UserWarning, stacklevel=3)
    _told.update(names)


def _is_early(module: str, packages: tuple[str, ...], caller: str) -> bool:
    if module in (caller, _targets.SCRIPT) or module in _told or module not in sys.modules:
        return False
    if _hook.seen(module) or _targets.package_of(module) == "plum":
        return False
    return any(p == EVERYTHING or _targets.is_within(module, p) for p in packages)


def registrations(*targets: Any) -> list[Registration]:
    """The registrations that were recorded, in order.

    Args:
        *targets: Packages, modules or functions, as for `freeze`: what was registered on their
            functions, and what their modules registered on others'. Default: the caller's
            top-level package; from a script, a notebook or the prompt everything but plum's own.

    Raises:
        FreezeError: A target is none.
    """
    if _watch.is_off():
        return []
    _waiting.settle()
    if not targets:
        package = _targets.package_of(_targets.caller()[0])
        targets = (EVERYTHING if package == _targets.SCRIPT else package,)
    if EVERYTHING in targets:
        return [r for r in _record.all_of() if _targets.package_of(r.module) != "plum"]
    functions = {id(f) for f in _targets.find(targets, "registrations", may_be_empty=True)}
    packages = _targets.names(targets)
    return [
        r
        for r in _record.all_of()
        if id(r.function) in functions or any(_targets.is_within(r.module, p) for p in packages)
    ]
