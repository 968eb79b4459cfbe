"""Whether one slope for all items would do: the simpler model beside the fitted one.

Nothing is fitted again. At the expected counts of the last E-step the items get their maximum under
a slope in common; what expected log-likelihood they lose bounds what evidence they lose (the
inequality behind EM), and what they gain is that no slopes have to be learned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from dynaesti.core import Array
from dynaesti.estimation.m_step import update_block
from dynaesti.model import ItemBank, ItemBlock, ItemPrior

WITH_ONE_SLOPE = {"2PL": "1PL", "GPCM": "PCM"}
REACH = 1.5  # of the search for the common log slope about the mean one
CLEAR = 3.0  # nats: odds of twenty to one


class SimplerModel(NamedTuple):
    """A model with fewer parameters, and how many nats of evidence it has more."""

    name: str
    gain: float


def has_simpler_model(bank: ItemBank) -> bool:
    """Whether all items have a slope of their own, to be learned, in one model."""
    block = bank.blocks[0]
    return (
        len(bank.blocks) == 1
        and block.model.name in WITH_ONE_SLOPE
        and _roles(block).count("log slope") == 1
        and bool(block.free.all())
        and len(block.u) > 1
    )


def simpler_model(bank: ItemBank, counts: Array, grid: Array) -> SimplerModel | None:
    """The model with one slope, where the evidence clearly prefers it; None where it does not.

    Parameters
    ----------
    bank : ItemBank
        Items of one model, see `has_simpler_model`.
    counts : array (n_rows, n_grid)
        Expected counts at these items.
    grid : array (n_grid,)
        Standardised abilities.
    """
    block = bank.blocks[0]
    theta = bank.ability_scale.theta(grid)
    slope = _roles(block).index("log slope")
    free = block.free.copy()
    free[:, slope] = False

    def loss(log_slope: float) -> float:
        u = block.u.copy()
        u[:, slope] = log_slope
        return -_log_evidence(replace(block, u=u, free=free), block.item_prior, counts, theta)

    middle = float(np.average(block.u[:, slope], weights=_answers(block, counts)))
    best = minimize_scalar(loss, bounds=(middle - REACH, middle + REACH), method="bounded")
    gain = -float(best.fun) - _log_evidence(block, block.item_prior, counts, theta)
    return SimplerModel(WITH_ONE_SLOPE[block.model.name], gain) if gain > CLEAR else None


def _roles(block: ItemBlock) -> list[str]:
    return [prior.role for prior in block.model.priors(block.size)]


def _answers(block: ItemBlock, counts: Array) -> Array:
    """Number of answers to each item, (n_items,)."""
    return np.asarray(np.maximum(counts.reshape(len(block.u), -1).sum(axis=1), 1.0))


def _log_evidence(block: ItemBlock, prior: ItemPrior, counts: Array, theta: Array) -> float:
    """Expected log-likelihood with the free parameters integrated out by Laplace's method.

    Items are normal as `prior` has them. Without priors each free parameter costs half the log of
    its item's answers (BIC).
    """
    found, curvature = update_block(block, counts, theta)
    shaped = counts.reshape(len(block.u), block.depth, -1)
    value = float((block.model.log_likelihood(found.u, theta) * shaped).sum())
    if not np.isfinite(prior.spread).all():
        return value - 0.5 * float((block.free.sum(axis=1) * np.log(_answers(block, counts))).sum())
    off = (found.u - prior.centre) / prior.spread * block.free
    volume = replace(block, prior_sd=prior.spread).laplace_log_volume(curvature)
    return value - 0.5 * float((off**2).sum()) + volume
