"""Predicted responses: probabilities of the categories given what is known of abilities.

Also the items' information and location.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, even_rule, gauss_hermite
from dynaesti.data import Responses
from dynaesti.estimation import ItemDrift, ItemNodes, ResponseCoding
from dynaesti.inference import Marginals
from dynaesti.model import ContinuousItemModel, ItemBank, ItemBlock


class Quadrature(NamedTuple):
    """Nodes and weights for integrals over a standard normal variable."""

    nodes: Array
    weights: Array


FINE = Quadrature(*gauss_hermite(31))  # of amounts
# Of categories: rules for chances that change within an ability's sd by up to so many logits, each
# exact to 1e-4. Newcomers' abilities are wide, and roll calls steep: one rule for all would be off
# by a tenth there, or slow everywhere.
RULES = (
    (1.0, Quadrature(*gauss_hermite(9))),
    (4.0, Quadrature(*even_rule(0.5))),
    (8.0, Quadrature(*even_rule(0.25))),
    (np.inf, Quadrature(*even_rule(0.1))),
)
BATCH = 4000  # responses at a time: tables of nodes stay small
MOST_COLUMNS = 12
ALIKE = 1e-9  # abilities closer than this are the same


@dataclass(frozen=True)
class Predictions:
    """Predicted responses, row by row.

    Parameters
    ----------
    expected, variance : array (n_responses,)
        Mean and variance of the response.
    given : array (n_responses,)
        Probability or density of the response given, NaN where there is none.
    chances : array (n_responses, most_categories)
        Probability of each category, NaN beyond an item's categories.
    below, upto : array (n_responses,)
        Probability of a smaller response than the one given, and of that or a smaller one; NaN
        where there is none, or the model has no distribution function.
    category : int array (n_responses,)
        Number of the category of the response given, −1 where there is none.
    """

    expected: Array
    variance: Array
    given: Array
    chances: Array
    below: Array
    upto: Array
    category: Ints

    @classmethod
    def empty(cls, n_responses: int, most_categories: int) -> Predictions:
        """Predictions to be filled in, NaN everywhere."""
        return cls(
            np.full(n_responses, np.nan),
            np.full(n_responses, np.nan),
            np.full(n_responses, np.nan),
            np.full((n_responses, most_categories), np.nan),
            np.full(n_responses, np.nan),
            np.full(n_responses, np.nan),
            np.full(n_responses, -1, dtype=np.int64),
        )

    def columns(
        self, more: Responses, order: Ints, coding: ResponseCoding, item: Ints
    ) -> dict[str, Any]:
        """Columns of a frame, rows in the given order.

        The columns p0, p1, … are the probabilities of the responses 0, 1, …; responses that were
        merged into one category have the same probability.
        """
        people = more.people.tolist()
        items = more.items.tolist()
        out: dict[str, Any] = {
            "id": [people[k] for k in more.person[order]],
            "item": [items[k] for k in more.item[order]],
        }
        if more.columns.get("time"):
            out["time"] = more.axis.restore(more.offsets[order])
        return out | self.response_columns(more.resp, order, coding, item)

    def response_columns(
        self, resp: Array, order: Ints, coding: ResponseCoding, item: Ints
    ) -> dict[str, Any]:
        """The columns of the responses alone: expected, (resp, p,) p0, p1, …; see `columns`."""
        out: dict[str, Any] = {"expected": self.expected[order]}
        if np.isfinite(resp).any():
            out["resp"] = resp[order]
            out["p"] = self.given[order]
        if coding.values.size > MOST_COLUMNS or not self.chances.shape[1]:
            return out
        code = coding.table[item[order]]  # (rows, values)
        for k, value in enumerate(coding.values):
            at = np.minimum(np.maximum(code[:, k], 0), self.chances.shape[1] - 1)
            out[f"p{value:g}"] = np.where(code[:, k] >= 0, self.chances[order, at], np.nan)
        return out


def with_drift(z: Marginals, drift: ItemDrift | None, item: Ints, times: Array) -> Marginals:
    """Abilities as items see them which have become easier or harder.

    Parameters
    ----------
    z : Marginals
        Standardised ability at each response, (n_kernels, n_responses).
    drift : ItemDrift or None
    item : int array (n_responses,)
        Number of each response's item in the bank.
    times : array (n_responses,)
        On the fit's clock.
    """
    if drift is None:
        return z
    easier = drift.at(item, times)
    return Marginals(z.weights, z.means + easier.mean, np.sqrt(z.sds**2 + easier.variance))


def predict_responses(
    bank: ItemBank,
    coding: ResponseCoding,
    item: Ints,
    resp: Array,
    z: Marginals,
    item_nodes: Sequence[ItemNodes] | None = None,
) -> Predictions:
    """Predict responses from what is known of the abilities at their times.

    Parameters
    ----------
    bank : ItemBank
        All items.
    coding : ResponseCoding
        Categories of the responses.
    item : int array (n_responses,)
        Number of each response's item in the bank.
    resp : array (n_responses,)
        The responses; NaN where none was given.
    z : Marginals
        Standardised ability at each response, (n_kernels, n_responses).
    item_nodes : sequence of ItemNodes, optional
        Points over which items are averaged, block by block. Default: items are as estimated.
    """
    block_of, index = bank.index_in_blocks()
    widest = max([b.size for b in bank.blocks if b.model.categorical] or [0])
    out = Predictions.empty(item.size, widest)
    steepness = bank.item_steepness[item] * np.max(z.sds, axis=0, initial=0.0)
    for k, block in enumerate(bank.blocks):
        nodes = None if item_nodes is None else item_nodes[k]
        for rows, rule in _batches(np.flatnonzero(block_of[item] == k), steepness):
            batch = _Batch(block, index[item[rows]], item[rows], resp[rows])
            if block.model.categorical:
                chances = _chances(bank, batch, z, rows, rule, nodes)
                out.chances[rows, : block.size] = chances
                moments = _category_moments(batch, coding, chances)
                out.category[rows] = _codes(coding, batch.item, batch.resp)
            else:
                abilities = _abilities_at_nodes(bank, z, rows, FINE)
                moments = _amount_moments(batch, coding, abilities)
            out.expected[rows] = moments.mean
            out.variance[rows] = np.maximum(moments.square - moments.mean**2, 0.0)
            is_given = np.isfinite(batch.resp)
            out.given[rows] = np.where(is_given, moments.given, np.nan)
            out.below[rows] = np.where(is_given, moments.below, np.nan)
            out.upto[rows] = np.where(is_given, moments.upto, np.nan)
    return out


@dataclass(frozen=True)
class _Batch:
    """Some responses to items of one block."""

    block: ItemBlock
    index: Ints  # (n_responses,) of the items within the block
    item: Ints  # (n_responses,) of the items in the bank
    resp: Array  # (n_responses,) NaN where none was given

    @cached_property
    def u(self) -> Array:
        """Unconstrained parameters of each response's item."""
        return self.block.u[self.index]

    @cached_property
    def values(self) -> Array:
        """Responses that the categories of each response's item stand for."""
        return self.block.values[self.index]


