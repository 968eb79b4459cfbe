"""Tilted moments: (log Z, mean, variance) of f(x)·N(x.

M, v), for likelihoods tabulated on an even grid or evaluated.

The nodes follow the tilted distribution, not the cavity: a bracket around the last known tilted
distribution is checked at both ends (low enough?), for resolution (enough nodes within a standard
deviation?) and for smoothness (do half the nodes give the same answer?), and moved, zoomed or
refined until all three hold. On even nodes the trapezoid rule converges exponentially, so agreement
of half the nodes to 1e-4 means all of them are right to about 1e-8.
"""

import numpy as np

from dynaesti.core import Array, Ints, jit
from dynaesti.inference.moments.adaptive import DONE, adaptive_moments
from dynaesti.inference.moments.on_grid import NARROW, grid_moments, hermite_moments, summed_moments
from dynaesti.inference.moments.table import (
    FAIR_QUADRATURE,
    FULL_QUADRATURE,
    MOST_NODES,
    ROUGH_QUADRATURE,
    WIDTH,
)

NEAR = 0.5  # how far a cavity may move at most, in sds, for derivatives to speak
PASSING = 5e-6  # error in sds from which on the rough nodes do


@jit
def match_site(
    members: Ints,
    coefs: Array,
    log_lik: Array,
    lik: Array,
    top: Array,
    start: float,
    step: float,
    cavity_mean: float,
    cavity_var: float,
    mean: float,
    var: float,
    log_w: Array,
) -> tuple[bool, float, float, float, float, float]:
    """Tilted moments of one site, near the guess (mean, var).

    (done, log Z, mean, variance, third and fourth central).

    The last two are nan where only careful quadrature would do.
    """
    sd = np.sqrt(var)
    if members.size == 1:
        if cavity_var < (NARROW * step) ** 2:
            found = hermite_moments(log_lik, members, coefs, start, step, cavity_mean, cavity_var)
            if found[0]:
                return found
        row = members[0]
        if coefs[0] == 1.0:
            trusted, z, m, v, third, fourth = grid_moments(
                lik,
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
                return True, np.log(z) + top[row], m, v, third, fourth
    else:
        trusted, lz, m, v, _, _, _ = summed_moments(
            log_lik, members, coefs, start, step, cavity_mean, cavity_var, mean, sd, log_w
        )
        if trusted:
            return True, lz, m, v, np.nan, np.nan
    verdict, lz, m, v, _, _, _ = adaptive_moments(
        log_lik,
        members,
        coefs,
        start,
        step,
        cavity_mean,
        cavity_var,
        mean - WIDTH * sd,
        mean + WIDTH * sd,
        log_w,
    )
    return verdict == DONE, lz, m, v, np.nan, np.nan


@jit
def match_sites(
    sites: Ints,
    group: Ints,
    factor_start: Ints,
    factor_row: Ints,
    factor_weight: Array,
    log_lik: Array,
    lik: Array,
    top: Array,
    start: float,
    step: float,
    cavity_mean: Array,
    cavity_var: Array,
    log_z: Array,
    mean: Array,
    var: Array,
) -> int:
    """Tilted moments of the chosen sites.

    On entry `mean` and `var` hold a guess, for the bracket to try first.

    Returns the site that cannot be integrated, or -1.
    """
    log_w = np.empty(4 * MOST_NODES)
    for site in sites:
        g = group[site]
        a = factor_start[g]
        b = factor_start[g + 1]
        if a == b:
            log_z[site] = 0.0
            mean[site] = cavity_mean[site]
            var[site] = cavity_var[site]
            continue
        done, lz, m, v, _, _ = match_site(
            factor_row[a:b],
            factor_weight[a:b],
            log_lik,
            lik,
            top,
            start,
            step,
            cavity_mean[site],
            cavity_var[site],
            mean[site],
            var[site],
            log_w,
        )
        if not done:
            return int(site)
        log_z[site] = lz
        mean[site] = m
        var[site] = v
    return -1


@jit
def _extrapolate_moments(known: Array, m: float, v: float) -> tuple[float, float, float]:
    """(log Z, mean, variance) for a cavity near the one they are known at, see
    `match_sites_cached`.
    """
    m0 = known[0]
    inv_var = known[1]
    log_z = known[2]
    mean = known[3]
    inv_sd = known[4]
    third = known[5]
    fourth = known[6]
    var = 1.0 / (inv_sd * inv_sd)
    off = mean - m0
    dm = m - m0
    dv = v - 1.0 / inv_var
    wide = 0.5 * inv_var * inv_var
    new_mean = mean + var * inv_var * dm + wide * (third + 2.0 * off * var) * dv
    new_var = var + third * inv_var * dm + wide * (fourth - var * var + 2.0 * off * third) * dv
    new_off = new_mean - m
    now = 1.0 / v
    slope = 0.5 * (off * inv_var + new_off * now)
    covariance_correction = 0.25 * (
        ((var + off * off) * inv_var - 1.0) * inv_var
        + ((new_var + new_off * new_off) * now - 1.0) * now
    )
    return log_z + slope * dm + covariance_correction * dv, new_mean, new_var


@jit
def _extrapolation_radius(
    inv_var: float, inv_sd: float, third: float, fourth: float, slack: float
) -> float:
    """How far the derivatives reach from a cavity of precision `inv_var`, in sds.

    The neglected terms are bends times half the squared move.

    The bends are the skewness and the excess, and for likelihoods that have neither, how much
    narrower than the cavity they make it (a variance does not follow the cavity's in a straight
    line). Nowhere (nan) where the moments are nan.
    """
    square = inv_sd * inv_sd
    bend = abs(third) * square * inv_sd + abs(fourth * square * square - 3.0)
    return (
        min(NEAR, np.sqrt(2.0 * slack / max(bend, abs(1.0 - inv_var / square))))
        if bend == bend
        else np.nan
    )


@jit
def match_sites_cached(
    sites: Ints,
    group: Ints,
    factor_start: Ints,
    factor_row: Ints,
    factor_weight: Array,
    log_lik: Array,
    lik: Array,
    top: Array,
    start: float,
    step: float,
    cavity_mean: Array,
    cavity_var: Array,
    known: Array,
    slack: float,
    log_z: Array,
    mean: Array,
    var: Array,
) -> int:
    """The same from sweep to sweep.

    By derivative where the cavity is near the one of the last integral, which `known` keeps.

    known: (sites, 8), a line of memory each: the cavity's mean and precision; log Z, mean, 1 / sd,
    third and fourth central moment; and how far the cavity may move (NaN: no integral yet). `slack`
    is the error that may be made, in standard deviations.
    """
    log_w = np.empty(4 * MOST_NODES)
    narrow = (NARROW * step) ** 2
    size = log_lik.shape[1]
    fine = ROUGH_QUADRATURE if slack > PASSING else FAIR_QUADRATURE
    for i in sites:
        m = cavity_mean[i]
        v = cavity_var[i]
        k = known[i]
        if abs(m - k[0]) * k[4] + abs(v * k[1] - 1.0) < k[7]:
            log_z[i], mean[i], var[i] = _extrapolate_moments(k, m, v)
            continue
        g = group[i]
        a = factor_start[g]
        b = factor_start[g + 1]
        if a == b:
            log_z[i] = 0.0
            mean[i] = m
            var[i] = v
            continue
        done = False
        if (
            b == a + 1 and factor_weight[a] == 1.0 and v >= narrow
        ):  # nearly all sites, and calls with many arrays cost more than the integral
            row = factor_row[a]
            done, z, x, s, third, fourth = grid_moments(
                lik, size, row, start, step, m, v, mean[i], np.sqrt(var[i]), fine
            )
            if not done and z > 0.0:  # the guess was wide: again around what it found
                done, z, x, s, third, fourth = grid_moments(
                    lik, size, row, start, step, m, v, x, np.sqrt(s), fine
                )
            lz = np.log(z) + top[row] if done else 0.0
        if not done:
            done, lz, x, s, third, fourth = match_site(
                factor_row[a:b],
                factor_weight[a:b],
                log_lik,
                lik,
                top,
                start,
                step,
                m,
                v,
                mean[i],
                var[i],
                log_w,
            )
        if not done:
            return int(i)
        inv_var = 1.0 / v
        inv_sd = 1.0 / np.sqrt(s)
        k[0] = m
        k[1] = inv_var
        k[2] = lz
        k[3] = x
        k[4] = inv_sd
        k[5] = third
        k[6] = fourth
        k[7] = _extrapolation_radius(inv_var, inv_sd, third, fourth, slack)
        log_z[i] = lz
        mean[i] = x
        var[i] = s
    return -1
