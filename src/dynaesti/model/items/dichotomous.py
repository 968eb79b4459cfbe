"""Items with responses 0 (wrong) and 1 (right): logistic models of one to four parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit

from dynaesti.core import Array, Bools, jit
from dynaesti.model.items.base import (
    DIFFICULTY,
    INTERCEPT,
    LOG_SLOPE,
    SLOPE,
    ItemModel,
    NormalPrior,
    columns,
    constrain_line,
    log_odds,
    reflect_slope,
    slope_intercept,
    slope_intercept_gradient,
    unconstrain_line,
)

# priors of the logits of guessing and slipping
GUESS = NormalPrior(-2.0, 0.8)
SLIP = NormalPrior(-3.0, 0.8)


@dataclass(frozen=True)
class TwoPL(ItemModel):
    """Two-parameter logistic model: P(y = 1 | θ) = σ(a (θ − b)), σ(x) = 1 / (1 + e⁻ˣ).

    Reported are the slope (discrimination) `a`, the difficulty `b`, which is the ability at which
    both responses are equally likely, and `intercept` = −a · b. A larger `b` is a harder item;
    `a` is positive unless the model is signed, where a negative one means that the item runs
    backwards. Unconstrained: (log a, b), or (a, intercept) when signed.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("2PL")
    >>> u = model.unconstrain({"a": np.array([2.0]), "b": np.array([1.0])}, size=2)
    >>> p = np.exp(model.log_likelihood(u, np.array([1.0, 2.0])))  # (items, responses, abilities)
    >>> p[0, 1].round(3).tolist()
    [0.5, 0.881]
    """

    name = "2PL"
    binary = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("slope", "intercept") if self.signed else ("log_a", "b")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (SLOPE, INTERCEPT) if self.signed else (LOG_SLOPE, DIFFICULTY)

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        # averaging over abilities flattens the curve
        odds = log_odds(frequencies[:, 1]) * np.sqrt(1 + slope**2 / 3)
        if self.signed:
            return np.stack([np.where(reverse, -slope, slope), odds], axis=1)
        return np.stack([np.log(slope), np.clip(-odds / slope, -4.0, 4.0)], axis=1)

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return constrain_line(u, self.signed, scale, shift)

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return np.stack(unconstrain_line(table, self.signed), axis=1)

    def slope_sign(self, u: Array) -> Array:
        return slope_intercept(u, self.signed)[0]

    def reflected(self, u: Array) -> Array:
        return reflect_slope(u)

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        out = np.empty((len(u), 2, theta.shape[-1]))
        fill_lines(*slope_intercept(u, self.signed), np.atleast_2d(theta), out)
        return out

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        slope, intercept = slope_intercept(u, self.signed)
        right = expit(slope[:, None] * theta + intercept[:, None])
        by_line = np.stack(slope_intercept_gradient(u, theta, self.signed), axis=1)
        return np.stack([-right[:, None] * by_line, (1 - right[:, None]) * by_line], axis=2)

    def value_gradient_curvature(
        self, u: Array, theta: Array, counts: Array
    ) -> tuple[Array, Array, Array]:
        value = np.empty(len(u))
        gradient = np.empty((len(u), 2))
        curvature = np.empty((len(u), 2, 2))
        evaluate_lines(
            *slope_intercept(u, self.signed),
            np.ascontiguousarray(u[:, 1]),  # strided only for several items: compiled twice
            self.signed,
            theta,
            counts,
            value,
            gradient,
            curvature,
        )
        return value, gradient, curvature


@jit
def fill_lines(slope: Array, intercept: Array, theta: Array, out: Array) -> None:
    """Log probabilities of wrong and right for 2PL items, with one exponential and one logarithm.

    Parameters
    ----------
    slope, intercept : array (n_items,)
        The predictor is slope · θ + intercept.
    theta : array (1 or n_items, n_points)
        Abilities.
    out : array (n_items, 2, n_points)
        Filled with log P(0 | θ) and log P(1 | θ).
    """
    for i in range(slope.size):
        own = i if theta.shape[0] > 1 else 0
        for k in range(theta.shape[1]):
            t = slope[i] * theta[own, k] + intercept[i]
            # right to 1e-16, which is enough beside t, in half of log1p's time
            softplus = np.log(1.0 + np.exp(-abs(t)))
            out[i, 0, k] = -max(t, 0.0) - softplus
            out[i, 1, k] = min(t, 0.0) - softplus


@jit
def evaluate_lines(
    slope: Array,
    intercept: Array,
    difficulty: Array,
    signed: bool,
    theta: Array,
    counts: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
) -> None:
    """Expected log-likelihood of 2PL items with gradient and expected curvature.

    No intermediate arrays: thousands of items take milliseconds.

    Parameters
    ----------
    slope, intercept : array (n_items,)
        The predictor is slope · θ + intercept.
    difficulty : array (n_items,)
        The difficulty, the second parameter of items that are not signed.
    signed : bool
        Whether parameters are (slope, intercept), else (log slope, difficulty).
    theta : array (n_points,)
        Abilities.
    counts : array (n_items, 2, n_points)
        Expected counts.
    value : array (n_items,)
        Filled with Σ counts × log P.
    gradient : array (n_items, 2)
        Filled with its derivatives.
    curvature : array (n_items, 2, 2)
        Filled with its expected negative Hessian.
    """
    for i in range(slope.size):
        total = 0.0
        g0 = 0.0
        g1 = 0.0
        h00 = 0.0
        h01 = 0.0
        h11 = 0.0
        for k in range(theta.size):
            wrong = counts[i, 0, k]
            right = counts[i, 1, k]
            n = wrong + right
            if n == 0.0:
                continue
            t = slope[i] * theta[k] + intercept[i]
            small = np.exp(-abs(t))
            p = 1.0 / (1.0 + small) if t > 0 else small / (1.0 + small)
            total += (right * t if t < 0 else -wrong * t) - n * np.log(1.0 + small)
            if signed:
                d0 = theta[k]
                d1 = 1.0
            else:
                d0 = slope[i] * (theta[k] - difficulty[i])
                d1 = -slope[i]
            residual = right - n * p
            information = max(n, 0.0) * p * (1.0 - p)
            g0 += residual * d0
            g1 += residual * d1
            h00 += information * d0 * d0
            h01 += information * d0 * d1
            h11 += information * d1 * d1
        value[i] = total
        gradient[i, 0] = g0
        gradient[i, 1] = g1
        curvature[i, 0, 0] = h00
        curvature[i, 0, 1] = h01
        curvature[i, 1, 0] = h01
        curvature[i, 1, 1] = h11


@dataclass(frozen=True)
class OnePL(ItemModel):
    """Rasch model: P(y = 1 | θ) = σ(θ − b), with slope 1 for all items.

    The variance of abilities is free instead, so that on a reported scale of unit variance all
    items have the same slope `a`. Reported are `a`, the difficulty `b` (larger is harder) and
    `intercept` = −a · b. Unconstrained: b.

    Parameters
    ----------
    signed : bool, default False
        Without effect: the slope is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("rasch")
    >>> p = np.exp(model.log_likelihood(np.array([[-1.0]]), np.array([-1.0, 0.0])))
    >>> p[0, 1].round(3).tolist()
    [0.5, 0.731]
    """

    name = "1PL"
    binary = True
    has_unit_slope = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("b",)

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (DIFFICULTY,)

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        return -1.15 * log_odds(frequencies[:, 1])[:, None]

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return constrain_line(_with_unit_slope(u), False, scale, shift)

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return columns(table, ["b"])

    def slope_sign(self, u: Array) -> Array:
        return np.ones(len(u))

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        return _TWO.log_likelihood(_with_unit_slope(u), theta)

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        return _TWO.log_likelihood_gradient(_with_unit_slope(u), theta)[:, 1:]

    def value_gradient_curvature(
        self, u: Array, theta: Array, counts: Array
    ) -> tuple[Array, Array, Array]:
        value, gradient, curvature = _TWO.value_gradient_curvature(
            _with_unit_slope(u), theta, counts
        )
        return value, gradient[:, 1:], curvature[:, 1:, 1:]


def _with_unit_slope(u: Array) -> Array:
    """Parameters (log slope, difficulty) of 2PL items with slope 1."""
    return np.concatenate([np.zeros_like(u[:, :1]), u], axis=1)


@dataclass(frozen=True)
class FourPL(TwoPL):
    """Four-parameter logistic model: P(y = 1 | θ) = c + (d − c) σ(a (θ − b)).

    Reported are the slope `a`, the difficulty `b` (larger is harder), `intercept` = −a · b, the
    probability `c` of guessing right at very low ability, and `d` < 1, where 1 − d is the
    probability of a slip at very high ability. Unconstrained: those of the 2PL, then two numbers
    (guess, slip) such that the probabilities of a guess, a slip and neither are a softmax of
    (guess, slip, 0); so c < d always.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("4PL")
    >>> table = {"a": [1.0], "b": [0.0], "c": [0.2], "d": [0.9]}
    >>> u = model.unconstrain({name: np.array(x) for name, x in table.items()}, size=2)
    >>> p = np.exp(model.log_likelihood(u, np.array([-9.0, 0.0, 9.0])))
    >>> p[0, 1].round(2).tolist()
    [0.2, 0.55, 0.9]
    """

    name = "4PL"
    has_slips: ClassVar[bool] = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return (*_TWO_NAMES[self.signed], "guess", *(("slip",) if self.has_slips else ()))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        first = (SLOPE, INTERCEPT) if self.signed else (LOG_SLOPE, DIFFICULTY)
        return (*first, GUESS, *((SLIP,) if self.has_slips else ()))

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        first = TwoPL(signed=self.signed).initial(frequencies, slope, reverse)
        ends = [GUESS.mean, SLIP.mean][: 1 + self.has_slips]
        return np.concatenate([first, np.tile(ends, (len(frequencies), 1))], axis=1)

    def _ends(self, u: Array) -> tuple[Array, Array]:
        """Probabilities of a guess and of a slip, (n_items, 1) each."""
        guess = u[:, 2:3]
        slip = u[:, 3:4] if self.has_slips else np.full_like(guess, -np.inf)
        top = np.maximum(np.maximum(guess, slip), 0.0)
        whole = np.exp(guess - top) + np.exp(slip - top) + np.exp(-top)
        return np.exp(guess - top) / whole, np.exp(slip - top) / whole

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        guess, slip = self._ends(u)
        out = constrain_line(u, self.signed, scale, shift) | {"c": guess[:, 0]}
        return out | ({"d": 1 - slip[:, 0]} if self.has_slips else {})

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        ends = columns(table, ["c", "d"] if self.has_slips else ["c"])
        guess = ends[:, 0]
        slip = (1 - ends[:, 1]) if self.has_slips else np.zeros(len(ends))
        with np.errstate(divide="ignore"):
            logits = [np.log(guess / (1 - guess - slip)), np.log(slip / (1 - guess - slip))]
        return np.stack(
            [*unconstrain_line(table, self.signed), *logits[: 1 + self.has_slips]], axis=1
        )

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        slope, intercept = slope_intercept(u, self.signed)
        t = slope[:, None] * theta + intercept[:, None]
        guess, slip = self._ends(u)
        return np.stack(
            [_log_mixed(slip, 1 - guess - slip, -t), _log_mixed(guess, 1 - guess - slip, t)], axis=1
        )

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        slope, intercept = slope_intercept(u, self.signed)
        t = slope[:, None] * theta + intercept[:, None]
        up = expit(t)
        down = expit(-t)
        guess, slip = self._ends(u)
        between = 1 - guess - slip
        right = guess + between * up
        wrong = slip + between * down
        # a probability that underflows is all one part
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            below = np.where(wrong > 0, between * down / wrong, 1.0)
            above = np.where(right > 0, between * up / right, 1.0)
            slipped = slip * np.where(wrong > 0, right / wrong, 0.0)
            guessed = guess * np.where(right > 0, wrong / right, 0.0)
        # softmax: d(guess)/d(its logit) = guess·(1 − guess), d(between) = −between·guess, and so on
        lines = slope_intercept_gradient(u, theta, self.signed)
        of_wrong = [*(-below * up * d for d in lines), -np.broadcast_to(guess, up.shape)]
        of_right = [*(above * down * d for d in lines), guessed]
        if self.has_slips:
            of_wrong.append(slipped)
            of_right.append(-np.broadcast_to(slip, up.shape))
        return np.stack([np.stack(of_wrong, axis=1), np.stack(of_right, axis=1)], axis=2)

    def value_gradient_curvature(
        self, u: Array, theta: Array, counts: Array
    ) -> tuple[Array, Array, Array]:
        """Expected log-likelihood with its derivatives, by the general formula.

        The fast one of the 2PL knows neither guessing nor slipping.
        """
        return ItemModel.value_gradient_curvature(self, u, theta, counts)


def _log_mixed(floor: Array, between: Array, t: Array) -> Array:
    """log(floor + between · σ(t)), with all digits where the floor is 0."""
    no_floor = floor[:, 0] == 0
    if no_floor.all():
        return np.asarray(np.log(between) + log_expit(t))
    out = np.log(np.where(no_floor[:, None], 1.0, floor) + between * expit(t))
    out[no_floor] = np.log(between[no_floor]) + log_expit(t[no_floor])
    return out


@dataclass(frozen=True)
class ThreePL(FourPL):
    """Three-parameter logistic model: P(y = 1 | θ) = c + (1 − c) σ(a (θ − b)).

    Reported are the slope `a`, the difficulty `b` (larger is harder), `intercept` = −a · b, and
    the probability `c` of guessing right at very low ability. Unconstrained: those of the 2PL, then
    the logit of c.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("3PL")
    >>> table = {"a": [1.0], "b": [0.0], "c": [0.2]}
    >>> u = model.unconstrain({name: np.array(x) for name, x in table.items()}, size=2)
    >>> p = np.exp(model.log_likelihood(u, np.array([-9.0, 0.0])))
    >>> p[0, 1].round(2).tolist()
    [0.2, 0.6]
    """

    name = "3PL"
    has_slips = False


_TWO = TwoPL()
_TWO_NAMES = {False: ("log_a", "b"), True: ("slope", "intercept")}
