"""Tilted moments of many sites whose factors are rows of a likelihood table.

Each site takes the fastest method that is accurate: derivatives of its last integral, the table's
own grid, Gauss–Hermite, and finally adaptive brackets.
"""

import numpy as np

from dynaesti.core import Array, Ints, jit, jit_internal
from dynaesti.inference.moments.adaptive import DONE, adaptive_moments
from dynaesti.inference.moments.on_grid import (
    NARROW,
    grid_moments,
    hermite_moments,
    summed_moments,
)
from dynaesti.inference.moments.table import (
    FAIR_QUADRATURE,
    FULL_QUADRATURE,
    MOST_NODES,
    ROUGH_QUADRATURE,
    WIDTH,
    LogLikelihoodTable,
)
from dynaesti.inference.sites import Moments, SiteFactors

MAX_MOVE = 0.5  # largest move of a cavity, in sds, for which derivatives are used
PASSING = 5e-6  # where larger errors, in sds, are allowed, rough quadrature is used

# A line of the cache: the cavity at which a site was last integrated, the moments found there, and
# how far the cavity may move from there.
CACHE_SIZE = 8
CAVITY_MEAN, CAVITY_PRECISION, LOG_Z, MEAN, INV_SD, THIRD, FOURTH, RADIUS = range(CACHE_SIZE)


def empty_cache(n_sites: int) -> Array:
    """A cache (n_sites, CACHE_SIZE) without any integral yet."""
    return np.full((n_sites, CACHE_SIZE), np.nan)


@jit_internal
def match_site(
    rows: Ints,
    weights: Array,
    table: LogLikelihoodTable,
    cavity_mean: float,
    cavity_var: float,
    mean: float,
    var: float,
    log_w: Array,
) -> tuple[bool, float, float, float, float, float]:
    """Tilted moments of one site, by quadrature around the guess (mean, var).

    ``log_w`` is memory for the nodes.

    Returns
    -------
    done : bool
        False where the site cannot be integrated.
    log_z, mean, variance : float
        Tilted moments.
    third, fourth : float
        Central moments; NaN where several factors or adaptive brackets were integrated.
    """
    sd = np.sqrt(var)
    log_lik, start, step = table.log_lik, table.start, table.step
    if rows.size == 1:
        if cavity_var < (NARROW * step) ** 2:
            found = hermite_moments(log_lik, rows, weights, start, step, cavity_mean, cavity_var)
            if found[0]:
                return found
        row = rows[0]
        if weights[0] == 1.0:
            trusted, z, m, v, third, fourth = grid_moments(
                table.lik,
                log_lik.shape[1],
                row,
                start,
                step,
                cavity_mean,
                cavity_var,
                mean,
                sd,
                FULL_QUADRATURE,
            )
            if trusted:
                return True, np.log(z) + table.top[row], m, v, third, fourth
    else:
        trusted, log_z, m, v, _, _, _ = summed_moments(
            log_lik, rows, weights, start, step, cavity_mean, cavity_var, mean, sd, log_w
        )
        if trusted:
            return True, log_z, m, v, np.nan, np.nan
    verdict, log_z, m, v, _, _, _ = adaptive_moments(
        log_lik,
        rows,
        weights,
        start,
        step,
        cavity_mean,
        cavity_var,
        mean - WIDTH * sd,
        mean + WIDTH * sd,
        log_w,
    )
    return verdict == DONE, log_z, m, v, np.nan, np.nan


@jit
def match_sites(
    sites: Ints,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    cavity: Moments,
    log_z: Array,
    tilted: Moments,
) -> int:
    """Compute tilted moments of the chosen sites, in place.

    Parameters
    ----------
    sites : array of int
    factors : SiteFactors
    table : LogLikelihoodTable
    cavity : Moments (n_sites,)
    log_z : array (n_sites,)
        Receives log ∫ factors × cavity.
    tilted : Moments (n_sites,)
        Holds a guess, which places the first nodes, and receives the tilted moments.

    Returns
    -------
    int
        A site that cannot be integrated, or -1.
    """
    log_w = np.empty(4 * MOST_NODES)
    for i in sites:
        group = factors.group[i]
        a = factors.start[group]
        b = factors.start[group + 1]
        if a == b:
            log_z[i] = 0.0
            tilted.mean[i] = cavity.mean[i]
            tilted.variance[i] = cavity.variance[i]
            continue
        done, lz, m, v, _, _ = match_site(
            factors.row[a:b],
            factors.weight[a:b],
            table,
            cavity.mean[i],
            cavity.variance[i],
            tilted.mean[i],
            tilted.variance[i],
            log_w,
        )
        if not done:
            return int(i)
        log_z[i] = lz
        tilted.mean[i] = m
        tilted.variance[i] = v
    return -1


