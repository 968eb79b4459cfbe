"""The direction of a scale on which items may run backwards, and a fit on the reflected scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Array
from dynaesti.data import index_of
from dynaesti.estimation import ItemNodes
from dynaesti.results.abilities import people_and_times
from dynaesti.results.fit import Fit
from dynaesti.results.fit_base import FitBase


def is_positively_oriented(
    fit: FitBase, orient: Mapping[str, Any] | None, holder: Fit | None
) -> bool:
    """Whether the scale has the direction that it should.

    Parameters
    ----------
    fit : FitBase
    orient : mapping or None
        ``{"item": label}``: this item's slope should be positive; ``{"id": label}``: this person's
        mean ability should be; None: the mean slope should be.
    holder : Fit or None
        The fit that has the person to orient by.
    """
    free = all(block.model.has_signed_slopes for block in fit.bank.blocks)
    if not free or fit.bank.ability_scale.free_location:
        return True
    signs = np.empty(fit.item_labels.size)
    for block in fit.bank.blocks:
        signs[block.items] = block.model.slope_sign(block.u)
    if orient is None:
        return bool(signs.mean() >= 0)
    if "item" in orient:
        return bool(signs[index_of(fit.item_labels, [orient["item"]], "orient")[0]] >= 0)
    assert holder is not None
    person, offsets = people_and_times(holder, None, [orient["id"]])
    mix = holder.marginals(person, offsets)
    return bool((mix.weights * mix.means).sum(axis=0).mean() >= 0)


def reflected(fit: Fit) -> Fit:
    """The fit on the reflected scale, θ → −θ."""
    ep = tuple(result.reflected() for result in fit.ep)
    return replace(
        fit,
        bank=fit.bank.reflected(),
        priors=fit.priors.reflected(),
        ep=ep,
        covariance=reflect_covariance(fit),
        scale_covariance=reflect_scale_covariance(fit),
        item_nodes=reflect_item_nodes(fit),
        item_drift=None if fit.item_drift is None else fit.item_drift.reflected(),
    )


def reflect_covariance(fit: FitBase) -> tuple[Array, ...] | None:
    """The items' covariances on the reflected scale."""
    if fit.covariance is None:
        return None
    flips = [np.sign(_flip(block)) for block in fit.bank.blocks]
    return tuple(
        cov * flip[:, None] * flip for cov, flip in zip(fit.covariance, flips, strict=True)
    )


def reflect_scale_covariance(fit: FitBase) -> Array | None:
    """The covariance of the abilities' zero and unit on the reflected scale."""
    return (
        None
        if fit.scale_covariance is None
        else fit.scale_covariance * np.array([[1.0, -1.0], [-1.0, 1.0]])
    )


def reflect_item_nodes(fit: FitBase) -> tuple[ItemNodes, ...] | None:
    """The items' weighted points on the reflected scale."""
    if fit.item_nodes is None:
        return None
    pairs = zip(fit.item_nodes, fit.bank.blocks, strict=True)
    return tuple(nodes.reflected(block) for nodes, block in pairs)


def _flip(block: Any) -> Any:
    """Sign of each parameter on the reflected scale: +1 if it stays, −1 if it changes."""
    one = np.ones((1, block.u.shape[1]))
    return block.model.reflected(one)[0]
