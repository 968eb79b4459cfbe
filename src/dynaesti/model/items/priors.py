"""Priors of items: weak normal priors, and normal priors learned from the items.

All are priors of unconstrained parameters, and items are estimated at the maximum of the posterior
density. That density depends on the coordinates: the steeper an item, the sharper its difficulty,
so with difficulties integrated out the density falls as 1 / slope, and slopes at the joint maximum
are too high (3PL, 500 responses each: by 7 %). `pooled_location_prior` corrects for that by a
linear term in the log slope. The linear terms of hundreds of items together would stretch abilities
far beyond their unit, were it not for the other half: a spread of the difficulties that is
integrated out too pulls as hard the other way, whatever the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools
from dynaesti.model.items.base import NormalPrior

# what a weak prior knows of the spread and of the centre that items have in common, as a number of
# items
SPREAD_WEIGHT = 3.0
# the same where the spread is not learned: many items of few answers each would fall together,
# since the spread is found with them at their maxima
HELD_SPREAD_WEIGHT = 1e6
CENTRE_WEIGHT = 0.02
# sd of the weak prior of the log slopes' centre: what items have in common is how far ability
# explains the responses at all, which the responses say, not the prior
SLOPE_CENTRE_SD = 1.0


@dataclass(frozen=True)
class ItemPrior:
    """Normal prior of a block's items plus a linear term, as the M-step uses it.

    log p(u) = Σ slope · u − ½ ((u − centre) / spread)² + constant.

    Parameters
    ----------
    centre : array (n_parameters,)
        Means.
    spread : array (n_parameters,)
        Standard deviations, infinite where there is no prior.
    slope : array (n_items, n_parameters)
        Linear term, which corrects for locations that are integrated out.
    log_density : float
        Log prior of all items at their present parameters.
    """

    centre: Array
    spread: Array
    slope: Array
    log_density: float

    def value_gradient_curvature(self, u: Array, slope: Array) -> tuple[Array, Array, Array]:
        """Log prior of some items at u, with its derivatives.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Unconstrained parameters.
        slope : array (n_items, n_parameters)
            Rows of `self.slope` that belong to these items.

        Returns
        -------
        value : array (n_items,)
            Log prior up to a constant.
        gradient : array (n_items, n_parameters)
            Its derivatives.
        curvature : array (n_parameters, n_parameters)
            Its negative Hessian, which is the same for all items.
        """
        deviation = (u - self.centre) / self.spread
        return (
            (u * slope).sum(axis=1) - 0.5 * (deviation**2).sum(axis=1),
            slope - deviation / self.spread,
            np.diag(self.spread**-2.0),
        )


def fixed_prior(u: Array, free: Bools, mean: Array, sd: Array) -> ItemPrior:
    """Normal priors of given means and standard deviations (n_parameters,).

    The log density is in units of each prior's standard deviation, so that it does not depend on
    the unit of ability, and spreads that are learned do not collapse.
    """
    return ItemPrior(
        mean, sd, np.zeros(u.shape), float(-0.5 * (((u - mean) / sd) ** 2)[free].sum())
    )


def has_location_and_slope(weak: Sequence[NormalPrior]) -> bool:
    """Whether items have log slopes, and locations in the unit of ability."""
    return {"log slope", "location"} <= {w.role for w in weak}


def pooled_location_prior(
    u: Array, free: Bools, weak: Sequence[NormalPrior], spread_weight: float = SPREAD_WEIGHT
) -> ItemPrior:
    """Weak priors in which slopes share a centre, and locations (difficulties) centre and spread.

    Everything is counted in the unit of ability that makes slopes 1 on average: with m the centre
    of the log slopes, items are (log slope − m, eᵐ·location). So the prior does not say how far
    ability explains responses at all; only m itself has a prior, of sd `SLOPE_CENTRE_SD`.

    Everything about locations is integrated out: with ν = SPREAD_WEIGHT, κ = CENTRE_WEIGHT and
    S = ν·sd² + Σ (location − centre)² + κ·centre², the density of n locations is S^(−(ν+n)/2). In
    its logarithm S stands under a concave function, so the normal prior with the spread of the
    items as they are lies below it and touches it: an M-step with it never lowers the density.

    Parameters
    ----------
    u : array (n_items, n_parameters)
        Unconstrained parameters.
    free : bool array (n_items, n_parameters)
        Parameters that are estimated.
    weak : sequence of NormalPrior, length n_parameters
        Weak prior of each parameter.
    spread_weight : float
        What the weak priors know of the spread, as a number of items.

    Returns
    -------
    ItemPrior
        The normal prior that touches the pooled density at u.
    """
    is_slope = np.array([w.role == "log slope" for w in weak])
    is_location = np.array([w.role == "location" for w in weak])
    centre = np.array([w.mean for w in weak])
    spread = np.array([w.sd for w in weak])
    # items that are given count too: they show the unit
    precision = np.broadcast_to((is_slope / spread**2), u.shape)
    total = float(precision.sum() + SLOPE_CENTRE_SD**-2.0)
    m = float((precision * (u - centre)).sum() / total)
    unit = np.exp(m)
    centre = centre + m * is_slope
    # models such as golf have several slopes: each step has its own
    locations_per_slope = (free & is_location).sum(axis=1, keepdims=True) / is_slope.sum()
    slope = np.where(free & is_slope, -locations_per_slope, 0.0)
    density = float(((u - m) * slope).sum()) - 0.5 * (m / SLOPE_CENTRE_SD) ** 2
    by_m = -float(slope.sum())  # derivative of the density by m, apart from that of slopes' own
    for p in range(len(weak)):
        if not is_location[p]:
            mine = u[:, p] if is_slope[p] else u[free[:, p], p]
            density -= 0.5 * float((((mine - centre[p]) / spread[p]) ** 2).sum())
            continue
        mine = unit * u[free[:, p], p]
        known = spread_weight * weak[p].sd ** 2
        middle = mine.sum() / (mine.size + CENTRE_WEIGHT)
        seen = float(((mine - middle) ** 2).sum()) + CENTRE_WEIGHT * middle**2
        common = np.sqrt((known + seen) / (spread_weight + mine.size))
        density -= spread_weight * np.log(common / weak[p].sd) + mine.size * np.log(common)
        by_m -= (spread_weight + mine.size) * seen / (known + seen)
        centre[p] = middle / unit
        spread[p] = common / unit
    slope = slope + np.where(free & is_slope, by_m * precision / total, 0.0)
    return ItemPrior(centre, spread, slope, density)


def estimate_hyperprior(
    u: Array, variance: Array, weak: Sequence[NormalPrior]
) -> tuple[Array, Array]:
    """Means and standard deviations of normal priors, learned from many items.

    Each item's own variance is added to the spread; without it the spread would collapse.

    Parameters
    ----------
    u : array (n_items, n_parameters)
        Unconstrained parameters.
    variance : array (n_items, n_parameters)
        Posterior variance of each.
    weak : sequence of NormalPrior, length n_parameters
        Weak priors, which have the weight of a few items.

    Returns
    -------
    mean, sd : array (n_parameters,)
        The learned priors.
    """
    count = len(u)
    mean = np.empty(len(weak))
    sd = np.empty(len(weak))
    for p, w in enumerate(weak):
        mean[p] = (w.mean * (w.role == "") + u[:, p].sum()) / ((w.role == "") + count)
        square = float(((u[:, p] - mean[p]) ** 2 + variance[:, p]).sum())
        known = 0.0 if w.role == "location" else SPREAD_WEIGHT
        # signed slopes: as wide as they are, in any unit
        usual = float(np.mean(u[:, p] ** 2)) if w.role == "slope" else w.sd**2
        sd[p] = np.sqrt((known * usual + square) / (known + count))
    return mean, sd