@jit_internal
def _extrapolate_moments(line: Array, m: float, v: float) -> tuple[float, float, float]:
    """(log Z, mean, variance) of a tilted distribution whose cavity has moved a little, to (m, v).

    First order in the move: derivatives of an exponential family's moments are its next moments.
    log Z follows from the average of the gradients at both ends (trapezoid rule).
    """
    precision = line[CAVITY_PRECISION]
    mean = line[MEAN]
    var = 1.0 / (line[INV_SD] * line[INV_SD])
    offset = mean - line[CAVITY_MEAN]
    d_mean = m - line[CAVITY_MEAN]
    d_var = v - 1.0 / precision
    half_square = 0.5 * precision * precision  # − d(natural parameter of x²) / d(cavity variance)
    third = line[THIRD]
    new_mean = mean + var * precision * d_mean + half_square * (third + 2.0 * offset * var) * d_var
    new_var = (
        var
        + third * precision * d_mean
        + half_square * (line[FOURTH] - var * var + 2.0 * offset * third) * d_var
    )
    new_offset = new_mean - m
    now = 1.0 / v
    by_mean = 0.5 * (offset * precision + new_offset * now)
    by_var = 0.25 * (
        ((var + offset * offset) * precision - 1.0) * precision
        + ((new_var + new_offset * new_offset) * now - 1.0) * now
    )
    return line[LOG_Z] + by_mean * d_mean + by_var * d_var, new_mean, new_var


@jit_internal
def _extrapolation_radius(
    precision: float, inv_sd: float, third: float, fourth: float, slack: float
) -> float:
    """How far a cavity may move, in sds, for derivatives to be accurate.

    The neglected terms are curvatures times half the squared move. The curvatures are skewness and
    excess kurtosis; for likelihoods that have neither, how much narrower than the cavity the tilted
    distribution is (its variance is not linear in the cavity's). NaN, so that derivatives are never
    used, where the moments are NaN.
    """
    square = inv_sd * inv_sd
    bend = abs(third) * square * inv_sd + abs(fourth * square * square - 3.0)
    if bend != bend:  # NaN
        return np.nan
    reach = np.sqrt(2.0 * slack / max(bend, abs(1.0 - precision / square)))
    return float(min(MAX_MOVE, reach))


@jit
def match_sites_cached(
    sites: Ints,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    cavity: Moments,
    cache: Array,
    slack: float,
    log_z: Array,
    tilted: Moments,
) -> int:
    """Compute tilted moments as `match_sites` does, with integrals kept from sweep to sweep.

    Where the cavity is close to that of the last integral, its derivatives are used.

    Parameters
    ----------
    cache : array (n_sites, CACHE_SIZE)
        The last integral of each site; changed in place.
    slack : float
        Error that derivatives may have, in standard deviations.

    Returns
    -------
    int
        A site that cannot be integrated, or -1.
    """
    log_w = np.empty(4 * MOST_NODES)
    narrow = (NARROW * table.step) ** 2
    lik, top, start, step = table.lik, table.top, table.start, table.step
    factor_start, factor_row, factor_weight = factors.start, factors.row, factors.weight
    size = table.log_lik.shape[1]
    fine = ROUGH_QUADRATURE if slack > PASSING else FAIR_QUADRATURE
    for i in sites:
        m = cavity.mean[i]
        v = cavity.variance[i]
        line = cache[i]
        moved = abs(m - line[CAVITY_MEAN]) * line[INV_SD] + abs(v * line[CAVITY_PRECISION] - 1.0)
        if moved < line[RADIUS]:
            log_z[i], tilted.mean[i], tilted.variance[i] = _extrapolate_moments(line, m, v)
            continue
        group = factors.group[i]
        a = factor_start[group]
        b = factor_start[group + 1]
        if a == b:
            log_z[i] = 0.0
            tilted.mean[i] = m
            tilted.variance[i] = v
            continue
        done = False
        # Nearly all sites have one factor of weight 1. Calls that pass many arrays would cost more
        # than the integral.
        if b == a + 1 and factor_weight[a] == 1.0 and v >= narrow:
            row = factor_row[a]
            done, z, x, s, third, fourth = grid_moments(
                lik, size, row, start, step, m, v, tilted.mean[i], np.sqrt(tilted.variance[i]), fine
            )
            if not done and z > 0.0:  # the guess was poor: again around the moments found
                done, z, x, s, third, fourth = grid_moments(
                    lik, size, row, start, step, m, v, x, np.sqrt(s), fine
                )
            lz = np.log(z) + top[row] if done else 0.0
        if not done:
            done, lz, x, s, third, fourth = match_site(
                factor_row[a:b],
                factor_weight[a:b],
                table,
                m,
                v,
                tilted.mean[i],
                tilted.variance[i],
                log_w,
            )
        if not done:
            return int(i)
        precision = 1.0 / v
        inv_sd = 1.0 / np.sqrt(s)
        line[CAVITY_MEAN] = m
        line[CAVITY_PRECISION] = precision
        line[LOG_Z] = lz
        line[MEAN] = x
        line[INV_SD] = inv_sd
        line[THIRD] = third
        line[FOURTH] = fourth
        line[RADIUS] = _extrapolation_radius(precision, inv_sd, third, fourth, slack)
        log_z[i] = lz
        tilted.mean[i] = x
        tilted.variance[i] = s
    return -1
