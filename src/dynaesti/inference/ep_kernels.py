"""Compiled steps of expectation propagation, for some of many curves at a time.

Curve c has the sites ``site_start[c]:site_start[c + 1]``. Python passes one array ``work``
(N_ARRAYS, n_sites) with everything in its rows: to pass nineteen arrays one by one would take
longer than a step of a hundred sites. Divisions limit the speed of these loops, so that each
quotient takes one only.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit
from dynaesti.inference.sites import Moments, NaturalGaussian


class SiteArrays(NamedTuple):
    """Everything that EP keeps for each site; every array has shape (n_sites,)."""

    gaussian: NaturalGaussian  # exactly Gaussian factors of the instant, multiplied
    site: NaturalGaussian  # Gaussian stand-in for the other factors
    previous_site: NaturalGaussian  # the last one that left the posterior proper
    proposed_site: NaturalGaussian  # tilted / full cavity: where a full step goes
    latent_site: NaturalGaussian  # site and Gaussian factors, seen through the nugget
    posterior: Moments  # of the curve
    cavity: Moments  # of curve + nugget, without the instant's own factors
    full_cavity: Moments  # cavity × the instant's Gaussian factors
    tilted: Moments  # full cavity × the other factors; holds a guess before it is computed
    log_z: Array  # log ∫ factors × full cavity


# first of the rows of ``work`` that hold each of SiteArrays
GAUSSIAN = 0
SITE = 2
PREVIOUS_SITE = 4
PROPOSED_SITE = 6
LATENT_SITE = 8
POSTERIOR = 10
CAVITY = 12
FULL_CAVITY = 14
TILTED = 16
LOG_Z = 18
N_ARRAYS = 19


def site_arrays(work: Array) -> SiteArrays:
    """Name all rows of working memory (N_ARRAYS, n_sites).

    Compiled code names those that it needs, since all nineteen take longer to compile.
    """
    return SiteArrays(
        gaussian=NaturalGaussian(work[GAUSSIAN], work[GAUSSIAN + 1]),
        site=NaturalGaussian(work[SITE], work[SITE + 1]),
        previous_site=NaturalGaussian(work[PREVIOUS_SITE], work[PREVIOUS_SITE + 1]),
        proposed_site=NaturalGaussian(work[PROPOSED_SITE], work[PROPOSED_SITE + 1]),
        latent_site=NaturalGaussian(work[LATENT_SITE], work[LATENT_SITE + 1]),
        posterior=Moments(work[POSTERIOR], work[POSTERIOR + 1]),
        cavity=Moments(work[CAVITY], work[CAVITY + 1]),
        full_cavity=Moments(work[FULL_CAVITY], work[FULL_CAVITY + 1]),
        tilted=Moments(work[TILTED], work[TILTED + 1]),
        log_z=work[LOG_Z],
    )


@jit
def integrate_nugget(
    curves: Ints, site_start: Ints, nugget: Array, work: Array, log_nugget: Array
) -> None:
    """Compute latent sites: integrate out the nugget between curve and emission.

    ``log_nugget`` (n_curves,) receives the nugget's part of the log evidence.
    """
    gaussian = NaturalGaussian(work[GAUSSIAN], work[GAUSSIAN + 1])
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    latent = NaturalGaussian(work[LATENT_SITE], work[LATENT_SITE + 1])
    for curve in curves:
        eps = nugget[curve]
        total = 0.0
        product = 1.0
        for i in range(site_start[curve], site_start[curve + 1]):
            tau = gaussian.precision[i] + site.precision[i]
            nu = gaussian.shift[i] + site.shift[i]
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
    has_factors: Bools,
    work: Array,
    proper: Bools,
) -> None:
    """Compute cavities and full cavities of all sites from the posterior of the curve.

    ``tilted`` receives the moments of full cavity × site, which is the posterior: it is close to
    the tilted distribution and so tells where quadrature nodes belong. A curve with an improper
    cavity is flagged in ``proper`` (n_curves,).
    """
    gaussian = NaturalGaussian(work[GAUSSIAN], work[GAUSSIAN + 1])
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    latent = NaturalGaussian(work[LATENT_SITE], work[LATENT_SITE + 1])
    posterior = Moments(work[POSTERIOR], work[POSTERIOR + 1])
    cavity = Moments(work[CAVITY], work[CAVITY + 1])
    full_cavity = Moments(work[FULL_CAVITY], work[FULL_CAVITY + 1])
    tilted = Moments(work[TILTED], work[TILTED + 1])
    for curve in curves:
        eps = nugget[curve]
        for i in range(site_start[curve], site_start[curve + 1]):
            left = 1.0 - latent.precision[i] * posterior.variance[i]
            if not left > 1e-13:
                if has_factors[i]:
                    proper[curve] = False
                    break
                # Gaussian factors so sharp that rounding hides the cavity; these sites have
                # no factors to match
                left = 1e-13
            inverse = 1.0 / left
            v = posterior.variance[i] * inverse + eps
            m = (posterior.mean[i] - posterior.variance[i] * latent.shift[i]) * inverse
            cavity.mean[i] = m
            cavity.variance[i] = v
            if gaussian.precision[i] != 0.0 or gaussian.shift[i] != 0.0:
                narrowed = 1.0 / (1.0 + v * gaussian.precision[i])
                m = (m + v * gaussian.shift[i]) * narrowed
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
def propose_sites(curves: Ints, site_start: Ints, work: Array, residual: Array) -> None:
    """Compute the proposed sites, tilted / full cavity.

    ``residual`` (n_curves,) receives the largest difference between tilted and posterior moments:
    of means in sds, of variances relative.
    """
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    proposed = NaturalGaussian(work[PROPOSED_SITE], work[PROPOSED_SITE + 1])
    full_cavity = Moments(work[FULL_CAVITY], work[FULL_CAVITY + 1])
    tilted = Moments(work[TILTED], work[TILTED + 1])
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
def take_proposed_sites(curves: Ints, site_start: Ints, work: Array) -> None:
    """Make full steps for the chosen curves; the present sites become the previous ones."""
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    previous = NaturalGaussian(work[PREVIOUS_SITE], work[PREVIOUS_SITE + 1])
    proposed = NaturalGaussian(work[PROPOSED_SITE], work[PROPOSED_SITE + 1])
    for curve in curves:
        for i in range(site_start[curve], site_start[curve + 1]):
            previous.precision[i] = site.precision[i]
            previous.shift[i] = site.shift[i]
            site.precision[i] = proposed.precision[i]
            site.shift[i] = proposed.shift[i]


@jit
def restore_previous_sites(curves: Ints, site_start: Ints, work: Array) -> None:
    """Put the chosen curves back to their previous sites."""
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    previous = NaturalGaussian(work[PREVIOUS_SITE], work[PREVIOUS_SITE + 1])
    for curve in curves:
        for i in range(site_start[curve], site_start[curve + 1]):
            site.precision[i] = previous.precision[i]
            site.shift[i] = previous.shift[i]


@jit
def site_evidence(curves: Ints, site_start: Ints, work: Array, out: Array) -> None:
    """Sum over sites of log (∫ factors × cavity / ∫ site × cavity).

    This is what the scales of the sites add to the log of the Gaussian integral.
    """
    site = NaturalGaussian(work[SITE], work[SITE + 1])
    full_cavity = Moments(work[FULL_CAVITY], work[FULL_CAVITY + 1])
    log_z = work[LOG_Z]
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