class _ResponseMoments(NamedTuple):
    """Mean and mean square of responses, and probability or density of those given.

    Also the probabilities of less than those given, and of that or less.
    """

    mean: Array
    square: Array
    given: Array
    below: Array
    upto: Array


def _batches(rows: Ints, steepness: Array) -> Iterator[tuple[Ints, Quadrature]]:
    """Batches of rows whose chances want the same rule, and that rule."""
    needed = np.searchsorted([steepest for steepest, _ in RULES], steepness[rows])
    for k, (_, rule) in enumerate(RULES):
        mine = rows[needed == k]
        for begin in range(0, mine.size, BATCH):
            yield mine[begin : begin + BATCH], rule


def _abilities_at_nodes(
    bank: ItemBank, z: Marginals, rows: Ints, rule: Quadrature
) -> list[tuple[Array, Array]]:
    """Weight (n_rows,) of each component, and abilities at its nodes (n_rows, n_nodes)."""
    weights, means, sds = z.weights[:, rows], z.means[:, rows], z.sds[:, rows]
    if np.allclose(means, means[:1], atol=ALIKE) and np.allclose(sds, sds[:1], atol=ALIKE):
        # of newcomers, say, who have the population's distribution under every kernel
        weights, means, sds = weights.sum(axis=0, keepdims=True), means[:1], sds[:1]
    return [
        (weight, bank.ability_scale.theta(mean[:, None] + sd[:, None] * rule.nodes))
        for weight, mean, sd in zip(weights, means, sds, strict=True)
    ]


def _chances(
    bank: ItemBank,
    batch: _Batch,
    z: Marginals,
    rows: Ints,
    rule: Quadrature,
    nodes: ItemNodes | None,
) -> Array:
    """Probability of each category, averaged over abilities and, with nodes, over items."""
    abilities = _abilities_at_nodes(bank, z, rows, rule)
    if nodes is None:
        return _category_chances(batch, batch.u, abilities, rule)
    total = np.zeros((batch.item.size, batch.block.depth))
    for u, weights in zip(nodes.u, nodes.weights, strict=True):
        chances = _category_chances(batch, u[batch.index], abilities, rule)
        total += weights[batch.index][:, None] * chances
    return total


