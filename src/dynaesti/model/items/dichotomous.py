"""Right or wrong: logistic items with one to four parameters."""

from collections.abc import Mapping
from dataclasses import dataclass

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
    slope_intercept,
    slope_intercept_gradient,
    unconstrain_line,
)

# logits
GUESS = NormalPrior(-2.0, 0.8)
SLIP = NormalPrior(-3.0, 0.8)


@dataclass(frozen=True)
class TwoPL(ItemModel):
    """Two-parameter logistic item: P(1 | θ) = σ(a(θ − b))."""

    name = "2PL"
    binary = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("slope", "intercept") if self.signed else ("log_a", "b")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (SLOPE, INTERCEPT) if self.signed else (LOG_SLOPE, DIFFICULTY)

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        odds = log_odds(share[:, 1]) * np.sqrt(
            1 + slope**2 / 3
        )  # averaging over abilities flattens the curve
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
        return np.concatenate([-u[:, :1], u[:, 1:]], axis=1)

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
        if type(self) is not TwoPL:  # guessing and slipping take the general way
            return super().value_gradient_curvature(u, theta, counts)
        value = np.empty(len(u))
        gradient = np.empty((len(u), 2))
        curvature = np.empty((len(u), 2, 2))
        evaluate_lines(
            *slope_intercept(u, self.signed),
            u[:, 1],
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
    """Log chances of wrong and right for 2PL items at abilities (1 or items, points).

    One exponential and one logarithm for both.
    """
    for i in range(slope.size):
        own = i if theta.shape[0] > 1 else 0
        for k in range(theta.shape[1]):
            t = slope[i] * theta[own, k] + intercept[i]
            rest = np.log(
                1.0 + np.exp(-abs(t))
            )  # right to 1e-16, which is enough beside t, in half of log1p's time
            out[i, 0, k] = -max(t, 0.0) - rest
            out[i, 1, k] = min(t, 0.0) - rest


@jit
def evaluate_lines(
    slope: Array,
    intercept: Array,
    place: Array,
    signed: bool,
    theta: Array,
    counts: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
) -> None:
    """Σ counts × log rows of 2PL items, gradients and expected curvatures, without an array on the
    way: thousands of items in no time.
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
            d0, d1 = (theta[k], 1.0) if signed else (slope[i] * (theta[k] - place[i]), -slope[i])
            rest = right - n * p
            bend = max(n, 0.0) * p * (1.0 - p)
            g0 += rest * d0
            g1 += rest * d1
            h00 += bend * d0 * d0
            h01 += bend * d0 * d1
            h11 += bend * d1 * d1
        value[i] = total
        gradient[i, 0] = g0
        gradient[i, 1] = g1
        curvature[i, 0, 0] = h00
        curvature[i, 0, 1] = h01
        curvature[i, 1, 0] = h01
        curvature[i, 1, 1] = h11


@dataclass(frozen=True)
class OnePL(ItemModel):
    """Rasch item: P(1 | θ) = σ(θ − b), one slope for all.

    The abilities' variance is free instead.
    """

    name = "1PL"
    binary = True
    has_unit_slope = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("b",)

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (DIFFICULTY,)

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        return -1.15 * log_odds(share[:, 1])[:, None]

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
    return np.concatenate([np.zeros_like(u[:, :1]), u], axis=1)


@dataclass(frozen=True)
class FourPL(TwoPL):
    """Four-parameter logistic item.

    P(1 | θ) = c + (d − c) σ(a(θ − b)), c the chance of a lucky guess, 1 − d that of a slip.

    The three probabilities guess, slip and neither are a softmax of (guess, slip, 0), so that c < d
    always.
    """

    name = "4PL"
    slips = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return (*_TWO_NAMES[self.signed], "guess", *(("slip",) if self.slips else ()))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        first = (SLOPE, INTERCEPT) if self.signed else (LOG_SLOPE, DIFFICULTY)
        return (*first, GUESS, *((SLIP,) if self.slips else ()))

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        first = TwoPL(signed=self.signed).initial(share, slope, reverse)
        ends = [GUESS.mean, SLIP.mean][: 1 + self.slips]
        return np.concatenate([first, np.tile(ends, (len(share), 1))], axis=1)

    def _ends(self, u: Array) -> tuple[Array, Array]:
        """Chances of a guess and of a slip, (items, 1) each."""
        guess = u[:, 2:3]
        slip = u[:, 3:4] if self.slips else np.full_like(guess, -np.inf)
        top = np.maximum(np.maximum(guess, slip), 0.0)
        whole = np.exp(guess - top) + np.exp(slip - top) + np.exp(-top)
        return np.exp(guess - top) / whole, np.exp(slip - top) / whole

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        guess, slip = self._ends(u)
        out = constrain_line(u, self.signed, scale, shift) | {"c": guess[:, 0]}
        return out | ({"d": 1 - slip[:, 0]} if self.slips else {})

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        ends = columns(table, ["c", "d"] if self.slips else ["c"])
        guess = ends[:, 0]
        slip = (1 - ends[:, 1]) if self.slips else np.zeros(len(ends))
        with np.errstate(divide="ignore"):
            logits = [np.log(guess / (1 - guess - slip)), np.log(slip / (1 - guess - slip))]
        return np.stack([*unconstrain_line(table, self.signed), *logits[: 1 + self.slips]], axis=1)

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
        with np.errstate(
            invalid="ignore", divide="ignore", over="ignore"
        ):  # a chance that underflows is all one part
            below = np.where(wrong > 0, between * down / wrong, 1.0)
            above = np.where(right > 0, between * up / right, 1.0)
            slipped = slip * np.where(wrong > 0, right / wrong, 0.0)
            guessed = guess * np.where(right > 0, wrong / right, 0.0)
        # softmax: d(guess)/d(its logit) = guess·(1 − guess), d(between) = −between·guess, and so on
        lines = slope_intercept_gradient(u, theta, self.signed)
        of_wrong = [*(-below * up * d for d in lines), -np.broadcast_to(guess, up.shape)]
        of_right = [*(above * down * d for d in lines), guessed]
        if self.slips:
            of_wrong.append(slipped)
            of_right.append(-np.broadcast_to(slip, up.shape))
        return np.stack([np.stack(of_wrong, axis=1), np.stack(of_right, axis=1)], axis=2)


def _log_mixed(floor: Array, between: Array, t: Array) -> Array:
    """log(floor + between · σ(t)), with all digits where the floor is 0."""
    bare = floor[:, 0] == 0
    if bare.all():
        return np.asarray(np.log(between) + log_expit(t))
    out = np.log(np.where(bare[:, None], 1.0, floor) + between * expit(t))
    out[bare] = np.log(between[bare]) + log_expit(t[bare])
    return out


@dataclass(frozen=True)
class ThreePL(FourPL):
    """Three-parameter logistic item.

    P(1 | θ) = c + (1 − c) σ(a(θ − b)), c the chance of a lucky guess.
    """

    name = "3PL"
    slips = False


_TWO = TwoPL()
_TWO_NAMES = {False: ("log_a", "b"), True: ("slope", "intercept")}
