"""What changes decisions without being a registration.

`SomeABC.register(Cls)` makes another method the right one, and so does the delivery of a promised
type. Plain plum is stale after either, until its cache is cleared and its methods are registered
again; frozen functions are not.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import logging
import weakref
from typing import TYPE_CHECKING, Any

import wrapt

from plum_freeze import _convert, _invalidation, _plum, _table

if TYPE_CHECKING:
    from plum_freeze._table import Table

log = logging.getLogger("plum_freeze")

_token = abc.get_cache_token()


def watch() -> None:
    """Be told of virtual subclasses from now on."""
    global _token  # noqa: PLW0603
    _token = abc.get_cache_token()
    if not isinstance(abc.ABCMeta.__dict__["register"], wrapt.BaseObjectProxy):
        wrapt.wrap_function_wrapper(abc.ABCMeta, "register", _on_register)


def _on_register(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
    result = wrapped(*args, **kwargs)
    subclass = args[0] if args else kwargs.get("subclass")
    if isinstance(subclass, type):
        virtual_subclass(subclass)
    return result


def virtual_subclass(cls: type) -> None:
    """`cls` is a subclass of more than before: what was decided for its instances may change."""
    global _token  # noqa: PLW0603
    _token = abc.get_cache_token()
    for table in _tables():
        decisions = list(table.decisions.values())
        if table.blind or any(_is_about(decision.types, cls) for decision in decisions):
            log.info("%s: %s was registered with an ABC", table.function.__name__, cls.__qualname__)
            table.invalidate()
    _convert.forget_all()


def _is_about(types: tuple[Any, ...], cls: type) -> bool:
    return any(cls in t.__mro__ if isinstance(t, type) else True for t in types)


def check_token() -> None:
    """At a miss: whether classes were registered with an ABC in a way that nobody told us of."""
    global _token  # noqa: PLW0603
    token = abc.get_cache_token()
    if token != _token:
        _token = token
        for table in _tables():
            table.clear()
        _invalidation.everything()


def _tables() -> list[Table]:
    found = (_table.table_of(function) for function in _plum.functions())
    return [table for table in found if table is not None]


# -- promised types ------------------------------------------------------------------------------

# The promises whose module is waited for; and those that are kept, with the tables of functions
# that were registered again for it. Once is enough: plum leaves the promise in some signatures.
_awaited: weakref.WeakSet[Any] = weakref.WeakSet()
_kept: weakref.WeakKeyDictionary[Any, list[weakref.ref[Table]]] = weakref.WeakKeyDictionary()


def settle_promises(table: Table) -> None:
    """Wait for the promised types in the signatures of a frozen function.

    Where one was delivered since plum resolved the signature, plum resolves it again. While plum
    resolves, registrations are pending until it is done and clears the table.
    """
    function = table.function
    if table.seal is None or _plum.has_pending(function):
        return
    for promise in _plum.promised_types(function):
        if _plum.is_delivered(promise):
            _keep(table, promise)
        elif promise not in _awaited:
            _await_module(promise)
    if _plum.has_pending(function):
        _plum.resolve_pending(function)  # whoever cleared the table expects to find methods


def _await_module(promise: Any) -> None:
    """Deliver a `plum.ModuleType` when its module is imported; at once if it has been."""
    module = _plum.module_of_promise(promise)
    if module is not None:
        _awaited.add(promise)
        wrapt.register_post_import_hook(functools.partial(_retrieve, weakref.ref(promise)), module)


def _retrieve(reference: Any, _: Any) -> None:
    promise = reference()
    if promise is not None:
        _awaited.discard(promise)  # where it fails it is tried again
        # What fails here is no concern of who imports the module. Plum raises it where it resolves
        # an annotation with the promise.
        with contextlib.suppress(Exception):
            promise.retrieve()  # delivers, and `delivered` is told


def delivered(promise: Any) -> None:
    """A promised type has got its type: plum resolves the signatures with it again."""
    for table in _tables():
        if table.seal is not None and promise in _plum.promised_types(table.function):
            _keep(table, promise)


def _keep(table: Table, promise: Any) -> None:
    function = table.function
    done = _kept.setdefault(promise, [])
    if any(reference() is table for reference in done):
        return
    log.info("%s: %s was delivered", _plum.name_of(function), promise)
    # What is pending stays so, and when plum has resolved it, the table is cleared.
    if not _plum.has_pending(function):
        done.append(weakref.ref(table))
        _plum.register_again(function)
    table.invalidate()
