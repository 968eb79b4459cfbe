"""Residuals of all answers of a fit, each predicted without itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynaesti.core import Array

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

LEAST = 1e-12  # smallest probability or variance: a logarithm or quotient stays finite


@dataclass(frozen=True)
class Residuals:
    """Each answer against its prediction without itself.

    Parameters
    ----------
    residual : array (n_answers,)
        Answer minus predicted mean.
    variance : array (n_answers,)
        Predicted variance.
    ability : array (n_answers,)
        Mean ability that it was predicted from.
    surprise : array (n_answers,)
        Log probability less its expectation; NaN for amounts.
    surprise_variance : array (n_answers,)
        Variance of the log probability.
    """

    residual: Array
    variance: Array
    ability: Array
    surprise: Array
    surprise_variance: Array

    @property
    def standardised(self) -> Array:
        """Residuals in standard deviations."""
        return np.asarray(self.residual / np.sqrt(self.variance))


def residuals_of(fit: Fit) -> Residuals:
    """Residuals of all answers of a fit in memory."""
    found, ability = fit.leave_one_out
    chance = np.maximum(np.nan_to_num(found.chances), LEAST)
    logs = np.log(chance)
    is_category = np.isfinite(found.chances)
    weight = np.where(is_category, chance, 0.0)
    mean = (weight * logs).sum(axis=1)
    variance = (weight * logs**2).sum(axis=1) - mean**2
    has_none = ~is_category.any(axis=1)
    surprise = np.log(np.maximum(found.given, LEAST)) - mean
    return Residuals(
        fit.responses.resp - found.expected,
        np.maximum(found.variance, LEAST),
        ability,
        np.where(has_none, np.nan, surprise),
        np.where(has_none, np.nan, np.maximum(variance, 0.0)),
    )
