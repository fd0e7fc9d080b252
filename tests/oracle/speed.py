"""What keeps XLA's compile time out of the run: 60 ms for each jit of two operations.

Nothing of JAX's own caching is touched: everything is traced and lowered whenever JAX thinks it
must be. Only XLA itself is asked once for each different module.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax
from jax._src import compiler
from jax.extend.core import jaxpr_as_fun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIMIT = 3000
_executables: dict[Any, Any] = {}
_programs: dict[Any, Any] = {}


class HarnessError(BaseException):
    """A mistake of the harness, which is no outcome of a program."""


@contextlib.contextmanager
def remembered_compilations() -> Iterator[None]:
    """Inside, the same module is compiled once: 60 ms for a new jit become 10."""
    real = compiler.compile_or_get_cached

    def compile_once(
        backend: Any,
        computation: Any,
        devices: Any,
        options: Any,
        callbacks: Any,
        *rest: Any,
        **kw: Any,
    ) -> Any:
        if len(callbacks):
            return real(backend, computation, devices, options, callbacks, *rest, **kw)
        text = computation.operation.get_asm(enable_debug_info=False)
        return _remembered(
            _executables,
            (text, options.SerializeAsString()),
            lambda: real(backend, computation, devices, options, callbacks, *rest, **kw),
        )

    filtering = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")  # a fifth of the time, for nobody to read
    compiler.compile_or_get_cached = compile_once
    try:
        yield
    finally:
        compiler.compile_or_get_cached = real
        jax.config.update("jax_traceback_filtering", filtering)


def fresh_jit(function: Callable[..., Any], *args: Any) -> Any:
    """What `jax.jit(function)(*args)` gives for a `function` that was made just now.

    It is traced each time. Lowering is skipped (10 ms become 2) if a jaxpr with the
    same text was compiled before: two jaxprs with the same text and types compute the same.
    """
    traced = jax.jit(function).trace(*args)
    try:
        return _execute(traced, args)
    except Exception as error:
        raise HarnessError from error


def _execute(traced: Any, args: tuple[Any, ...]) -> Any:
    closed = traced.jaxpr
    text = str(closed)
    leaves = jax.tree.leaves(args)
    if closed.consts or "0x" in text:  # it names an array or a function by its address
        return traced.lower().compile()(*args)
    key = (text, str(closed.in_avals), str(closed.out_avals), tuple(a.weak_type for a in leaves))
    program = _remembered(
        _programs,
        (*key, tuple(a.weak_type for a in closed.out_avals)),
        lambda: jax.jit(jaxpr_as_fun(closed)).lower(*leaves).compile(),
    )
    return jax.tree.unflatten(jax.tree.structure(traced.out_info), program(*leaves))


def _remembered(memory: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    if key not in memory:
        if len(memory) >= _LIMIT:
            memory.clear()
        memory[key] = make()
    return memory[key]
