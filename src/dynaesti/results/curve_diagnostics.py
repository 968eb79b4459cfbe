"""How far to trust a curve: leave-one-out, influence, second-order correction, convergence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, single_blas_thread
from dynaesti.errors import ConvergenceWarning, warn_user
from dynaesti.inference import GraftedCurve, LeaveOneOut, leave_one_out_densities
from dynaesti.results.curve_effects import effects_at_emissions
from dynaesti.results.curve_priors import MIN_WEIGHT, reweighted

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve


@dataclass(frozen=True)
class LeaveOneOutMixture:
    """What a curve's components say of each emission without it.

    Parameters
    ----------
    log_density : array (n_emissions,)
        Log density of each emission given all others.
    weights : array (n_components, n_emissions)
        Weights of the components given all other emissions.
    components : list of LeaveOneOut
        Density, mean and variance under each component.
    """

    log_density: Array
    weights: Array
    components: list[LeaveOneOut]


def leave_one_out(curve: Curve) -> LeaveOneOutMixture:
    """Leave each emission out of the curve in turn."""
    weights, _, components = curve.weighted_components()
    parts = [leave_one_out_densities(curve.observations.likelihood, c) for c in components]
    # p(y_i | others) = 1 / Σ_k weight_k / p_k(y_i | others): weights are given all emissions
    logs = np.log(weights)[:, None] - np.array([part.log_density for part in parts])
    total = np.logaddexp.reduce(logs, axis=0)
    return LeaveOneOutMixture(np.asarray(-total), np.exp(logs - total), parts)


def influence_columns(curve: Curve, left_out: LeaveOneOutMixture) -> dict[str, Any]:
    """Columns time, loo, shift and shift_in_sd, a row for each emission."""
    means = np.array([part.mean for part in left_out.components])
    without = np.einsum("ki,ki->i", left_out.weights, means)
    times = curve.observations.axis.restore(curve.observations.offsets)
    latent = curve.latent
    # without an emission, what it sees is known: the curve and the effects together
    shift = latent.mean(times) + effects_at_emissions(curve) - without
    return {
        "time": times,
        "loo": left_out.log_density,
        "shift": shift,
        "shift_in_sd": shift / latent.sd(times),
    }


def is_corrected(curve: Curve) -> bool:
    """Whether any component has the second-order correction."""
    return any(c is not None and c.covariance_correction is not None for c in curve.components)


@single_blas_thread()
def with_second_order(curve: Curve) -> tuple[Curve, float]:
    """Correct every component to second order where that can be done.

    Returns
    -------
    curve : Curve
        With corrected components, evidence and weights.
    left : float
        Weight of the priors that stay as they are.
    """
    from dynaesti.inference import second_order_corrected  # compiled code that few curves need

    components: list[GraftedCurve | None] = [
        c if p.weight > MIN_WEIGHT else None
        for c, p in zip(curve.components, curve.priors, strict=True)
    ]
    left = 0.0
    for k, c in enumerate(components):
        if c is None or c.covariance_correction is not None:
            continue
        corrected = second_order_corrected(c, curve.observations) if c.converged else None
        if corrected is None:
            left += curve.priors[k].weight
        else:
            components[k] = corrected
    evidence = [
        p.log_evidence if c is None else c.log_evidence
        for p, c in zip(curve.priors, components, strict=True)
    ]
    priors = reweighted(curve.priors, evidence)
    return replace(curve, priors=priors, components=tuple(components)), left


def warn_if_uncorrected(left: float) -> None:
    """Warn if priors with some weight have no second-order correction."""
    if left > 0:
        warn_user(
            f"refined: priors with {left:.0%} of the weight stay as they are, since their "
            "correction would be larger than a second order can be trusted with, or they have no "
            "form in few weights (long bandwidths and RBF kernels have); "
            "see curve.audit() and curve.exact(t)",
            ConvergenceWarning,
        )


def warn_if_unconverged(curve: Curve) -> Curve:
    """The curve, after a warning if EP did not converge for a prior that counts."""
    components = curve.weighted_components()[2]
    unconverged = [c for c in components if not c.converged]
    if unconverged:
        worst = max(unconverged, key=lambda c: c.residual)
        warn_user(
            f"grafting did not converge for {len(unconverged)} of {len(components)} priors within "
            f"{worst.sweeps} sweeps (largest residual {worst.residual:.1e} sd, "
            f"{worst.kernel.describe()}); curve.audit() says how far off the bands are",
            ConvergenceWarning,
        )
    return curve
