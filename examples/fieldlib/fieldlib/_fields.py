"""Fields, and what can be done to all of them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fieldlib._dispatch import dispatch


@dataclasses.dataclass(frozen=True)
class Grid:
    """`points` points on a line, `step` apart."""

    points: int
    step: float


class Field(eqx.Module):
    """Values on a grid."""

    values: Float[Array, "points"]
    grid: Grid = eqx.field(static=True)


class Wave(Field):
    """A field that is periodic."""


@dispatch
def scale(field: Field, factor: float):
    return type(field)(field.values * factor, field.grid)


@dispatch
def scale(field: Field, factor: jax.Array):
    return type(field)(field.values * factor, field.grid)


@dispatch
def norm(x: Float[Array, ""]):
    return jnp.abs(x)


@dispatch
def norm(x: Float[Array, "n"]):
    return jnp.sqrt(jnp.sum(x * x))


@dispatch
def norm(x: Float[Array, "n m"]):
    return jnp.sqrt(jnp.sum(x * x)) / x.shape[0]


@dispatch
def norm(field: Field):
    return norm(field.values) * field.grid.step**0.5
