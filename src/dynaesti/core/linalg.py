"""Linear algebra in small dimensions."""

import numpy as np

from dynaesti.core.arrays import Array
from dynaesti.core.compiled import REORDERED, compile_lazily


def symmetric_root(cov: Array) -> Array:
    """The symmetric root R = Rᵀ with RR = cov of a covariance (n, n), which may be singular.

    It is unique. So a seed draws the same curves on every machine, although libraries differ in
    the signs of eigenvectors.
    """
    values, vectors = np.linalg.eigh(cov)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _dot(x: Array, y: Array) -> float:
    """x·y of two vectors (n,), compiled to vector instructions.

    It writes nothing, so the compiler guards nothing, and the order of its sum does not depend on
    where the arrays lie in memory.
    """
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


dot = compile_lazily(_dot, REORDERED)
