"""Compiled online updates: one more observation on a converged curve.

Only the new site is wrong when an observation arrives. So it is matched alone first, from the
stored posterior of the weights, and its effect on the others is of rank one. Then a few sweeps over
all sites follow, in the same compiled call. Their cavities hardly move from one sweep to the next,
so that tilted moments follow by derivatives (see `match_sites_cached`). Sweeps shrink the residual
by a constant factor; therefore the last step is taken without another sweep.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, jit, jit_internal
from dynaesti.inference.ep_kernels import (
    FULL_CAVITY,
    LATENT_SITE,
    LOG_Z,
    N_ARRAYS,
    POSTERIOR,
    SITE,
    TILTED,
    compute_cavities,
    integrate_nugget,
    propose_sites,
    site_evidence,
    take_proposed_sites,
)
from dynaesti.inference.moments.match import match_sites_cached
from dynaesti.inference.moments.table import LogLikelihoodTable
from dynaesti.inference.sites import Moments, NaturalGaussian, SiteFactors
from dynaesti.inference.solvers.level_matern32 import LevelMatern32Chain, smooth_level_matern32
from dynaesti.inference.solvers.weight_space import lowrank_at, lowrank_weights

MAX_SWEEPS = 12  # a curve that needs more is left to `graft`
SAFETY = 0.3  # fraction of the tolerance allowed for a last step that is not checked
CACHE_TOLERANCE = 3e-8  # error, in sds, that moments by derivatives may have


class OnlineSites(NamedTuple):
    """What is kept of each site from one observation to the next.

    Compiled updates change it in place.
    """

    site: NaturalGaussian  # (n_sites,) about the prior mean, as all that follows
    posterior: Moments  # (n_sites,) of the curve
    mean: Array  # (n_sites,) prior mean
    cache: Array  # (n_sites, CACHE_SIZE) of integrals, see `match_sites_cached`


@jit_internal
def _begin(online: OnlineSites) -> Array:
    """Working memory of sweeps, filled with the sites that are kept."""
    work = np.zeros((N_ARRAYS, online.cache.shape[0]))
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    posterior = Moments(work[POSTERIOR], work[POSTERIOR + 1])
    site.precision[:] = online.site.precision
    site.shift[:] = online.site.shift
    posterior.mean[:] = online.posterior.mean
    posterior.variance[:] = online.posterior.variance
    return work


@jit_internal
def _keep(work: Array, online: OnlineSites) -> None:
    """Copy sites and posterior from working memory to what is kept."""
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    posterior = Moments(work[POSTERIOR], work[POSTERIOR + 1])
    online.site.precision[:] = site.precision
    online.site.shift[:] = site.shift
    online.posterior.mean[:] = posterior.mean
    online.posterior.variance[:] = posterior.variance


@jit_internal
def _sweep(
    first: int,
    last: int,
    nugget: Array,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    online: OnlineSites,
    work: Array,
) -> tuple[bool, float]:
    """Compute cavities, tilted moments and proposed sites of the sites first to last.

    Returns
    -------
    proper : bool
        Whether all cavities are proper and all sites could be integrated.
    residual : float
        Largest difference between tilted and posterior moments.
    """
    curve = np.zeros(1, dtype=np.int64)
    start = np.array([first, last])
    proper = np.ones(1, dtype=np.bool_)
    residual = np.zeros(1)
    has_factors = np.ones(last, dtype=np.bool_)
    compute_cavities(curve, start, nugget, has_factors, work, proper)
    if not proper[0]:
        return False, 0.0
    cavity = Moments(work[FULL_CAVITY], work[FULL_CAVITY + 1])
    tilted = Moments(work[TILTED], work[TILTED + 1])
    cavity.mean[first:last] += online.mean[first:last]
    tilted.mean[first:last] += online.mean[first:last]
    failed = match_sites_cached(
        np.arange(first, last),
        factors,
        table,
        cavity,
        online.cache,
        CACHE_TOLERANCE,
        work[LOG_Z],
        tilted,
    )
    cavity.mean[first:last] -= online.mean[first:last]
    tilted.mean[first:last] -= online.mean[first:last]
    if failed >= 0:
        return False, 0.0
    propose_sites(curve, start, work, residual)
    return True, residual[0]


@jit
def _take_step(first: int, last: int, work: Array) -> float:
    """Take the proposed sites; return what the present ones add to the log evidence."""
    curve = np.zeros(1, dtype=np.int64)
    start = np.array([first, last])
    added = np.zeros(1)
    site_evidence(curve, start, work, added)
    take_proposed_sites(curve, start, work)
    return float(added[0])


@jit
def _update_latent_sites(first: int, last: int, nugget: Array, work: Array) -> float:
    """Compute the latent sites first to last; return the nugget's part of the log evidence."""
    curve = np.zeros(1, dtype=np.int64)
    start = np.array([first, last])
    log_nugget = np.zeros(1)
    integrate_nugget(curve, start, nugget, work, log_nugget)
    return float(log_nugget[0])


