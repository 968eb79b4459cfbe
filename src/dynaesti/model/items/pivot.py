"""Partial credit with steps counted from a pivot category, such as par in golf."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools
from dynaesti.errors import InputError
from dynaesti.model.items.base import NormalPrior, columns
from dynaesti.model.items.polytomous import Softmax


@dataclass(frozen=True)
class PivotPartialCredit(Softmax):
    """Partial credit with steps outward from a pivot, such as par in golf (model "golf").

    With s the number of steps by which a response is better (s > 0) or worse (s < 0) than the
    pivot, log P(s | θ) / P(0 | θ) = sgn(s) Σ_v a_v (θ − b_v), summed over the steps v between the
    pivot and s. Each step has a slope a_v > 0 and a difficulty b_v of its own. Reported are
    `a_p1`, `b_p1` for the first step better than the pivot, `a_m1`, `b_m1` for the first step
    worse, and so on; a larger b makes the better response of that step rarer. Unconstrained: the
    logs of the slopes, then the difficulties.

    Parameters
    ----------
    par : mapping of item to float, optional
        Pivot response of each item. Default: the item's most frequent response.
    descending : bool, default True
        Whether lower responses are better, as strokes are.
    pivot : int, default 0
        Category of the pivot. The fit fills it in; users leave it.
    signed : bool, default False
        Without effect: slopes are positive.

    Raises
    ------
    InputError
        If `par` is not a mapping.

    Examples
    --------
    >>> import dynaesti as dy
    >>> model = dy.PivotPartialCredit(par={"hole 1": 4, "hole 2": 3})
    >>> model.name
    'golf'
    >>> dy.PivotPartialCredit(pivot=1).parameter_names(3)  # a worse response, a better one
    ('log_a_m1', 'log_a_p1', 'b_m1', 'b_p1')
    """

    par: Mapping[object, float] | None = None
    descending: bool = True
    pivot: int = 0

    name = "golf"

    def __post_init__(self) -> None:
        if self.par is not None and not isinstance(self.par, Mapping):
            raise InputError(f"par: expected item → pivot response, got {self.par!r}")

    def __hash__(self) -> int:
        return hash((self.name, self.signed, self.descending, self.pivot))

    def _sides(self, size: int) -> Array:
        """Sign of each category but the pivot: −1 below it, +1 above."""
        k = np.delete(np.arange(size), self.pivot)
        return np.sign(k - self.pivot).astype(np.float64)

    def _labels(self, size: int) -> list[str]:
        """Names of the steps: …, m2, m1 worse than the pivot, p1, p2, … better."""
        k = np.delete(np.arange(size), self.pivot) - self.pivot
        return [f"{'p' if s > 0 else 'm'}{abs(s)}" for s in k]

    def parameter_names(self, size: int) -> tuple[str, ...]:
        labels = self._labels(size)
        return (*(f"log_a_{s}" for s in labels), *(f"b_{s}" for s in labels))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (NormalPrior(-0.7, 0.7, "log slope"),) * (size - 1) + (
            NormalPrior(0.0, 4.0, "location"),
        ) * (size - 1)

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        size = frequencies.shape[1]
        smooth = np.log(frequencies + 0.002)
        k = np.delete(np.arange(size), self.pivot)
        toward = k - np.sign(k - self.pivot)
        odds = smooth[:, k] - smooth[:, toward]
        a = np.tile(0.5 * slope[:, None], (1, size - 1))
        return np.concatenate(
            [np.log(a), np.clip(-self._sides(size) * odds / a, -6.0, 6.0)], axis=1
        )

    def lines(self, u: Array) -> tuple[Array, Array]:
        half = u.shape[1] // 2
        size = half + 1
        a = np.exp(u[:, :half])
        b = u[:, half:]
        alpha = np.zeros((len(u), size))
        delta = np.zeros((len(u), size))
        for k in range(self.pivot + 1, size):
            alpha[:, k] = alpha[:, k - 1] + a[:, k - 1]
            delta[:, k] = delta[:, k - 1] - a[:, k - 1] * b[:, k - 1]
        for k in range(self.pivot - 1, -1, -1):
            alpha[:, k] = alpha[:, k + 1] - a[:, k]
            delta[:, k] = delta[:, k + 1] + a[:, k] * b[:, k]
        return alpha, delta

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        half = u.shape[1] // 2
        labels = self._labels(half + 1)
        a = np.exp(u[:, :half]) / scale
        b = u[:, half:] * scale + shift
        return {f"a_{s}": a[:, k] for k, s in enumerate(labels)} | {
            f"b_{s}": b[:, k] for k, s in enumerate(labels)
        }

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        labels = self._labels(size)
        a = columns(table, [f"a_{s}" for s in labels])
        b = columns(table, [f"b_{s}" for s in labels])
        return np.concatenate([np.log(a), b], axis=1)
