"""How a call is taken apart into what is traced and what is static, and put together again.

A call is taken apart into its JAX arrays and a *key* of all the rest (DESIGN, section 6, rules 2
to 4). Two calls with equal keys have the same static values. What is neither an array nor static
raises `Plain`, and the call runs as its author wrote it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from plum_freeze import _jax
from plum_freeze._static import HANDLERS, Plain, by_identity, copied, static_key, type_name

Build = Callable[[Iterator[Any]], Any]

ARRAY = "array"


class Traced(Plain):
    """This call has a tracer of something else than an array among its arguments."""


def take_apart(value: Any, arrays: list[Any], *, traced: bool = False) -> Hashable:
    """The key of an argument. Its arrays and tracers are appended to `arrays`, in order.

    Args:
        value: An argument, or a part of one.
        arrays: Receives the arrays.
        traced: Whether Python scalars in it are traced, because its author said so.

    Raises:
        Traced: There is a tracer in it that is no array.
        Plain: There is something in it that is neither an array nor static.
    """
    cls = type(value)
    if cls in array_classes:
        arrays.append(value)
        return ARRAY
    if cls in SCALARS and traced:
        arrays.append(value)
        return (cls,)
    handler = HANDLERS.get(cls)
    if handler is not None and cls is not tuple:
        return handler(value)
    if cls is tuple or cls is list:
        return cls, tuple([take_apart(v, arrays, traced=traced) for v in value])
    if cls is dict:
        keys = tuple(map(static_key, value))
        return dict, keys, tuple([take_apart(v, arrays, traced=traced) for v in value.values()])
    node = node_of(value)
    if node is not None:
        children, auxiliary = node
        if not explains(value, children, auxiliary):
            raise Plain(f"{type_name(value)} that keeps more than its pytree shows")
        parts = tuple([take_apart(child, arrays, traced=traced) for child in children])
        return cls, auxiliary_key(value, auxiliary), parts
    if is_array_class(cls) or _jax.is_tracer_class(cls):
        if not _jax.is_array(value):
            raise Traced
        arrays.append(value)
        return ARRAY
    return static_key(value)


def node_of(value: Any) -> tuple[Any, Any] | None:
    """Children and auxiliary data of a registered pytree node; None for a leaf.

    Raises:
        Plain: Its author's function to flatten it raises.
    """
    if not _jax.loaded():
        return None
    try:
        return _jax.one_level(value)
    except Exception as error:
        text = f"{type_name(value)} that cannot be flattened: {type(error).__name__}"
        raise Plain(text) from error


array_classes: set[type] = set()
"""JAX's own classes of concrete arrays, as far as they were met."""


def is_array_class(cls: type) -> bool:
    """Whether values of this class are concrete JAX arrays."""
    if cls in array_classes:
        return True
    found = _jax.is_array_class(cls)
    if found and cls.__module__.partition(".")[0] in ("jax", "jaxlib"):
        array_classes.add(cls)
    return found


def auxiliary_key(value: Any, auxiliary: Any) -> Hashable:
    """The key of a pytree node's static fields.

    Raises:
        Plain: They are no static values.
    """
    if auxiliary is type(value):
        return None  # a namedtuple
    try:
        return static_key(auxiliary)
    except Plain as plain:
        raise Plain(f"{type_name(value)} with a static field of type {plain}") from None


def explains(value: Any, children: Any, auxiliary: Any) -> bool:
    """Whether a pytree node has no attribute beside what it is flattened into.

    What its flattening leaves out would be lost in a compiled method.
    """
    if _is_equinox_module(value):
        return True
    attributes = getattr(value, "__dict__", None)
    if not attributes:
        return True
    shown = Counter(map(id, children))
    shown.update(map(id, _parts(auxiliary)))
    return not Counter(map(id, attributes.values())) - shown


def _is_equinox_module(value: Any) -> bool:
    """Whether all attributes are fields, and all fields are in the pytree."""
    return type(type(value)).__module__.startswith("equinox.")  # `isinstance` costs 1 us


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _parts(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _parts(part)


def functions_in(value: Any) -> Iterator[Any]:
    """What is static by its identity in an argument, at any depth: functions, classes and such."""
    cls = type(value)
    if cls in array_classes or (cls in HANDLERS and cls not in (tuple, frozenset)):
        return
    node = None
    if cls not in (tuple, list, frozenset, dict):
        node = node_of(value)
        if node is None and by_identity(value):
            yield value
            return
    if node is not None:
        parts = [*node[0], *_parts(node[1])]
    elif cls is dict:
        parts = list(value.values())
    elif cls in (tuple, list, frozenset):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        parts = []
    for part in parts:
        if part is not value:
            yield from functions_in(part)


SCALARS = frozenset({int, float, complex, bool})
"""Types of Python scalars, which `traced` may have passed as arrays."""


def putter(
    value: Any, weakly: Callable[[Any], Callable[[], Any]], *, traced: bool = False
) -> Build:
    """A function that puts an argument like `value` together again from arrays or tracers.

    Takes the arrays in the order of `take_apart`, which must have accepted the value.

    Args:
        value: The argument, or a part of one.
        weakly: Makes a reference to a static value that has an identity. Nothing must live on for
            having been an argument.
        traced: As for `take_apart`.
    """
    cls = type(value)
    if cls in array_classes or (cls in SCALARS and traced):
        return next
    if cls is tuple or cls is list:
        parts = [putter(v, weakly, traced=traced) for v in value]
        return lambda arrays: cls([part(arrays) for part in parts])
    if cls is dict:
        items = {key: putter(v, weakly, traced=traced) for key, v in value.items()}
        return lambda arrays: {key: part(arrays) for key, part in items.items()}
    if is_array_class(cls) or _jax.is_tracer_class(cls):
        return next
    node = None if cls in HANDLERS else node_of(value)
    if node is not None:
        parts = [putter(child, weakly, traced=traced) for child in node[0]]
        rebuild = _jax.rebuilder(value)
        return lambda arrays: rebuild([part(arrays) for part in parts])
    if by_identity(value):
        reference = weakly(value)
        return lambda _: reference()
    own = copied(value)
    return lambda _: own
