"""The user's own item model: one function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from dynaesti.core import Array, Bools
from dynaesti.errors import InputError
from dynaesti.model.items.base import ContinuousItemModel, NormalPrior, columns

MOST_VALUES = 400  # distinct responses that get a row each
# whole-numbered responses that are categories; what their chances may add up to
FEW_VALUES = 12
SURE = 1.02
IMPOSSIBLE = -700.0  # log chance that stands for none
# below which a log chance may end: formulas that are not written for small chances round to 0
# there
FADED = -30.0
CONSIDERED = 5.0  # abilities either side of 0 at which models are judged
# log units between two points of the grid that make a jump, if those beside change by so small a
# part of it
JUMP = 0.05
SMOOTH = 0.2


@dataclass(frozen=True)
class CustomItemModel(ContinuousItemModel):
    """An item model from `log_prob(theta, resp, params)`, with start and bounds for each named
    parameter.

    `params` is a mapping from name to (start, lower, upper); bounds may be infinite. The function
    is called with an array of abilities, one response and a tuple of numbers, and returns log
    Pr[resp | θ] (a log density for continuous responses).
    """

    log_prob: Callable[[Array, float, tuple[float, ...]], Any]
    params: Mapping[str, tuple[float, float, float]]
    label: str = "own"
    values: tuple[float, ...] = ()  # distinct responses, filled in when the data are known

    name = "own"

    def __post_init__(self) -> None:
        if not callable(self.log_prob) or not isinstance(self.params, Mapping) or not self.params:
            raise InputError(
                "item model: give log_prob(theta, resp, params) and params={name: (start, lower, "
                "upper), …}"
            )
        for name, spec in self.params.items():
            numbers = (
                isinstance(spec, Sequence)
                and len(spec) == 3
                and all(isinstance(v, int | float) for v in spec)
            )
            if not numbers or not spec[1] < spec[0] < spec[2]:
                raise InputError(
                    f"item model: parameter {name!r} needs (start, lower, upper) with lower < "
                    f"start < upper, got {spec!r}"
                )

    def __hash__(self) -> int:
        return hash((self.label, id(self.log_prob), self.values, self.signed))

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return tuple(self.params)

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return tuple(
            NormalPrior(float(self._inside(np.array([s]), lo, hi)[0]), 2.0)
            for s, lo, hi in self.params.values()
        )

    @staticmethod
    def _inside(value: Array, lo: float, hi: float) -> Array:
        """Unconstrained from bounded."""
        if np.isfinite(lo) and np.isfinite(hi):
            return np.asarray(np.log((value - lo) / (hi - value)))
        if np.isfinite(lo):
            return np.log(value - lo)
        return -np.log(hi - value) if np.isfinite(hi) else value

    @staticmethod
    def _outside(u: Array, lo: float, hi: float) -> Array:
        """Bounded from unconstrained."""
        if np.isfinite(lo) and np.isfinite(hi):
            return np.asarray(lo + (hi - lo) * expit(u))
        if np.isfinite(lo):
            return lo + np.exp(u)
        return hi - np.exp(-u) if np.isfinite(hi) else u

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        return np.tile([prior.mean for prior in self.priors(0)], (len(share), 1))

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        """The parameters as the user's function takes them.

        On the fit's own ability scale, which a formula unknown to us fixes.
        """
        return {
            name: self._outside(u[:, k], lo, hi)
            for k, (name, (_, lo, hi)) in enumerate(self.params.items())
        }

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        given = columns(table, list(self.params))
        return np.stack(
            [
                self._inside(given[:, k], lo, hi)
                for k, (_, lo, hi) in enumerate(self.params.values())
            ],
            axis=1,
        )

    def slope_sign(self, u: Array) -> Array:
        """From how the log odds of the highest over the lowest response change between −1 and 1."""
        rows = self.log_likelihood(u, np.array([-1.0, 1.0]))
        return np.asarray(
            0.5 * ((rows[:, -1, 1] - rows[:, 0, 1]) - (rows[:, -1, 0] - rows[:, 0, 0]))
        )

    def row_count(self, size: int) -> int:
        return len(self.values)

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        natural = np.stack(list(self.constrain(u).values()), axis=1)
        points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
        out = np.empty((len(u), len(self.values), theta.shape[-1]))
        for i, item in enumerate(natural):
            for k, value in enumerate(self.values):
                out[i, k] = self._call(points[i], value, tuple(item.tolist()))
        return out

    def _call(self, theta: Array, value: float, item: tuple[float, ...]) -> Array:
        try:
            found = np.asarray(self.log_prob(theta, value, item), dtype=np.float64)
        except Exception as error:  # whatever the user's function raised
            raise InputError(
                f"item model {self.label!r}: log_prob raised {type(error).__name__}: {error} "
                f"(resp {value:g}, params {item})"
            ) from error
        if found.shape != theta.shape or np.isnan(found).any() or (found == np.inf).any():
            raise InputError(
                f"item model {self.label!r}: log_prob must return one number below infinity for "
                f"each ability "
                f"(resp {value:g}, params {item})"
            )
        return np.maximum(
            found, IMPOSSIBLE
        )  # an impossible response stays a row that can be interpolated

    def check_rows(self, rows: Array, theta: Array) -> None:
        """Refuse rows (items, values, points) on an even grid that cannot be computed with.

        With chances of 0 all of a sudden, or jumps.

        A chance that fades away until it rounds to 0, as log(1 − p) does, is none of these.
        """
        where = np.abs(theta) <= CONSIDERED
        near = rows[:, :, where]
        at = theta[where]
        barred = near <= IMPOSSIBLE
        whole = len(self.values) <= FEW_VALUES and all(
            float(value).is_integer() for value in self.values
        )
        if whole and (np.exp(near[:, :, np.abs(at) <= 2.0]).sum(axis=1) > SURE).all():
            raise InputError(
                f"item model {self.label!r}: the chances of its {len(self.values)} responses add "
                f"up to more than 1 at every "
                "ability; log_prob must return the logarithm of a probability"
            )
        for k, value in enumerate(self.values):
            if barred[:, k].all(axis=1).any():
                raise InputError(
                    f"item model {self.label!r}: the response {value:g} is impossible (log_prob "
                    f"is -inf) at every ability; "
                    "give it a chance, or leave such answers out"
                )
            seen = np.maximum(near[:, k, 1:], near[:, k, :-1]) > FADED
            edge = (barred[:, k, 1:] != barred[:, k, :-1]) & seen
            change = np.abs(np.diff(near[:, k], axis=1))
            around = np.pad(change, ((0, 0), (1, 1)), mode="edge")
            jump = (change > JUMP) & (around[:, :-2] + around[:, 2:] < SMOOTH * change) & seen
            odd = np.argwhere(edge | jump)
            if odd.size:
                what = "drops to -inf" if edge[tuple(odd[0])] else "jumps"
                raise InputError(
                    f"item model {self.label!r}: log_prob {what} at ability {at[odd[0][1]]:.3g} "
                    f"(resp {value:g}); curves are "
                    "learned from smooth models, so let chances change gradually, and add 1e-6 or "
                    "so to those of 0"
                )

    def steepness(self, u: Array) -> float:
        """The fastest that any response's log chance changes with ability, where it is not
        negligible.
        """
        theta = np.linspace(-CONSIDERED, CONSIDERED, 201)
        rows = self.log_likelihood(u, theta)
        step = np.abs(np.diff(rows, axis=2)) * (np.maximum(rows[:, :, 1:], rows[:, :, :-1]) > FADED)
        return float(step.max(initial=0.0) / (theta[1] - theta[0]))

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        p = np.exp(self.log_likelihood(u, theta))
        return np.asarray(np.einsum("irg,r->ig", p, np.array(self.values)) / p.sum(axis=1))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        p = np.exp(self.log_likelihood(u, theta))
        return np.asarray(
            np.einsum("irg,r->ig", p, np.array(self.values) ** 2) / p.sum(axis=1)
            - self.expected(u, theta, values) ** 2
        )
