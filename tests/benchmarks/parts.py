"""Where the time of a hot call goes, part by part.

    python -m tests.benchmarks.parts [--tiny]

The function that was jitted by hand is called through plum, with entries in plum's cache that are
written by hand: each does one thing more that a frozen call has to do. They are right for this
program alone. So the last of them is about the least that is sound, and what a frozen call takes
beyond it is ours to save.
"""

import sys
import types
from typing import Any

import jax
import plum
from jaxtyping._storage import _shape_storage, _treeflatten_storage

from . import arrays, measure
from .columns import FROZEN, HAND, Program, untouched
from .measure import Call, Effort, Figure

_shape_storage.memo_stack = []  # as jaxtyping sets them: unset they cost more
_treeflatten_storage.value = False


def one_array(jitted: Any, method: Any) -> dict[str, Any]:
    """What may run a call whose types decide, each with one thing more."""
    code = method.__code__
    nothing: list[None] = []

    def frame(x, /, **kwargs):
        return jitted(x)

    def errors_and_traces(x, /, **kwargs):
        try:
            if kwargs or nothing:
                return None
            return jitted(x)
        except BaseException:
            raise

    def guard(x, /, **kwargs):
        try:
            if kwargs or nothing or method.__code__ is not code:
                return None
            return jitted(x)
        except BaseException:
            raise

    return {
        "plum's own call (compiled)": jitted,
        "a frame of Python": frame,
        "keywords, errors, traces": errors_and_traces,
        "the guard, of one value": guard,
    }


def six_shapes(runners: dict[Any, tuple[Any, Any]]) -> dict[str, Any]:
    """The same where shape and dtype decide: `runners` has a jitted function and its guard."""
    nothing: list[None] = []

    def look_up(x, /, **kwargs):
        jitted, _ = runners[x.aval]
        return jitted(x)

    def errors_and_traces(x, /, **kwargs):
        try:
            jitted, _ = runners[x.aval]
            if kwargs or nothing:
                return None
            return jitted(x)
        except BaseException:
            raise

    def scope(x, /, **kwargs):
        try:
            if _shape_storage.memo_stack or _treeflatten_storage.value:
                return None
            jitted, _ = runners[x.aval]
            if kwargs or nothing:
                return None
            return jitted(x)
        except BaseException:
            raise

    def guard(x, /, **kwargs):
        try:
            if _shape_storage.memo_stack or _treeflatten_storage.value:
                return None
            jitted, changed = runners[x.aval]
            if kwargs or nothing or changed():
                return None
            return jitted(x)
        except BaseException:
            raise

    return {
        "a frame of Python that looks up under the aval": look_up,
        "keywords, errors, traces": errors_and_traces,
        "jaxtyping's scope": scope,
        "the guard, of three values": guard,
    }


def through_plum(program: Program, entry: Any) -> Call:
    """The program, with this in plum's cache for JAX arrays."""
    names = program.define(plum.Dispatcher())
    function, values = names["f"], program.values()
    (cls,) = set(map(type, values.values()))
    untouched(function, {(cls,): (entry, Any)})
    return Call(program.statement, {**values, **names}, program.calls)


def ways_of_one() -> dict[str, Call]:
    """All parts of the row "array method"."""
    program = arrays.array()

    def method(x):
        return x + 1

    entries = one_array(jax.jit(method), method)
    return _all(program, entries)


def ways_of_six() -> dict[str, Call]:
    """All parts of the row "six jaxtyping methods"."""
    program = arrays.jaxtyping_six()
    body = arrays._plus_one
    runners = {}
    for value in program.values().values():
        method = types.FunctionType(body.__code__, {}, "method")
        runners[value.aval] = jax.jit(method), _guard_of(method, body)
    one = jax.jit(body)
    entries = {
        "plum's own call (compiled)": one,
        "six jitted functions in place of one": None,
        **six_shapes(runners),
    }
    return _all(program, entries, {value: jitted for value, (jitted, _) in runners.items()})


def _guard_of(method: Any, body: Any) -> Any:
    def holder():
        return body

    code, body_code = method.__code__, body.__code__

    def changed() -> bool:
        return method.__code__ is not code or holder is None or body.__code__ is not body_code

    return changed


def _all(program: Program, entries: dict[str, Any], by_aval: Any = None) -> dict[str, Call]:
    ways = {"jitted by hand": program.column(HAND)}
    for name, entry in entries.items():
        if entry is None:
            names = {f"f{i}": by_aval[x.aval] for i, x in enumerate(program.values().values())}
            statement = f"({', '.join(f'f{i}(x{i})' for i in range(program.calls))})"
            ways[name] = Call(statement, {**program.values(), **names}, program.calls)
        else:
            ways[name] = through_plum(program, entry)
    ways["frozen"] = program.column(FROZEN)
    for way in ways.values():
        for _ in range(4):  # what is frozen compiles at the second call
            way.result()
    return ways


def shares(ways: dict[str, Call], effort: Effort) -> dict[str, Figure]:
    """What each takes, in parts of the first."""
    found = measure.interleaved(ways, effort)
    first = next(iter(found.values())).value
    return {name: Figure(each.value / first, each.spread, "") for name, each in found.items()}


def main(arguments: list[str]) -> None:
    """Print both tables."""
    effort = measure.TINY if "--tiny" in arguments else measure.FULL
    for title, ways in (("one array", ways_of_one()), ("six shapes", ways_of_six())):
        print(f"{title}: in parts of the function that was jitted by hand")
        for name, figure in shares(ways, effort).items():
            print(f"  {figure.value:5.2f}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
