"""The ways in: every registration, and every question that bypasses the cache, comes by here.

Plum's compiled code calls its own methods directly, so no single patch sees all; in the pure-Python
plum some registrations pass by several. The outermost tells.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Protocol

import wrapt

from plum_freeze import _plum, _slots
from plum_freeze._signatures import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plum_freeze._plum import Function


class Listener(Protocol):
    """Who is told."""

    def registering(
        self, function: Function | None, entries: list[Entry], proceed: Callable[[], Any]
    ) -> Any:
        """Around a registration: nothing has changed before `proceed()`.

        `function` is None where plum will make a new one. Returns what `proceed` returns, or raises
        to refuse the registration.
        """

    def invoking(self, function: Function, types: tuple[Any, ...]) -> Any:
        """In place of `Function.invoke`."""

    def resolving(self, function: Function, target: Any) -> Any:
        """In place of `Function.resolve_method`."""

    def delivered(self, promise: Any) -> None:
        """A promised type has got its type."""


# Resolution may run foreign code under plum's lock, which may wait for an import lock that this
# thread holds. Then the registration goes ahead as it would in plain plum.
LONGEST_WAIT = 1.0


@contextlib.contextmanager
def _not_while_resolving(function: Function | None) -> Iterator[None]:
    """Keep a registration out of the way of a thread that resolves earlier ones.

    Plum appends without a lock to a list that the resolving thread replaces: the registration can
    be lost, and the compiled plum can crash.
    """
    lock = None if function is None else _plum.lock_of(function)
    is_held = lock is not None and lock.acquire(timeout=LONGEST_WAIT)
    try:
        yield
    finally:
        if is_held and lock is not None:
            lock.release()


class _Thread(threading.local):
    is_registering = False


_thread = _Thread()


class _Wrappers:
    """One method for each way in, by the names of `_plum.ways_in`. The signature is wrapt's."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def tell(
        self, function: Function | None, entries: list[Entry], wrapped: Any, args: Any, kwargs: Any
    ) -> Any:
        """Tell of a registration, which the listener makes happen; not of one inside of another."""
        __tracebackhide__ = True
        if _thread.is_registering:
            return wrapped(*args, **kwargs)

        def proceed() -> Any:
            """Register, as plum does."""
            _thread.is_registering = True
            try:
                with _not_while_resolving(function):
                    return wrapped(*args, **kwargs)
            finally:
                _thread.is_registering = False

        return self.listener.registering(function, entries, proceed)

    def dispatcher(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        """`Dispatcher.__call__`: the function may not be there yet."""
        __tracebackhide__ = True
        method = args[0] if args else None
        if method is None:  # `dispatch(precedence=...)` makes a decorator, which comes by again
            return wrapped(*args, **kwargs)
        precedence = kwargs.get("precedence", 0)
        entries = [Entry(m, None, precedence) for m in _plum.overloads(method) or [method]]
        function = _plum.existing(instance, method)
        return self.tell(function, entries, wrapped, args, kwargs)

    def multi(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        __tracebackhide__ = True
        method, *signatures = args
        entries = [Entry(method, s, kwargs.get("precedence")) for s in signatures]
        return self.tell(_plum.existing(instance, method), entries, wrapped, args, kwargs)

    def dispatch(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        """`Function.dispatch`."""
        __tracebackhide__ = True
        method, precedence = _dispatch_arguments(*args, **kwargs)
        if method is None:
            return wrapped(*args, **kwargs)
        return self.tell(instance, [Entry(method, None, precedence)], wrapped, args, kwargs)

    def dispatch_multi(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        __tracebackhide__ = True
        entries = [Entry(args[0], s, None) for s in kwargs["signatures"]]
        return self.tell(instance, entries, wrapped, args, kwargs)

    def register(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        __tracebackhide__ = True
        entry = Entry(*_register_arguments(*args, **kwargs))
        return self.tell(instance, [entry], wrapped, args, kwargs)

    def invoke(self, _: Any, instance: Any, args: Any, __: Any) -> Any:
        __tracebackhide__ = True
        return self.listener.invoking(instance, args)

    def resolve_method(self, _: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self.listener.resolving(instance, *args, **kwargs)

    def deliver(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        self.listener.delivered(instance)
        return result


def _dispatch_arguments(method: Any = None, precedence: int = 0) -> tuple[Any, int]:
    return method, precedence


def _register_arguments(f: Any, signature: Any = None, precedence: Any = 0) -> tuple[Any, Any, Any]:
    return f, signature, precedence


_is_watching = threading.Event()


def watch(listener: Listener) -> None:
    """Patch every way in, once. A decorator object that was made before keeps plum's own."""
    if _is_watching.is_set():
        return
    _is_watching.set()
    _plum.keep_originals()
    wrappers = _Wrappers(listener)
    for cls, name, way in _plum.ways_in():
        wrapt.wrap_function_wrapper(cls, name, getattr(wrappers, way))
        if name == "__call__":
            _slots.call_what_the_class_says(cls)
