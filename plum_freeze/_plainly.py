"""Runners for methods that run as their author wrote them, written for speed.

Plum calls with a tuple and a dict. A runner that takes `*args, **kwargs` makes both anew, and so
does the method that it calls: with a parameter for each argument a frozen call of an `int` method
takes 1.55 us in place of 1.71, and one of `int -> int` 1.80 in place of 2.06 [measured].
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SOURCE = """\
def make(implementation, anywhere, note, otherwise, convert, unchanged):
    def run({parameters}**kwargs):
        __tracebackhide__ = True
        if kwargs:
            return otherwise({arguments}**kwargs)
        if anywhere:
            note(({arguments}))
        {end}
    return run
"""
_AS_IT_IS = "return implementation({arguments})"
_CONVERTED = """\
result = implementation({arguments})
        return result if id(type(result)) in unchanged else convert(result)"""


@functools.lru_cache(maxsize=128)  # to compile takes 150 us
def maker(count: int, *, converts: bool) -> Callable[..., Callable[..., Any]]:
    """What makes runners for so many positional arguments; see `_SOURCE` for what it takes."""
    names = [f"argument_{number}" for number in range(count)]
    end = (_CONVERTED if converts else _AS_IT_IS).format(arguments=", ".join(names))
    source = _SOURCE.format(
        parameters=f"{', '.join(names)}, /, " if names else "",
        arguments="".join(f"{name}, " for name in names),
        end=end,
    )
    # Code that walks the stack reads the names of modules: wbml, under Stheno and matrix, does.
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, "<plum_freeze runner>", "exec"), namespace)  # noqa: S102  all of it is here
    found: Callable[..., Callable[..., Any]] = namespace["make"]
    return found
