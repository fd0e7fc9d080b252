"""LAB: a Gaussian log-density and its pieces, written once for NumPy and JAX, run with JAX.

python examples/peers/lab_linear_algebra.py
"""

from side_by_side import main  # first: it installs plum_freeze

# isort: split
import jax
import jax.numpy as jnp
import lab.jax as B

jax.config.update("jax_enable_x64", True)


def log_density(mean, variance, x):
    factor = B.cholesky(B.reg(variance))
    residual = B.trisolve(factor, B.uprank(x - mean))
    log_determinant = 2 * B.sum(B.log(B.diag(factor)))
    return -0.5 * (log_determinant + B.sum(residual**2) + B.shape(variance, 0) * B.log(2 * B.pi))


def work():
    inputs = jnp.linspace(0.0, 3.0, 16)
    distances = B.pw_dists2(B.uprank(inputs), B.uprank(inputs))
    total = jnp.zeros(())
    for scale in (0.5, 1.0, 2.0, 4.0):
        variance = B.exp(-0.5 * distances / scale**2) + 0.1 * B.eye(jnp.float64, 16)
        mean = B.zeros(jnp.float64, 16)
        total = total + log_density(mean, variance, B.sin(inputs))
    return total


if __name__ == "__main__":
    main(work, times=300)
