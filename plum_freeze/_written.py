"""The runners that are written out for a number of arguments, for speed.

Plum calls with a tuple and a dict. A runner that takes `*args, **kwargs` makes both anew, and so
does what it calls: with a parameter for each argument a frozen call of an `int` method takes
1.55 us in place of 1.71, and one of `int -> int` 1.80 in place of 2.06 [measured].
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plum_freeze import _running, _tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_PLAIN = """\
def make(implementation, anywhere, note, otherwise, convert, unchanged, traces, staged, eagerly):
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
def make(anywhere, {given}):
    def run({parameters}**kwargs):
        __tracebackhide__ = True
        try:
            {find}
            try:
                result = variant.jitted({arrays})
                return result if variant.finish is None else variant.finish(result)
            except Failed as error:
                instead = instead_of(variant, error, ({arrays},))
                if instead is None:
                    raise
            return instead(variant, ({arrays},), ({arguments}), kwargs)
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

# More than the types decides: which method runs is looked up. It runs in the same frame where all
# arguments are arrays, and where a trace is staged out. The thread-locals of jaxtyping are asked
# directly: 70 ns each, but 900 while they are unset.
_BY_KEY = """\
try:
                {busy}
                key = UNCACHED if {is_busy} else {key}
            except Uncacheable:
                key = UNCACHED
            try:
                runner, {direct}, decision = runners[key]
            except KeyError:
                runner = {direct} = None
            if {indirectly}:
                if runner is None:
                    runner = resolve(({arguments}), key)
                elif traces:
                    note(decision, 2)  # this frame, and who calls it
                    {inline}
                return runner({arguments}**kwargs) if kwargs else runner({arguments})"""
# What the entry has beside the runner, to run in its own frame; when it goes by the runner.
_COMPILED = {
    "direct": "variant",
    "indirectly": "variant is None or kwargs or traces or anywhere or variant.changed()",
    "inline": "",
}
_TRACED = {  # always: but first it looks whether the method itself may be inlined here
    "direct": "method",
    "indirectly": "True",
    "inline": """\
if method is not None and type({tracer}._trace) is staged and not kwargs and not anywhere:
                        return method({arguments})""",
}

_OURS = str(Path(__file__).parent)

SOURCE_NAME: Final = str(Path(_OURS, "<runner>"))
"""Where this code says it is from. Tracebacks leave our folder out."""

# To compile takes 150 us, and few runners differ.


@functools.lru_cache(maxsize=128)
def plain(
    count: int, *, converts: bool, at: int | None = None
) -> Callable[..., Callable[..., Any]]:
    """For a method that runs as its author wrote it.

    Args:
        count: The number of positional arguments.
        converts: Whether the result is converted.
        at: The position of a tracer: then not where `grad` and its like run with no jit around.
    """
    arguments = _named(range(count))
    end = (_CONVERTED if converts else _AS_IT_IS).format(arguments=arguments)
    tracer = f"argument_{at}"
    is_eager = f" or type({tracer}._trace) is not staged and eagerly(({tracer},))"
    return _made(_PLAIN, count, {}, end=end, or_eagerly="" if at is None else is_eager)


@functools.lru_cache(maxsize=128)
def of_arrays(count: int) -> Callable[..., Callable[..., Any]]:
    """For so many positional arguments that are all arrays: one variant is for all calls."""
    arguments = _named(range(count))
    find = _ONE_VARIANT.format(arguments=arguments)
    return _jitted(count, arguments, {}, given="variant, otherwise", find=find)


@functools.lru_cache(maxsize=128)
def by_value(count: int, static: Collection[int]) -> Callable[..., Callable[..., Any]]:
    """For arrays with static values at some positions, which tell the variant."""
    arrays = _named([i for i in range(count) if i not in static])
    find = _BY_VALUE.format(values=_named(static), arrays=arrays, arguments=_named(range(count)))
    return _jitted(count, "*arrays", {}, given="known, by_name, otherwise", find=find)


def by_key(
    count: int, names: dict[str, Any], at: int | None, **key: str
) -> Callable[..., Callable[..., Any]]:
    """For calls that more than the types decides: the method is looked up under a key.

    Args:
        count: The number of positional arguments.
        names: What the texts in `key` speak of.
        at: The position of a tracer, if there is one.
        **key: `key` is an expression; `busy` a statement and `is_busy` an expression that say
            whether this one call must not be kept.
    """
    arguments = _named(range(count))
    texts = _COMPILED if at is None else _TRACED
    inline = texts["inline"].format(tracer=f"argument_{at}", arguments=arguments)
    find = _BY_KEY.format(arguments=arguments, **{**texts, "inline": inline}, **key)
    given = "runners, resolve, traces, staged"
    return _jitted(count, arguments, names, given=given, find=find)


def _named(positions: Collection[int]) -> str:
    return "".join(f"argument_{i}, " for i in positions)


def _jitted(
    count: int, arrays: str, names: dict[str, Any], *, given: str, find: str
) -> Callable[..., Callable[..., Any]]:
    names = {
        **names,
        "Failed": (Exception, _tracing.Stop),
        "instead_of": _running.instead_of,
        "shorten": shorten,
    }
    return _made(_JITTED, count, names, arrays=arrays.rstrip(", "), given=given, find=find)


def _made(
    template: str, count: int, names: dict[str, Any], **texts: object
) -> Callable[..., Callable[..., Any]]:
    arguments = _named(range(count))
    parameters = f"{arguments}/, " if count else ""
    source = template.format(parameters=parameters, arguments=arguments, **texts)
    # Code that walks the stack reads the names of modules: wbml, under Stheno and matrix, does.
    namespace: dict[str, Any] = {"__name__": __name__, **names}
    exec(compile(source, SOURCE_NAME, "exec"), namespace)  # noqa: S102  all of it is here
    found: Callable[..., Callable[..., Any]] = namespace["make"]
    return found


def shorten(error: BaseException) -> None:
    """Take the frames of ours out of a traceback, but for the one that the caller is in."""
    top = error.__traceback__
    inner = None if top is None else top.tb_next
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OURS):
        inner = inner.tb_next
    if top is not None and inner is not None:
        top.tb_next = inner
