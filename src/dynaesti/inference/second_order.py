"""What grafting leaves out, to second order.

The exact posterior is the grafted one times Π f_i/site_i, and each factor, seen from its tilted
distribution, is 1 + (skewness / 6) H₃ + … in Hermite polynomials: site and likelihood agree up to
the second moment. So nothing changes at first order; at second order two sites' skewnesses γ meet
through their correlation ρ:

    δcov(s, t) = ½ Σ_{i≠j} γ_i γ_j ρ_si ρ_tj ρ_ij² · sd_s sd_t        δ log evidence = 1/12 Σ_{i≠j} γ_i γ_j ρ_ij³

(the perturbation theory of Opper, Paquet and Winther, 2013); means move at third order only. In a
curve's few weights both sums over pairs are products of one tensor, Σ_i γ_i φ_i ⊗ φ_i ⊗ φ_i, so the
whole costs a sweep or two. It takes about nine tenths of the error in sds and evidence away (`make
gold`), and its size says how much there was.
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

STEP = 1e-3  # of the cavities' means, in their sds, for the derivative of the variances
FARTHEST = 0.3  # largest relative change of a variance that a second order may be trusted with


def second_order_corrected(curve: GraftedCurve, observations: Observations) -> GraftedCurve | None:
    """The curve with its covariance and evidence corrected to second order.

    None where it has no form in few weights, or where the correction would be no small one.
    """
    if curve.instants.size <= MAX_RANK and weight_space_posterior(curve) is None:
        curve = replace(curve, solver="dense")  # one feature an instant
    form = weight_space_posterior(curve)
    if form is None:
        return None
    skew, sd, seen = _skewness(curve, observations)
    phi = solve_lower(form.root, form.at_sites(curve.instants).T) * (seen / sd)
    covariance_correction, gain = _pairs(np.ascontiguousarray(phi), skew)
    if (
        not np.linalg.norm(covariance_correction) < FARTHEST
        and not np.abs(np.linalg.eigvalsh(covariance_correction)).max() < FARTHEST
    ):  # the norm bounds them
        return None
    return curve.corrected(covariance_correction, gain)


@jit
def _pairs(phi: Array, skew: Array) -> tuple[Array, float]:
    """Both sums over pairs of sites.

    (of the weights' covariance, in its own units; of the log evidence). Columns of phi are the
    sites' φ.

    A compiled loop: libraries for large matrices would start their threads for these small ones.
    The tensor is the same in any order of its three places, so each entry is summed once.
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
    own = np.zeros(
        count
    )  # correlation of a site with itself, through the curve: pairs have two different sites
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
    """Skewness and sd of each site's tilted distribution, and how far its value follows the curve
    (the nugget lies between).

    The third cumulant is the derivative of the variance by the cavity's natural mean.
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
