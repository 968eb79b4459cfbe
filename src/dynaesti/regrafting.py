"""One answer more on a settled curve: the new site first, then a few sweeps in one compiled call.

Only the new site is off when an answer arrives, so it is matched alone, from the stored posterior of the weights, and its effect on
the others is of rank one. From one sweep to the next their cavities hardly move: the tilted moments follow by their derivatives,
which are moments too, and are integrated anew only where the move is large. Sweeps shrink the residual by a steady factor, so the
last step is taken without looking again.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.arrays import Array, Ints
from dynaesti.compiled import compiled
from dynaesti.grafting import aim, cavities, on_curve, site_evidence
from dynaesti.priors.weights import lowrank_at, lowrank_weights
from dynaesti.rows import MOST_NODES, match_one

MOST_SWEEPS = 12  # a curve that needs more is left to `graft`
SAFETY = 0.3  # of the tolerance, for a last step that is not looked at
NEAR = 0.1  # how far a cavity may move, in sds, for the derivatives to speak,
LEAN = 3e-8  # and how large the error of second order may be then, in sds


class Members(NamedTuple):
    """The answers of each site and the table of their rows."""

    group: Ints
    start: Ints
    row: Ints
    coef: Array
    log_lik: Array
    lik: Array
    top: Array
    grid_start: float
    grid_step: float


@compiled
def _lean(known: Array, i: int, m: float, v: float) -> tuple[float, float, float]:
    """(log Z, mean, variance) for a cavity near the one they are known at."""
    m0, v0, log_z, mean, var, third, fourth = (known[0, i], known[1, i], known[2, i], known[3, i], known[4, i], known[5, i],
                                               known[6, i])
    off, dm, dv = mean - m0, m - m0, v - v0
    wide = 0.5 / (v0 * v0)
    new_mean = mean + var / v0 * dm + wide * (third + 2.0 * off * var) * dv
    new_var = var + third / v0 * dm + wide * (fourth - var * var + 2.0 * off * third) * dv
    new_off = new_mean - m
    slope = 0.5 * (off / v0 + new_off / v)
    widening = 0.25 * (((var + off * off) / v0 - 1.0) / v0 + ((new_var + new_off * new_off) / v - 1.0) / v)
    return log_z + slope * dm + widening * dv, new_mean, new_var


@compiled
def _follows(known: Array, i: int, m: float, v: float) -> bool:
    """Whether the derivatives reach from the known cavity to this one; never where the moments are nan.

    The neglected terms are the skewness and the excess times half the squared move.
    """
    var = known[4, i]
    move = abs(m - known[0, i]) / np.sqrt(var) + abs(v / known[1, i] - 1.0)
    bend = abs(known[5, i]) / (var * np.sqrt(var)) + abs(known[6, i] / (var * var) - 3.0)
    return bool(move < NEAR and 0.5 * bend * move * move < LEAN)


@compiled
def _match(sites: Ints, members: Members, cav_mean: Array, cav_var: Array, known: Array, log_z: Array, mean: Array, var: Array,
           log_w: Array) -> bool:
    """Tilted moments of the chosen sites, by derivative where the cavity is near where it was."""
    for i in sites:
        m, v = cav_mean[i], cav_var[i]
        if _follows(known, i, m, v):
            log_z[i], mean[i], var[i] = _lean(known, i, m, v)
            continue
        g = members.group[i]
        a, b = members.start[g], members.start[g + 1]
        done, lz, x, s, third, fourth = match_one(members.row[a:b], members.coef[a:b], members.log_lik, members.lik, members.top,
                                                  members.grid_start, members.grid_step, m, v, mean[i], var[i], log_w)
        if not done:
            return False
        known[0, i], known[1, i], known[2, i], known[3, i], known[4, i], known[5, i], known[6, i] = m, v, lz, x, s, third, fourth
        log_z[i], mean[i], var[i] = lz, x, s
    return True


@compiled
def _spread(features: Array, changed: int, factor: Array, more_precision: float, more_shift: float, mean: Array, var: Array) -> None:
    """What a change of one site, as the curve sees it, does to the curve at all sites: a step of rank one."""
    rank, n = features.shape
    half, reach, cov = np.zeros(rank), np.zeros(rank), np.zeros(n)
    for i in range(rank):
        for k in range(i + 1):
            half[i] += factor[i, k] * features[k, changed]
    for i in range(rank):
        for k in range(i + 1):
            reach[k] += factor[i, k] * half[i]
    for k in range(rank):
        for i in range(n):
            cov[i] += reach[k] * features[k, i]
    m, v = mean[changed], var[changed]
    thin = 1.0 + more_precision * v
    pull, narrowing = (more_shift - more_precision * m) / thin, more_precision / thin
    for i in range(n):
        mean[i] += pull * cov[i]
        var[i] -= narrowing * cov[i] * cov[i]


@compiled
def regraft(features: Array, instant_var: Array, changed: int, members: Members, memory: Array, factor: Array, weights: Array,
            tolerance: float) -> tuple[bool, float]:
    """Settle one curve from its sites of a moment ago: (whether it did, log evidence). The last three arrays change in place.

    features: (rank, sites). memory: (11, sites), the precision and shift of each, mean and variance of the curve there, and where its
    tilted moments were last integrated: the cavity's mean and variance, log Z, mean, variance, third and fourth central moment.
    `factor` and `weights` hold the posterior of the weights before the site `changed` got its answer (−1: nothing is known but the
    sites).
    """
    precision, shift, curve_mean, curve_var, known, n = memory[0], memory[1], memory[2], memory[3], memory[4:], memory.shape[1]
    job, all_sites, no_precision, no_shift = np.zeros(1, dtype=np.int64), np.arange(n), np.zeros(n), np.zeros(n)
    on_precision, on_shift = np.empty(n), np.empty(n)
    bare_mean, bare_var, cav_mean, cav_var = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    log_z, mean, var, aim_precision, aim_shift = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    instant, residual, added, log_w = np.zeros(1), np.zeros(1), np.zeros(1), np.empty(4 * MOST_NODES)
    bent, proper = np.ones(n, dtype=np.bool_), np.ones(1, dtype=np.bool_)
    previous, partition = 0.0, 0.0
    for sweep in range(MOST_SWEEPS):
        only, full = sweep == 0 and changed >= 0, sweep > 1 or changed < 0  # the new site; its effect on all; everything
        first, last = (changed, changed + 1) if only else (0, n)
        start, sites = np.array([first, last]), all_sites[first:last]
        before = on_precision[changed], on_shift[changed]
        on_curve(job, start, instant_var, no_precision, no_shift, precision, shift, on_precision, on_shift, instant)
        if only:
            here = np.ascontiguousarray(features[:, first:last])
            lowrank_at(here, factor, weights, curve_mean[first:last], curve_var[first:last])
        elif full:
            proper[0], partition = lowrank_weights(features, on_precision, on_shift, factor, weights)
            if not proper[0]:
                break
            lowrank_at(features, factor, weights, curve_mean, curve_var)
        else:
            _spread(features, changed, factor, on_precision[changed] - before[0], on_shift[changed] - before[1], curve_mean, curve_var)
        cavities(job, start, instant_var, no_precision, no_shift, on_precision, on_shift, curve_mean, curve_var, precision, shift,
                 bent, bare_mean, bare_var, cav_mean, cav_var, mean, var, proper)
        if not proper[0] or not _match(sites, members, cav_mean, cav_var, known, log_z, mean, var, log_w):
            break
        aim(job, start, cav_mean, cav_var, mean, var, precision, shift, aim_precision, aim_shift, residual)
        now = residual[0]
        resting = full and (now < tolerance or (now < 1e-2 and now * now < SAFETY * tolerance * previous))
        if resting:
            site_evidence(job, start, cav_mean, cav_var, precision, shift, log_z, added)
        for i in sites:
            precision[i], shift[i] = aim_precision[i], aim_shift[i]
        if resting:
            return True, added[0] + partition + instant[0]
        previous = 0.0 if only else now
    return False, 0.0
