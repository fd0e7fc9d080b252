"""Spectral operators. Imported when they are first used: what is registered here comes late."""

import jax.numpy as jnp

from fieldlib._dispatch import dispatch
from fieldlib._fields import Wave


@dispatch
def norm(field: Wave):
    spectrum = jnp.fft.rfft(field.values)
    return jnp.sqrt(jnp.mean(jnp.abs(spectrum) ** 2))


def power(field):
    return jnp.abs(jnp.fft.rfft(field.values)) ** 2
