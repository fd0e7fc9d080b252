"""`install` and `registrations`: recording who registers what, from the import on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plum_freeze import _freeze, _hook, _late, _record, _targets
from plum_freeze._errors import FreezeError

if TYPE_CHECKING:
    from types import TracebackType

    from plum_freeze._record import Registration

_installed: dict[str, int] = {}
EVERYTHING = "*"


class Installation:
    """What `install` returns. Leaving it as a context manager, or `uninstall()`, ends it."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages
        self._is_on = bool(packages)

    def uninstall(self) -> None:
        """Stop recording these packages. What is frozen stays so. Calling it again is all right."""
        if not self._is_on:
            return
        self._is_on = False
        finder = _hook.finder(_late.LISTENER)
        for package in self.packages:
            _installed[package] -= 1
            if not _installed[package]:
                del _installed[package]
                if package == EVERYTHING:
                    finder.forget_all()
                else:
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
        FreezeError: A name is empty or relative.
    """
    if _freeze.is_off():
        return Installation(())
    if not packages:
        package = _targets.package_of(_targets.caller()[0])
        packages = (EVERYTHING if package == _targets.SCRIPT else package,)
    for package in packages:
        if not isinstance(package, str) or not all(package.split(".")):
            raise FreezeError(
                f"install({package!r}): that is no absolute name of a package. Write"
                ' install("mypkg"), or install() at the top of its __init__.'
            )
    if not _freeze.watch_everything():
        return Installation(())
    finder = _hook.finder(_late.LISTENER)
    for package in packages:
        _installed[package] = _installed.get(package, 0) + 1
        if package == EVERYTHING:
            finder.track_all()
        else:
            finder.track(package)
    return Installation(packages)


def registrations(*targets: Any) -> list[Registration]:
    """The registrations that were recorded, in order.

    Args:
        *targets: Packages, modules or functions, as for `freeze`: what was registered on their
            functions, and what their modules registered on others'. Default: the caller's
            top-level package; from a script, a notebook or the prompt everything but plum's own.

    Raises:
        FreezeError: A target is none.
    """
    if _freeze.is_off():
        return []
    if not targets:
        package = _targets.package_of(_targets.caller()[0])
        if package == _targets.SCRIPT:
            return [r for r in _record.all_of() if _targets.package_of(r.module) != "plum"]
        targets = (package,)
    functions = {id(f) for f in _targets.find(targets, "registrations", may_be_empty=True)}
    packages = _targets.names(targets) if "*" not in targets else set()
    return [
        r
        for r in _record.all_of()
        if id(r.function) in functions or any(_targets.is_within(r.module, p) for p in packages)
    ]
