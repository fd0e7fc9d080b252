import jax

from . import dispatch


@dispatch
def f(x: jax.Array):
    return x * 2