def _category_chances(
    batch: _Batch, u: Array, abilities: list[tuple[Array, Array]], rule: Quadrature
) -> Array:
    """Probability of each category at parameters u, (n_responses, n_categories)."""
    chances = np.zeros((batch.item.size, batch.block.depth))
    for weight, theta in abilities:
        p = np.exp(batch.block.model.log_likelihood(u, theta)) @ rule.weights
        chances += weight[:, None] * p
    return chances


def _category_moments(batch: _Batch, coding: ResponseCoding, chances: Array) -> _ResponseMoments:
    """Moments of responses in categories."""
    code = _codes(coding, batch.item, batch.resp)
    given = np.where(code >= 0, chances[np.arange(code.size), np.maximum(code, 0)], 0.0)
    below = (chances * (batch.values < batch.values[np.arange(code.size), code, None])).sum(axis=1)
    return _ResponseMoments(
        (chances * batch.values).sum(axis=1),
        (chances * batch.values**2).sum(axis=1),
        given,
        below,
        below + given,
    )


def _amount_moments(
    batch: _Batch, coding: ResponseCoding, abilities: list[tuple[Array, Array]]
) -> _ResponseMoments:
    """Moments of responses that are amounts."""
    model = batch.block.model
    mean = np.zeros(batch.item.size)
    square = np.zeros(batch.item.size)
    given = np.zeros(batch.item.size)
    below = np.zeros(batch.item.size)
    upto = np.zeros(batch.item.size)
    for weight, theta in abilities:
        expected = model.expected(batch.u, theta, batch.values)
        variance = model.variance(batch.u, theta, batch.values)
        mean += weight * (expected @ FINE.weights)
        square += weight * ((expected**2 + variance) @ FINE.weights)
        given += weight * (np.exp(_log_likelihood_of_given(batch, coding, theta)) @ FINE.weights)
        resp = np.nan_to_num(batch.resp, nan=float(model.any_response))
        ends = None
        if isinstance(model, ContinuousItemModel):
            ends = model.cumulative(resp[:, None], expected, variance)
        for total, end in zip((below, upto), ends or (None, None), strict=True):
            total += np.nan if end is None else weight * (end @ FINE.weights)
    return _ResponseMoments(mean, square, given, below, upto)


def _codes(coding: ResponseCoding, item: Ints, resp: Array) -> Ints:
    """Category of each response, −1 where it has none."""
    at = np.clip(np.searchsorted(coding.values, np.nan_to_num(resp)), 0, coding.values.size - 1)
    return np.where(coding.values[at] == resp, coding.table[item, at], -1)


def _log_likelihood_of_given(batch: _Batch, coding: ResponseCoding, theta: Array) -> Array:
    """Log-likelihood of the responses given, at the nodes: (n_responses, n_nodes)."""
    model = batch.block.model
    if model.has_value_rows:
        code = np.maximum(_codes(coding, batch.item, batch.resp), 0).astype(np.float64)
    else:
        code = np.where(np.isfinite(batch.resp), batch.resp, model.any_response)
    return model.log_likelihood_of(batch.u, theta, code, batch.values)


def item_information(bank: ItemBank, z: Array) -> Array:
    """Fisher information of each item about z, (n_items, n_points)."""
    step = 1e-4  # of central differences
    out = np.empty((bank.item_count, z.size))
    for block in bank.blocks:
        theta = [bank.ability_scale.theta(z + d) for d in (-step, 0.0, step)]
        low, mid, high = (block.model.log_likelihood(block.u, t) for t in theta)
        slope = (high - low) / (2 * step)
        if block.model.has_value_rows:
            out[block.items] = (np.exp(mid) * slope**2).sum(axis=1)
        else:  # of a family in its mean: (dμ/dz)² / variance
            ends = [block.model.expected(block.u, t, block.values) for t in (theta[0], theta[2])]
            out[block.items] = ((ends[1] - ends[0]) / (2 * step)) ** 2 / block.model.variance(
                block.u, theta[1], block.values
            )
    return out


def item_locations(bank: ItemBank, gain: float, shift: float) -> Array:
    """Ability at which each item's mean response is half way between its lowest and highest.

    Parameters
    ----------
    bank : ItemBank
    gain, shift : float
        The reported scale, ability = gain · z + shift.

    Returns
    -------
    array (n_items,)
        NaN where it is beyond z = ± 5.
    """
    z = np.linspace(-5, 5, 201)
    theta = bank.ability_scale.theta(z)
    out = np.full(bank.item_count, np.nan)
    for block in bank.blocks:
        mean = block.model.expected(block.u, theta, block.values)
        low, high = (
            (block.values.min(axis=1), block.values.max(axis=1))
            if block.model.categorical
            else (mean[:, 0], mean[:, -1])
        )
        above = mean >= 0.5 * (low + high)[:, None]
        cross = above != above[:, :1]
        out[block.items] = np.where(
            cross.any(axis=1), shift + gain * z[cross.argmax(axis=1)], np.nan
        )
    return out
