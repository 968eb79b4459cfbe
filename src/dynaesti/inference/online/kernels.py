"""One answer more on a settled curve: the new site first, then a few sweeps in one compiled call.

Only the new site is off when an answer arrives, so it is matched alone, from the stored posterior
of the weights, and its effect on the others is of rank one. From one sweep to the next their
cavities hardly move: the tilted moments follow by their derivatives, which are moments too, and are
integrated anew only where the move is large. Sweeps shrink the residual by a steady factor, so the
last step is taken without looking again.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, jit
from dynaesti.inference.ep_kernels import (
    compute_cavities,
    integrate_nugget,
    propose_sites,
    site_evidence,
)
from dynaesti.inference.moments.match import match_sites_cached
from dynaesti.inference.solvers.level_matern32 import smooth_level_matern32
from dynaesti.inference.solvers.weight_space import lowrank_at, lowrank_weights

MOST_SWEEPS = 12  # a curve that needs more is left to `graft`
SAFETY = 0.3  # of the tolerance, for a last step that is not looked at
LEAN = 3e-8  # error, in sds, that following a cavity by derivatives may have
(
    ON_PRECISION,
    ON_SHIFT,
    CAV_MEAN,
    CAV_VAR,
    LOG_Z,
    MEAN,
    VAR,
    AIM_PRECISION,
    AIM_SHIFT,
    BARE_MEAN,
    BARE_VAR,
    NONE,
) = range(12)
ROOM = 12  # rows of the working table, named above; the last stays zero


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


@jit
def _sweep(
    first: int, last: int, nugget_variance: Array, members: Members, memory: Array, work: Array
) -> tuple[bool, float]:
    """Cavities, tilted moments and aims of the sites, from the curve's moments there.

    (whether all went well, residual).
    """
    job = np.zeros(1, dtype=np.int64)
    start = np.array([first, last])
    proper = np.ones(1, dtype=np.bool_)
    residual = np.zeros(1)
    bent = np.ones(last, dtype=np.bool_)
    compute_cavities(
        job,
        start,
        nugget_variance,
        work[NONE],
        work[NONE],
        work[ON_PRECISION],
        work[ON_SHIFT],
        memory[2],
        memory[3],
        memory[0],
        memory[1],
        bent,
        work[BARE_MEAN],
        work[BARE_VAR],
        work[CAV_MEAN],
        work[CAV_VAR],
        work[MEAN],
        work[VAR],
        proper,
    )
    if (
        not proper[0]
        or match_sites_cached(
            np.arange(first, last),
            members.group,
            members.start,
            members.row,
            members.coef,
            members.log_lik,
            members.lik,
            members.top,
            members.grid_start,
            members.grid_step,
            work[CAV_MEAN],
            work[CAV_VAR],
            memory[4:].T,
            LEAN,
            work[LOG_Z],
            work[MEAN],
            work[VAR],
        )
        >= 0
    ):
        return False, 0.0
    propose_sites(
        job,
        start,
        work[CAV_MEAN],
        work[CAV_VAR],
        work[MEAN],
        work[VAR],
        memory[0],
        memory[1],
        work[AIM_PRECISION],
        work[AIM_SHIFT],
        residual,
    )
    return True, residual[0]


@jit
def _moved(first: int, last: int, memory: Array, work: Array) -> float:
    """Take the step; returns what the sites added to the evidence before it."""
    job = np.zeros(1, dtype=np.int64)
    start = np.array([first, last])
    added = np.zeros(1)
    site_evidence(
        job, start, work[CAV_MEAN], work[CAV_VAR], memory[0], memory[1], work[LOG_Z], added
    )
    for i in range(first, last):
        memory[0, i] = work[AIM_PRECISION, i]
        memory[1, i] = work[AIM_SHIFT, i]
    return float(added[0])


@jit
def _seen(first: int, last: int, nugget_variance: Array, memory: Array, work: Array) -> float:
    """The sites as the curve sees them; returns the nugget's part of the evidence."""
    job = np.zeros(1, dtype=np.int64)
    start = np.array([first, last])
    instant = np.zeros(1)
    integrate_nugget(
        job,
        start,
        nugget_variance,
        work[NONE],
        work[NONE],
        memory[0],
        memory[1],
        work[ON_PRECISION],
        work[ON_SHIFT],
        instant,
    )
    return float(instant[0])


