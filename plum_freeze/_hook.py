"""The import hook: who starts executing, who ends, and how.

One finder at the front of `sys.meta_path` asks the other finders, and puts a proxy around the
loader they return. The proxy overrides `exec_module` and nothing else, and steps aside before
the module's body runs. What it has to get along with comes from public bug reports against the
hooks of wrapt, jaxtyping, typeguard, pytest, ddtrace, importhook and virtualenv; each is a test
in `tests/test_hook.py`.
"""

from __future__ import annotations

import copy
import importlib.util
import operator
import sys
import threading
from importlib.machinery import NamespaceLoader, SourceFileLoader
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import wrapt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_F = TypeVar("_F", bound="Callable[..., Any]")

# Nothing in here registers methods with plum: the standard library, and ourselves.
_NEVER_TRACKED = sys.stdlib_module_names | {"plum_freeze"}

# Those that have `find_module` only. Where one comes first, the search is left to importlib.
_IMPORTLIB_ASKS_OLD_FINDERS: bool = sys.version_info < (3, 12)


class Listener(Protocol):
    """Who is told about the modules that pass by. Called on the importing thread, without a lock.

    Neither call may wait for another thread that imports: that thread may wait for this module.
    """

    def started(self, name: str) -> None:
        """The module's body is about to run. What is raised here makes the import fail."""

    def ended(self, name: str, module: ModuleType | None, error: BaseException | None) -> None:
        """Tell that the body has run: exactly once for each `started`.

        `module` is the module that was executed, also where it has put something else into
        `sys.modules`; it is None where the body failed with `error`, which may be a `SystemExit`.
        What is raised here after a success makes the import fail, as a failing body does.
        """


class _PerThread(threading.local):
    """Imports nest per thread: another thread's are none of ours."""

    def __init__(self) -> None:
        self.searching: set[str] = set()
        self.executing: list[str] = []


_per_thread = _PerThread()
_seen: set[str] = set()


def executing() -> tuple[str, ...]:
    """The modules whose bodies this thread runs now through our loader, outermost first."""
    return tuple(_per_thread.executing)


def seen(name: str) -> bool:
    """Whether this module's body has ever gone through our loader, even if it failed."""
    return name in _seen


def _as_importlib(function: _F) -> _F:
    """Give `function` the file name of importlib's own code.

    Python leaves importlib's frames out of the traceback of a failing import, and does not count
    them in the `stacklevel` of a warning; it knows them by their file name. With a frame of ours
    in between, each level of a failing import shows four frames more, and the deprecation
    warning of a module blames us instead of the code that imports it. The price: breakpoints
    and line coverage do not find these two functions.
    """
    filename = importlib.util.spec_from_loader.__code__.co_filename
    code = function.__code__
    cast("Any", function).__code__ = code.replace(co_filename=filename)
    return function


