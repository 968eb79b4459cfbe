"""Rules for integrals over a standard normal."""

import numpy as np

from dynaesti.core.arrays import Array


def gauss_hermite(n_nodes: int) -> tuple[Array, Array]:
    """Nodes and weights with E[f(x)] ≈ weights @ f(nodes) for a standard normal x.

    The rule is exact for polynomials up to degree 2 n_nodes − 1.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return nodes, weights / np.sqrt(2 * np.pi)


def even_rule(step: float, reach: float = 5.5) -> tuple[Array, Array]:
    """The same with nodes evenly apart, up to ± `reach`.

    For integrands as steep as logistic curves of slope s, the error of about exp(−2π² / (s · step))
    falls much faster with the number of nodes than that of a Gauss-Hermite rule.
    """
    count = int(np.ceil(reach / step))
    nodes = step * np.arange(-count, count + 1, dtype=np.float64)
    weights = np.exp(-0.5 * nodes**2)
    return nodes, np.asarray(weights / weights.sum())