@jit
def _rests(now: float, previous: float, tolerance: float) -> bool:
    """Whether the sites rest, after the step that is about to be taken at the latest."""
    return bool(now < tolerance or (now < 1e-2 and now * now < SAFETY * tolerance * previous))


@jit
def _spread(
    features: Array,
    changed: int,
    factor: Array,
    more_precision: float,
    more_shift: float,
    mean: Array,
    var: Array,
) -> None:
    """What a change of one site, as the curve sees it, does to the curve at all sites.

    A step of rank one.
    """
    rank, n = features.shape
    half = np.zeros(rank)
    reach = np.zeros(rank)
    cov = np.zeros(n)
    for i in range(rank):
        for k in range(i + 1):
            half[i] += factor[i, k] * features[k, changed]
    for i in range(rank):
        for k in range(i + 1):
            reach[k] += factor[i, k] * half[i]
    for k in range(rank):
        for i in range(n):
            cov[i] += reach[k] * features[k, i]
    m = mean[changed]
    v = var[changed]
    thin = 1.0 + more_precision * v
    pull = (more_shift - more_precision * m) / thin
    narrowing = more_precision / thin
    for i in range(n):
        mean[i] += pull * cov[i]
        var[i] -= narrowing * cov[i] * cov[i]


@jit
def update_low_rank(
    features: Array,
    nugget_variance: Array,
    changed: int,
    members: Members,
    memory: Array,
    factor: Array,
    weights: Array,
    tolerance: float,
) -> tuple[bool, float]:
    """Settle one curve in features (rank, sites) from its sites of a moment ago.

    (whether it did, log evidence).

    memory: (12, sites), the precision and shift of each, mean and variance of the curve there, and
    what `match_sites_cached` knows of its tilted moments. `factor` and `weights` hold the posterior
    of the weights before the site `changed` got its answer (−1: nothing is known but the sites).
    These three change in place.
    """
    n = memory.shape[1]
    work = np.zeros((ROOM, n))
    previous = 0.0
    partition = 0.0
    for sweep in range(MOST_SWEEPS):
        # the new site; its effect on all; everything
        only = sweep == 0 and changed >= 0
        full = sweep > 1 or changed < 0
        first, last = (changed, changed + 1) if only else (0, n)
        before = work[ON_PRECISION, changed], work[ON_SHIFT, changed]
        instant = _seen(first, last, nugget_variance, memory, work)
        if only:
            here = np.ascontiguousarray(features[:, first:last])
            lowrank_at(here, factor, weights, memory[2, first:last], memory[3, first:last])
        elif full:
            proper, partition = lowrank_weights(
                features, work[ON_PRECISION], work[ON_SHIFT], factor, weights
            )
            if not proper:
                break
            lowrank_at(features, factor, weights, memory[2], memory[3])
        else:
            _spread(
                features,
                changed,
                factor,
                work[ON_PRECISION, changed] - before[0],
                work[ON_SHIFT, changed] - before[1],
                memory[2],
                memory[3],
            )
        fine, now = _sweep(first, last, nugget_variance, members, memory, work)
        if not fine:
            break
        added = _moved(first, last, memory, work)
        if full and _rests(now, previous, tolerance):
            return True, added + partition + instant
        previous = 0.0 if only else now
    return False, 0.0


@jit
def update_level_matern32(
    gaps: Array,
    decay: Array,
    rate: float,
    variance: float,
    level: float,
    nugget_variance: Array,
    changed: int,
    members: Members,
    memory: Array,
    tolerance: float,
) -> tuple[bool, float]:
    """The same for a level plus Matérn 3/2 (see `smooth_level_matern32`), whose passes cost so
    little that every sweep makes one.
    """
    n = memory.shape[1]
    work = np.zeros((ROOM, n))
    kept = np.empty((n, 5))
    previous = 0.0
    for sweep in range(MOST_SWEEPS):
        only = sweep == 0 and changed >= 0
        first, last = (changed, changed + 1) if only else (0, n)
        instant = _seen(0, n, nugget_variance, memory, work)
        partition, proper = smooth_level_matern32(
            gaps,
            decay,
            rate,
            variance,
            level,
            work[ON_PRECISION],
            work[ON_SHIFT],
            memory[2],
            memory[3],
            kept,
        )
        if not proper:
            break
        fine, now = _sweep(first, last, nugget_variance, members, memory, work)
        if not fine:
            break
        added = _moved(first, last, memory, work)
        if not only and _rests(now, previous, tolerance):
            return True, added + partition + instant
        previous = 0.0 if only else now
    return False, 0.0