class _Loader(wrapt.BaseObjectProxy):  # type: ignore[type-arg]
    """A loader, except that its `exec_module` tells the finder's listener.

    A proxy, because loaders are shared between modules or are classes (frozen modules), so that
    nothing may be set on them. wrapt's base proxy, because `ObjectProxy` adds an `__iter__`.
    """

    def __init__(self, loader: Any, finder: Finder, name: str) -> None:
        super().__init__(loader)
        self._self_told = finder, name

    @_as_importlib
    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and tell when that begins and ends."""
        __tracebackhide__ = True
        (finder, name), stack = self._self_told, _per_thread.executing
        listener, loader = finder.listener, self.__wrapped__
        self._self_step_aside(module)
        listener.started(name)
        stack.append(name)
        _seen.add(name)
        try:
            loader.exec_module(module)
        except BaseException as error:
            stack.pop()
            listener.ended(name, None, error)
            raise
        stack.pop()
        listener.ended(name, module, None)

    def _self_step_aside(self, module: ModuleType) -> None:
        """Put the original loader back: the module's body is to find what it would without us."""
        try:
            # Not `module.__dict__`: a lazy module would load itself, and PEP 562 would be asked.
            namespace = object.__getattribute__(module, "__dict__")
        except AttributeError:
            return  # a multi-phase extension may make an object that has none
        if namespace.get("__loader__") is self:
            namespace["__loader__"] = self.__wrapped__
        spec = namespace.get("__spec__")
        if getattr(spec, "loader", None) is self:
            spec.loader = self.__wrapped__

    # wrapt's proxies refuse to be copied and pickled, since what becomes of the wrapper is open.
    # Here it is not: tools that copy a spec want its loader, and ours is gone when it is used.

    def __copy__(self) -> Any:
        return copy.copy(self.__wrapped__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.__wrapped__, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # "The first of a tuple of one": the pickle names nothing of ours.
        return operator.getitem, ((self.__wrapped__,), 0)


class Finder:
    """The finder on `sys.meta_path`. There is one for all packages, made by `finder`."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._everything = 0  # how many want everything
        # Replaced as a whole, under the lock. `find_spec` reads them without it.
        self._prefixes: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def track(self, package: str) -> None:
        """Tell the listener about `package` and its submodules, if they are imported from now on.

        Raises:
            ValueError: If `package` is empty or a relative name.
        """
        if not package or package.startswith(".") or package.endswith("."):
            raise ValueError(f"{package!r} is no absolute name of a package")
        with self._lock:
            self._prefixes = (*dict.fromkeys((*self._prefixes, package + ".")),)

    def track_all(self) -> None:
        """Tell the listener about every module that is not of the standard library.

        Calls count: an installation that ends must not end what `freeze()` has begun.
        """
        with self._lock:
            self._everything += 1

    def forget(self, package: str) -> None:
        """Undo `track(package)`. What is being imported now still ends."""
        with self._lock:
            self._prefixes = tuple(p for p in self._prefixes if p != package + ".")

    def forget_all(self) -> None:
        """Undo one `track_all()`. Packages that are tracked by their names stay so."""
        with self._lock:
            self._everything = max(0, self._everything - 1)

    def tracks(self, name: str) -> bool:
        """Whether the listener is told about the module of this name."""
        if (name + ".").startswith(self._prefixes):
            return True
        return self._everything > 0 and name.partition(".")[0] not in _NEVER_TRACKED

    @_as_importlib
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders on `sys.meta_path` find, with our proxy around the loader.

        Nothing is imported and no lock is taken on the way: another thread may hold any import
        lock, and wait for this one.
        """
        __tracebackhide__ = True
        if not self.tracks(fullname):
            return None
        searching = _per_thread.searching
        if fullname in searching:
            return None  # another hook asks all finders in turn: we are below ourselves
        searching.add(fullname)
        try:
            # Not `importlib.util.find_spec`: it imports the parent, and waits forever where the
            # parent's `__init__` waits for the thread that we are on.
            for other in tuple(sys.meta_path):
                if other is self:
                    continue
                search = getattr(other, "find_spec", None)
                if search is None:
                    if _IMPORTLIB_ASKS_OLD_FINDERS:
                        return None
                    continue
                spec: ModuleSpec | None = search(fullname, path, target)
                if spec is not None:
                    spec.loader = self._watched(spec.loader, fullname)
                    return spec
        finally:
            searching.discard(fullname)
        return None

    def _watched(self, loader: Any, name: str) -> Any:
        """`loader` with our proxy around it, where there is a body to watch."""
        if type(loader) is SourceFileLoader:  # nearly all are
            return _Loader(loader, self, name)
        if isinstance(loader, importlib.util.LazyLoader):
            # Its `exec_module` returns at once, and hands over to its own loader later.
            lazy: Any = copy.copy(loader)
            lazy.loader = self._watched(lazy.loader, name)
            return lazy
        if type(loader) is _Loader or isinstance(loader, NamespaceLoader):
            return loader
        return _Loader(loader, self, name) if hasattr(loader, "exec_module") else loader


_the_finder: Finder | None = None
_the_finder_lock = threading.Lock()


def finder(listener: Listener) -> Finder:
    """The finder of this process, with `listener` from now on, on `sys.meta_path`.

    It goes to the front once. It is never taken out again, because CPython then skips the
    finder behind it (issue 130101); where somebody else has taken it out, it is put back.
    """
    global _the_finder  # noqa: PLW0603 - one for the process, made when it is first wanted
    with _the_finder_lock:
        if _the_finder is None:
            _the_finder = Finder(listener)
        _the_finder.listener = listener
        if not any(other is _the_finder for other in sys.meta_path):
            sys.meta_path.insert(0, _the_finder)
        return _the_finder
