"""The priors of a curve, weighted by what the emissions say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynaesti.core import Array, softmax
from dynaesti.errors import EmissionError, InputError
from dynaesti.inference import GraftedCurve, Observations, full_cavity_and_tilted
from dynaesti.model import BandwidthKernel, Kernel, Table, check_evidence, emission_blocks

# Posterior weight up to which a prior is left out of all answers: every prior costs a solve of its
# own, and one of this weight moves a probability by less than this.
MIN_WEIGHT = 1e-4
# Posterior weight up to which a prior's grafted curve is not even kept. It is far below MIN_WEIGHT
# because the second-order correction changes weights a little.
MIN_STORED_WEIGHT = 0.01 * MIN_WEIGHT


@dataclass(frozen=True)
class WeightedPrior:
    """One prior of a curve with its posterior weight.

    Parameters
    ----------
    kernel : Kernel
        Covariance of the latent curve.
    log_prior : float
        Log prior mass among the curve's priors.
    log_evidence : float
        Log probability of all emissions under this prior.
    weight : float
        Posterior probability, between 0 and 1.
    """

    kernel: Kernel
    log_prior: float
    log_evidence: float
    weight: float


def weigh_priors(
    observations: Observations, components: Sequence[GraftedCurve], log_priors: Sequence[float]
) -> tuple[tuple[WeightedPrior, ...], tuple[GraftedCurve | None, ...]]:
    """Weigh grafted curves by evidence × prior mass.

    Parameters
    ----------
    observations : Observations
        What the curves were grafted to.
    components : sequence of GraftedCurve
        One for each prior.
    log_priors : sequence of float
        Log prior mass of each.

    Returns
    -------
    priors : tuple of WeightedPrior
        All priors with their weights.
    components : tuple of GraftedCurve or None
        The grafted curves, None where the weight is negligible.
    """
    evidence = np.array([c.log_evidence for c in components])
    if not np.isfinite(evidence).all():
        bad = next(c for c in components if not np.isfinite(c.log_evidence))
        raise InputError(
            f"the evidence of {bad.kernel.describe()} is {bad.log_evidence}: values, sds or times "
            "are too extreme for double precision; bring them to a common scale"
        )
    check_evidence(observations.emissions, evidence)
    weights = posterior_weights(evidence.tolist(), log_priors)
    check_tables(observations, components[int(weights.argmax())])
    priors = tuple(
        WeightedPrior(c.kernel, p, c.log_evidence, float(w))
        for c, p, w in zip(components, log_priors, weights, strict=True)
    )
    stored = tuple(
        c if w > MIN_STORED_WEIGHT else None for c, w in zip(components, weights, strict=True)
    )
    return priors, stored


def posterior_weights(evidence: Sequence[float], log_priors: Sequence[float]) -> Array:
    """Posterior probability of each prior from its log evidence and log prior mass."""
    return softmax(np.array([e + p for e, p in zip(evidence, log_priors, strict=True)]))


def reweighted(
    priors: tuple[WeightedPrior, ...], evidence: Sequence[float]
) -> tuple[WeightedPrior, ...]:
    """The priors with other log evidences, and weights to match."""
    weights = posterior_weights(evidence, [p.log_prior for p in priors])
    return tuple(
        replace(p, log_evidence=e, weight=float(w))
        for p, e, w in zip(priors, evidence, weights, strict=True)
    )


def check_tables(observations: Observations, component: GraftedCurve) -> None:
    """Refuse a curve that lies beyond the grid of one of the user's likelihood tables.

    Beyond its grid a table goes on in a straight line, of which the data say nothing.
    """
    for part, rows in emission_blocks(observations.emissions):
        if not isinstance(part, Table):
            continue
        # a constant curve has one site
        site = np.minimum(observations.site_of_emission[rows], component.instants.size - 1)
        low, high = part.latent_ends(observations.link)
        value = full_cavity_and_tilted(component, observations)[1].mean[site]
        outside = np.flatnonzero((value < low) | (value > high))
        if outside.size:
            y = observations.link.value(value[outside[:1]])[0]
            raise EmissionError(
                f"Table: the curve lies beyond the table's grid at {outside.size} of {value.size} "
                f"emissions (first: emission {rows.start + outside[0]}, about {y:.4g}); tabulate "
                "log f over a wider grid"
            )


def bandwidth_of(kernel: Kernel) -> float:
    """Bandwidth of the first summand that has one, else inf."""
    for summand in kernel.summands:
        if isinstance(summand, BandwidthKernel):
            return summand.value_of("bandwidth")
    return np.inf


def by_bandwidth(priors: Sequence[WeightedPrior]) -> list[WeightedPrior]:
    """The priors sorted by bandwidth."""
    return sorted(priors, key=lambda p: bandwidth_of(p.kernel))


def bandwidth_columns(priors: Sequence[WeightedPrior]) -> dict[str, Any]:
    """Columns bandwidth, kernel, log_evidence, weight, sorted by bandwidth."""
    rows = by_bandwidth(priors)
    return {
        "bandwidth": [bandwidth_of(p.kernel) for p in rows],
        "kernel": [p.kernel.describe() for p in rows],
        "log_evidence": [p.log_evidence for p in rows],
        "weight": [p.weight for p in rows],
    }


def median_bandwidth(priors: Sequence[WeightedPrior]) -> float:
    """The median bandwidth under the weights."""
    rows = by_bandwidth(priors)
    median = int(np.searchsorted(np.cumsum([p.weight for p in rows]), 0.5))
    return bandwidth_of(rows[median].kernel)
