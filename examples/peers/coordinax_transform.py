"""coordinax: positions and velocities from Cartesian to spherical and back, again and again.

python examples/peers/coordinax_transform.py
"""

from side_by_side import main  # first: it installs plum_freeze

# isort: split
import coordinax as cx
import jax.numpy as jnp
import numpy as np


def work():
    position = cx.CartesianPos3D.from_(jnp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "kpc")
    velocity = cx.CartesianVel3D.from_(jnp.asarray([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]), "km/s")
    for _ in range(3):
        spherical = cx.vconvert(cx.SphericalPos, position)
        radial = cx.vconvert(cx.SphericalVel, velocity, position)
        position = cx.vconvert(cx.CartesianPos3D, spherical)
    return np.concatenate(
        [
            spherical.r.ustrip("kpc"),
            radial.r.ustrip("km/s"),
            position.x.ustrip("kpc"),
        ]
    )


if __name__ == "__main__":
    main(work, times=60)
