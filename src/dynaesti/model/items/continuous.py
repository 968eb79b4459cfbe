"""Items whose responses are amounts: counts, measurements, and proportions."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import betainc, betaln, expit, gammaln, ndtr, pdtr

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
    reflect_slope,
    reported_line,
    slope_intercept,
    unconstrain_line,
)


def _line(u: Array, theta: Array, signed: bool) -> Array:
    """Predictor slope · θ + intercept, (n_items, n_points).

    Counts and measurements keep the intercept as a parameter: far from 0 a difficulty
    −intercept/slope would tie the two together.
    """
    slope = u[:, :1] if signed else np.exp(u[:, :1])
    return np.asarray(slope * theta + u[:, 1:2])


def _line_gradient(u: Array, theta: Array, signed: bool) -> Array:
    """Derivatives of the predictor by its two parameters: (n_items, 2, n_points)."""
    points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
    return np.stack(
        [points if signed else np.exp(u[:, :1]) * points, np.ones(points.shape)], axis=1
    )


def _slope(u: Array, signed: bool) -> Array:
    """Slope (n_items,) from the first parameter, which is its logarithm unless signed."""
    return u[:, 0] if signed else np.exp(u[:, 0])


def _unconstrain_with_intercept(table: Mapping[str, Array], signed: bool) -> list[Array]:
    """(log) slope and intercept from a and b, or a and the intercept; NaN where not given."""
    a, b, intercept = columns(table, ["a", "b", "intercept"]).T
    return [a if signed else np.log(a), np.where(np.isnan(intercept), -a * b, intercept)]


@dataclass(frozen=True)
class PoissonItem(ContinuousItemModel):
    """Poisson model of counts: y ~ Poisson(λ) with log λ = a (θ − b).

    Reported are the slope `a`, the location `b` (the ability at which the mean count is 1; larger
    means fewer counts) and `intercept` = −a · b. Unconstrained: log a (a when signed) and the
    intercept.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    The mean count at abilities 0 and 1 of an item with slope 1 and location 0:

    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("poisson")
    >>> u = model.unconstrain({"a": np.array([1.0]), "b": np.array([0.0])}, size=0)
    >>> model.expected(u, np.array([0.0, 1.0]), np.zeros((1, 0))).round(3).tolist()
    [[1.0, 2.718]]
    """

    name = "poisson"
    is_probability = True
    response_kind = "whole numbers from 0"
    parameter_bound = 200.0

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("slope" if self.signed else "log_a", "intercept")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            SLOPE if self.signed else NormalPrior(-0.7, 0.7, "log slope"),
            NormalPrior(0.0, 20.0),
        )

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        """Starting u; `frequencies` holds the mean and sd of each item's responses."""
        mean = np.maximum(frequencies[:, 0], 0.05)
        sd = frequencies[:, 1]
        # variance beyond Poisson's own comes from ability
        extra = np.maximum(sd**2 - mean, 0.02 * mean) / mean**2
        a = np.clip(np.sqrt(np.log1p(extra)), 0.05, 1.5)
        return np.stack(
            [np.where(reverse, -a, a) if self.signed else np.log(a), np.log(mean) - 0.5 * a**2],
            axis=1,
        )

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return reported_line(_slope(u, self.signed), u[:, 1], scale, shift)

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return np.stack(_unconstrain_with_intercept(table, self.signed), axis=1)

    def slope_sign(self, u: Array) -> Array:
        return _slope(u, self.signed)

    def reflected(self, u: Array) -> Array:
        return reflect_slope(u)

    def row_count(self, size: int) -> int:
        return 2

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        return np.stack([amount, np.ones_like(amount)], axis=1), -gammaln(amount + 1)

    def _predictor(self, u: Array, theta: Array) -> Array:
        # e^200 is no count; keeps rows finite
        return np.clip(_line(u, theta, self.signed), -200.0, 200.0)

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        t = self._predictor(u, theta)
        return np.stack([t, -np.exp(t)], axis=1)

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        by_line = _line_gradient(u, theta, self.signed)
        return np.stack([by_line, -np.exp(self._predictor(u, theta))[:, None] * by_line], axis=2)

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        return np.exp(self._predictor(u, theta))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        return self.expected(u, theta, values)

    def cumulative(self, resp: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        below = np.where(resp > 0, pdtr(np.maximum(resp - 1.0, 0.0), mean), 0.0)
        return below, np.asarray(pdtr(resp, mean), dtype=np.float64)

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        mean = np.exp(self._predictor(u, theta[:, None]))[:, 0]
        return rng.poisson(mean).astype(np.float64)

    def accepts(self, resp: Array) -> Bools:
        return np.asarray((resp >= 0) & (resp == np.floor(resp)))


@dataclass(frozen=True)
class GaussianItem(ContinuousItemModel):
    """Gaussian model of measurements: y = a (θ − b) + ε with ε ~ N(0, sigma²).

    Reported are the slope `a` and `intercept` = −a · b in the unit of the responses, the location
    `b` (the ability at which the mean response is 0) and the noise `sigma` > 0. Unconstrained:
    log a (a when signed), the intercept and log sigma.

    Measurements have a zero and a unit of their own, item by item, which must not matter. So each
    item's responses are standardised by their mean and standard deviation, kept as the item's
    `values` (n_items, 2), and reported in the original unit. (Older saved files have no `values`.)

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("gaussian")
    >>> table = {"a": [2.0], "b": [-1.0], "sigma": [0.5]}
    >>> u = model.unconstrain({name: np.array(x) for name, x in table.items()}, size=0)
    >>> model.expected(u, np.array([0.0, 1.0]), np.zeros((1, 0))).round(3).tolist()
    [[2.0, 4.0]]
    """

    name = "gaussian"
    has_response_unit = True
    # where responses are all alike, or wholly explained
    floors = MappingProxyType({"log_sigma": float(np.log(1e-4))})

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return ("slope" if self.signed else "log_a", "intercept", "log_sigma")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            NormalPrior(0.0, 1e3) if self.signed else NormalPrior(0.0, 10.0, "log slope"),
            NormalPrior(0.0, 1e6),
            NormalPrior(0.0, 20.0),
        )

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        """Starting u, with half of the variance due to ability."""
        a = np.full(len(frequencies), np.sqrt(0.5))
        flat = np.zeros(len(frequencies))
        return np.stack(
            [np.where(reverse, -a, a) if self.signed else np.log(a), flat, np.log(a)], axis=1
        )

    @staticmethod
    def _unit(values: Array) -> tuple[Array, Array]:
        """Zero and unit of the responses of each item (or of each response's item)."""
        return (
            (values[:, 0], values[:, 1])
            if values.shape[1]
            else (np.zeros(len(values)), np.ones(len(values)))
        )

    def to_response_unit(self, table: Mapping[str, Array], values: Array) -> dict[str, Array]:
        centre, spread = self._unit(values)
        a = table["a"] * spread
        intercept = table["intercept"] * spread + centre
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "a": a,
                "b": -intercept / a,
                "intercept": intercept,
                "sigma": table["sigma"] * spread,
            }

    def from_response_unit(self, table: Mapping[str, Array], values: Array) -> dict[str, Array]:
        centre, spread = self._unit(values)
        a, b, intercept, sigma = columns(table, ["a", "b", "intercept", "sigma"]).T
        return {
            "a": a / spread,
            "intercept": (np.where(np.isnan(intercept), -a * b, intercept) - centre) / spread,
            "sigma": sigma / spread,
        }

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        return reported_line(_slope(u, self.signed), u[:, 1], scale, shift) | {
            "sigma": np.exp(u[:, 2])
        }

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return np.stack(
            [
                *_unconstrain_with_intercept(table, self.signed),
                np.log(columns(table, ["sigma"])[:, 0]),
            ],
            axis=1,
        )

    def slope_sign(self, u: Array) -> Array:
        return _slope(u, self.signed) / np.exp(u[:, 2])

    def reflected(self, u: Array) -> Array:
        return reflect_slope(u)

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
        by_line = _line_gradient(u, theta, self.signed)
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

    def cumulative(self, resp: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        below = np.asarray(ndtr((resp - mean) / np.sqrt(variance)), dtype=np.float64)
        return below, below

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        no_unit = np.zeros((theta.size, 0))
        mean = self.expected(u, theta[:, None], no_unit)[:, 0]
        variance = self.variance(u, theta[:, None], no_unit)[:, 0]
        return np.asarray(mean + np.sqrt(variance) * rng.standard_normal(theta.size))


@dataclass(frozen=True)
class BetaItem(ContinuousItemModel):
    """Beta model of proportions: y ~ Beta(μ phi, (1 − μ) phi) with μ = σ(a (θ − b)).

    Responses are strictly between 0 and 1. Reported are the slope `a`, the location `b` (the
    ability at which the mean response is ½; larger is harder), `intercept` = −a · b and the
    precision `phi` > 0; the variance of y is μ (1 − μ) / (1 + phi). Unconstrained: those of the 2PL
    and log phi.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("beta")
    >>> one, nil, three = np.array([1.0]), np.array([0.0]), np.array([3.0])
    >>> u = model.unconstrain({"a": one, "b": nil, "phi": three}, size=0)
    >>> model.variance(u, np.array([0.0]), np.zeros((1, 0))).tolist()
    [[0.0625]]
    """

    name = "beta"
    any_response = 0.5
    response_kind = "values strictly between 0 and 1"

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return (*(("slope", "intercept") if self.signed else ("log_a", "b")), "log_phi")

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            *((SLOPE, INTERCEPT) if self.signed else (LOG_SLOPE, DIFFICULTY)),
            NormalPrior(2.0, 1.5),
        )

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        """Starting u; `frequencies` holds the mean and sd of each item's responses."""
        odds = log_odds(frequencies[:, 0])
        a = 0.7 * slope
        first = (
            [np.where(reverse, -a, a), odds]
            if self.signed
            else [np.log(a), np.clip(-odds / a, -4, 4)]
        )
        return np.stack([*first, np.full(len(frequencies), 1.5)], axis=1)

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
        return reflect_slope(u)

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

    def cumulative(self, resp: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        total = mean * (1 - mean) / variance - 1
        below = np.asarray(betainc(mean * total, (1 - mean) * total, resp), dtype=np.float64)
        return below, below

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        no_unit = np.zeros((theta.size, 0))
        mean = self.expected(u, theta[:, None], no_unit)[:, 0]
        variance = self.variance(u, theta[:, None], no_unit)[:, 0]
        total = mean * (1 - mean) / variance - 1
        return np.clip(rng.beta(mean * total, (1 - mean) * total), 1e-6, 1 - 1e-6)

    def accepts(self, resp: Array) -> Bools:
        return np.asarray(~((resp <= 0) | (resp >= 1)))
