"""What is expected of answers.

Chances of each category under what is known of abilities, and items' information.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Responses
from dynaesti.estimation import ResponseCoding
from dynaesti.inference import Marginals
from dynaesti.model import CustomItemModel, ItemBank, ItemBlock

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / np.sqrt(2 * np.pi)
BLOCK = 4000  # answers at a time
MOST_COLUMNS = 12


@dataclass(frozen=True)
class Predictions:
    """Row by row: mean response, its variance, chance (or density) of the response given, chances
    of the categories (NaN beyond them).
    """

    expected: Array
    variance: Array
    given: Array  # NaN where no response was given
    chances: Array  # (answers, most categories)

    def columns(
        self, more: Responses, order: Ints, coding: ResponseCoding, item: Ints
    ) -> dict[str, Any]:
        """Columns of a frame, rows in the given order.

        P1, p2, … are chances of the responses 1, 2, … (merged ones share theirs).
        """
        people = more.people.tolist()
        items = more.items.tolist()
        out: dict[str, Any] = {
            "id": [people[k] for k in more.person[order]],
            "item": [items[k] for k in more.item[order]],
        }
        if more.columns.get("time"):
            out["time"] = more.axis.restore(more.offsets[order])
        out["expected"] = self.expected[order]
        if np.isfinite(more.resp).any():
            out["resp"] = more.resp[order]
            out["p"] = self.given[order]
        if coding.values.size > MOST_COLUMNS or not self.chances.shape[1]:
            return out
        code = coding.table[item[order]]  # (rows, values)
        for k, value in enumerate(coding.values):
            at = np.minimum(np.maximum(code[:, k], 0), self.chances.shape[1] - 1)
            out[f"p{value:g}"] = np.where(code[:, k] >= 0, self.chances[order, at], np.nan)
        return out


def predict_responses(
    bank: ItemBank, coding: ResponseCoding, item: Ints, more: Responses, z: Marginals
) -> Predictions:
    """Chances of answers whose ability z has the mixture's distribution."""
    block_of, place = bank.index_in_blocks()
    widest = max([b.size for b in bank.blocks if b.model.categorical] or [0])
    n = item.size
    out = Predictions(
        np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan), np.full((n, widest), np.nan)
    )
    answered = np.isfinite(more.resp)
    for k, block in enumerate(bank.blocks):
        for part in _parts(np.flatnonzero(block_of[item] == k)):
            u = block.u[place[item[part]]]
            values = block.values[place[item[part]]]
            rows_mean = (
                np.zeros((part.size, block.depth))
                if block.model.categorical
                else np.zeros((part.size, 0))
            )
            mean = np.zeros(part.size)
            square = np.zeros(part.size)
            chance = np.zeros(part.size)
            for c in range(len(z.weights)):
                weight = z.weights[c, part]
                theta = bank.ability_scale.theta(
                    z.means[c, part][:, None] + z.sds[c, part][:, None] * NODES
                )
                basis = block.model.log_likelihood(u, theta)
                if block.model.categorical:
                    p = np.exp(basis) @ WEIGHTS
                    rows_mean += weight[:, None] * p
                    continue
                level = block.model.expected(u, theta, values)
                mean += weight * (level @ WEIGHTS)
                square += weight * ((level**2 + block.model.variance(u, theta, values)) @ WEIGHTS)
                chance += weight * (
                    np.exp(_own_terms(block, coding, item[part], more.resp[part], values, basis))
                    @ WEIGHTS
                )
            if block.model.categorical:
                out.chances[part, : block.size] = rows_mean
                mean = (rows_mean * values).sum(axis=1)
                square = (rows_mean * values**2).sum(axis=1)
                code = _codes(coding, item[part], more.resp[part])
                chance = np.where(
                    code >= 0, rows_mean[np.arange(part.size), np.maximum(code, 0)], 0.0
                )
            out.expected[part] = mean
            out.variance[part] = np.maximum(square - mean**2, 0.0)
            out.given[part] = np.where(answered[part], chance, np.nan)
    return out


def _parts(rows: Ints) -> list[Ints]:
    return [rows[a : a + BLOCK] for a in range(0, rows.size, BLOCK)]


def _codes(coding: ResponseCoding, item: Ints, resp: Array) -> Ints:
    """Category of each response, −1 where it has none."""
    at = np.clip(np.searchsorted(coding.values, np.nan_to_num(resp)), 0, coding.values.size - 1)
    return np.where(coding.values[at] == resp, coding.table[item, at], -1)


def _own_terms(
    block: ItemBlock, coding: ResponseCoding, item: Ints, resp: Array, values: Array, basis: Array
) -> Array:
    """Log-likelihood of amounts at the nodes: (answers, nodes)."""
    if isinstance(block.model, CustomItemModel):
        return np.asarray(basis[np.arange(item.size), np.maximum(_codes(coding, item, resp), 0)])
    filler = 0.5 if block.model.name == "beta" else 0.0
    terms, constant = block.model.terms(np.where(np.isfinite(resp), resp, filler), values)
    return np.asarray(np.einsum("nr,nrg->ng", terms, basis) + constant[:, None])


def item_information(bank: ItemBank, z: Array) -> Array:
    """Fisher information of each item about z: (items, points)."""
    step = 1e-4
    out = np.empty((bank.item_count, z.size))
    for block in bank.blocks:
        theta = [bank.ability_scale.theta(z + d) for d in (-step, 0.0, step)]
        low, mid, high = (block.model.log_likelihood(block.u, t) for t in theta)
        slope = (high - low) / (2 * step)
        if block.model.categorical or isinstance(block.model, CustomItemModel):
            out[block.items] = (np.exp(mid) * slope**2).sum(axis=1)
        else:  # of a family in its mean: (dμ/dz)² / variance
            ends = [block.model.expected(block.u, t, block.values) for t in (theta[0], theta[2])]
            out[block.items] = ((ends[1] - ends[0]) / (2 * step)) ** 2 / block.model.variance(
                block.u, theta[1], block.values
            )
    return out


def item_locations(bank: ItemBank, gain: float, shift: float) -> Array:
    """Ability at which each item's mean response is half way between its ends, reported as gain · z
    + shift; NaN beyond ± 5.
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
