"""What every item model is.

Rows of log-likelihood over ability, from a few unconstrained parameters.

An answer's log-likelihood is a sum of *terms*: coefficient × basis row. An answer in category k has
one term, 1 × log P_k(θ); a count y has y × log λ(θ) and 1 × −λ(θ). So grafting sees only rows and
coefficients, and the M-step only the expected sums of coefficients at each ability ("counts"),
whatever the family.

Parameters are kept unconstrained (log slope, difficulty, logit guessing, …) in an array u of shape
(items, parameters).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dynaesti.core import Array, Bools
from dynaesti.errors import InputError, option

STEP = 1e-5  # of central differences


@dataclass(frozen=True)
class NormalPrior:
    """A weak normal prior of one unconstrained parameter.

    `unit` says how the parameter depends on the unit of ability: "log slope" and "log gap" (by its
    centre), "slope" (by its spread), "place" (by both). Thousands of items with few answers each
    would drag that unit along (smaller slopes are likelier, so abilities would grow without end),
    so there centres and spreads come from the items themselves, with no weight of their own on what
    depends on it.
    """

    mean: float
    sd: float
    unit: str = ""


LOG_SLOPE = NormalPrior(0.0, 0.5, "log slope")
SLOPE = NormalPrior(0.0, 1.5, "slope")
DIFFICULTY = NormalPrior(0.0, 2.0, "place")
INTERCEPT = NormalPrior(0.0, 3.0)
LOG_GAP = NormalPrior(-0.2, 1.0, "log gap")


@dataclass(frozen=True)
class ItemModel:
    """One family of items. Subclasses give the formula.

    `size` is the number of an item's categories where it has them.

    `signed` lets slopes be negative: the first parameter is then the slope itself and locations are
    intercepts.
    """

    signed: bool = field(default=False, kw_only=True)

    name: ClassVar[str]
    categorical: ClassVar[bool] = True
    shared: ClassVar[bool] = False  # whether items share parameters
    has_unit_slope: ClassVar[bool] = (
        False  # whether the slope is 1, so that the abilities' variance is free
    )
    binary: ClassVar[bool] = False
    farthest: ClassVar[float] = (
        30.0  # without priors a slope or difficulty may run away; there it stays
    )
    longest: ClassVar[float] = 1.5  # an M-step's largest move of any parameter at once
    floors: ClassVar[
        Mapping[str, float]
    ] = {}  # parameters that would run away downwards, and where they stop

    # --- parameters
    # -----------------------------------------------------------------------------------

    def names(self, size: int) -> tuple[str, ...]:
        """Names of the unconstrained parameters of an item with so many categories."""
        raise NotImplementedError

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        """A weak prior for each of them."""
        raise NotImplementedError

    def start(self, share: Array, slope: Array, reverse: Bools) -> Array:
        """Starting u from the share of each category (items, size), rough slopes, and which items
        run backwards.
        """
        raise NotImplementedError

    def describe(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        """Reported parameters, with abilities counted as scale · θ + shift."""
        raise NotImplementedError

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        """Unconstrained u from reported parameters (NaN where none is given)."""
        raise NotImplementedError

    def slope_sign(self, u: Array) -> Array:
        """Signed steepness of each item, for the direction of the scale."""
        raise NotImplementedError

    def reversed(self, u: Array) -> Array:
        """The same items on the mirrored scale θ → −θ (signed models only)."""
        raise NotImplementedError

    # --- likelihood
    # -----------------------------------------------------------------------------------

    def rows(self, u: Array, theta: Array) -> Array:
        """Basis rows (items, rows, points) at abilities theta of shape (points,) or (items,
        points).
        """
        raise NotImplementedError

    def slopes(self, u: Array, theta: Array) -> Array:
        """Derivatives of the rows by each parameter: (items, parameters, rows, points)."""
        return central_gradient(self, u, theta)

    def row_count(self, size: int) -> int:
        """Basis rows an item has."""
        return size

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        """(coefficients (answers, rows), constants (answers,)) of answers that are amounts.

        Categories need none.

        `values` are those of each answer's item, see `Block.values`.
        """
        raise NotImplementedError

    def in_units(self, told: Mapping[str, Array], values: Array) -> dict[str, Array]:
        """Reported parameters in the unit of the responses, where they are kept in another.

        `values` as above, of each item.
        """
        return dict(told)

    def out_of_units(self, told: Mapping[str, Array], values: Array) -> dict[str, Array]:
        """And back."""
        return dict(told)

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        """Mean response (items, points); `values` are the categories' values (items, size)."""
        return np.asarray(np.einsum("ikg,ik->ig", np.exp(self.rows(u, theta)), values))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        """Variance of the response (items, points)."""
        p = np.exp(self.rows(u, theta))
        return np.asarray(
            np.einsum("ikg,ik->ig", p, values**2) - self.expected(u, theta, values) ** 2
        )

    @property
    def is_reflectable(self) -> bool:
        """Whether the items can be told on the mirrored scale."""
        return type(self).reversed is not ItemModel.reversed

    def curvature(self, u: Array, theta: Array, counts: Array, rows: Array, slopes: Array) -> Array:
        """Negative Hessian of Σ counts × rows, or its expectation: (items, parameters, parameters).

        For categories the expected one, which is never indefinite: Σ over abilities of their number
        × Fisher information.
        """
        weight = np.exp(rows) * np.maximum(counts.sum(axis=1, keepdims=True), 0.0)
        return np.asarray(
            np.einsum("iprg,iqrg->ipq", slopes * weight[:, None], slopes, optimize=True)
        )

    def evaluated(self, u: Array, theta: Array, counts: Array) -> tuple[Array, Array, Array]:
        """Σ counts × rows of each item, its gradient (items, parameters), and the curvature.

        What an M-step climbs by.
        """
        rows = self.rows(u, theta)
        slopes = self.slopes(u, theta)
        return (
            np.asarray(np.einsum("irg,irg->i", counts, rows)),
            np.asarray(np.einsum("iprg,irg->ip", slopes, counts)),
            self.curvature(u, theta, counts, rows, slopes),
        )