@jit
def _has_converged(residual: float, previous: float, tolerance: float) -> bool:
    """Whether the sites will have converged after the step that is about to be taken."""
    next_is_small = residual < 1e-2 and residual * residual < SAFETY * tolerance * previous
    return bool(residual < tolerance or next_is_small)


@jit
def _rank_one_update(
    features: Array,
    changed: int,
    factor: Array,
    more_precision: float,
    more_shift: float,
    posterior: Moments,
) -> None:
    """Update the posterior moments at all sites after a change of one latent site."""
    rank, n = features.shape
    half = np.zeros(rank)
    weights = np.zeros(rank)
    cov = np.zeros(n)
    for i in range(rank):
        for k in range(i + 1):
            half[i] += factor[i, k] * features[k, changed]
    for i in range(rank):
        for k in range(i + 1):
            weights[k] += factor[i, k] * half[i]
    for k in range(rank):
        for i in range(n):
            cov[i] += weights[k] * features[k, i]
    m = posterior.mean[changed]
    v = posterior.variance[changed]
    shrink = 1.0 + more_precision * v
    move = (more_shift - more_precision * m) / shrink
    narrowing = more_precision / shrink
    for i in range(n):
        posterior.mean[i] += move * cov[i]
        posterior.variance[i] -= narrowing * cov[i] * cov[i]


@jit
def update_low_rank(
    features: Array,
    nugget: Array,
    changed: int,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    online: OnlineSites,
    factor: Array,
    weights: Array,
    tolerance: float,
) -> tuple[bool, float]:
    """Run EP on one curve in features, from its last sites.

    Parameters
    ----------
    features : array (rank, n_sites)
    nugget : array (1,)
    changed : int
        The site that got an observation; −1 where any site may have changed.
    factors, table
        The likelihood: see `match_sites`.
    online : OnlineSites
        Changed in place.
    factor : array (rank, rank)
        L⁻¹ of the weights' precision before the observation; changed in place.
    weights : array (rank,)
        Posterior mean of the weights before the observation; changed in place.
    tolerance : float

    Returns
    -------
    converged : bool
    log_evidence : float
    """
    n = features.shape[1]
    work = _begin(online)
    latent = NaturalGaussian(work[LATENT_SITE], work[LATENT_SITE + 1])
    posterior = Moments(work[POSTERIOR], work[POSTERIOR + 1])
    previous = 0.0
    log_partition = 0.0
    for number in range(MAX_SWEEPS):
        # first the changed site alone, then its effect on all sites, then full sweeps
        only_new = number == 0 and changed >= 0
        full = number > 1 or changed < 0
        first, last = (changed, changed + 1) if only_new else (0, n)
        before_precision = latent.precision[changed]
        before_shift = latent.shift[changed]
        log_nugget = _update_latent_sites(first, last, nugget, work)
        if only_new:
            column = np.ascontiguousarray(features[:, first:last])
            lowrank_at(
                column, factor, weights, posterior.mean[first:last], posterior.variance[first:last]
            )
        elif full:
            proper, log_partition = lowrank_weights(
                features, latent.precision, latent.shift, factor, weights
            )
            if not proper:
                break
            lowrank_at(features, factor, weights, posterior.mean, posterior.variance)
        else:
            more_precision = latent.precision[changed] - before_precision
            more_shift = latent.shift[changed] - before_shift
            _rank_one_update(features, changed, factor, more_precision, more_shift, posterior)
        proper, residual = _sweep(first, last, nugget, factors, table, online, work)
        if not proper:
            break
        added = _take_step(first, last, work)
        if full and _has_converged(residual, previous, tolerance):
            _keep(work, online)
            return True, added + log_partition + log_nugget
        previous = 0.0 if only_new else residual
    return False, 0.0


@jit
def update_level_matern32(
    chain: LevelMatern32Chain,
    nugget: Array,
    changed: int,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    online: OnlineSites,
    tolerance: float,
) -> tuple[bool, float]:
    """Run EP on one curve with a level plus Matérn 3/2 prior, as `update_low_rank` does.

    A pass of the smoother costs so little that every sweep makes one.
    """
    n = online.cache.shape[0]
    work = _begin(online)
    latent = NaturalGaussian(work[LATENT_SITE], work[LATENT_SITE + 1])
    posterior = Moments(work[POSTERIOR], work[POSTERIOR + 1])
    kept = np.empty((n, 5))
    previous = 0.0
    for number in range(MAX_SWEEPS):
        only_new = number == 0 and changed >= 0
        first, last = (changed, changed + 1) if only_new else (0, n)
        log_nugget = _update_latent_sites(0, n, nugget, work)
        log_partition, proper = smooth_level_matern32(chain, latent, posterior, kept)
        if not proper:
            break
        proper, residual = _sweep(first, last, nugget, factors, table, online, work)
        if not proper:
            break
        added = _take_step(first, last, work)
        if not only_new and _has_converged(residual, previous, tolerance):
            _keep(work, online)
            return True, added + log_partition + log_nugget
        previous = 0.0 if only_new else residual
    return False, 0.0
