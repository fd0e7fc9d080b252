"""The hot path: for each tuple of argument types the shortest way to run a method.

Each runner is one Python frame around jit's own C++, with one check of what the method reads. What
it cannot decide goes to `Compiled.call`, which looks at everything.
"""

from __future__ import annotations

import enum
import inspect
from operator import itemgetter
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from plum_freeze import _apart, _jax, _tracing
from plum_freeze import _plainly as _plain_runners

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from plum_freeze._jit import Compiled
    from plum_freeze._variant import Variant

SIMPLE = frozenset({int, bool, str, bytes, float, type(None)})
"""Types of values that a `dict` tells apart by their bits, but for 0.0, if it is told the type."""

MOST_FAST = 64
"""Sets of simple values that one entry finds with one look-up."""


def best(method: Compiled, types: tuple[type, ...]) -> Callable[..., Any]:
    """The fastest way to run calls with positional arguments of exactly these types."""
    if not method.jits:
        return _plainly(method, types)
    if any(map(_jax.is_tracer_class, types)):
        return _of_tracers(method, types)
    if method.verify:
        return _any(method)
    arrays = [_apart.is_array_class(cls) for cls in types]
    if types and all(arrays):
        key = ((_apart.ARRAY,) * len(types), ())
        variant = method.variants.get(key)
        if variant is not None and variant.ready and variant.plain is None:
            return _of_arrays(method, types, variant)
    simple = [cls in SIMPLE for cls in types]
    if any(arrays) and all(map(bool.__or__, arrays, simple)):
        return _of_simple(method, types)
    if any(cls in method.opaque for cls in types) or all(map(_has_no_arrays, types)):
        return _plainly(method, types)
    return _any(method)


def _has_no_arrays(cls: type) -> bool:
    """Whether no value of this class is an array, or has one in it. A class is such a value."""
    return cls in SIMPLE or issubclass(cls, (type, FunctionType, BuiltinFunctionType, enum.Enum))


def _any(method: Compiled) -> Callable[..., Any]:
    """For any arguments."""
    call = method.call

    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return call(args, kwargs)
        except BaseException as error:
            shorten(error)
            raise

    return run


def _plainly(method: Compiled, types: tuple[type, ...]) -> Callable[..., Any]:
    """For a method that is not jitted, or not for arguments of these types.

    An array can still come by keyword.
    """
    if _is_bare(method, types):
        return method.implementation
    convert = method.convert
    return _plain_runners.maker(len(types), converts=convert is not None)(
        method.implementation,
        _tracing.anywhere,
        method.note,
        _any(method) if method.jits else method.plain,
        convert,
        None if convert is None else convert.unchanged,
    )


def _is_bare(method: Compiled, types: tuple[type, ...]) -> bool:
    """Whether plum may call the method itself, with nothing of ours in its way.

    So it is where neither a conversion nor a trace around the call has to know of it: the method
    has no effect, reads nothing by name, and takes no more than these simple values.
    """
    implementation = method.implementation
    if method.convert is not None or method.why_never() or not SIMPLE.issuperset(types):
        return False
    if not isinstance(implementation, FunctionType):
        return False
    code = implementation.__code__
    takes_more = code.co_argcount > len(types) or code.co_kwonlyargcount
    return (
        not takes_more
        and not code.co_flags & inspect.CO_VARKEYWORDS
        and all(read.holder is implementation for read in method.guard.reads)
    )


def _of_tracers(method: Compiled, types: tuple[type, ...]) -> Callable[..., Any]:
    """For calls inside a trace: the method is inlined in it (rule 8).

    That is so if one tracer belongs to a trace that is staged out, whatever else is passed. To take
    the call apart only to find that out takes ten times as long.
    """
    at = next(i for i, cls in enumerate(types) if _jax.is_tracer_class(cls))
    inlined, otherwise = _plainly(method, types), _any(method)

    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if kwargs or _jax.transforms_eagerly((args[at],)):
            return otherwise(*args, **kwargs)
        return inlined(*args)

    return run


def _of_arrays(method: Compiled, types: tuple[type, ...], variant: Variant) -> Callable[..., Any]:
    """For calls with arrays alone: one check of what the method reads, and jit's own C++."""
    jitted, anywhere, otherwise = variant.jitted, _tracing.anywhere, _of_simple(method, types)

    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            # `changed` is looked up at each call: a trace for another shape may add to it
            if kwargs or anywhere or variant.changed():
                return otherwise(*args, **kwargs)
            try:
                result = jitted(*args)
                return result if variant.finish is None else variant.finish(result)
            except (Exception, _tracing.Stop) as error:
                why, ours = method.why_plain(variant, error, args)
                if not ours:
                    raise
            return method.fall_back(variant, why, args, kwargs)
        except BaseException as error:
            shorten(error)
            raise

    return run


def _of_simple(method: Compiled, types: tuple[type, ...]) -> Callable[..., Any]:
    """For arrays with simple static values between them, or by keyword: one look-up more."""
    traces = method.marks.traces
    passed = [i for i, cls in enumerate(types) if cls not in SIMPLE or traces(i)]
    static = [i for i in range(len(types)) if i not in passed]
    values, arrays = _getter(static), _getter(passed)
    known = method.fast.setdefault(types, {})
    get, anywhere, simple = known.get, _tracing.anywhere, SIMPLE.issuperset
    traces_keywords = bool(method.marks.traced)

    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            key: Hashable
            if not kwargs:
                key = values(args)
            elif traces_keywords or not simple(map(type, kwargs.values())):
                return method.call(args, kwargs)
            else:
                key = (values(args), *kwargs.items(), *map(type, kwargs.values()))
            variant = get(key)
            if variant is None or anywhere or variant.changed():
                return _find(method, known, key, args, kwargs)
            try:
                result = variant.jitted(*arrays(args))
                return result if variant.finish is None else variant.finish(result)
            except (Exception, _tracing.Stop) as error:
                why, ours = method.why_plain(variant, error, arrays(args))
                if not ours:
                    raise
            return method.fall_back(variant, why, args, kwargs)
        except BaseException as error:
            shorten(error)
            raise

    return run


def _getter(positions: list[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function in C that picks positions from a tuple, as a tuple."""
    if positions == list(range(len(positions))):
        return itemgetter(slice(len(positions)))
    if len(positions) == 1:
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions)


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
    result = method.run(variant, arrays, args, kwargs)
    if (
        variant.ready
        and variant.plain is None
        and len(known) < MOST_FAST
        # 0.0 == -0.0; and a NaN is found by its identity only
        and not any(type(value) is float and value == 0 for value in (*args, *kwargs.values()))
    ):
        known[key] = variant
    return result


_OURS = str(Path(__file__).parent)


def shorten(error: BaseException) -> None:
    """Take the frames of ours out of a traceback, but for the one that the caller is in."""
    top = error.__traceback__
    inner = None if top is None else top.tb_next
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OURS):
        inner = inner.tb_next
    if top is not None and inner is not None:
        top.tb_next = inner
