"""What grafting leaves out, to second order.

The exact posterior is the grafted one times Π f_i/site_i, and each factor, seen from its tilted distribution, is 1 + (skewness / 6) H₃ + …
in Hermite polynomials: site and likelihood agree up to the second moment. So nothing changes at first order; at second order two sites'
skewnesses γ meet through their correlation ρ:

    δcov(s, t) = ½ Σ_{i≠j} γ_i γ_j ρ_si ρ_tj ρ_ij² · sd_s sd_t        δ log evidence = 1/12 Σ_{i≠j} γ_i γ_j ρ_ij³

(the perturbation theory of Opper, Paquet and Winther, 2013); means move at third order only. In a curve's few weights both sums over
pairs are products of one tensor, Σ_i γ_i φ_i ⊗ φ_i ⊗ φ_i, so the whole costs a sweep or two. It takes about nine tenths of the error in sds
and evidence away (`make gold`), and its size says how much there was.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from dynaesti.arrays import Array
from dynaesti.compiled import compiled
from dynaesti.components import HIGHEST_RANK, Component, small_form, within_table
from dynaesti.observations import Observations

STEP = 1e-3  # of the cavities' means, in their sds, for the derivative of the variances
FARTHEST = 0.3  # largest relative change of a variance that a second order may be trusted with


def refined(component: Component, observations: Observations) -> Component | None:
    """The component with its covariance and evidence corrected to second order.

    None where it has no form in few weights, or where the correction would be no small one.
    """
    if component.instants.size <= HIGHEST_RANK and small_form(component) is None:
        component = replace(component, solver="dense")  # one feature an instant
    form = small_form(component)
    if form is None:
        return None
    skew, sd, seen = _skewness(component, observations)
    phi = solve_triangular(form.factor[0], form.basis.features(component.instants).T, lower=True) * (seen / sd)
    widening, gain = _pairs(np.ascontiguousarray(phi.T), skew)
    if not np.linalg.norm(widening) < FARTHEST and not np.abs(np.linalg.eigvalsh(widening)).max() < FARTHEST:  # the norm bounds them
        return None
    return replace(component, widening=widening, log_evidence=component.log_evidence + gain)


@compiled
def _pairs(phi: Array, skew: Array) -> tuple[Array, float]:
    """Both sums over pairs of sites: (of the weights' covariance, in its own units; of the log evidence). Rows of phi are the sites' φ.

    A compiled loop: libraries for large matrices would start their threads for these small ones. Of the products φ_b φ_c that differ in
    order only, one is taken, and counted twice.
    """
    count, rank = phi.shape
    size = rank * (rank + 1) // 2
    cubes, products, often = np.zeros((rank, size)), np.empty(size), np.full(size, 2.0)
    wide, gain = np.zeros((rank, rank)), 0.0
    for i in range(count):
        own, k = 0.0, 0  # correlation of a site with itself, through the curve: pairs have two different sites
        for b in range(rank):
            own += phi[i, b] * phi[i, b]
            for c in range(b, rank):
                products[k + c - b] = phi[i, b] * phi[i, c]
            often[k] = 1.0
            k += rank - b
        for a in range(rank):
            one, alone = skew[i] * phi[i, a], 0.5 * skew[i] ** 2 * own**2 * phi[i, a]
            for k in range(size):
                cubes[a, k] += one * products[k]
            for b in range(rank):
                wide[a, b] -= alone * phi[i, b]
        gain -= skew[i] ** 2 * own**3 / 12.0
    for a in range(rank):
        products[:] = often * cubes[a]
        for d in range(a, rank):
            first, second, k = 0.0, 0.0, 0
            while k + 1 < size:  # two sums side by side: one alone would wait for itself
                first += products[k] * cubes[d, k]
                second += products[k + 1] * cubes[d, k + 1]
                k += 2
            total = first + second + (products[k] * cubes[d, k] if k < size else 0.0)
            wide[a, d] += 0.5 * total
            wide[d, a] = wide[a, d]
            gain += total / 12.0 if a == d else 0.0
    return wide, gain


def _skewness(component: Component, observations: Observations) -> tuple[Array, Array, Array]:
    """Skewness and sd of each site's tilted distribution, and how far its value follows the curve (the nugget lies between).

    The third cumulant is the derivative of the variance by the cavity's natural mean. A component's cavities are without the group's own
    Gaussian members, so these are multiplied in first.
    """
    fixed, groups, likelihood = observations.fixed, component.groups, observations.likelihood
    cav_var = component.cav_var / (1.0 + component.cav_var * fixed.precision[groups])
    cav_mean = cav_var * (component.cav_mean / component.cav_var + fixed.shift[groups])
    thin = 1.0 + component.precision * cav_var
    mean, var = (cav_mean + component.shift * cav_var) / thin, cav_var / thin
    step = STEP * np.sqrt(cav_var)
    bent = np.flatnonzero(likelihood.bent[groups])
    tabulated = within_table(component.kernel, likelihood, observations.mean_at(component.instants), observations.instants[[0, -1]])

    def variance(move: Array) -> Array:
        m, v = mean.copy(), var.copy()
        likelihood.match(bent, groups, cav_mean + move, cav_var, np.zeros(groups.size), m, v, tabulated)
        return v

    third = cav_var * (variance(step) - variance(-step)) / (2.0 * step)
    seen = 1.0 / (1.0 + component.kernel.instant_var * (fixed.precision[groups] + component.precision))
    return third / var**1.5, np.sqrt(var), seen
