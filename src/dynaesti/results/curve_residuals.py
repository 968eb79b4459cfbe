"""Residuals of a curve: where each emission lies in what the others predict of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from dynaesti.core import Array, gauss_hermite
from dynaesti.errors import option
from dynaesti.model import Bernoulli, LinkedPoints, Noise, cumulative, emission_blocks

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve

NODES = 40  # of the latent value that an emission is predicted from
MOST_EMISSIONS = 20_000  # for which the summary looks at residuals
CLEAR = 3.0  # standard errors by which residuals must be too wide to be called so


def randomised_residuals(curve: Curve, seed: int) -> Array:
    """Randomised quantile residuals of the emissions, each predicted from the others.

    They are standard normal where the model is right, for counts and categories too: there the
    place within the probability of what was observed is drawn. NaN for tables and functions.

    Returns
    -------
    array (n_emissions,)
    """
    left_out = curve.left_out
    emissions = curve.observations.emissions
    below = np.zeros(len(emissions))
    upto = np.zeros(len(emissions))
    nodes, weights = gauss_hermite(NODES)
    for share, one in zip(left_out.weights, left_out.components, strict=True):
        x = one.mean[:, None] + np.sqrt(one.var)[:, None] * nodes
        for part, where in emission_blocks(emissions):
            rows = np.arange(len(part))
            ends = cumulative(part, LinkedPoints(x[where], curve.observations.link), rows)
            if ends is None:
                below[where] = upto[where] = np.nan
                continue
            for total, end in zip((below, upto), ends, strict=True):
                total[where] += share[where] * (np.broadcast_to(end, x[where].shape) @ weights)
    place = np.random.default_rng(seed).random(len(emissions))
    inside = below + place * (upto - below)
    return np.asarray(ndtri(np.clip(inside, 1e-12, 1 - 1e-12)))


def width_sentence(curve: Curve) -> str:
    """What the summary says of residuals that are too wide for the likelihood; else nothing.

    Single votes cannot be too wide. A curve with noise has learned how wide they are.
    """
    parts = [part for part, _ in emission_blocks(curve.observations.emissions)]
    kernels = [prior.kernel for prior in curve.priors]
    has_noise = any(isinstance(one, Noise) for one in kernels[0].summands)
    n = len(curve.observations.emissions)
    if has_noise or n > MOST_EMISSIONS or all(isinstance(part, Bernoulli) for part in parts):
        return ""
    residuals = randomised_residuals(curve, 0)
    known = residuals[np.isfinite(residuals)]
    if not known.size or not (known**2).mean() > 1 + CLEAR * np.sqrt(2 / known.size):
        return ""
    return (
        f" Emissions differ from each other by more than their likelihood allows (leave-one-out "
        f"residuals have an sd of {np.sqrt((known**2).mean()):.2f}, where 1 is right): bands are "
        f"too narrow. Learn by how much ({option('noise', True)}), or effects of who observed "
        f"({option('effects', 'random(house)')})."
    )
