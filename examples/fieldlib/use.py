"""A program that uses fieldlib.

    python examples/fieldlib/use.py
"""

import os
import warnings

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import fieldlib
import jax
import jax.numpy as jnp

import plum_freeze

grid = fieldlib.Grid(points=8, step=0.5)
field = fieldlib.Field(jnp.arange(8.0), grid)
wave = fieldlib.Wave(jnp.sin(jnp.arange(8.0)), grid)


@jax.jit
def energy(f):
    return fieldlib.norm(fieldlib.laplacian(f))


smoother = fieldlib.Smoother(0.125)
print(f"norm of the field      {fieldlib.norm(field):.4f}")
print(f"energy of the field    {energy(field):.4f}")
print(f"energy of the wave     {energy(wave):.4f}")
print(f"smoothed, then scaled  {fieldlib.norm(fieldlib.scale(smoother(field), 2)):.4f}")
print(f"without its unit       {fieldlib.norm(fieldlib.strip(field, fieldlib.Meter)):.4f}")
print(f"{smoother('waves')!r}, unit {type(fieldlib.unit_of('m')).__name__}")

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fieldlib.spectral  # noqa: B018  imported here, and it registers a norm of waves
print(f"\nafter the import of fieldlib.spectral ({len(caught)} warning):")
print(f"energy of the wave     {energy(wave):.4f}, with its new norm")
print(f"energy of the field    {energy(field):.4f}, as before\n")
print(plum_freeze.report("fieldlib"))
