"""Whether a traced method's result is one that compiled code can give (DESIGN 6, rule 5)."""

from __future__ import annotations

from typing import Any

from plum_freeze import _jax
from plum_freeze._static import Plain, static_key, type_name


def checked(result: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The result, with dicts in the order of their keys.

    Args:
        result: What the method returned under its trace.
        args: What it was called with.
        kwargs: The same by name.

    Raises:
        Plain: There is a leaf that is no array; or the method gives back an argument, which
            compiled code can only copy; or there is no array in it at all.
    """
    if any(result is value for value in (*args, *kwargs.values())):
        raise Plain("returns an argument as it is")
    walk = _Walk({id(part) for part in _containers([*args, *kwargs.values()])})
    result = walk.through(result, inside_node=False)
    if not walk.arrays:
        raise Plain(f"returns {type_name(result)} without an array in it")
    return result


def _containers(values: list[Any]) -> list[Any]:
    """The lists and dicts among the arguments, at any depth that JAX does not hide."""
    found = []
    for value in values:
        if isinstance(value, (list, tuple, dict)):
            found.extend([] if isinstance(value, tuple) else [value])
            found.extend(_containers([*(value.values() if isinstance(value, dict) else value)]))
    return found


class _Walk:
    def __init__(self, arguments: set[int]) -> None:
        self.arguments = arguments
        self.arrays = 0

    def through(self, value: Any, *, inside_node: bool) -> Any:
        cls = type(value)
        if _jax.is_array(value):
            self.arrays += 1
            return value
        if id(value) in self.arguments:
            raise Plain(f"returns a {cls.__name__} that is an argument")
        if cls is tuple or cls is list:
            return cls([self.through(v, inside_node=inside_node) for v in value])
        if cls is dict:
            return self._dict(value, inside_node=inside_node)
        node = None if cls is type(None) else _jax.one_level(value)
        if node is not None:
            children, auxiliary = node
            try:
                static_key(auxiliary)
            except Plain as plain:
                raise Plain(f"returns {type_name(value)} with a static field of type {plain}") from None
            for child in children:
                self.through(child, inside_node=True)
        elif value is not None:
            raise Plain(f"returns {type_name(value)}")
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
        _jax.register_in_order()
        return _jax.InOrder(items)
