"""NetKet: the energy of a spin chain, its variance and its gradient, from a variational state.

python examples/peers/netket_energy.py
"""

from side_by_side import main  # first: it installs plum_freeze

# isort: split
import jax
import netket as nk

SPACE = nk.hilbert.Spin(s=0.5, N=8)
GRAPH = nk.graph.Chain(8)
HAMILTONIAN = nk.operator.IsingJax(SPACE, graph=GRAPH, h=1.0)
MAGNETISATION = sum(nk.operator.spin.sigmaz(SPACE, i) for i in range(8))


def work():
    state = nk.vqs.FullSumState(SPACE, nk.models.RBM(alpha=1, param_dtype=float), seed=7)
    values = []
    for _ in range(3):
        energy, gradient = state.expect_and_grad(HAMILTONIAN)
        state.parameters = jax.tree.map(lambda p, g: p - 0.05 * g, state.parameters, gradient)
        values += [energy.mean.real, energy.variance, state.expect(MAGNETISATION).mean.real]
    return [float(value) for value in values]


if __name__ == "__main__":
    main(work, times=400)
