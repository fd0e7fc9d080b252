"""The rows about size: freezing many methods, importing a large package, memory per decision."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import plum
from jaxtyping import Array, Float, Int

import plum_freeze
from plum_freeze import _plum

from .columns import FROZEN, PLAIN, Absent
from .measure import Figure, interleaved_once

if TYPE_CHECKING:
    from .measure import Effort

Cells = dict[str, "Figure | Absent"]

METHODS_EACH = 10
HINTS = (
    int, str, float, jax.Array, int | None, Float[Array, "a"], Float[Array, "a b"], Int[Array, "a"],
    Int[Array, "a b"], Float[Array, "a b c"],
)  # fmt: skip


# -- freeze --------------------------------------------------------------------------------------


def _unchanged(x, y):
    return x


def functions(methods: int) -> list[Any]:
    """Functions with so many methods in all, ten each, none of them resolved."""
    found = []
    for _ in range(max(1, methods // METHODS_EACH)):
        dispatch = plum.Dispatcher()
        for number in range(METHODS_EACH):
            method = types.FunctionType(_unchanged.__code__, globals(), "f")
            method.__annotations__ = {"x": HINTS[number], "y": HINTS[-1 - number]}
            function = dispatch(method)
        found.append(function)
    return found


def freezing(methods: int, effort: Effort) -> Cells:
    """`freeze()` of so many methods, beside plum's own resolving of them."""
    before = list(plum.Function._instances)

    def forget() -> None:  # plum keeps every function for good
        plum.Function._instances[:] = before

    def frozen():
        forget()
        targets = functions(effort.size(methods))
        return lambda: plum_freeze.freeze(*targets)

    def plain():
        forget()
        targets = functions(effort.size(methods))
        return lambda: [_plum.resolve_pending(function) for function in targets]

    try:
        return dict(interleaved_once({FROZEN: frozen, PLAIN: plain}, effort.repeats))
    finally:
        forget()


# -- import --------------------------------------------------------------------------------------

MODULES = 200
_MODULE = '''\
"""One module of a large package."""

import dataclasses
import math

import plum


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0

    def norm(self):
        return math.hypot(self.x, self.y)


def helper(a, b=1, *args, key=None):
    return [a, b, *args, key]
'''
_METHODS = """\
dispatch = plum.Dispatcher()


@dispatch
def f(x: int):
    return x


@dispatch
def f(x: str):
    return x


@dispatch
def f(x: Point):
    return x
"""
_TIMED = """\
import gc, importlib, json, sys, time
import plum, dataclasses, math, wrapt
import plum_freeze
sys.path.insert(0, {folder!r})
names = {names!r}
if {hooked}:
    plum_freeze.install(*names)
seconds = []
for name in names:
    gc.collect()
    gc.freeze()  # otherwise each import pays for the garbage collection of those before it
    start = time.process_time()
    importlib.import_module(name)
    seconds.append(time.process_time() - start)
print(json.dumps(seconds))
"""


def importing(effort: Effort, *, methods: bool) -> Cells:
    """Import a package of 200 modules, in processes of their own.

    Args:
        effort: How often.
        methods: Whether each module registers three methods, which are recorded under the hook.
    """
    modules = effort.size(MODULES)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"large{number}" for number in range(6)]
        for name in names:
            _write_package(Path(folder) / name, modules, _MODULE + _METHODS * methods)
        samples: dict[str, list[float]] = {FROZEN: [], PLAIN: []}
        for number in range(effort.repeats + 1):
            for column in sorted(samples, reverse=bool(number % 2)):
                found = _import(folder, names, hooked=column == FROZEN)
                if number:  # the first writes the bytecode
                    samples[column] += found
        return {column: Figure.of(found) for column, found in samples.items()}


def _write_package(folder: Path, modules: int, source: str) -> None:
    folder.mkdir()
    imports = "".join(f"from . import m{number}\n" for number in range(modules))
    (folder / "__init__.py").write_text(imports)
    for number in range(modules):
        (folder / f"m{number}.py").write_text(source)


def _import(folder: str, names: list[str], *, hooked: bool) -> list[float]:
    script = textwrap.dedent(_TIMED).format(folder=folder, names=names, hooked=hooked)
    spec = importlib.util.find_spec("plum_freeze")
    assert spec is not None
    assert spec.origin is not None
    root = str(Path(spec.origin).parent.parent)
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    found: list[float] = json.loads(done.stdout)
    return found


# -- memory --------------------------------------------------------------------------------------


def memory(effort: Effort) -> Cells:
    """Bytes that one more decision costs: for plum one of classes, for a table one of shapes."""
    count = effort.size(1000)
    classes = [type(f"Class{number}", (), {}) for number in range(count)]

    def plain() -> Any:
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: object):
            return 1

        f._resolve_pending_registrations()
        f._cache = {}
        return f

    def frozen() -> Any:
        dispatch = plum.Dispatcher()

        @dispatch
        def f(x: Float[Array, "..."]):
            return 1

        plum_freeze.freeze(f, jit=False)
        return f

    shapes = [jax.ShapeDtypeStruct((number,), "float32") for number in range(1, count + 2)]
    arrays = [jnp.zeros(shape.shape) for shape in shapes]
    instances = [cls() for cls in classes]
    return {
        PLAIN: Figure(_bytes(plain(), [object(), *instances]), unit="bytes"),
        FROZEN: Figure(_bytes(frozen(), arrays), unit="bytes"),
    }


def _bytes(function: Any, arguments: list[Any]) -> float:
    function(arguments[0])
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for argument in arguments[1:]:
            function(argument)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / (len(arguments) - 1)
    finally:
        tracemalloc.stop()
