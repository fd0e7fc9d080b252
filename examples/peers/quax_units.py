"""quax: an array type of one's own, with rules for the primitives that a function uses.

python examples/peers/quax_units.py
"""

from side_by_side import main  # first: it installs plum_freeze

# isort: split
import equinox as eqx
import jax
import jax.numpy as jnp
import quax


class Scaled(quax.ArrayValue):
    """An array that is kept as a factor and a power of ten."""

    mantissa: jax.Array
    exponent: int = eqx.field(static=True)

    def aval(self):
        return jax.core.ShapedArray(self.mantissa.shape, self.mantissa.dtype)

    def materialise(self):
        return self.mantissa * 10.0**self.exponent


@quax.register(jax.lax.mul_p)
def _(x: Scaled, y: Scaled, **_params):
    return Scaled(x.mantissa * y.mantissa, x.exponent + y.exponent)


@quax.register(jax.lax.mul_p)
def _(x: Scaled, y: jax.Array, **_params):
    return Scaled(x.mantissa * y, x.exponent)


@quax.register(jax.lax.add_p)
def _(x: Scaled, y: Scaled, **_params):
    shift = 10.0 ** (y.exponent - x.exponent)
    return Scaled(x.mantissa + y.mantissa * shift, x.exponent)


@quax.quaxify
def polynomial(x, y):
    return x * y * y + y * x + x


def work():
    x = Scaled(jnp.asarray([1.0, 2.0, 4.0]), 2)
    y = Scaled(jnp.asarray([0.5, 0.25, 2.0]), 0)
    for _ in range(10):
        result = polynomial(x, y)
        x = Scaled(result.mantissa * 0.25, 2)
    return result.materialise()


if __name__ == "__main__":
    main(work, times=250)
