"""The hot path: for each tuple of argument types the shortest way to run a method.

Each runner is one Python frame around jit's own C++, with one check of what the method reads. What
it cannot decide goes to `Compiled.call`, which looks at everything.
"""

from __future__ import annotations

import enum
import inspect
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from plum_freeze import _apart, _dependencies, _jax, _running, _tracing, _written

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from plum_freeze._jit import Compiled
    from plum_freeze._variant import Variant

SIMPLE = frozenset({int, bool, str, bytes, float, type(None)})
"""Types of values that a `dict` tells apart by their bits, but for 0.0, if it is told the type."""

Runner: TypeAlias = "tuple[Callable[..., Any], Variant | Callable[..., Any] | None]"
"""What runs a call, and what an entry may run in its own frame: the variant, if arrays are all that
there is; the method itself, where it is inlined in a trace."""

MOST_FAST = 64
"""Sets of simple values that one entry finds with one look-up."""


def best(method: Compiled, types: tuple[type, ...], *, is_watched: bool = False) -> Runner:
    """The fastest way to run calls with positional arguments of exactly these types.

    Args:
        method: The method.
        types: The types.
        is_watched: Whether each look-up of what is returned is watched while a method is traced,
            as those in plum's own cache are.
    """
    if method.jits and not method.verify and types and all(map(_apart.is_array_class, types)):
        variant = method.variants.get(((_apart.ARRAY,) * len(types), ()))
        if variant is not None and variant.ready and variant.plain is None:
            return _of_arrays(method, types, variant), variant
    at = tracer_in(types)
    if method.jits and at is not None:
        # The method is inlined in the trace (rule 8). That is so if one tracer belongs to a trace
        # that is staged out, whatever else is passed. To take the call apart only to find that out
        # takes ten times as long.
        in_place = method.implementation if method.convert is None else None
        return _inlined(method, types, at), in_place
    return _otherwise(method, types, is_watched=is_watched), None


def tracer_in(types: tuple[type, ...]) -> int | None:
    """The position of the first tracer, if there is one."""
    return next((i for i, cls in enumerate(types) if _jax.is_tracer_class(cls)), None)


def _otherwise(
    method: Compiled, types: tuple[type, ...], *, is_watched: bool
) -> Callable[..., Any]:
    """For concrete arguments whose types do not tell the variant."""
    if not method.jits:
        return _plainly(method, types, is_watched=is_watched)
    if method.verify:
        return _any(method)
    arrays = [_apart.is_array_class(cls) for cls in types]
    simple = [cls in SIMPLE for cls in types]
    if any(arrays) and all(map(bool.__or__, arrays, simple)):
        return _of_simple(method, types)
    if any(cls in method.opaque for cls in types) or all(map(_has_no_arrays, types)):
        return _plainly(method, types, is_watched=is_watched)
    return _any(method)


def _has_no_arrays(cls: type) -> bool:
    """Whether no value of this class is an array, or has one in it. A class is such a value."""
    return cls in SIMPLE or issubclass(cls, (type, FunctionType, BuiltinFunctionType, enum.Enum))


def _any(method: Compiled) -> Callable[..., Any]:
    """For any arguments."""
    call = method.call

    def run(*args: Any, **kwargs: Any) -> Any:
        """Look at all of the call."""
        __tracebackhide__ = True
        try:
            return call(args, kwargs)
        except BaseException as error:
            _written.shorten(error)
            raise

    return run


def _plainly(
    method: Compiled, types: tuple[type, ...], *, is_watched: bool = False
) -> Callable[..., Any]:
    """For a method that is not jitted, or not for arguments of these types.

    An array can still come by keyword.
    """
    if _is_bare(method, types, is_watched=is_watched):
        return method.implementation
    return _inlined(method, types)