class ContinuousItemModel(ItemModel):
    """Responses that are amounts: a few basis rows, any number of values."""

    categorical = False

    def curvature(self, u: Array, theta: Array, counts: Array, rows: Array, slopes: Array) -> Array:
        """By central differences of the gradient."""
        width = u.shape[1]
        out = np.empty((len(u), width, width))
        for p in range(width):
            ahead = u.copy()
            behind = u.copy()
            ahead[:, p] += STEP
            behind[:, p] -= STEP
            gradients = [
                np.einsum("iprg,irg->ip", self.slopes(v, theta), counts) for v in (ahead, behind)
            ]
            out[:, p] = (gradients[1] - gradients[0]) / (2 * STEP)
        return 0.5 * (out + out.transpose(0, 2, 1))


def central_gradient(model: ItemModel, u: Array, theta: Array) -> Array:
    """Derivatives of a model's rows by central differences."""
    out = []
    for p in range(u.shape[1]):
        ahead = u.copy()
        behind = u.copy()
        ahead[:, p] += STEP
        behind[:, p] -= STEP
        out.append((model.rows(ahead, theta) - model.rows(behind, theta)) / (2 * STEP))
    return np.stack(out, axis=1)


def slope_intercept(u: Array, signed: bool) -> tuple[Array, Array]:
    """Slope and intercept of the predictor from the first two parameters.

    (slope, intercept), or (log slope, difficulty).
    """
    if signed:
        return u[:, 0], u[:, 1]
    slope = np.exp(u[:, 0])
    return slope, -slope * u[:, 1]


def slope_intercept_gradient(u: Array, theta: Array, signed: bool) -> tuple[Array, Array]:
    """Derivatives of slope·θ + intercept by the two parameters, each (items, points)."""
    if signed:
        return np.broadcast_to(theta, (len(u), theta.shape[-1])), np.ones((len(u), theta.shape[-1]))
    slope = np.exp(u[:, :1])
    return slope * (theta - u[:, 1:2]), np.broadcast_to(-slope, (len(u), theta.shape[-1]))


def constrain_line(u: Array, signed: bool, scale: float, shift: float) -> dict[str, Array]:
    """Both metrics of a line: a, b and the intercept."""
    slope, intercept = slope_intercept(u, signed)
    a = slope / scale
    intercept = intercept - slope * shift / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"a": a, "b": -intercept / a, "intercept": intercept}


def unconstrain_line(table: Mapping[str, Array], signed: bool) -> list[Array]:
    """The first two parameters from a and b or the intercept; NaN where they are not given."""
    some = next(iter(table.values()))
    a = np.asarray(table.get("a", np.full(some.shape, np.nan)))
    intercept = np.asarray(table.get("intercept", np.full(some.shape, np.nan)))
    b = np.asarray(table.get("b", -intercept / a))
    if not signed and np.any(a <= 0):
        raise InputError(
            f"item parameters: {int(np.sum(a <= 0))} slopes a are not positive; use "
            f"{option('direction', 'free')} for items that run backwards"
        )
    return [a, np.where(np.isnan(intercept), -a * b, intercept)] if signed else [np.log(a), b]


def numbered(prefix: str, values: Array) -> dict[str, Array]:
    """Columns b1, b2, … of a vector parameter."""
    return {f"{prefix}{k + 1}": values[:, k] for k in range(values.shape[1])}


def columns(table: Mapping[str, Array], names: Sequence[str]) -> Array:
    """Several named columns side by side, NaN where missing."""
    some = next(iter(table.values()))
    return np.stack(
        [
            np.asarray(table.get(name, np.full(some.shape, np.nan)), dtype=np.float64)
            for name in names
        ],
        axis=1,
    )


def log_odds(share: Array) -> Array:
    """Log p/(1 − p), kept finite."""
    p = np.clip(share, 0.01, 0.99)
    return np.asarray(np.log(p / (1 - p)))
