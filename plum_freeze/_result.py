"""Whether a method's result is one that compiled code can give (DESIGN 6, rule 5)."""

from __future__ import annotations

from typing import Any

from plum_freeze import _jax
from plum_freeze._apart import explains, node_of
from plum_freeze._static import Plain, static_key, type_name


def checked(result: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """The result as it goes through JAX, and whether `unwrap` must be called on what comes out.

    JAX sorts the keys of a dict, and so each dict in another order becomes an `InOrder`.

    Args:
        result: What the method returned, traced or not.
        args: What it was called with.
        kwargs: The same by name.

    Raises:
        Plain: There is a leaf that is no array; or the method gives back an argument, which
            compiled code can only copy; or there is no array in it at all.
    """
    if any(result is value for value in (*args, *kwargs.values())):
        raise Plain("returns an argument as it is")
    walk = _Walk(set(map(id, _mutable_in([*args, *kwargs.values()]))))
    result = walk.through(result, inside_node=False)
    if not walk.arrays:
        raise Plain(f"returns {type_name(result)} without an array in it")
    return result, walk.wrapped


def unwrap(value: Any) -> Any:
    """A compiled result with its dicts in the order in which the method made them."""
    cls = type(value)
    if cls is _jax.InOrder:
        return {key: unwrap(v) for key, v in value.items.items()}
    if cls is tuple or cls is list:
        return cls([unwrap(v) for v in value])
    if cls is dict:
        return {key: unwrap(v) for key, v in value.items()}
    return value


def _mutable_in(values: list[Any]) -> list[Any]:
    """The lists, dicts and other mutable pytree nodes among the arguments, at any depth."""
    found = []
    for value in values:
        children = _children(value)
        if children is not None:
            found.extend([value] if _is_mutable(value) else [])
            found.extend(_mutable_in(children))
    return found


def _children(value: Any) -> list[Any] | None:
    if value is None or _jax.is_array(value):
        return None
    if type(value) in (tuple, list):
        return list(value)
    if type(value) is dict:  # JAX cannot flatten one whose keys cannot be sorted
        return list(value.values())
    node = node_of(value)
    return None if node is None else list(node[0])


def _is_mutable(value: Any) -> bool:
    """Whether a program can tell this object from an equal one: it changes in place."""
    if isinstance(value, tuple):
        return False
    # A frozen dataclass and an equinox module refuse in a `__setattr__` of their own.
    cls: Any = type(value)
    return isinstance(value, (list, dict)) or cls.__setattr__ is object.__setattr__


class _Walk:
    def __init__(self, arguments: set[int]) -> None:
        self.taken = arguments  # and then each mutable object that was met
        self.arrays = 0
        self.wrapped = False

    def through(self, value: Any, *, inside_node: bool) -> Any:
        """The same value, with dicts that remember their order.

        Raises:
            Plain: Nothing compiled may return it.
        """
        cls = type(value)
        if _jax.is_array(value):
            self.arrays += 1
            return value
        if value is None:
            return value
        children = _children(value)
        if children is None:
            raise Plain(f"returns {type_name(value)}")
        if _is_mutable(value):
            if id(value) in self.taken:
                raise Plain(f"returns a {cls.__name__} that is an argument, or the same one twice")
            self.taken.add(id(value))
        if cls is tuple or cls is list:
            return cls([self.through(v, inside_node=inside_node) for v in value])
        if cls is dict:
            return self._dict(value, inside_node=inside_node)
        _check_rebuilt(value)
        for child in children:
            self.through(child, inside_node=True)
        return value

    def _dict(self, value: dict[Any, Any], *, inside_node: bool) -> Any:
        for key in value:
            static_key(key)
        items = {key: self.through(v, inside_node=inside_node) for key, v in value.items()}
        try:
            is_sorted = list(items) == sorted(items)
        except TypeError:
            is_sorted = False
        if is_sorted:
            return items
        if inside_node:
            raise Plain("returns a dict, inside of another object, whose keys are not in order")
        self.wrapped = True
        _jax.register_in_order()
        return _jax.InOrder(items)


def _check_rebuilt(value: Any) -> None:
    """Whether JAX can make an object like this one from its leaves.

    Raises:
        Plain: It has something that is not in its pytree, or that is not static.
    """
    node = node_of(value)
    assert node is not None  # noqa: S101 (it has children)
    children, auxiliary = node
    if not explains(value, children, auxiliary):
        raise Plain(f"returns {type_name(value)} that keeps more than its pytree shows")
    if auxiliary is not type(value):
        try:
            static_key(auxiliary)
        except Plain as plain:
            raise Plain(f"returns {type_name(value)} with a static field of type {plain}") from None