def _inlined(
    method: Compiled, types: tuple[type, ...], at: int | None = None
) -> Callable[..., Any]:
    """The method as its author wrote it, with its result converted."""
    convert = method.convert
    return _written.plain(len(types), converts=convert is not None, at=at)(
        method.implementation,
        _tracing.anywhere,
        method.note,
        _any(method) if method.jits else method.plain,
        convert,
        None if convert is None else convert.unchanged,
        _dependencies.anywhere,
        None if at is None else _jax.staged_trace_class(),
        _jax.transforms_eagerly,
    )


def _is_bare(method: Compiled, types: tuple[type, ...], *, is_watched: bool) -> bool:
    """Whether plum may call the method itself, with nothing of ours in its way.

    So it is where nothing is converted, no array can come by keyword that would be traced, and no
    trace around the call has to know of it: the look-up says so, or the method has no effect, reads
    nothing by name, and takes no more than simple values.
    """
    implementation = method.implementation
    if method.convert is not None or (method.jits and _takes_more(implementation, len(types))):
        return False
    if is_watched:
        return True
    return (
        isinstance(implementation, FunctionType)
        and SIMPLE.issuperset(types)
        and not method.why_never()
        and not _takes_more(implementation, len(types))
        and all(read.holder is implementation for read in method.guard.reads)
    )


def _takes_more(implementation: Callable[..., Any], count: int) -> bool:
    """Whether a method can be given something by keyword beside so many positional arguments."""
    if not isinstance(implementation, FunctionType):
        return True
    code = implementation.__code__
    by_name = code.co_argcount > count or code.co_kwonlyargcount
    return bool(by_name or code.co_flags & inspect.CO_VARKEYWORDS)


def _of_arrays(method: Compiled, types: tuple[type, ...], variant: Variant) -> Callable[..., Any]:
    """For calls with arrays alone: one check of what the method reads, and jit's own C++."""
    make = _written.of_arrays(len(types))
    return make(_tracing.anywhere, variant, _of_simple(method, types))


def _of_simple(method: Compiled, types: tuple[type, ...]) -> Callable[..., Any]:
    """For arrays with simple static values between them, or by keyword: one look-up more."""
    traces = method.marks.traces
    static = tuple(i for i, cls in enumerate(types) if cls in SIMPLE and not traces(i))
    known = method.fast.setdefault(types, {})

    def find(key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        if key is None:
            return method.call(args, kwargs)
        return _find(method, known, key, args, kwargs)

    def by_name(
        values: tuple[Any, ...], arrays: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Hashable, tuple[Any, ...]]:
        return _by_name(method, values, arrays, kwargs)

    make = _written.by_value(len(types), static)
    return make(_tracing.anywhere, known, by_name, find)


def _by_name(
    method: Compiled, values: tuple[Any, ...], arrays: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Hashable, tuple[Any, ...]]:
    """The key of a call with keywords, and all its arrays in the order in which jit takes them.

    The key is None if there is more than arrays and simple values.
    """
    if method.marks.traced:
        return None, ()
    key: list[Hashable] = [values]
    named: list[Any] = [*arrays]
    for name, value in method.marks.in_order(kwargs):
        cls = type(value)
        if cls in _apart.array_classes:
            named.append(value)
            key.append(name)
        elif cls in SIMPLE:
            key.append((name, cls, value))
        else:
            return None, ()
    return tuple(key), tuple(named)


def _find(
    method: Compiled,
    known: dict[Hashable, Variant],
    key: Hashable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run the call, and remember its variant once it is compiled."""
    __tracebackhide__ = True
    arrays: list[Any] = []
    variant = method.variant(args, kwargs, arrays)
    if variant is None:
        return method.plain(*args, **kwargs)
    result = _running.run(variant, arrays, args, kwargs)
    if (
        variant.ready
        and variant.plain is None
        and len(known) < MOST_FAST
        # 0.0 == -0.0; and a NaN is found by its identity only
        and not any(type(value) is float and value == 0 for value in (*args, *kwargs.values()))
    ):
        known[key] = variant
    return result
