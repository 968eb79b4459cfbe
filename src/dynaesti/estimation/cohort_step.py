"""Learning the cohort: Newton steps on the evidence, with sizes that the data choose.

At given items the log evidence is nearly quadratic in the coefficients. So one solution of linear
equations is a step, and the evidence of a size of curvature is a Gaussian integral.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from dynaesti.core import Array
from dynaesti.model import Cohort, precision_for

# Sizes of curvature that are tried: from a curve that is straight to a thousandth of a standard
# deviation, to one with a new direction in every tenth of the span.
SMALLEST = 0.02
LARGEST = 2000.0
NO_EFFECT = 0.005  # sd of exchangeable effects below which there are none, in sds of ability
FIRST_TRIES = 24
MANY = 60  # coefficients beyond which sizes are found less accurately, to save time
REACH = 1.2  # how far from the present one, in logs, the next size may be
# prior sd of the common line, of which one unit is about 3.5 standard deviations of ability from
# the first answers to the last
TREND_SD = 1.0
MOST_MOVE = 2.0  # root mean square move of the cohort's mean in one step, in standard deviations


@dataclass(frozen=True)
class CohortStep:
    """A Newton step of the cohort."""

    cohort: Cohort  # after the step
    weights: Array  # of `to_vector`: by these, moves are in standard errors, or in log sizes
    objective: float  # log prior before the step, with the coefficients integrated out


def newton_step(
    cohort: Cohort, gradient: Array, information: Array, scale_move: Array
) -> CohortStep:
    """The cohort after a Newton step, under the sizes of curvature of largest evidence.

    Parameters
    ----------
    cohort : Cohort
    gradient : array (n_parts,)
        Of the log evidence by all parts, see `CohortStatistics`.
    information : array (n_parts, n_parts)
    scale_move : array (2,)
        How far the zero and the log unit of ability move in the same step.
    """
    score = gradient @ cohort.loadings
    held = on_coefficients(cohort, information)
    # the quadratic's linear term
    pull = score + held @ cohort.coefficients - scale_move @ with_scale(cohort, information)
    precision = cohort.precision
    objective = -0.5 * float(
        cohort.coefficients @ precision @ cohort.coefficients
        + np.linalg.slogdet(held + precision)[1]
        - np.linalg.slogdet(precision)[1]
    )
    sizes = choose_sizes(cohort, held, pull)
    trend_precision = choose_trend_precision(cohort, sizes, held, pull)
    total = held + precision_for(cohort, sizes, trend_precision)
    move = np.linalg.solve(total, pull) - cohort.coefficients
    by_group = np.einsum("gbp,p->gb", cohort.contrasts, move)
    squares = cohort.shares @ (by_group**2).sum(axis=1)
    if cohort.effects is not None and cohort.effect_contrasts is not None:
        fixed = (cohort.effect_contrasts @ move)[: len(cohort.effects.fixed)]
        squares += fixed @ fixed  # their columns have a spread of 1
    length = float(np.sqrt(squares))
    move *= min(1.0, MOST_MOVE / max(length, 1e-12))
    moved = replace(
        cohort,
        sizes=sizes,
        trend_precision=trend_precision,
        coefficients=cohort.coefficients + move,
    )
    weights = np.append(np.diagonal(np.linalg.inv(total)) ** -0.5, np.ones(sizes.size))
    return CohortStep(moved, weights, objective)


def to_vector(cohort: Cohort) -> Array:
    """Coefficients and log sizes as one vector, which is extrapolated with the items."""
    return np.append(cohort.coefficients, np.log(cohort.sizes))


def from_vector(cohort: Cohort, vector: Array) -> Cohort:
    """The cohort with the coefficients and sizes of a vector, sizes within their limits."""
    n = cohort.coefficients.size
    sizes = np.exp(np.clip(vector[n:], np.log(smallest_sizes(cohort)), np.log(LARGEST)))
    return replace(cohort, coefficients=vector[:n], sizes=sizes)


def with_scale(cohort: Cohort, information: Array) -> Array:
    """Mixed information on the zero and log unit of ability and the coefficients.

    The zero moves as the constant of the basis does; a larger unit stretches the cohort's curve.

    Returns
    -------
    array (2, n_coefficients)
    """
    part = cohort.loadings.T @ information
    return np.stack([part @ constant_part(cohort), part @ (cohort.loadings @ cohort.coefficients)])


def constant_part(cohort: Cohort) -> Array:
    """The parts that move everybody alike by 1: (n_parts,)."""
    out = np.zeros(cohort.loadings.shape[0])
    n_columns = cohort.basis.n_columns
    out[: cohort.n_groups * n_columns : n_columns] = 1.0
    return out


def scale_without_cohort(
    scale: Array, cohort: Cohort, gradient: Array, information: Array
) -> Array:
    """Gradient by the zero and log unit of ability, given that the cohort moves along.

    `scale` (2, 2) is `scale_gradient`: gradients, and information at a given cohort. That stays:
    what a larger unit gains by stretching the cohort, the cohort could do by itself.
    """
    score = gradient @ cohort.loadings
    precision = cohort.precision
    move = np.linalg.solve(
        on_coefficients(cohort, information) + precision, score - precision @ cohort.coefficients
    )
    return np.stack([scale[0] - with_scale(cohort, information) @ move, scale[1]])


def on_coefficients(cohort: Cohort, information: Array) -> Array:
    """Information on the coefficients, from that on all parts; never negative."""
    held = cohort.loadings.T @ information @ cohort.loadings
    values, vectors = np.linalg.eigh(0.5 * (held + held.T))
    least = 1e-6 * max(float(values[-1]), 1e-6)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def choose_trend_precision(cohort: Cohort, sizes: Array, held: Array, pull: Array) -> float:
    """Prior precision of the common line, by how likely there is one at all.

    A line that is within its noise would only add that to everyone's forecast. With probability w
    that there is one (of standard deviation `TREND_SD`) rather than none, its mean is w times its
    estimate, which a normal prior of the precision (1 − w) / (w se²) gives too. A line of five
    standard errors keeps 99 % of itself.
    """
    # in products with time the line is a main effect: shrunk, the products would take its place
    if not cohort.trend.any() or (cohort.effects is not None and cohort.effects.involve_time):
        return 0.0
    covariance = np.linalg.inv(held + precision_for(cohort, sizes, 0.0))
    variance = float(cohort.trend @ covariance @ cohort.trend)
    estimate = float(cohort.trend @ covariance @ pull)
    spread = variance + TREND_SD**2
    exponent = 0.5 * estimate**2 * (1 / variance - 1 / spread)
    log_odds = 0.5 * np.log(variance / spread) + exponent
    return float(np.exp(-np.clip(log_odds, -20.0, 40.0)) / variance)


def choose_sizes(cohort: Cohort, held: Array, pull: Array) -> Array:
    """Sizes of largest evidence, near the present ones once there are any."""

    def evidence(sizes: Array) -> float:
        precision = precision_for(cohort, sizes, 0.0)
        root, own = np.linalg.cholesky(np.stack([held + precision, precision]))
        fit = np.linalg.solve(root, pull)
        gained = np.log(np.diagonal(own)).sum() - np.log(np.diagonal(root)).sum()
        return 0.5 * float(fit @ fit) + float(gained)

    sizes = cohort.sizes.copy()
    smallest = smallest_sizes(cohort)
    accurate = 1e-2 if cohort.coefficients.size > MANY else 1e-5
    for k in range(sizes.size):

        def loss(log_size: float, k: int = k) -> float:
            return -evidence(np.where(np.arange(sizes.size) == k, np.exp(log_size), sizes))

        centre = np.log(sizes[k])
        if not cohort.coefficients.any():  # the first step: anywhere
            tries = np.linspace(np.log(smallest[k]), np.log(LARGEST), FIRST_TRIES)
            centre = tries[int(np.argmin([loss(log_size) for log_size in tries]))]
        nearest = np.log(smallest[k])
        low, high = np.clip([centre - REACH, centre + REACH], nearest, np.log(LARGEST))
        found = minimize_scalar(
            loss, bounds=(low, high), method="bounded", options={"xatol": accurate}
        )
        sizes[k] = np.exp(found.x if found.fun < loss(nearest) else nearest)
    return sizes


def smallest_sizes(cohort: Cohort) -> Array:
    """The size below which there is no curvature, or no effect, (n_sizes,)."""
    out = np.full(cohort.sizes.size, SMALLEST)
    out[cohort.sizes.size - cohort.n_blocks :] = NO_EFFECT
    return out
