"""The user's own item model for amounts: a density, read off a grid of responses.

Responses that are hardly ever the same cannot have a likelihood row each. So log densities are
computed at some responses, the nodes, evenly apart on a scale on which the density is smooth, and
cubic polynomials through four of them are its value at any other: log f(y | θ) = Σ c(y) · row(θ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit

from dynaesti.core import Array, Bools, Ints
from dynaesti.errors import InputError
from dynaesti.model.items.base import MODEL_RANGE, NEGLIGIBLE
from dynaesti.model.items.custom import IMPOSSIBLE, MAX_TOTAL, CustomItemModel

NODES = (24, 48, 96, 192)  # within the responses of the data; the first that are exact enough
ACCURATE = 1e-3  # nats that a density read off the grid may be off, at its start
ROUGH = 0.02  # nats beyond which even the finest grid is refused
POINTS = 4  # nodes that a response is read off
TRIED = 12  # responses, half way between nodes, at which that is measured
ABILITIES = np.linspace(-4.0, 4.0, 9)  # at which it is measured
FINER = 8  # steps between two nodes, where responses are drawn
GRID = 241  # abilities at which means and variances of responses are computed, and read off


class Transform(NamedTuple):
    """A scale on which densities of responses may be smooth."""

    to: Callable[[Array], Array]
    back: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # of `back`, as a function of the response
    within: tuple[float, float]  # responses that have a place on it


TRANSFORMS = {
    "log": Transform(np.log, np.exp, lambda y: y, (0.0, np.inf)),
    "logit": Transform(logit, expit, lambda y: y * (1 - y), (0.0, 1.0)),
    "identity": Transform(lambda y: y, lambda t: t, np.ones_like, (-np.inf, np.inf)),
}


@dataclass(frozen=True, eq=False)
class CustomDensity(CustomItemModel):
    """A user's model of amounts, on a grid of responses.

    Made by `density_on_grid`; users give a `CustomItemModel`.

    Parameters
    ----------
    log_prob, params, label, values, signed
        See `CustomItemModel`. The values are the nodes.
    transform : {"identity", "log", "logit"}, default "identity"
        Scale on which the nodes are evenly apart.
    """

    transform: str = "identity"

    name = "own density"
    has_value_rows = False

    def __post_init__(self) -> None:
        super().__post_init__()
        t = self._scale.to(np.array(self.values))
        apart = np.diff(t)
        if t.size < POINTS or not np.allclose(apart, apart.mean()) or not apart.mean() > 0:
            raise InputError(f"item model {self.label!r}: its grid of responses is malformed")
        low, high = self.values[0], self.values[-1]
        # fields of the class, which depend on the nodes here
        object.__setattr__(self, "any_response", self.values[t.size // 2])
        object.__setattr__(
            self,
            "response_kind",
            f"numbers from {low:.4g} to {high:.4g}, about which the fit has learned",
        )

    def of_values(self) -> CustomItemModel:
        """The model with a row for each distinct response."""
        return CustomItemModel(self.log_prob, self.params, self.label, signed=self.signed)

    @property
    def _scale(self) -> Transform:
        if self.transform not in TRANSFORMS:
            raise InputError(f"item model {self.label!r}: its grid of responses is malformed")
        return TRANSFORMS[self.transform]

    @property
    def term_count(self) -> int:
        return POINTS

    def _first_node_and_place(self, amount: Array) -> tuple[Ints, Array]:
        """First of the four nodes about each amount, and its place from there, in steps."""
        t = self._scale.to(np.array(self.values))
        place = (self._scale.to(amount) - t[0]) / (t[-1] - t[0]) * (t.size - 1)
        first = np.clip(np.floor(place).astype(np.int64) - 1, 0, t.size - POINTS)
        return first, place - first

    def term_rows(self, amount: Array, size: int) -> Ints:
        first, _ = self._first_node_and_place(amount)
        return first[:, None] + np.arange(POINTS)

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        _, s = self._first_node_and_place(amount)
        coefficients = [
            np.prod([(s - m) / (k - m) for m in range(POINTS) if m != k], axis=0)
            for k in range(POINTS)
        ]
        return np.stack(coefficients, axis=1), np.zeros(amount.size)

    def log_likelihood_of(self, u: Array, theta: Array, code: Array, values: Array) -> Array:
        """Log density of one response to each item, by the function itself."""
        natural = np.stack(list(self.constrain(u).values()), axis=1)
        points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
        rows = [
            self._call(at, float(resp), tuple(item.tolist()))
            for at, resp, item in zip(points, code, natural, strict=True)
        ]
        return np.array(rows).reshape(len(u), theta.shape[-1])

    def accepts(self, resp: Array) -> Bools:
        return np.asarray((resp >= self.values[0]) & (resp <= self.values[-1]))

    def check_rows(self, rows: Array, theta: Array) -> None:
        where = np.abs(theta) <= MODEL_RANGE
        margin = _margin_of(len(self.values))
        inner = range(margin, len(self.values) - margin)
        for k in inner:
            self._check_smooth(rows[:, k][:, where], theta[where], self.values[k])
        near = np.exp(rows[:, :, np.abs(theta) <= 2.0])
        if (np.einsum("irg,r->ig", near, self._weights) > MAX_TOTAL).all():
            raise InputError(
                f"item model {self.label!r}: the density of its responses adds up to more than 1 "
                "at every ability; log_prob must return the logarithm of a density"
            )

    @property
    def _weights(self) -> Array:
        """Weights of the nodes in integrals over responses."""
        y = np.array(self.values)
        t = self._scale.to(y)
        return np.asarray(self._scale.slope(y) * (t[-1] - t[0]) / (t.size - 1))

    def _moments(self, u: Array, theta: Array) -> tuple[Array, Array]:
        """Mean and variance of the response at abilities, (n_items, n_points) each."""
        points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
        mean, variance = np.empty(points.shape), np.empty(points.shape)
        unique, number = np.unique(u, axis=0, return_inverse=True)
        grid = np.linspace(points.min() - 1e-3, points.max() + 1e-3, GRID)
        y = np.array(self.values)
        for k, one in enumerate(unique):
            rows = self.log_likelihood(one[None], grid)[0]
            p = np.exp(rows - rows.max(axis=0)) * self._weights[:, None]
            p /= p.sum(axis=0)
            first = y @ p
            second = ((y[:, None] - first) ** 2 * p).sum(axis=0)
            mine = np.flatnonzero(number.ravel() == k)
            mean[mine] = CubicSpline(grid, first)(points[mine])
            variance[mine] = np.maximum(CubicSpline(grid, second)(points[mine]), 1e-300)
        return mean, variance

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        return self._moments(u, theta)[0]

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        return self._moments(u, theta)[1]

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        t = self._scale.to(np.array(self.values))
        fine = np.linspace(t[0], t[-1], FINER * (t.size - 1) + 1)
        y = np.clip(self._scale.back(fine), self.values[0], self.values[-1])
        coefficients, _ = self.terms(y, np.zeros((y.size, 0)))
        read = np.zeros((y.size, t.size))
        np.put_along_axis(read, self.term_rows(y, 0), coefficients, axis=1)
        rows = self.log_likelihood(u, theta[:, None])[:, :, 0] @ read.T
        p = np.exp(rows - rows.max(axis=1, keepdims=True)) * self._scale.slope(y)
        upto = np.cumsum(0.5 * (p[:, 1:] + p[:, :-1]), axis=1)
        upto = np.concatenate([np.zeros((theta.size, 1)), upto], axis=1)
        uniform = rng.uniform(size=theta.size) * upto[:, -1]
        drawn = [np.interp(x, one, fine) for x, one in zip(uniform, upto, strict=True)]
        return np.asarray(self._scale.back(np.array(drawn)))


def _margin_of(size: int) -> int:
    """Nodes on either side beyond the data, of `size` in all."""
    return size // 6


def density_on_grid(model: CustomItemModel, low: float, high: float) -> CustomDensity:
    """A user's model of amounts, with a grid for responses from `low` to `high`.

    The coarsest grid is taken that is exact enough at the starting parameters and about them.

    Raises
    ------
    InputError
        If no grid is.
    """
    best: tuple[float, CustomDensity] | None = None
    refusal: InputError | None = None
    for size in NODES:
        for name, transform in TRANSFORMS.items():
            if not transform.within[0] < low <= high < transform.within[1]:
                continue
            made = _with_nodes(model, name, low, high, size)
            try:
                with np.errstate(all="ignore"):
                    error = _error(made, low, high)
            except InputError as found:  # a density need not be defined on every margin
                refusal = refusal or found
                continue
            if error < ACCURATE:
                return made
            if best is None or error < best[0]:
                best = error, made
    if best is None:
        assert refusal is not None
        raise refusal
    if best[0] > ROUGH:
        raise InputError(
            f"item model {model.label!r}: log_prob is too rough in resp to be read off a grid "
            f"from {low:.4g} to {high:.4g} (off by {best[0]:.2g} nats between its nodes); let it "
            "be smooth in resp, or round the responses to fewer values"
        )
    return best[1]


def _with_nodes(
    model: CustomItemModel, name: str, low: float, high: float, size: int
) -> CustomDensity:
    """The model with so many nodes within its responses, and a margin for other ones."""
    transform = TRANSFORMS[name]
    ends = transform.to(np.array([low, high]))
    step = float(np.diff(ends)[0]) / (size - 1)
    margin = size // 4
    t = ends[0] + step * np.arange(-margin, size + margin)
    if name == "identity":  # no margin beyond what the data may not go beyond
        t = t[((t >= 0) | (low < 0)) & ((t <= 1) | (high > 1))]
    return CustomDensity(
        model.log_prob,
        model.params,
        model.label,
        tuple(np.asarray(transform.back(t)).tolist()),
        signed=model.signed,
        transform=name,
    )


def _error(model: CustomDensity, low: float, high: float) -> float:
    """How far densities are off half way between nodes, about the start, where they matter."""
    start = np.array([[prior.mean for prior in model.priors(0)]])
    steps = np.eye(start.shape[1])
    u = np.concatenate([start, start + steps, start - steps])
    scale = TRANSFORMS[model.transform]
    t = scale.to(np.array(model.values))
    ends = scale.to(np.array([low, high]))
    middle = np.array([0.5 * (a + b) for a, b in pairwise(t) if ends[0] < b and a < ends[1]])
    chosen = np.unique(np.linspace(0, middle.size - 1, TRIED).astype(np.int64))
    amount = np.asarray(scale.back(middle[chosen]))
    worst = 0.0
    coefficients, _ = model.terms(amount, np.zeros((amount.size, 0)))
    rows = model.term_rows(amount, 0)
    for one in u:
        table = model.log_likelihood(one[None], ABILITIES)[0]
        read = np.einsum("nk,nkg->ng", coefficients, table[rows])
        exact = model.log_likelihood_of(
            np.tile(one, (amount.size, 1)), ABILITIES, amount, np.zeros((amount.size, 0))
        )
        visible = exact > np.maximum(table.max(axis=0) + NEGLIGIBLE, IMPOSSIBLE)
        worst = max(worst, float(np.abs(read - exact)[visible].max(initial=0.0)))
    return worst
