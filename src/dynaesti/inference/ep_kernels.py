"""Compiled steps of expectation propagation, for some of many curves at a time.

Curve c has the sites ``site_start[c]:site_start[c + 1]``. Divisions are what these loops wait for: one for each quotient.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, Workspace, jit
from dynaesti.inference.sites import Moments, NaturalGaussian


class SiteArrays(NamedTuple):
    """Everything that EP keeps for each site; every array has shape (n_sites,)."""

    site: NaturalGaussian  # Gaussian stand-in for the factors that are not Gaussian
    previous_site: NaturalGaussian  # the last one that left the posterior proper
    proposed_site: NaturalGaussian  # tilted / full cavity: where a full step goes
    latent_site: NaturalGaussian  # site and Gaussian factors, seen through the nugget
    posterior: Moments  # of the curve
    cavity: Moments  # of curve + nugget, without the instant's own factors
    full_cavity: Moments  # cavity × the instant's Gaussian factors
    tilted: Moments  # full cavity × the other factors; comes in holding a guess
    log_z: Array  # log ∫ factors × full cavity


N_ARRAYS = 17  # in SiteArrays


def allocate_sites(workspace: Workspace, n_sites: int) -> SiteArrays:
    """Arrays in reusable memory: sites that say nothing, unit variances."""
    a = workspace.arrays(N_ARRAYS, n_sites)
    a[:] = 0.0
    arrays = SiteArrays(
        NaturalGaussian(a[0], a[1]),
        NaturalGaussian(a[2], a[3]),
        NaturalGaussian(a[4], a[5]),
        NaturalGaussian(a[6], a[7]),
        Moments(a[8], a[9]),
        Moments(a[10], a[11]),
        Moments(a[12], a[13]),
        Moments(a[14], a[15]),
        a[16],
    )
    for moments in (arrays.cavity, arrays.full_cavity, arrays.tilted):
        moments.variance[:] = 1.0
    return arrays


@jit
def integrate_nugget(
    curves: Ints,
    site_start: Ints,
    nugget: Array,
    gaussian_factors: NaturalGaussian,
    arrays: SiteArrays,
    log_nugget: Array,
) -> None:
    """Latent sites: the nugget between curve and emission is integrated out.

    ``log_nugget`` (n_curves,) gets its part of the log evidence.
    """
    site, latent = arrays.site, arrays.latent_site
    for curve in curves:
        eps = nugget[curve]
        total = 0.0
        product = 1.0
        for i in range(site_start[curve], site_start[curve + 1]):
            tau = gaussian_factors.precision[i] + site.precision[i]
            nu = gaussian_factors.shift[i] + site.shift[i]
            shrink = 1.0 + eps * tau
            inverse = 1.0 / shrink
            latent.precision[i] = tau * inverse
            latent.shift[i] = nu * inverse
            total += 0.5 * eps * nu * nu * inverse
            product *= shrink
            if not 1e-100 < product < 1e100:  # one logarithm for many sites
                total -= 0.5 * np.log(product)
                product = 1.0
        log_nugget[curve] = total - 0.5 * np.log(product)


@jit
def compute_cavities(
    curves: Ints,
    site_start: Ints,
    nugget: Array,
    gaussian_factors: NaturalGaussian,
    has_factors: Bools,
    arrays: SiteArrays,
    proper: Bools,
) -> None:
    """Cavities and full cavities of all sites, from the posterior of the curve.

    ``tilted`` gets full cavity × site, the posterior: near the tilted moments, so where their nodes should lie. A curve with an
    improper cavity is flagged in ``proper`` (n_curves,).
    """
    site, latent, posterior = arrays.site, arrays.latent_site, arrays.posterior
    cavity, full_cavity, tilted = arrays.cavity, arrays.full_cavity, arrays.tilted
    for curve in curves:
        eps = nugget[curve]
        for i in range(site_start[curve], site_start[curve + 1]):
            left = 1.0 - latent.precision[i] * posterior.variance[i]
            if not left > 1e-13:
                if has_factors[i]:
                    proper[curve] = False
                    break
                left = 1e-13  # a Gaussian so sharp that rounding hides its cavity: nothing is matched there
            inverse = 1.0 / left
            v = posterior.variance[i] * inverse + eps
            m = (posterior.mean[i] - posterior.variance[i] * latent.shift[i]) * inverse
            cavity.mean[i] = m
            cavity.variance[i] = v
            if gaussian_factors.precision[i] != 0.0 or gaussian_factors.shift[i] != 0.0:
                narrowed = 1.0 / (1.0 + v * gaussian_factors.precision[i])
                m = (m + v * gaussian_factors.shift[i]) * narrowed
                v = v * narrowed
            full_cavity.mean[i] = m
            full_cavity.variance[i] = v
            shrink = 1.0 + site.precision[i] * v
            if not shrink > 0.0:
                proper[curve] = False
                break
            inverse = 1.0 / shrink
            tilted.mean[i] = (m + site.shift[i] * v) * inverse
            tilted.variance[i] = v * inverse


@jit
def propose_sites(curves: Ints, site_start: Ints, arrays: SiteArrays, residual: Array) -> None:
    """Proposed sites, tilted / full cavity; residuals (n_curves,) say how far tilted and posterior moments disagree."""
    site, proposed = arrays.site, arrays.proposed_site
    full_cavity, tilted = arrays.full_cavity, arrays.tilted
    for curve in curves:
        worst = 0.0
        for i in range(site_start[curve], site_start[curve + 1]):
            cavity_precision = 1.0 / full_cavity.variance[i]
            tilted_precision = 1.0 / tilted.variance[i]
            posterior_variance = 1.0 / (cavity_precision + site.precision[i])
            off = tilted.mean[i] - posterior_variance * (
                full_cavity.mean[i] * cavity_precision + site.shift[i]
            )
            mean_error = off * off * tilted_precision
            variance_error = (posterior_variance * tilted_precision - 1.0) ** 2
            worst = max(worst, max(mean_error, variance_error))
            proposed.precision[i] = tilted_precision - cavity_precision
            proposed.shift[i] = (
                tilted.mean[i] * tilted_precision - full_cavity.mean[i] * cavity_precision
            )
        residual[curve] = np.sqrt(worst)


@jit
def copy_sites(
    curves: Ints, site_start: Ints, source: NaturalGaussian, target: NaturalGaussian
) -> None:
    """Copy the sites of the chosen curves."""
    for curve in curves:
        for i in range(site_start[curve], site_start[curve + 1]):
            target.precision[i] = source.precision[i]
            target.shift[i] = source.shift[i]


@jit
def site_evidence(curves: Ints, site_start: Ints, arrays: SiteArrays, out: Array) -> None:
    """Sum over sites of log (∫ factors × cavity / ∫ site × cavity): what scaled sites add to the Gaussian integral."""
    site, full_cavity, log_z = arrays.site, arrays.full_cavity, arrays.log_z
    for curve in curves:
        total = 0.0
        for i in range(site_start[curve], site_start[curve + 1]):
            tau = site.precision[i]
            nu = site.shift[i]
            m = full_cavity.mean[i]
            v = full_cavity.variance[i]
            shrink = 1.0 + tau * v
            exponent = (0.5 * nu * nu * v + nu * m - 0.5 * tau * m * m) / shrink
            total += log_z[i] + 0.5 * np.log(shrink) - exponent
        out[curve] = total
