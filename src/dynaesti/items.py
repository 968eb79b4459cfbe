"""Item models: the probability of each response category at an ability θ, given the item's parameters.

A model is a formula with named parameters. Parameters come as a tuple of arrays that broadcast against θ; thresholds
carry one further axis at the end.
"""

from typing import ClassVar

import numpy as np
from scipy.special import log_expit

from dynaesti.arrays import Array


class ItemModel:
    """One family of items; `params` names its parameters in order."""

    name: ClassVar[str]
    params: ClassVar[tuple[str, ...]]
    thresholds: ClassVar[bool] = False  # the last parameter is a vector, one entry per step between categories

    @staticmethod
    def log_prob(theta: Array, y: Array, item: tuple[Array, ...]) -> Array:
        """Log P(y | θ); θ and y broadcast."""
        raise NotImplementedError


class TwoPL(ItemModel):
    """Two-parameter logistic item: P(1 | θ) = σ(a(θ − b))."""

    name, params = "2PL", ("a", "b")

    @staticmethod
    def log_prob(theta: Array, y: Array, item: tuple[Array, ...]) -> Array:
        a, b = item
        return np.asarray(log_expit(a * (theta - b) * (2 * y - 1)))


class ThreePL(ItemModel):
    """Three-parameter logistic item: P(1 | θ) = c + (1 − c) σ(a(θ − b)), c the chance of a lucky guess."""

    name, params = "3PL", ("a", "b", "c")

    @staticmethod
    def log_prob(theta: Array, y: Array, item: tuple[Array, ...]) -> Array:
        a, b, c = item
        return FourPL.log_prob(theta, y, (a, b, c, np.ones_like(c)))


class FourPL(ItemModel):
    """Four-parameter logistic item: P(1 | θ) = c + (d − c) σ(a(θ − b)), 1 − d the chance of a slip."""

    name, params = "4PL", ("a", "b", "c", "d")

    @staticmethod
    def log_prob(theta: Array, y: Array, item: tuple[Array, ...]) -> Array:
        a, b, c, d = item
        u = a * (theta - b)
        up, down = log_expit(u), log_expit(-u)
        with np.errstate(divide="ignore"):  # c = 0 and d = 1 are the plain logistic: log 0 = -inf drops out
            right = np.logaddexp(np.log(c) + down, np.log(d) + up)
            wrong = np.logaddexp(np.log1p(-c) + down, np.log1p(-d) + up)
        return np.where(y > 0.5, right, wrong)


class Graded(ItemModel):
    """Samejima's graded response: P(y ≥ k | θ) = σ(a(θ − b_k)), thresholds b rising."""

    name, params, thresholds = "GRM", ("a", "b"), True

    @staticmethod
    def log_prob(theta: Array, y: Array, item: tuple[Array, ...]) -> Array:
        a, b = item
        return log_between(a[..., None] * (theta[..., None] - b), y)


class PartialCredit(ItemModel):
    """Muraki's generalised partial credit: P(k | θ) ∝ exp Σ_{v≤k} a(θ − b_v)."""

    name, params, thresholds = "GPCM", ("a", "b"), True

    @staticmethod
    def log_prob(theta: Array, y: Array, item: tuple[Array, ...]) -> Array:
        a, b = item
        steps = np.cumsum(a[..., None] * (theta[..., None] - b), axis=-1)
        odds = np.concatenate([np.zeros_like(steps[..., :1]), steps], axis=-1)
        top = odds.max(axis=-1, keepdims=True)
        total = top[..., 0] + np.log(np.exp(odds - top).sum(axis=-1))
        chosen = np.broadcast_to(y, total.shape).astype(np.int64)
        return np.asarray(np.take_along_axis(odds, chosen[..., None], axis=-1)[..., 0] - total)


def log_between(above: Array, y: Array) -> Array:
    """log(σ(u_y) − σ(u_{y+1})) for falling u = logit P(Y ≥ k), k = 1…K, with u_0 = ∞ and u_{K+1} = −∞."""
    ends = np.full((*above.shape[:-1], 1), np.inf)
    padded = np.concatenate([ends, above, -ends], axis=-1)
    chosen = np.broadcast_to(y, above.shape[:-1]).astype(np.int64)[..., None]
    upper = np.take_along_axis(padded, chosen, axis=-1)[..., 0]
    lower = np.take_along_axis(padded, chosen + 1, axis=-1)[..., 0]
    # σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u}): each factor keeps its digits in both tails
    return np.asarray(log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(lower - upper)))


MODELS: dict[str, type[ItemModel]] = {model.name: model for model in (TwoPL, ThreePL, FourPL, Graded, PartialCredit)}
