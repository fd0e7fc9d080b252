"""What changes decisions without being a registration.

`SomeABC.register(Cls)` makes another method the right one, and so does the delivery of a promised
type. Plain plum is stale after either, until its cache is cleared and its methods are registered
again; frozen functions are not.
"""

from __future__ import annotations

import abc
import functools
import logging
from typing import TYPE_CHECKING, Any

import wrapt

from plum_freeze import _convert, _jax, _plum, _table

if TYPE_CHECKING:
    from plum_freeze._table import Table

log = logging.getLogger("plum_freeze")

# Functions with promised types in their signatures, by the id of the type.
_waiting: dict[int, list[Any]] = {}
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
        _jax.epoch.move()


def _tables() -> list[Table]:
    found = (_table.table_of(function) for function in _plum.functions())
    return [table for table in found if table is not None]


# -- promised types ------------------------------------------------------------------------------


def await_promises(table: Table) -> None:
    """Register the function again once the promised types in its signatures are delivered."""
    for method in _plum.resolved_methods(table.function):
        for promise in _plum.promised_types(method):
            tables = _waiting.setdefault(id(promise), [promise])
            if not any(table is other for other in tables[1:]):
                tables.append(table)
                module = _plum.module_of_promise(promise)
                if module is not None:
                    hook = functools.partial(_retrieve, promise)
                    wrapt.register_post_import_hook(hook, module)


def _retrieve(promise: Any, _: Any) -> None:
    """The module of a `plum.ModuleType` has been imported."""
    if id(promise) in _waiting:
        promise.retrieve()  # delivers, and `delivered` is told


def delivered(promise: Any) -> None:
    """A promised type has got its type: plum resolves the signatures with it again."""
    for table in _waiting.pop(id(promise), [promise])[1:]:
        log.info("%s: %s was delivered", _plum.name_of(table.function), promise)
        _plum.register_again(table.function)
        table.invalidate()
