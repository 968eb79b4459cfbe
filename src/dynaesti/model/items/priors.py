"""What is known of items beside their answers.

Normal priors of their unconstrained parameters, weak ones or learned from the items.

Items are taken at the peak of their density, and its coordinates matter: the steeper an item, the
sharper its difficulty, so with difficulties integrated out the density falls as 1 / slope, and
slopes at the peak of both are too high (3PL, 500 answers each: by 7 %). `pooled_location_prior`
leans against that. The lean of hundreds of items together would stretch abilities far beyond their
unit, were it not for the other half: a spread of the difficulties that is integrated out too pulls
as hard the other way, whatever the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools
from dynaesti.model.items.base import NormalPrior

# in items: what a weak prior knows of a spread and of a centre that the items share
SPREAD_WEIGHT = 3.0
CENTRE_WEIGHT = 1.0


@dataclass(frozen=True)
class ItemPrior:
    """Where priors pull items.

    Towards a centre within a spread, and along a slope; and their log density where they are now.
    """

    centre: Array  # (parameters,)
    spread: Array  # infinite where there is no prior
    slope: Array  # (items, parameters)
    log_density: float

    def value_gradient_curvature(self, u: Array, slope: Array) -> tuple[Array, Array, Array]:
        """Log prior of some items at u, its gradient, and its curvature (parameters, parameters)."""
        off = (u - self.centre) / self.spread
        return (
            (u * slope).sum(axis=1) - 0.5 * (off**2).sum(axis=1),
            slope - off / self.spread,
            np.diag(self.spread**-2.0),
        )


def fixed_prior(u: Array, free: Bools, mean: Array, sd: Array) -> ItemPrior:
    """Normal priors of given centres and spreads.

    The density is in units of each prior's spread, so that it does not depend on the unit of
    ability, and spreads that are learned do not collapse.
    """
    return ItemPrior(
        mean, sd, np.zeros(u.shape), float(-0.5 * (((u - mean) / sd) ** 2)[free].sum())
    )


def has_location_and_slope(weak: Sequence[NormalPrior]) -> bool:
    """Whether the items have slopes, and places in their units."""
    return {"log slope", "location"} <= {w.role for w in weak}


def pooled_location_prior(u: Array, free: Bools, weak: Sequence[NormalPrior]) -> ItemPrior:
    """Weak priors; the items' places (difficulties) have a centre and a spread in common, and
    everything about places is integrated out.

    With S = ν·sd² + Σ (place − centre)² + κ·centre² the density of n places is S^(−(ν+n)/2). In its
    logarithm Σ stands under a concave function, so the normal prior with the spread of the items as
    they are lies below it and touches it: M-steps by it never lose.
    """
    slopes, places = (
        np.array([w.role == unit for w in weak]) for unit in ("log slope", "location")
    )
    centre = np.array([w.mean for w in weak])
    spread = np.array([w.sd for w in weak])
    slope = np.where(
        free & slopes, -(free & places).sum(axis=1, keepdims=True) / slopes.sum(), 0.0
    )  # golf: each step has its own
    density = float((u * slope).sum())
    for p in range(len(weak)):
        mine = u[free[:, p], p]
        if places[p]:
            known = SPREAD_WEIGHT * weak[p].sd ** 2
            centre[p] = mine.sum() / (mine.size + CENTRE_WEIGHT)
            spread[p] = np.sqrt(
                (known + ((mine - centre[p]) ** 2).sum() + CENTRE_WEIGHT * centre[p] ** 2)
                / (SPREAD_WEIGHT + mine.size)
            )
            density -= (SPREAD_WEIGHT + mine.size) * np.log(spread[p])
        else:
            density -= 0.5 * float((((mine - centre[p]) / spread[p]) ** 2).sum())
    return ItemPrior(centre, spread, slope, density)


def estimate_hyperprior(
    u: Array, variance: Array, weak: Sequence[NormalPrior]
) -> tuple[Array, Array]:
    """Centres and spreads of normal priors from many items.

    Each item's own variance is added to a spread, else it collapses.
    """
    count = len(u)
    mean = np.empty(len(weak))
    sd = np.empty(len(weak))
    for p, w in enumerate(weak):
        mean[p] = (w.mean * (w.role == "") + u[:, p].sum()) / ((w.role == "") + count)
        square = float(((u[:, p] - mean[p]) ** 2 + variance[:, p]).sum())
        known = 0.0 if w.role == "location" else SPREAD_WEIGHT
        usual = (
            float(np.mean(u[:, p] ** 2)) if w.role == "slope" else w.sd**2
        )  # signed slopes: as wide as they are, in any unit
        sd[p] = np.sqrt((known * usual + square) / (known + count))
    return mean, sd
