"""Second-order corrections: what grafting leaves out.

The exact posterior is the grafted one times Π f_i/site_i. Seen from its tilted distribution, each
factor is 1 + (skewness / 6) H₃ + … in Hermite polynomials, because site and likelihood agree up to
the second moment. So nothing changes at first order. At second order the skewnesses γ of two sites
act through their correlation ρ:

    δcov(s, t)     = ½ Σ_{i≠j} γ_i γ_j ρ_si ρ_tj ρ_ij² · sd_s sd_t
    δ log evidence = 1/12 Σ_{i≠j} γ_i γ_j ρ_ij³

(the perturbation theory of Opper, Paquet and Winther, 2013); means change at third order only. In a
curve's few weights both sums over pairs are products of one tensor, Σ_i γ_i φ_i ⊗ φ_i ⊗ φ_i, so
that the correction costs as much as one or two sweeps. It removes about nine tenths of the error in
sds and evidence (`make gold`), and its size shows how large that error was.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynaesti.core import Array, dot, jit
from dynaesti.inference.observations import Observations
from dynaesti.inference.single_curve import (
    MAX_RANK,
    GraftedCurve,
    can_use_table,
    full_cavity_and_tilted,
    weight_space_posterior,
)
from dynaesti.inference.site_likelihood import Integration
from dynaesti.inference.sites import Moments
from dynaesti.inference.solvers.basis import solve_lower
from dynaesti.inference.solvers.weight_space import WeightPosterior

STEP = 1e-3  # of the cavities' means, in their sds, for the derivative of the variances
FARTHEST = 0.3  # largest relative change of a variance for which second order is accurate


def second_order_corrected(curve: GraftedCurve, observations: Observations) -> GraftedCurve | None:
    """The curve with its covariance and evidence corrected to second order.

    None where the curve has no form in few weights, or where the correction is too large to be
    accurate.
    """
    if curve.instants.size <= MAX_RANK and weight_space_posterior(curve) is None:
        curve = replace(curve, solver="dense")  # one feature for each instant
    form = weight_space_posterior(curve)
    if form is None:
        return None
    skew, sd, seen = _skewness(curve, observations)
    skewness = np.stack([skew, seen / sd])
    covariance_correction, gain = _correction(form, curve.instants, skewness)
    # the norm, which is cheaper, bounds the eigenvalues
    if (
        not np.linalg.norm(covariance_correction) < FARTHEST
        and not np.abs(np.linalg.eigvalsh(covariance_correction)).max() < FARTHEST
    ):
        return None
    return curve.corrected(covariance_correction, gain, skewness)


def corrected_by(curve: GraftedCurve, skewness: Array) -> GraftedCurve | None:
    """The curve with its covariance corrected by known skewnesses; its evidence stays.

    `skewness` (2, n_sites) is `GraftedCurve.skewness`. None where the curve has no form in weights.
    """
    form = weight_space_posterior(curve)
    if form is None:
        return None
    correction, _ = _correction(form, curve.instants, skewness)
    return curve.corrected(correction, 0.0, skewness)


def _correction(form: WeightPosterior, instants: Array, skewness: Array) -> tuple[Array, float]:
    """Corrections of the weights' covariance and of the log evidence."""
    skew, per_sd = skewness
    phi = solve_lower(form.root, form.at_sites(instants).T) * per_sd
    correction, gain = _pairs(np.ascontiguousarray(phi), np.ascontiguousarray(skew))
    return correction, float(gain)


@jit
def _pairs(phi: Array, skew: Array) -> tuple[Array, float]:
    """Both sums over pairs of sites.

    A compiled loop: libraries for large matrices would start their threads for these small ones.
    The tensor is symmetric in its three indices, so each entry is summed once.

    Parameters
    ----------
    phi : array (rank, n_sites)
        Columns are the sites' φ.
    skew : array (n_sites,)
        Skewness γ of each site.

    Returns
    -------
    wide : array (rank, rank)
        Correction of the weights' covariance, relative to it.
    gain : float
        Correction of the log evidence.
    """
    rank, count = phi.shape
    cubes = np.empty((rank, rank, rank))
    wide = np.empty((rank, rank))
    product = np.empty(count)
    for a in range(rank):
        for b in range(a, rank):
            for i in range(count):
                product[i] = skew[i] * phi[a, i] * phi[b, i]
            for c in range(b, rank):
                total = dot(product, phi[c])
                cubes[a, b, c] = cubes[a, c, b] = cubes[b, a, c] = cubes[b, c, a] = cubes[
                    c, a, b
                ] = cubes[c, b, a] = total
    # correlation of a site with itself, through the curve: subtracted, since i ≠ j in the sums
    own = np.zeros(count)
    for a in range(rank):
        for i in range(count):
            own[i] += phi[a, i] * phi[a, i]
    flat = cubes.reshape((rank, rank * rank))
    gain = 0.0
    for i in range(count):
        gain -= skew[i] ** 2 * own[i] ** 3 / 12.0
    for a in range(rank):
        for i in range(count):
            product[i] = skew[i] ** 2 * own[i] ** 2 * phi[a, i]
        for d in range(a, rank):
            total = dot(flat[a], flat[d])
            wide[a, d] = wide[d, a] = 0.5 * (total - dot(product, phi[d]))
            gain += total / 12.0 if a == d else 0.0
    return wide, gain


def _skewness(curve: GraftedCurve, observations: Observations) -> tuple[Array, Array, Array]:
    """Skewness and sd of each site's tilted distribution, and how far its value follows the curve.

    The third cumulant is the derivative of the variance by the cavity's natural mean. The value at
    a site follows the curve only in part where a nugget lies between them.

    Returns
    -------
    skewness, sd, follows : array (n_sites,)
    """
    groups = curve.groups
    likelihood = observations.likelihood
    cavity, tilted = full_cavity_and_tilted(curve, observations)
    step = STEP * np.sqrt(cavity.variance)
    sites = np.flatnonzero(likelihood.has_factors[groups])
    integration = Integration(can_use_table(curve, observations, tilted))

    def variance(move: Array) -> Array:
        moved = Moments(cavity.mean + move, cavity.variance)
        out = Moments(tilted.mean.copy(), tilted.variance.copy())
        likelihood.match(sites, groups, moved, np.zeros(groups.size), out, integration)
        return out.variance

    third = cavity.variance * (variance(step) - variance(-step)) / (2.0 * step)
    precision = observations.gaussian_factors.natural.precision[groups] + curve.ep.sites.precision
    follows = 1.0 / (1.0 + curve.kernel.nugget_variance * precision)
    return third / tilted.variance**1.5, np.sqrt(tilted.variance), follows
