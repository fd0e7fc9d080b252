"""Stheno: the posterior of a Gaussian process, with NumPy and with JAX underneath.

python examples/peers/stheno_posterior.py
"""

from side_by_side import main  # first: it installs plum_freeze

# isort: split
import jax
import jax.numpy as jnp
import numpy as np
from stheno.jax import EQ, GP

jax.config.update("jax_enable_x64", True)


def posterior(array):
    process = GP(EQ().stretch(0.5))
    noise = 0.1
    seen, wanted = array(np.linspace(0, 4, 12)), array(np.linspace(0, 4, 30))
    observations = array(np.sin(np.linspace(0, 4, 12)))
    after = process | (process(seen, noise), observations)
    mean, lower, upper = after(wanted).marginal_credible_bounds()
    return np.concatenate([np.asarray(each).ravel() for each in (mean, lower, upper)])


def work():
    return np.concatenate([posterior(np.asarray), posterior(jnp.asarray)])


if __name__ == "__main__":
    main(work, times=120)
