"""unxt: integrate an orbit with quantities, one eager step after another.

python examples/peers/unxt_orbit.py
"""

from side_by_side import main  # first: it installs plum_freeze

# isort: split
import jax.numpy as jnp
import quaxed.numpy as qnp
import unxt as u

GM = u.Quantity(jnp.asarray(39.478), "AU3 / yr2")
STEP = u.Quantity(jnp.asarray(1 / 128), "yr")


def acceleration(position):
    squared = qnp.sum(position**2)
    return -GM * position / squared**1.5


def work():
    position = u.Quantity(jnp.asarray([1.0, 0.0, 0.0]), "AU")
    velocity = u.Quantity(jnp.asarray([0.0, 6.283, 0.0]), "AU / yr")
    for _ in range(20):
        velocity = velocity + acceleration(position) * STEP
        position = position + velocity * STEP
    return position.ustrip("AU")


if __name__ == "__main__":
    main(work, times=60)
