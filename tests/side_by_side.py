"""One set of methods on plain plum and on frozen functions, and the same calls to both, compared."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

import plum
from oracle.compare import Outcome, describe_error, described, difference

import plum_freeze
from plum_freeze import _table

if TYPE_CHECKING:
    from collections.abc import Callable


class Pair:
    """Plain and frozen, made by the same code: `make(dispatch)` returns a function or a namespace."""

    def __init__(self, make: Callable[[Any], Any], **freeze: Any) -> None:
        self.plain_dispatch, self.frozen_dispatch = plum.Dispatcher(), plum.Dispatcher()
        self.plain = make(self.plain_dispatch)
        self.frozen = make(self.frozen_dispatch)
        functions = [f for f in functions_of(self.frozen_dispatch) if f.methods]
        plum_freeze.freeze(*functions, **freeze)

    def check(self, call: Callable[[Any], Any], times: int = 3) -> Outcome:
        """Call both `times` times: the first call traces, the second may be faster, the third too.

        `call` gets what `make` returned, and makes its own arguments.

        Raises:
            AssertionError: They differ in value, type, dtype, weak type, shape, structure, exception.

        """
        for number in range(times):
            for function in functions_of(self.plain_dispatch):
                function.clear_cache(reregister=False)
            wanted, got = took(call, self.plain), took(call, self.frozen)
            text = difference(wanted, got)
            assert not text, f"call {number + 1}: {text}"
        return wanted

    def methods(self, name: str = "") -> list[Any]:
        """How the methods of a frozen function run, those that were called; by default of the first."""
        functions = functions_of(self.frozen_dispatch)
        return compiled(next(f for f in functions if name in ("", f.__name__)))

    def compiled(self, name: str = "") -> int:
        """How many sets of static values the methods of a function run compiled for."""
        return sum(method.compiled for method in self.methods(name))

    def reasons(self, name: str = "") -> list[str]:
        """Why calls ran plainly."""
        return [reason for method in self.methods(name) for reason in method.reasons]


def functions_of(dispatch: Any) -> list[Any]:
    """Every function of a dispatcher, also those of classes."""
    classes = [f for functions in dispatch.classes.values() for f in functions.values()]
    return [*dispatch.functions.values(), *classes]


def compiled(function: Any) -> list[Any]:
    """How the methods of a frozen function run."""
    table = _table.table_of(function)
    assert table is not None
    return list(table.methods.values())


def took(call: Callable[[Any], Any], functions: Any) -> Outcome:
    """What a call gave, described."""
    try:
        value = call(functions)
    except Exception as error:
        return Outcome("raised", describe_error(error))
    return Outcome("returned", described(value))


def foreign(source: str, **names: Any) -> Any:
    """A module of another package: the screen does not look into its functions."""
    module = types.ModuleType("plum_freeze_test_foreign")
    vars(module).update(names)
    exec(source, vars(module))
    return module


def arrays(*shapes: Any) -> Any:
    """Exact values: small integers as floats."""
    import jax.numpy as jnp

    found = [jnp.arange(1.0, 1.0 + max(1, _size(shape))).reshape(shape) for shape in shapes]
    return found[0] if len(found) == 1 else found


def _size(shape: Any) -> int:
    size = 1
    for n in shape if isinstance(shape, tuple) else (shape,):
        size *= n
    return size
