"""The compiled step of filters: curves as Markov processes, moved on in time."""

import numpy as np

from dynaesti.core import Array, Ints, jit, jit_internal

LOG_WEIGHT, PRECISION, SHIFT, THIRD = range(4)  # of a kernel's open instant
# of a curve, see `move_states`
MEAN_NOW, VARIANCE_NOW, FOLLOWS_NOW, BEFORE_MEAN, BEFORE_VARIANCE = range(5)


@jit_internal
def _see(x: Array, p: Array, seen: Array, d: int, reach: Array) -> tuple[float, float]:
    """Mean and variance of the curve; `reach` becomes its covariance with the states."""
    mean = 0.0
    variance = 0.0
    for i in range(d):
        s = 0.0
        for j in range(d):
            s += p[i, j] * seen[j]
        reach[i] = s
        mean += seen[i] * x[i]
        variance += seen[i] * s
    return mean, variance


@jit_internal
def _move(x: Array, p: Array, step: Array, seen: Array, reach: Array, d: int, work: Array) -> float:
    """Move mean and covariance of the states; returns the curve's covariance with its past."""
    covariance = 0.0
    for i in range(d):
        work[0, i] = x[i]
        p[i, i] -= 1.0
        for j in range(d):
            covariance += seen[i] * step[i, j] * reach[j]
    for i in range(d):
        s = 0.0
        for q in range(d):
            s += step[i, q] * work[0, q]
        x[i] = s
    for i in range(d):
        for j in range(d):
            s = 0.0
            for q in range(d):
                s += step[i, q] * p[q, j]
            work[i, j] = s
    for i in range(d):
        for j in range(i + 1):
            s = 1.0 if i == j else 0.0
            for q in range(d):
                s += work[i, q] * step[j, q]
            p[i, j] = s
            p[j, i] = s
    return covariance


@jit
def move_states(
    size: Ints,
    seen: Array,
    nugget: Array,
    gaps: Array,
    steps: Array,
    x: Array,
    p: Array,
    instant: Array,
) -> Array:
    """Move people's states on over gaps of time; everything of theirs is changed in place.

    Where time goes on, the open instant is closed: its site is taken into mean and covariance.

    Parameters
    ----------
    size, seen, nugget
        Of the `MarkovForm`.
    gaps : array (n_people,)
        At least 0.
    steps : array (n_people, n_kernels, most_states, most_states)
        Transitions of the states over the gaps.
    x, p : array (n_people, n_kernels, most_states) and (…, most_states, most_states)
        Mean and covariance of the states before the open instant.
    instant : array (n_people, n_kernels, 4)
        Log of the kernel's weight; precision and shift of the open instant's site; and the third
        cumulant of the curve there.

    Returns
    -------
    array (n_people, n_kernels, 5)
        Mean and variance of the curve about the population's mean; how much of a common, constant
        error of that mean is left in the ability; and mean and variance of the curve with its
        nugget, as the next answer at that time sees it.
    """
    n_people, n_kernels, most = x.shape
    now = np.empty((n_people, n_kernels, 5))
    reach = np.empty(most)
    work = np.empty((most, most))
    for n in range(n_people):
        for k in range(n_kernels):
            d = size[k]
            site = instant[n, k]
            mean, variance = _see(x[n, k], p[n, k], seen[k], d, reach)
            if gaps[n] > 0.0:
                through = 1.0 + site[PRECISION] * (nugget[k] + variance)
                move = (site[SHIFT] - site[PRECISION] * mean) / through
                kappa = site[PRECISION] / through
                for i in range(d):
                    x[n, k, i] += reach[i] * move
                    for j in range(d):
                        p[n, k, i, j] -= kappa * reach[i] * reach[j]
                past = _move(x[n, k], p[n, k], steps[n, k], seen[k], reach, d, work) / variance
                site[THIRD] *= past * past * past
                site[PRECISION] = 0.0
                site[SHIFT] = 0.0
                mean, variance = _see(x[n, k], p[n, k], seen[k], d, reach)
            with_nugget = variance + nugget[k]
            through = 1.0 + site[PRECISION] * with_nugget
            left = 1.0 - variance * site[PRECISION] / through
            move = (site[SHIFT] - site[PRECISION] * mean) / through
            now[n, k, MEAN_NOW] = mean + variance * move
            now[n, k, VARIANCE_NOW] = variance * left
            now[n, k, FOLLOWS_NOW] = reach[0] * left / seen[k, 0]
            now[n, k, BEFORE_MEAN] = (mean + with_nugget * site[SHIFT]) / through
            now[n, k, BEFORE_VARIANCE] = with_nugget / through
    return now
