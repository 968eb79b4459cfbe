"""Items that a fit has never seen, learned from answers of people whose abilities it knows; all that was learned before stays.

As with new questions in a running test: each answer's ability is known from the person's other answers up to a Gaussian mixture, and EM
over the new items alone fits them to it, under the priors of the items that are there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dynaesti.arrays import Array, Ints
from dynaesti.bank import Bank, Block
from dynaesti.coding import Coding
from dynaesti.errors import InputError
from dynaesti.expectation import ability_grid
from dynaesti.fitfile import Common
from dynaesti.items import OwnModel
from dynaesti.labels import Labels, as_labels, look_up
from dynaesti.mixtures import Mixture
from dynaesti.responses import Responses

ADMIT = "; new_items=True lets new ones in"
ROUNDS, STILL = 50, 1e-3  # of EM, and the largest step at rest
PART = 4_000_000  # numbers at a time


def newcomers(items: Labels, more: Responses) -> tuple[Labels, Ints, Ints]:
    """All items' labels, new ones last; the number of each of the data's items among them; and which answers are to new ones."""
    place = look_up(items, more.items.tolist())
    strange = np.flatnonzero(place < 0)
    place[strange] = items.size + np.arange(strange.size)
    labels = as_labels([*items.tolist(), *(more.items.tolist()[k] for k in strange)]) if strange.size else items
    return labels, place, np.flatnonzero(place[more.item] >= items.size)


def more_models(models: Labels | None, size: int) -> Labels | None:
    """Names of the items' models, where the data gave them, with those of new items."""
    return None if models is None else np.concatenate([models, np.repeat(models[:1], size - models.size)])


def with_new_items(fit: Common, answers: Responses, z: Mixture) -> dict[str, Any]:
    """Coding, bank and covariance of a fit with the items that are new in `answers`, which are to these alone.

    `z`: the ability at each answer, in the bank's units, as it is known without these answers.
    """
    pattern = _pattern(fit.coding)
    count = answers.items.size - len(fit.coding.models)
    coding = replace(fit.coding, table=np.concatenate([fit.coding.table, np.tile(fit.coding.table[pattern], (count, 1))]),
                     models=fit.coding.models + (fit.coding.models[pattern],) * count)
    block_of, place = fit.bank.place_of_items()
    number = int(block_of[pattern])
    block = fit.bank.blocks[number]
    fitted, curvature = _calibrated(fit.bank, block, int(place[pattern]), coding, answers, z, fit.options["farthest"])
    covariance = None
    if fit.covariance is not None:
        old = fit.covariance[number]
        new = np.zeros((count, *old.shape[1:]))
        width = fitted.u.shape[1]
        new[:, :width, :width] = np.linalg.pinv(curvature, hermitian=True)
        new[:, width:, width:] = old[:1, width:, width:]  # a unit that all items share
        covariance = (*fit.covariance[:number], np.concatenate([old, new]), *fit.covariance[number + 1:])
    return {"coding": coding, "bank": _grown(fit.bank, number, fitted), "covariance": covariance}


def _pattern(coding: Coding) -> int:
    """The item that new ones are coded like: one with the commonest categories."""
    kinds = {(type(model), model.signed) for model in coding.models}
    if len(kinds) > 1:
        raise InputError(f"item: new items cannot join, since items here have {len(kinds)} models and theirs is not known; fit again with "
                         "them")
    rows = [tuple(row) for row in coding.table.tolist()]
    return rows.index(Counter(rows).most_common(1)[0][0])


def _calibrated(bank: Bank, block: Block, like: int, coding: Coding, answers: Responses, z: Mixture, farthest: float
                ) -> tuple[Block, Array]:
    """The new items as a block of their own, and the curvature of each one's log posterior."""
    first = bank.item_count
    count = answers.items.size - first
    leaning = block.leaning
    new = Block(block.model, block.size, first + np.arange(count), 0, np.tile(np.median(block.u, axis=0), (count, 1)),
                np.ones((count, block.u.shape[1]), dtype=bool), np.tile(block.values[like], (count, 1)), leaning.centre, leaning.spread)
    grid = ability_grid(bank, farthest)
    theta, item = bank.metric.theta(grid), answers.item - first
    terms = _terms(block, coding.code(answers, answers.item))
    weight = np.ones(len(answers)) if answers.weight is None else answers.weight
    curvature = np.zeros((count, block.u.shape[1], block.u.shape[1]))
    for _ in range(ROUNDS):
        counts = _expected_counts(new, item, terms, weight, z, grid, theta)
        moved, curvature = new.improved(counts.reshape(-1, grid.size), theta)
        if block.model.shared:  # thresholds are those of the items that are there
            moved = replace(moved, u=moved.u.mean(axis=1, keepdims=True) + block.u[:1] - block.u[:1].mean())
        step, new = float(np.abs(moved.u - new.u).max()), moved
        if step < STILL:
            break
    return new, curvature


def _terms(block: Block, code: Array) -> Array:
    """Coefficients of an item's rows in each answer's log-likelihood: (answers, rows)."""
    if block.model.categorical or isinstance(block.model, OwnModel):
        return np.eye(block.depth)[code.astype(np.int64)]
    return block.model.terms(code)[0]


def _expected_counts(block: Block, item: Ints, terms: Array, weight: Array, z: Mixture, grid: Array, theta: Array) -> Array:
    """Expected sums of the terms' coefficients on the grid: (items, rows, points)."""
    rows = block.rows(theta).reshape(len(block.u), block.depth, grid.size)
    out = np.zeros(rows.shape)
    size = max(1, PART // (grid.size * max(block.depth, len(z.means))))
    for a in range(0, item.size, size):
        part = slice(a, a + size)
        away = (grid - z.means[:, part, None]) / z.sds[:, part, None]
        with np.errstate(divide="ignore"):
            log_p = logsumexp(np.log(z.weights[:, part, None] / z.sds[:, part, None]) - 0.5 * away**2, axis=0)
        log_p += weight[part, None] * np.einsum("ar,arg->ag", terms[part], rows[item[part]])
        p = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        order = np.argsort(item[part], kind="stable")
        mine, begin = np.unique(item[part][order], return_index=True)
        for r in range(block.depth):
            share = (weight[part] * terms[part, r])[order, None] * p[order]
            out[mine, r] += np.add.reduceat(share, begin, axis=0)
    return out


def _grown(bank: Bank, number: int, new: Block) -> Bank:
    """The bank with further items in one of its blocks; rows of later ones move on."""
    blocks: list[Block] = []
    for k, block in enumerate(bank.blocks):
        first_row = blocks[-1].end_row if blocks else 0
        if k == number:
            block = replace(block, items=np.concatenate([block.items, new.items]), u=np.concatenate([block.u, new.u]),
                            free=np.concatenate([block.free, new.free]), values=np.concatenate([block.values, new.values]))
        blocks.append(replace(block, first_row=first_row))
    return replace(bank, blocks=tuple(blocks))
