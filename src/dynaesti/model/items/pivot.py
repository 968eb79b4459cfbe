"""Partial credit with steps counted from a pivot, as par in golf."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools
from dynaesti.errors import InputError
from dynaesti.model.items.base import NormalPrior, columns
from dynaesti.model.items.polytomous import Softmax


@dataclass(frozen=True)
class PivotPartialCredit(Softmax):
    """Partial credit built outward from a pivot (par).

    Each step away from it has a slope a > 0 and a difficulty b of its own.

    log odds against the pivot: ω_s = sgn(s) Σ a_v (θ − b_v) over the steps v between it and s.
    `par` gives each item's pivot response (by default its most frequent one). Higher responses are
    worse (strokes) unless `descending` is False.
    """

    par: Mapping[object, float] | None = None
    descending: bool = True
    pivot: int = 0  # category of the pivot, filled in when items are grouped

    name = "golf"

    def __post_init__(self) -> None:
        if self.par is not None and not isinstance(self.par, Mapping):
            raise InputError(f"par: expected item → pivot response, got {self.par!r}")

    def __hash__(self) -> int:
        return hash((self.name, self.signed, self.descending, self.pivot))

    def _sides(self, size: int) -> Array:
        """The other categories with signs: −1 below the pivot, +1 above."""
        k = np.delete(np.arange(size), self.pivot)
        return np.sign(k - self.pivot).astype(np.float64)

    def _labels(self, size: int) -> list[str]:
        k = np.delete(np.arange(size), self.pivot) - self.pivot
        return [f"{'p' if s > 0 else 'm'}{abs(s)}" for s in k]

    def parameter_names(self, size: int) -> tuple[str, ...]:
        labels = self._labels(size)
        return (*(f"log_a_{s}" for s in labels), *(f"b_{s}" for s in labels))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (NormalPrior(-0.7, 0.7, "log slope"),) * (size - 1) + (
            NormalPrior(0.0, 4.0, "location"),
        ) * (size - 1)

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        size = share.shape[1]
        smooth = np.log(share + 0.002)
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
