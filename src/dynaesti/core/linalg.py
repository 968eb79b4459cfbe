"""Small linear algebra."""

import numpy as np

from dynaesti.core.arrays import Array
from dynaesti.core.compiled import REORDERED, compile_lazily


def symmetric_root(cov: Array) -> Array:
    """The R = Rᵀ with RR = cov, for covariances that are singular to rounding.

    There is only one: a seed draws the same curves whichever way a machine's libraries turn
    eigenvectors.
    """
    values, vectors = np.linalg.eigh(cov)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _dot(x: Array, y: Array) -> float:
    """x·y on vector units. It writes nothing, so nothing is guarded, and its sum has one order
    wherever the arrays lie.
    """
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


dot = compile_lazily(_dot, REORDERED)
