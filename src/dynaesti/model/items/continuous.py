"""Responses that are amounts: counts, measurements, and shares between 0 and 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import betaln, expit, gammaln

from dynaesti.core import Array, Bools
from dynaesti.model.items.base import (
    DIFFICULTY,
    INTERCEPT,
    LOG_SLOPE,
    SLOPE,
    ContinuousItemModel,
    NormalPrior,
    columns,
    constrain_line,
    log_odds,
    slope_intercept,
    unconstrain_line,
)


def _line(u: Array, theta: Array, signed: bool) -> Array:
    """Slope · θ + intercept.

    Amounts keep the intercept itself: far from 0 a difficulty −intercept/slope would tie the two
    together.
    """
    slope = u[:, :1] if signed else np.exp(u[:, :1])
    return np.asarray(slope * theta + u[:, 1:2])


def _line_slopes(u: Array, theta: Array, signed: bool) -> Array:
    """Derivatives of the line by its two parameters: (items, 2, points)."""
    points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
    return np.stack(
        [points if signed else np.exp(u[:, :1]) * points, np.ones(points.shape)], axis=1
    )


def _described(u: Array, signed: bool, scale: float, shift: float) -> dict[str, Array]:
    """Both metrics: a, b and the intercept."""
    slope = u[:, 0] if signed else np.exp(u[:, 0])
    a = slope / scale
    intercept = u[:, 1] - slope * shift / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"a": a, "b": -intercept / a, "intercept": intercept}


def _recovered(table: Mapping[str, Array], signed: bool) -> list[Array]:
    a, b, intercept = columns(table, ["a", "b", "intercept"]).T
    return [a if signed else np.log(a), np.where(np.isnan(intercept), -a * b, intercept)]


def _turned(u: Array) -> Array:
    return np.concatenate([-u[:, :1], u[:, 1:]], axis=1)


@dataclass(frozen=True)
class PoissonItem(ContinuousItemModel):
    """Counts: log mean = a(θ − b)."""

    name = "poisson"
    parameter_bound = 200.0

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("slope" if self.signed else "log_a", "intercept")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            SLOPE if self.signed else NormalPrior(-0.7, 0.7, "log slope"),
            NormalPrior(0.0, 20.0),
        )

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        """`share` holds each item's mean and sd of the responses."""
        mean = np.maximum(share[:, 0], 0.05)
        sd = share[:, 1]
        extra = (
            np.maximum(sd**2 - mean, 0.02 * mean) / mean**2
        )  # spread beyond Poisson's own is ability's
        a = np.clip(np.sqrt(np.log1p(extra)), 0.05, 1.5)
        return np.stack(
            [np.where(reverse, -a, a) if self.signed else np.log(a), np.log(mean) - 0.5 * a**2],
            axis=1,
        )

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return _described(u, self.signed, scale, shift)

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return np.stack(_recovered(table, self.signed), axis=1)

    def slope_sign(self, u: Array) -> Array:
        return u[:, 0] if self.signed else np.exp(u[:, 0])

    def reflected(self, u: Array) -> Array:
        return _turned(u)

    def row_count(self, size: int) -> int:
        return 2

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        return np.stack([amount, np.ones_like(amount)], axis=1), -gammaln(amount + 1)

    def _predictor(self, u: Array, theta: Array) -> Array:
        return np.clip(
            _line(u, theta, self.signed), -200.0, 200.0
        )  # e^200 is no count; keeps rows finite

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        t = self._predictor(u, theta)
        return np.stack([t, -np.exp(t)], axis=1)

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        by_line = _line_slopes(u, theta, self.signed)
        return np.stack([by_line, -np.exp(self._predictor(u, theta))[:, None] * by_line], axis=2)

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        return np.exp(self._predictor(u, theta))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        return self.expected(u, theta, values)


