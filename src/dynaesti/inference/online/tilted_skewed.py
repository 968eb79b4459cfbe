"""Moments of a skewed distribution times a likelihood.

A normal distribution forgets on which side the answers so far left it open: many wrong answers
rule out high abilities, not low ones. So what is known before an answer is a log-gamma
distribution with three given moments: y = mean ± sd · (log G − E log G) / sd(log G) where
G ~ Gamma(shape). Thus a filter follows a long slide nearly as grafting does, which takes up each
answer again.
"""

import numpy as np

from dynaesti.core import Array, jit, jit_internal

MOST_SKEWED = 0.5  # beyond it the third moment is less, so that tails stay near to normal ones
LEAST_SKEWED = 1e-5  # less is rounding, or the same to rounding
LOG_MASS, TILTED_MEAN, TILTED_VARIANCE, TILTED_THIRD = range(4)


@jit_internal
def log_gamma(skewness: float) -> tuple[float, float, float, float]:
    """Shape, E log G − log shape, sd(log G) and the log of its density's height, unless normal.

    By series in 1/shape, to 2e-9 for the smallest shape that there is.
    """
    size = min(abs(skewness), MOST_SKEWED)
    # 1/skewness² = shape − 1/2 + c/shape with c from 0.25 to 0.274 for these: right to 3e-4
    half = 0.5 / (size * size) + 0.25
    shape = half + np.sqrt(half * half - 0.26)
    r = 1.0 / shape
    q = r * r
    start = -r / 2 - q * (1 / 12 - q * (1 / 120 - q * (1 / 252 - q * (1 / 240 - q / 132))))
    odd = 1 / 6 - q * (1 / 30 - q * (1 / 42 - q * (1 / 30 - q * 5 / 66)))
    beyond = r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680 - q / 1188))))
    spread = np.sqrt(r * (1 + r / 2 + q * odd))
    height = np.log(spread * np.sqrt(shape / (2 * np.pi))) - beyond
    return shape, start, spread if skewness < 0 else -spread, height


@jit
def integrate_tilted(
    before: Array,
    bracket: Array,
    unit: Array,
    log_likelihood: Array,
    agree: float,
    ends: float,
    tilted: Array,
) -> bool:
    """Mass and moments of distributions times likelihoods, as far as nodes suffice.

    Parameters
    ----------
    before : array (n, 3)
        Mean, variance and third central moment.
    bracket : array (n, 2)
        Centre and width of the nodes, which are centre + width · unit. Where they do not suffice,
        replaced by those of the tilted distribution.
    unit : array (n_nodes,)
        Even nodes, an odd number of them.
    log_likelihood : array (n, n_nodes)
        At the nodes; overwritten.
    agree, ends : float
        Largest relative difference between every other node and all, and largest weight of ends.
    tilted : array (n, 4)
        Log of the mass, mean, variance and third central moment. Rows that are not NaN are left
        as they are: nobody's moments depend on whom else they are computed with. A mass of 0 is
        an impossible answer.

    Returns
    -------
    bool
        Whether all rows are there.
    """
    n, n_nodes = log_likelihood.shape
    step = unit[1] - unit[0]
    done = True
    for k in range(n):
        if tilted[k, LOG_MASS] == tilted[k, LOG_MASS]:
            continue
        sd = np.sqrt(before[k, 1])
        skewness = before[k, 2] / (sd * before[k, 1])
        is_skewed = abs(skewness) > LEAST_SKEWED
        height = -0.5 * np.log(2 * np.pi)
        if is_skewed:
            shape, start, spread, height = log_gamma(skewness)
        centre = bracket[k, 0]
        width = bracket[k, 1]
        weight = log_likelihood[k]
        top = -np.inf
        for i in range(n_nodes):
            z = (centre + width * unit[i] - before[k, 0]) / sd
            if is_skewed:
                w = start + spread * z
                weight[i] += shape * (w - np.expm1(w))
            else:
                weight[i] -= 0.5 * z * z
            top = max(top, weight[i])
        if top == -np.inf:
            tilted[k, LOG_MASS] = top
            continue
        total = 0.0
        half = 0.0
        first = 0.0
        for i in range(n_nodes):
            weight[i] = np.exp(weight[i] - top)
            total += weight[i]
            first += weight[i] * unit[i]
            if i % 2 == 0:
                half += weight[i]
        first /= total
        second = 0.0
        third = 0.0
        for i in range(n_nodes):
            away = unit[i] - first
            second += weight[i] * away * away
            third += weight[i] * away * away * away
        second /= total
        outside = weight[0] + weight[n_nodes - 1] > ends * total
        if outside or abs(2.0 * half - total) > agree * total:
            done = False
            bracket[k, 0] = centre + width * first
            # a distribution between two nodes has no width of its own yet
            bracket[k, 1] = width * (2.0 if outside else max(np.sqrt(second), 0.5 * step))
            continue
        tilted[k, LOG_MASS] = top + height + np.log(total * step * width / sd)
        tilted[k, TILTED_MEAN] = centre + width * first
        tilted[k, TILTED_VARIANCE] = width * width * second
        tilted[k, TILTED_THIRD] = width * width * width * third / total
    return done
