"""Held-out scores judged as the paper reads: bandwidths that are picked, medians for abilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dynaesti.core import Array, gauss_hermite
from dynaesti.curve_estimator import CurvFiFE
from dynaesti.data import Responses
from dynaesti.model import BUILT_IN, RBF, BankResponses, Kernel, Level, LinkedPoints
from dynaesti.results import Fit, read_new_responses

IDENTITY = BUILT_IN["identity"]
BANDWIDTHS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 40.0)  # years
FOLDS = 5
NODES, WEIGHTS = gauss_hermite(15)


@dataclass(frozen=True)
class PointRatios:
    """Log ratios of the likelihoods of held-out scores at point estimates, moving over constant."""

    picked: float  # by the bandwidth of best cross-validation within the scores given
    bandwidth: float
    hindsight: float  # by the bandwidth that predicts the held-out scores best


def point_ratios(moving: Fit, static: Fit, given: Responses, held: Responses) -> PointRatios:
    """Compare median curves of one person, each scheme with the items that it learned.

    `given` and `held` are the person's responses.
    """
    constant = _held_out(static, Level(), given, held)
    values = [_held_out(moving, RBF(bandwidth=h), given, held) for h in BANDWIDTHS]
    picked = int(np.argmax([_cross_validated(moving, RBF(bandwidth=h), given) for h in BANDWIDTHS]))
    return PointRatios(values[picked] - constant, BANDWIDTHS[picked], max(values) - constant)


def _cross_validated(fit: Fit, kernel: Kernel, given: Responses) -> float:
    """Log predictive likelihood of the folds of a person's responses, each by the others.

    As in the paper, likelihoods are averaged over what is unknown of the curve.
    """
    fold = np.random.default_rng(0).permutation(len(given)) % FOLDS
    log_weights = np.log(WEIGHTS)
    total = 0.0
    for k in range(FOLDS):
        others, left = (
            given.select_responses(np.flatnonzero(rows), drop_unused=True)
            for rows in (fold != k, fold == k)
        )
        likelihoods = _log_likelihoods(fit, kernel, others, left, NODES)
        total += float(logsumexp(likelihoods + log_weights, axis=1).sum())
    return total


def _held_out(fit: Fit, kernel: Kernel, given: Responses, held: Responses) -> float:
    """Log likelihood of a person's further responses at the median of their curve."""
    return float(_log_likelihoods(fit, kernel, given, held, np.zeros(1)).sum())


def _log_likelihoods(
    fit: Fit, kernel: Kernel, given: Responses, held: Responses, nodes: Array
) -> Array:
    """Log likelihoods of further responses, nodes standard deviations from the median curve.

    The shape is (n_held, n_nodes).
    """
    times, emissions = _emissions(fit, given)
    curve = CurvFiFE(kernel, mean=0.0, link="identity", refine=False).fit(times, emissions)
    times, emissions = _emissions(fit, held)
    instants, at = np.unique(times, return_inverse=True)
    median = np.asarray(curve.median(instants))[at]
    sd = np.asarray(curve.sd(instants))[at]
    points = LinkedPoints(median[:, None] + sd[:, None] * nodes, IDENTITY)
    return np.asarray(emissions.log_prob(points, np.arange(times.size)))


def _emissions(fit: Fit, responses: Responses) -> tuple[Array, BankResponses]:
    """Times of a person's responses, and these as emissions by a fit's items."""
    new = read_new_responses(fit, responses)
    item = new.items[new.responses.item]
    code = fit.coding.code(new.responses, item)
    weight = np.ones(item.size)
    emissions = BankResponses(fit.bank, item, code, weight, fit.gain, fit.shift)
    return new.responses.clock_times, emissions
