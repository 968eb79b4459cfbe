"""Pareto-smoothed importance weights (Vehtari, Simpson, Gelman, Yao and Gabry, 2024), with the tail
fit of Zhang and Stephens (2009).
"""

import numpy as np

from dynaesti.core import Array

FLAT = 3.0  # times the mean weight that the largest may be without being looked at


def smooth_weights(log_weights: Array) -> tuple[Array, float]:
    """(normalised weights, k̂).

    The largest raw weights are replaced by the expected order statistics of a fitted Pareto tail.

    k̂ below 0.5: finite variance; below 0.7: reliable in practice; above: not to be trusted.
    """
    top = float(log_weights.max())
    weights = np.exp(log_weights - top)
    size = weights.size
    count = int(min(0.2 * size, 3 * np.sqrt(size)))
    k = np.inf
    if count >= 5:
        order = np.argsort(weights)
        tail = order[-count:]
        threshold = weights[order[-count - 1]]
        beyond = weights[tail] - threshold
        if (
            weights[tail[-1]] < FLAT * weights.mean()
        ):  # about all alike: no tail to speak of, and none that could be fitted
            k = -np.inf
        else:
            k, scale = _fit_tail(np.maximum(beyond, 1e-300))
            p = (np.arange(count) + 0.5) / count
            expected = (
                -scale * np.log1p(-p) if abs(k) < 1e-9 else scale * np.expm1(-k * np.log1p(-p)) / k
            )
            weights[tail] = np.minimum(threshold + expected, 1.0)
    return weights / weights.sum(), k


def _fit_tail(x: Array) -> tuple[float, float]:
    """(k, scale) of a generalised Pareto for rising exceedances x.

    A profile posterior mean, no iteration.
    """
    n = x.size
    grid = 30 + int(np.sqrt(n))
    quarter = x[int(n / 4 + 0.5) - 1]
    theta = 1 / x[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quarter)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_lik = n * (np.log(-theta / k) - k - 1)
    share = np.exp(log_lik - log_lik.max())
    best = float((theta * share).sum() / share.sum())
    shape = float(np.log1p(-best * x).mean())
    return (n * shape + 10 * 0.5) / (n + 10), -shape / best  # a weak prior pulls k towards 1/2
