"""Everything that touches jaxtyping: what its hints look at, and what its checks depend on.

It is never imported here. A program that has not imported it has no hint of it either.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


class ArrayHint(NamedTuple):
    """What a jaxtyping hint such as `Float[Array, "n 3"]` asks of a value."""

    array_type: Any
    transparent: bool  # `make_transparent` was called on it: it takes everything
    anything: bool  # any dtype and any shape
    names_axes: bool  # it compares with what a `jaxtyped` scope has bound, and binds
    computes: bool  # an axis is an expression or depends on a tree path: evaluated, and can raise


def array_hint(hint: Any) -> ArrayHint | None:
    """Take a jaxtyping array hint apart; None for any other hint."""
    module: Any = sys.modules.get("jaxtyping._array_types")
    if module is None or not issubclass(type(hint), module._MetaAbstractArray):
        return None
    if hint is module.AbstractArray:
        return None
    named = [
        dim
        for dim in hint.dims
        if isinstance(dim, (module._NamedDim, module._NamedVariadicDim)) and not dim.treepath
    ]
    anonymous = [
        dim
        for dim in hint.dims
        if dim is module._anonymous_dim or dim is module._anonymous_variadic_dim
    ]
    fixed = [dim for dim in hint.dims if isinstance(dim, module._FixedDim)]
    return ArrayHint(
        array_type=hint.array_type,
        transparent=bool(hint._skip_instancecheck),
        anything=hint.dtypes is module._any_dtype
        and list(hint.dims) == [module._anonymous_variadic_dim],
        names_axes=bool(named),
        computes=len(named) + len(anonymous) + len(fixed) != len(hint.dims),
    )


def is_pytree_hint(hint: Any) -> bool:
    """Whether it is jaxtyping's `PyTree` or `PyTree[...]`."""
    module: Any = sys.modules.get("jaxtyping._pytree_type")
    return module is not None and issubclass(type(hint), module._MetaPyTree)


def state() -> tuple[Any, Any] | None:
    """The two thread-locals on which jaxtyping's checks depend; None before jaxtyping is imported.

    `memo_stack` of the first is not empty inside a `jaxtyped` function. `value` of the second is
    true while `PyTree[...]` flattens a tree: every array then matches every jaxtyping hint.
    """
    module: Any = sys.modules.get("jaxtyping._storage")
    return None if module is None else (module._shape_storage, module._treeflatten_storage)


_SAMPLE_DTYPES = ("float32", "int32", "complex64", "bool", "uint32", "bfloat16", "int8", "uint8")


def sample_avals(left: Any, right: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Some dtypes and shapes that two jaxtyping hints may both take; None stands for any array."""
    hints = [hint for hint in (left, right) if hint is not None]
    dtypes = [
        name
        for name in _SAMPLE_DTYPES
        if all(not isinstance(hint.dtypes, tuple) or name in hint.dtypes for hint in hints)
    ]
    patterns = [_sizes(hint) for hint in hints]
    longest = max((len(p) - (... in p) for p in patterns), default=0)
    shapes = []
    for rank in (longest, longest + 1):
        rows = [_expanded(pattern, rank) for pattern in patterns]
        if all(row is not None for row in rows):
            columns = zip(*(row for row in rows if row is not None), strict=True)
            shapes.append(
                tuple(next((n for n in column if n is not None), 2) for column in columns)
            )
    return [(dtype, shape) for dtype in dtypes[:2] for shape in shapes]


def _sizes(hint: Any) -> list[Any]:
    """The axes of a jaxtyping hint: a number, None for any, `...` for any number of them."""
    module: Any = sys.modules["jaxtyping._array_types"]
    unnamed, named = module._anonymous_variadic_dim, module._NamedVariadicDim

    def size(dim: Any) -> Any:
        if isinstance(dim, module._FixedDim):
            return dim.size
        return ... if dim is unnamed or isinstance(dim, named) else None

    return [size(dim) for dim in hint.dims]


def _expanded(sizes: list[Any], rank: int) -> list[Any] | None:
    """The axes for arrays of this rank; None if there are none."""
    if ... not in sizes:
        return sizes if len(sizes) == rank else None
    at, missing = sizes.index(...), rank - (len(sizes) - 1)
    return None if missing < 0 else [*sizes[:at], *[None] * missing, *sizes[at + 1 :]]