@dataclass(frozen=True)
class GaussianItem(ContinuousItemModel):
    """Measurements: y = a(θ − b) + noise of standard deviation sigma.

    Measurements have a zero and a unit of their own, item by item, which must not matter: each
    item's are counted from the mean of its responses in their standard deviation, kept as the
    item's `values`, and reported as they came. (Files of before have none.)
    """

    name = "gaussian"
    floors = MappingProxyType(
        {"log_sigma": float(np.log(1e-4))}
    )  # responses that are all alike, or wholly explained

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("slope" if self.signed else "log_a", "intercept", "log_sigma")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            NormalPrior(0.0, 1e3) if self.signed else NormalPrior(0.0, 10.0, "log slope"),
            NormalPrior(0.0, 1e6),
            NormalPrior(0.0, 20.0),
        )

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        """Half the variance is ability's to begin with."""
        a = np.full(len(share), np.sqrt(0.5))
        flat = np.zeros(len(share))
        return np.stack(
            [np.where(reverse, -a, a) if self.signed else np.log(a), flat, np.log(a)], axis=1
        )

    @staticmethod
    def _unit(values: Array) -> tuple[Array, Array]:
        """Zero and unit of each item's (or answer's) responses."""
        return (
            (values[:, 0], values[:, 1])
            if values.shape[1]
            else (np.zeros(len(values)), np.ones(len(values)))
        )

    def to_response_unit(self, told: Mapping[str, Array], values: Array) -> dict[str, Array]:
        centre, spread = self._unit(values)
        a = told["a"] * spread
        intercept = told["intercept"] * spread + centre
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "a": a,
                "b": -intercept / a,
                "intercept": intercept,
                "sigma": told["sigma"] * spread,
            }

    def from_response_unit(self, told: Mapping[str, Array], values: Array) -> dict[str, Array]:
        centre, spread = self._unit(values)
        a, b, intercept, sigma = columns(told, ["a", "b", "intercept", "sigma"]).T
        return {
            "a": a / spread,
            "intercept": (np.where(np.isnan(intercept), -a * b, intercept) - centre) / spread,
            "sigma": sigma / spread,
        }

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return _described(u, self.signed, scale, shift) | {"sigma": np.exp(u[:, 2])}

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return np.stack(
            [*_recovered(table, self.signed), np.log(columns(table, ["sigma"])[:, 0])], axis=1
        )

    def slope_sign(self, u: Array) -> Array:
        return (u[:, 0] if self.signed else np.exp(u[:, 0])) / np.exp(u[:, 2])

    def reflected(self, u: Array) -> Array:
        return _turned(u)

    def row_count(self, size: int) -> int:
        return 3

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        centre, spread = self._unit(values)
        y = (amount - centre) / spread
        return np.stack([y**2, y, np.ones_like(y)], axis=1), -0.5 * np.log(2 * np.pi) - np.log(
            spread
        )

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        t = _line(u, theta, self.signed)
        precision = np.exp(-2 * u[:, 2:3])
        flat = np.broadcast_to(-0.5 * precision, t.shape)
        return np.stack([flat, precision * t, -0.5 * precision * t**2 - u[:, 2:3]], axis=1)

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        t = _line(u, theta, self.signed)
        precision = np.exp(-2 * u[:, 2:3])
        by_line = _line_slopes(u, theta, self.signed)
        parts = [
            np.stack([np.zeros_like(t), precision * d, -precision * t * d], axis=1)
            for d in by_line.transpose(1, 0, 2)
        ]
        spread = np.stack(
            [np.broadcast_to(precision, t.shape), -2 * precision * t, precision * t**2 - 1], axis=1
        )
        return np.stack([*parts, spread], axis=1)

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        centre, spread = self._unit(values)
        return np.asarray(centre[:, None] + spread[:, None] * _line(u, theta, self.signed))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        return np.asarray(
            (self._unit(values)[1][:, None] * np.exp(u[:, 2:3])) ** 2
            * np.ones((1, theta.shape[-1]))
        )


@dataclass(frozen=True)
class BetaItem(ContinuousItemModel):
    """Shares strictly between 0 and 1.

    A beta distribution with mean σ(a(θ − b)) and precision phi.
    """

    name = "beta"

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return (*(("slope", "intercept") if self.signed else ("log_a", "b")), "log_phi")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            *((SLOPE, INTERCEPT) if self.signed else (LOG_SLOPE, DIFFICULTY)),
            NormalPrior(2.0, 1.5),
        )

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        """`share` holds each item's mean and sd of the responses."""
        odds = log_odds(share[:, 0])
        a = 0.7 * slope
        first = (
            [np.where(reverse, -a, a), odds]
            if self.signed
            else [np.log(a), np.clip(-odds / a, -4, 4)]
        )
        return np.stack([*first, np.full(len(share), 1.5)], axis=1)

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return constrain_line(u, self.signed, scale, shift) | {"phi": np.exp(u[:, 2])}

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return np.concatenate(
            [
                np.stack(unconstrain_line(table, self.signed), axis=1),
                np.log(columns(table, ["phi"])),
            ],
            axis=1,
        )

    def slope_sign(self, u: Array) -> Array:
        return slope_intercept(u, self.signed)[0]

    def reflected(self, u: Array) -> Array:
        return np.concatenate([-u[:, :1], u[:, 1:]], axis=1)

    def row_count(self, size: int) -> int:
        return 3

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        low = np.log(amount)
        high = np.log1p(-amount)
        return np.stack([low, high, np.ones_like(amount)], axis=1), -low - high

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        slope, intercept = slope_intercept(u, self.signed)
        t = slope[:, None] * theta + intercept[:, None]
        phi = np.exp(u[:, 2:3])
        up = phi * np.maximum(expit(t), 1e-12)
        down = phi * np.maximum(expit(-t), 1e-12)
        return np.stack([up, down, -betaln(up, down)], axis=1)

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        slope, intercept = slope_intercept(u, self.signed)
        return np.asarray(expit(slope[:, None] * theta + intercept[:, None]))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        mean = self.expected(u, theta, values)
        return np.asarray(mean * (1 - mean) / (1 + np.exp(u[:, 2:3])))
