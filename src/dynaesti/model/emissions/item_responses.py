"""Responses to items with known parameters as an emission family."""

from typing import Any

import numpy as np

from dynaesti.core import Array, Ints, as_numbers, as_vector, raise_where
from dynaesti.errors import InputError
from dynaesti.model.emissions.base import Emissions, as_counts, first_equal_row
from dynaesti.model.items.registry import item_model
from dynaesti.model.links import LinkedPoints

KNOWN_ITEMS = {
    "2PL": ("a", "b"),
    "3PL": ("a", "b", "c"),
    "4PL": ("a", "b", "c", "d"),
    "GRM": ("a", "b"),
    "GPCM": ("a", "b"),
}


class ItemResponses(Emissions):
    """Responses to items with known parameters; the curve y is the ability θ.

    "2PL": P(1 | θ) = σ(a (θ − b)). "3PL": c + (1 − c) σ(a (θ − b)). "4PL": c + (d − c)
    σ(a (θ − b)). "GRM" (graded response): P(resp ≥ k | θ) = σ(a (θ − b_k)). "GPCM" (generalised
    partial credit): P(k | θ) ∝ exp Σ_{v=1…k} a (θ − b_v).

    Parameters
    ----------
    resp : array (n,)
        Categories, counted from 0.
    model : {"2PL", "3PL", "4PL", "GRM", "GPCM"}
        The item model.
    **params : array (n,) or float
        Item parameters of each response, by name: slope `a`, difficulty `b` (larger is harder),
        guessing `c` and upper limit `d` with 0 ≤ c < d ≤ 1. For GRM and GPCM `b` has shape (K,) or
        (n, K); for GRM it increases and `a` is positive.

    Raises
    ------
    InputError
        If the model is unknown, or parameters or responses do not fit it.

    Examples
    --------
    >>> import dynaesti as dy
    >>> answers = dy.ItemResponses([1, 0, 1], "2PL", a=1.2, b=[-1.0, 0.0, 1.0])
    >>> len(answers)
    3
    """

    kind = "item_responses"
    discrete = True

    def __init__(self, resp: Any, model: str, **params: Any) -> None:
        if model not in KNOWN_ITEMS:
            raise InputError(
                f"ItemResponses: no item model {model!r}; there are {', '.join(KNOWN_ITEMS)}"
            )
        self.name = model
        self.names = KNOWN_ITEMS[model]
        self.thresholds = model in ("GRM", "GPCM")
        if set(params) != set(self.names):
            raise InputError(
                f"ItemResponses: a {model} item takes {', '.join(self.names)}; got "
                f"{', '.join(params) or 'none'}"
            )
        self.resp = as_counts(resp, "ItemResponses resp")
        self.params = tuple(self._parameter(name, params[name]) for name in self.names)
        top = self.params[-1].shape[1] if self.thresholds else 1
        raise_where(
            self.resp > top,
            "ItemResponses resp",
            f"above the item's highest category {top}",
            "recode from 0",
        )
        self._check_bounds(dict(zip(self.names, self.params, strict=True)))
        self.model = item_model(model, signed=True)
        steps = {f"b{k + 1}": self.params[1][:, k] for k in range(top)} if self.thresholds else {}
        self.u = self.model.unconstrain(
            dict(zip(self.names, self.params, strict=True)) | steps, top + 1
        )

    def _parameter(self, name: str, value: Any) -> Array:
        """One parameter as an array (n,), or (n, K) for thresholds."""
        label = f"ItemResponses {name}"
        n = len(self)
        if name != "b" or not self.thresholds:
            return as_vector(value, label, n)
        matrix = as_numbers(value, label)
        matrix = np.broadcast_to(matrix, (n, matrix.shape[-1])) if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or len(matrix) != n:
            raise InputError(f"{label}: shape {matrix.shape} for {n} answers; give (K,) or (n, K)")
        return np.ascontiguousarray(matrix)

    def _check_bounds(self, params: dict[str, Array]) -> None:
        """Refuse parameters that are no item of the model."""
        if self.thresholds:
            bad = np.asarray(~np.isfinite(params["b"]).all(axis=1))
            if self.name == "GRM":
                bad |= (np.diff(params["b"], axis=1) <= 0).any(axis=1)
                raise_where(
                    params["a"] <= 0,
                    "ItemResponses a",
                    "not positive",
                    "a graded item needs a positive slope",
                )
            raise_where(
                bad, "ItemResponses b", "not finite rising thresholds", "sort the thresholds"
            )
        if "c" in params:
            upper = params.get("d", np.ones(len(self)))
            raise_where(
                (params["c"] < 0) | (params["c"] >= upper) | (upper > 1),
                "ItemResponses c (and d)",
                "outside 0 ≤ c < d ≤ 1",
                "give probabilities",
            )

    def __len__(self) -> int:
        return self.resp.size

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        theta = np.asarray(at.y).reshape(rows.size, -1)
        every = self.model.log_likelihood(self.u[rows], theta)
        return every[np.arange(rows.size), self.resp[rows].astype(np.int64)].reshape(np.shape(at.y))

    def unique_index(self) -> Ints:
        return first_equal_row([self.resp, *self.params])

    def take(self, rows: Ints) -> "ItemResponses":
        chosen = dict(zip(self.names, (p[rows] for p in self.params), strict=True))
        return ItemResponses(self.resp[rows], self.name, **chosen)
