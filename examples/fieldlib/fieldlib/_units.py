"""Units of a field's values. This module registers on functions of `_fields`."""

import jax

from fieldlib import _fields
from fieldlib._dispatch import dispatch


class Unit:
    """A unit of measurement."""


class Meter(Unit):
    """The unit of length."""


class Second(Unit):
    """The unit of time."""


@dispatch
def unit_of(name: str) -> Unit:
    return {"m": Meter, "s": Second}[name]()


@dispatch
def strip(values: jax.Array, unit: type[Meter]):
    return values


@dispatch
def strip(values: jax.Array, unit: type[Second]):
    return values * 1000


@_fields.scale.dispatch
def scale(field: _fields.Field, factor: int):
    return type(field)(field.values * factor, field.grid)
