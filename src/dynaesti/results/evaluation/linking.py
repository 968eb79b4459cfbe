"""Linking: two fits of different people or times on one scale, by the items that both have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from dynaesti.core import Array, Ints, gauss_hermite
from dynaesti.data import count_noun, make_frame
from dynaesti.errors import InputError
from dynaesti.results.fit_base import FitBase

METHODS = ("stocking-lord", "haebara", "mean-sigma")
NODES = 41  # of the abilities over which response functions are compared
FEWEST = 2  # common items; with one there is no unit
DRIFTED = 3.0  # robust standard deviations of the anchors' differences
LEAST_DRIFT = 0.15  # difference of locations, on the scale of abilities, that matters at all


@dataclass(frozen=True)
class Linking:
    """How the scale of one fit is put on that of another: ability = slope · ability + intercept.

    Parameters
    ----------
    slope, intercept : float
        Of the linear map from the second fit's abilities to the first one's scale.
    method : str
    anchors : frame
        One row for each common item: item, location (in the first fit), linked (in the second, on
        the first one's scale), difference, and drifted, whether the item differs from the others
        so much that it should not be an anchor.
    used : int
        Number of anchors that the map rests on.
    """

    slope: float
    intercept: float
    method: str
    anchors: Any
    used: int

    def abilities(self, values: Any) -> Array:
        """Abilities of the second fit on the scale of the first."""
        return np.asarray(self.slope * np.asarray(values, dtype=np.float64) + self.intercept)

    def __repr__(self) -> str:
        return (
            f"<Linking by {self.method}: ability × {self.slope:.4f} {self.intercept:+.4f}, by "
            f"{count_noun(self.used, 'anchors')}>"
        )


def link(
    first: FitBase, second: FitBase, *, method: str = "stocking-lord", purify: bool = True
) -> Linking:
    """Put the scale of a fit on that of another, by the items that they have in common.

    Parameters
    ----------
    first, second : Fit or ShardedFit
        The fit whose scale is kept, and the one that is put on it.
    method : {"stocking-lord", "haebara", "mean-sigma"}, default "stocking-lord"
        What is made alike: the expected score of the common items over ability, each item's
        expected response, or mean and standard deviation of the locations.
    purify : bool, default True
        Whether items that differ from the other anchors are left out, and the rest linked again.

    Returns
    -------
    Linking

    Raises
    ------
    InputError
        If the fits have fewer than two items in common that can be compared.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=60, items=6, per_person=12, seed=1).table
    >>> fit = dy.DynAEsti("2PL", bandwidth=float("inf")).fit(table)
    >>> found = dy.evaluation.link(fit, fit)
    >>> round(found.slope, 6), abs(round(found.intercept, 6))
    (1.0, 0.0)
    """
    if method not in METHODS:
        raise InputError(f"method: {method!r} is none of {', '.join(METHODS)}")
    labels, pairs = _common(first, second)
    kept = np.ones(len(labels), dtype=bool)
    while True:
        slope, intercept = _linear_map(first, second, pairs[:, kept], method)
        location = _locations(first, pairs[0])
        linked = slope * _locations(second, pairs[1]) + intercept
        difference = linked - location
        drifted = _outlying(difference, kept) if purify else np.zeros(kept.size, dtype=bool)
        if not (drifted & kept).any() or (kept & ~drifted).sum() < FEWEST:
            break
        kept &= ~drifted
    anchors = {
        "item": labels,
        "location": location,
        "linked": linked,
        "difference": difference,
        "drifted": drifted | ~kept,
    }
    return Linking(slope, intercept, method, make_frame(anchors, first.frame), int(kept.sum()))


def _common(first: FitBase, second: FitBase) -> tuple[list[Any], Ints]:
    """Labels of the common items, and their numbers in both fits, (2, n_items)."""
    names = {str(label): k for k, label in enumerate(second.item_labels.tolist())}
    labels = first.item_labels.tolist()
    pairs = [(k, names[str(label)]) for k, label in enumerate(labels) if str(label) in names]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    usable = np.isfinite(_locations(first, found[0]) + _locations(second, found[1]))
    usable &= _sizes(first, found[0]) == _sizes(second, found[1])
    if usable.sum() < FEWEST:
        raise InputError(
            f"linking: the fits have {count_noun(int(usable.sum()), 'items')} in common that can "
            f"be compared; it takes {FEWEST} or more"
        )
    kept = found[:, usable]
    return [labels[k] for k in kept[0]], kept


def _sizes(fit: FitBase, items: Ints) -> Ints:
    """Number of categories of items, 0 for amounts."""
    block_of, _ = fit.item_index
    sizes = np.array([b.size if b.model.categorical else 0 for b in fit.bank.blocks])
    return np.asarray(sizes[block_of[items]])


def _locations(fit: FitBase, items: Ints) -> Array:
    """Ability at which the mean response is half way, on the reported scale."""
    from dynaesti.results.predictions import item_locations

    return np.asarray(item_locations(fit.bank, fit.gain, fit.shift)[items])


def _expected(fit: FitBase, items: Ints, ability: Array) -> Array:
    """Mean response of items at reported abilities, (n_items, n_abilities)."""
    theta = fit.bank.ability_scale.theta((ability - fit.shift) / fit.gain)
    out = np.empty((fit.bank.item_count, theta.size))
    for block in fit.bank.blocks:
        out[block.items] = block.model.expected(block.u, theta, block.values)
    return out[items]


def _linear_map(first: FitBase, second: FitBase, pairs: Ints, method: str) -> tuple[float, float]:
    """Slope and intercept by which some common items agree best."""
    one, other = _locations(first, pairs[0]), _locations(second, pairs[1])
    spread = float(np.std(other))
    slope = float(np.std(one)) / spread if spread > 0 else 1.0
    start = np.array([np.log(slope if slope > 0 else 1.0), one.mean() - slope * other.mean()])
    if method == "mean-sigma":
        return float(np.exp(start[0])), float(start[1])
    nodes, weights = gauss_hermite(NODES)
    ability = first.shift + first.gain * nodes
    here = _expected(first, pairs[0], ability)

    def residuals(x: Array) -> Array:
        there = _expected(second, pairs[1], (ability - x[1]) / np.exp(x[0]))
        apart = here - there
        if method == "stocking-lord":
            apart = apart.sum(axis=0, keepdims=True)
        return np.asarray((apart * np.sqrt(weights)).ravel())

    found = least_squares(residuals, start, x_scale=np.array([0.1, 0.1 * first.gain])).x
    return float(np.exp(found[0])), float(found[1])


def _outlying(difference: Array, kept: Any) -> Any:
    """Anchors that lie far from the others, by their median and median distance from it."""
    middle = np.median(difference[kept])
    distance = np.abs(difference - middle)
    spread = 1.4826 * float(np.median(distance[kept]))
    return distance > max(DRIFTED * spread, LEAST_DRIFT)
