"""Operators on fields: a function with a method for each kind, and a class with methods."""

import equinox as eqx
import jax.numpy as jnp

from fieldlib import _units
from fieldlib._dispatch import dispatch
from fieldlib._fields import Field, Wave, norm, scale


@dispatch
def laplacian(field: Field):
    padded = jnp.pad(field.values, 1)
    return Field((padded[2:] - 2 * field.values + padded[:-2]) / field.grid.step**2, field.grid)


@dispatch
def laplacian(field: Wave):
    values = field.values
    left, right = jnp.roll(values, 1), jnp.roll(values, -1)
    return Wave((left - 2 * values + right) / field.grid.step**2, field.grid)


@dispatch
def apply(operator: object, field: Field):
    return operator(field)


class Smoother(eqx.Module):
    """Mixes a field with its neighbours."""

    weight: float

    @dispatch
    def __call__(self, field: Field):
        return Field(field.values + self.weight * laplacian(field).values, field.grid)

    @dispatch
    def __call__(self, field: Wave):
        return Wave(field.values + self.weight * laplacian(field).values, field.grid)

    @dispatch
    def __call__(self, name: str) -> str:
        return f"smooth {name}"


@_units.strip.dispatch
def strip(field: Field, unit: type[_units.Meter]):
    return scale(field, 1 / norm(field))
