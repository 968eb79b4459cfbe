"""Compiled steps of expectation propagation.

Sites through the nugget, cavities, proposed sites, evidence.
"""

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit


@jit
def integrate_nugget(
    jobs: Ints,
    site_start: Ints,
    nugget_variance: Array,
    fixed_precision: Array,
    fixed_shift: Array,
    precision: Array,
    shift: Array,
    out_precision: Array,
    out_shift: Array,
    log_instant: Array,
) -> None:
    """Sites on the emission's value as sites on the curve.

    The nugget between them is integrated out.
    """
    for job in jobs:
        eps = nugget_variance[job]
        total = 0.0
        product = 1.0
        for i in range(site_start[job], site_start[job + 1]):
            tau = fixed_precision[i] + precision[i]
            nu = fixed_shift[i] + shift[i]
            thin = 1.0 + eps * tau
            each = 1.0 / thin
            out_precision[i] = tau * each
            out_shift[i] = nu * each
            total += 0.5 * eps * nu * nu * each
            product *= thin
            if not 1e-100 < product < 1e100:  # one logarithm for many sites
                total -= 0.5 * np.log(product)
                product = 1.0
        log_instant[job] = total - 0.5 * np.log(product)


@jit
def compute_cavities(
    jobs: Ints,
    site_start: Ints,
    nugget_variance: Array,
    fixed_precision: Array,
    fixed_shift: Array,
    on_precision: Array,
    on_shift: Array,
    curve_mean: Array,
    curve_var: Array,
    precision: Array,
    shift: Array,
    bent: Bools,
    cavity_mean: Array,
    cavity_var: Array,
    full_cavity_mean: Array,
    full_cavity_var: Array,
    mean: Array,
    var: Array,
    proper: Bools,
) -> None:
    """What the prior and the other groups say of each emission value (bare), and the group's own
    Gaussian members with them.

    `mean` and `var` get the posterior, cavity × site: near the tilted moments, so where their nodes
    should lie. A job with an improper cavity is flagged.
    """
    for job in jobs:
        eps = nugget_variance[job]
        for i in range(site_start[job], site_start[job + 1]):
            left = 1.0 - on_precision[i] * curve_var[i]
            if not left > 1e-13:
                if bent[i]:
                    proper[job] = False
                    break
                # a Gaussian so sharp that its own cavity is lost to rounding:
                # nothing is matched there
                left = 1e-13
            rest = 1.0 / left  # divisions are what this loop waits for: one for each quotient
            v = curve_var[i] * rest + eps
            m = (curve_mean[i] - curve_var[i] * on_shift[i]) * rest
            cavity_mean[i] = m
            cavity_var[i] = v
            if fixed_precision[i] != 0.0 or fixed_shift[i] != 0.0:
                more = 1.0 / (1.0 + v * fixed_precision[i])
                m = (m + v * fixed_shift[i]) * more
                v = v * more
            full_cavity_mean[i] = m
            full_cavity_var[i] = v
            thin = 1.0 + precision[i] * v
            if not thin > 0.0:
                proper[job] = False
                break
            each = 1.0 / thin
            mean[i] = (m + shift[i] * v) * each
            var[i] = v * each


@jit
def propose_sites(
    jobs: Ints,
    site_start: Ints,
    full_cavity_mean: Array,
    full_cavity_var: Array,
    mean: Array,
    var: Array,
    precision: Array,
    shift: Array,
    proposed_precision: Array,
    proposed_shift: Array,
    residual: Array,
) -> None:
    """Where every site should move, tilted/cavity.

    The residual is how far tilted and posterior moments disagree.
    """
    for job in jobs:
        worst = 0.0
        for i in range(site_start[job], site_start[job + 1]):
            cavity = 1.0 / full_cavity_var[i]
            tilted = 1.0 / var[i]
            before = 1.0 / (cavity + precision[i])  # the posterior's variance
            off = mean[i] - before * (full_cavity_mean[i] * cavity + shift[i])
            worst = max(worst, max(off * off * tilted, (before * tilted - 1.0) ** 2))
            proposed_precision[i] = tilted - cavity
            proposed_shift[i] = mean[i] * tilted - full_cavity_mean[i] * cavity
        residual[job] = np.sqrt(worst)


@jit
def copy_sites(
    jobs: Ints,
    site_start: Ints,
    precision: Array,
    shift: Array,
    to_precision: Array,
    to_shift: Array,
) -> None:
    """The sites of the chosen jobs, from one place to another."""
    for job in jobs:
        for i in range(site_start[job], site_start[job + 1]):
            to_precision[i] = precision[i]
            to_shift[i] = shift[i]


@jit
def site_evidence(
    jobs: Ints,
    site_start: Ints,
    full_cavity_mean: Array,
    full_cavity_var: Array,
    precision: Array,
    shift: Array,
    log_z: Array,
    out: Array,
) -> None:
    """Σ log of (∫ f·cavity)/(∫ site·cavity): what the scaled sites add to the Gaussian integral."""
    for job in jobs:
        total = 0.0
        for i in range(site_start[job], site_start[job + 1]):
            tau = precision[i]
            nu = shift[i]
            m = full_cavity_mean[i]
            v = full_cavity_var[i]
            thin = 1.0 + tau * v
            total += (
                log_z[i]
                + 0.5 * np.log(thin)
                - (0.5 * nu * nu * v + nu * m - 0.5 * tau * m * m) / thin
            )
        out[job] = total
