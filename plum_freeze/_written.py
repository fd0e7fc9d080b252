"""The runners that are written out for a number of arguments, for speed.

Plum calls with a tuple and a dict. A runner that takes `*args, **kwargs` makes both anew, and so
does what it calls: with a parameter for each argument a frozen call of an `int` method takes
1.55 us in place of 1.71, and one of `int -> int` 1.80 in place of 2.06 [measured].
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plum_freeze import _tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_PLAIN = """\
def make(implementation, anywhere, note, otherwise, convert, unchanged, traces, eagerly):
    def run({parameters}**kwargs):
        __tracebackhide__ = True
        if kwargs{or_eagerly}:
            return otherwise({arguments}**kwargs)
        if anywhere:
            note(({arguments}))
        {end}
    return run
"""
_AS_IT_IS = "return implementation({arguments})"
_CONVERTED = """\
result = implementation({arguments})
        return result if id(type(result)) in unchanged and not traces else convert(result)"""

# What it cannot decide goes to where all is looked at. `changed` is looked up at each call, because
# a trace for another shape may add to it.
_JITTED = """\
def make(method, anywhere, shorten, {names}):
    def run({parameters}**kwargs):
        __tracebackhide__ = True
        try:
            {find}
            try:
                result = {jitted}
                return result if variant.finish is None else variant.finish(result)
            except Failed as error:
                why, ours = method.why_plain(variant, error, {passed})
                if not ours:
                    raise
            return method.fall_back(variant, why, ({arguments}), kwargs)
        except BaseException as error:
            shorten(error)
            raise
    return run
"""
_ONE_VARIANT = """\
if kwargs or anywhere or variant.changed():
                return otherwise({arguments}**kwargs)"""
_BY_VALUE = """\
key, arrays = ({values}), ({arrays})
            if kwargs:
                key, arrays = by_name(key, arrays, kwargs)
            variant = known.get(key)
            if variant is None or anywhere or variant.changed():
                return otherwise(key, ({arguments}), kwargs)"""

SOURCE_NAME: Final = str(Path(__file__).with_name("<runner>"))
"""Where this code says it is from. Tracebacks leave our folder out."""

# To compile takes 150 us, and few runners differ.


@functools.lru_cache(maxsize=128)
def plain(
    count: int, *, converts: bool, tracer: int | None = None
) -> Callable[..., Callable[..., Any]]:
    """For a method that runs as its author wrote it.

    Args:
        count: The number of positional arguments.
        converts: Whether the result is converted.
        tracer: The position of a tracer: then not where `grad` and its like run with no jit around.
    """
    arguments = _named(range(count))
    end = (_CONVERTED if converts else _AS_IT_IS).format(arguments=arguments)
    or_eagerly = "" if tracer is None else f" or eagerly((argument_{tracer},))"
    return _made(_PLAIN, count, end=end, or_eagerly=or_eagerly)


@functools.lru_cache(maxsize=128)
def of_arrays(count: int) -> Callable[..., Callable[..., Any]]:
    """For so many positional arguments that are all arrays: one variant is for all calls."""
    arguments = _named(range(count))
    return _made(
        _JITTED,
        count,
        names="variant, jitted, otherwise",
        find=_ONE_VARIANT.format(arguments=arguments),
        jitted=f"jitted({arguments})",
        passed=f"({arguments})",
    )


@functools.lru_cache(maxsize=128)
def by_value(count: int, static: Collection[int]) -> Callable[..., Callable[..., Any]]:
    """For arrays with static values at some positions, which tell the variant."""
    arrays = [i for i in range(count) if i not in static]
    find = _BY_VALUE.format(
        values=_named(static), arrays=_named(arrays), arguments=_named(range(count))
    )
    return _made(
        _JITTED,
        count,
        names="known, by_name, otherwise",
        find=find,
        jitted="variant.jitted(*arrays)",
        passed="arrays",
    )


def _named(positions: Collection[int]) -> str:
    return "".join(f"argument_{i}, " for i in positions)


def _made(template: str, count: int, **texts: object) -> Callable[..., Callable[..., Any]]:
    arguments = _named(range(count))
    parameters = f"{arguments}/, " if count else ""
    source = template.format(parameters=parameters, arguments=arguments, **texts)
    # Code that walks the stack reads the names of modules: wbml, under Stheno and matrix, does.
    namespace: dict[str, Any] = {"__name__": __name__, "Failed": (Exception, _tracing.Stop)}
    exec(compile(source, SOURCE_NAME, "exec"), namespace)  # noqa: S102  all of it is here
    found: Callable[..., Callable[..., Any]] = namespace["make"]
    return found
