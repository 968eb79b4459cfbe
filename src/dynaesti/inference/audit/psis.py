"""Pareto-smoothed importance weights.

Vehtari, Simpson, Gelman, Yao and Gabry (2024), with the tail fit of Zhang and Stephens (2009).
"""

import numpy as np

from dynaesti.core import Array

# The tail is fitted where the largest weight is at least so many times the mean. Below, weights are
# about equal: there is no tail, and none could be fitted.
MIN_TAIL_RATIO = 3.0
MIN_TAIL = 5  # draws; smaller tails are left as they are


def smooth_weights(log_weights: Array) -> tuple[Array, float]:
    """Normalise importance weights, with the largest ones smoothed.

    The largest raw weights are replaced by the expected order statistics of a generalised Pareto
    distribution that is fitted to them.

    Parameters
    ----------
    log_weights : array (n_draws,)
        Log importance weights, up to a constant.

    Returns
    -------
    weights : array (n_draws,)
        They sum to 1.
    k : float
        Shape k̂ of the tail. Below 0.5 the variance is finite; below 0.7 the weights are reliable in
        practice; above they are not. −inf where weights are about equal, inf where there are too
        few draws to tell.
    """
    top = float(log_weights.max())
    weights = np.exp(log_weights - top)
    size = weights.size
    count = int(min(0.2 * size, 3 * np.sqrt(size)))
    k = np.inf
    if count >= MIN_TAIL:
        order = np.argsort(weights)
        tail = order[-count:]
        threshold = weights[order[-count - 1]]
        beyond = weights[tail] - threshold
        if weights[tail[-1]] < MIN_TAIL_RATIO * weights.mean():
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
    """(k, scale) of a generalised Pareto distribution for exceedances x in rising order.

    The posterior mean over a grid of profile likelihoods, without iteration.
    """
    n = x.size
    grid = 30 + int(np.sqrt(n))
    quarter = x[int(n / 4 + 0.5) - 1]
    theta = 1 / x[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quarter)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_lik = n * (np.log(-theta / k) - k - 1)
    weight = np.exp(log_lik - log_lik.max())
    best = float((theta * weight).sum() / weight.sum())
    shape = float(np.log1p(-best * x).mean())
    return (n * shape + 10 * 0.5) / (n + 10), -shape / best  # k shrunk towards 1/2 by a weak prior
