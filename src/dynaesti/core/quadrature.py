"""Gauss-Hermite rules for a standard normal."""

import numpy as np

from dynaesti.core.arrays import Array


def gauss_hermite(n_nodes: int) -> tuple[Array, Array]:
    """Nodes and weights with E[f(x)] ≈ weights @ f(nodes) for a standard normal x.

    The rule is exact for polynomials up to degree 2 n_nodes − 1.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return nodes, weights / np.sqrt(2 * np.pi)
