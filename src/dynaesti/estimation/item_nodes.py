"""Points that stand for what is known of items with few responses, to predict with.

The parameters of an item that a few people met are known badly, and not as a normal distribution:
predictions at their maximum are too sure. Their posterior given everyone's abilities follows from
the expected counts, and is integrated by importance sampling: points drawn around the maximum by
its curvature, weighted by what the counts and the prior say. The prior's centre and spread are
learned again from the weighted points, since those of the fit rest on the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from dynaesti.core import Array
from dynaesti.estimation.m_step import update_block, without_empty_ends
from dynaesti.model import HYPER_ITEMS, ItemBank, ItemBlock

LOG2_NODES = 6  # 64 points an item
WIDER = 1.6  # spread of the points over that of the curvature: tails must be reached
ROUNDS = 30  # of EM for the prior's centre and spread
LEAST_SPREAD = 0.05  # of a prior: with few points an empty direction would collapse
CHUNK = 2000  # items at a time


@dataclass(frozen=True)
class ItemNodes:
    """Weighted points of the parameters of a block's items."""

    u: Array  # (n_nodes, n_items, n_parameters) unconstrained
    weights: Array  # (n_nodes, n_items) of sum 1 for each item

    def reflected(self, block: ItemBlock) -> ItemNodes:
        """The points on the reflected scale, θ → −θ."""
        return ItemNodes(np.stack([block.model.reflected(u) for u in self.u]), self.weights)

    def append(self, u: Array) -> ItemNodes:
        """The points with further items, known exactly, at their end."""
        n_nodes = self.u.shape[0]
        more = np.broadcast_to(u, (n_nodes, *u.shape))
        even = np.full((n_nodes, u.shape[0]), 1.0 / n_nodes)
        return ItemNodes(
            np.concatenate([self.u, more], axis=1), np.concatenate([self.weights, even], axis=1)
        )


def has_item_nodes(bank: ItemBank) -> bool:
    """Whether predictions need them: items have few responses each, all in categories."""
    return bank.learns_hyperpriors and all(
        block.model.categorical and not block.model.shares_thresholds for block in bank.blocks
    )


def item_nodes(bank: ItemBank, counts: Array, grid: Array) -> tuple[ItemNodes, ...]:
    """Weighted points of all items, block by block.

    Parameters
    ----------
    bank : ItemBank
        Items at their estimates.
    counts : array (n_rows, n_grid)
        Expected counts at these items.
    grid : array (n_grid,)
        Standardised abilities.
    """
    counts, grid = without_empty_ends(counts, grid)
    theta = bank.ability_scale.theta(grid)
    return tuple(
        _nodes_of(block, np.ascontiguousarray(counts[block.first_row : block.end_row]), theta)
        for block in bank.blocks
    )


def _nodes_of(block: ItemBlock, counts: Array, theta: Array) -> ItemNodes:
    curvature = update_block(block, counts, theta)[1]
    values, vectors = np.linalg.eigh(np.where(_both(block), curvature, np.eye(block.u.shape[1])))
    spread = vectors / np.sqrt(np.maximum(values, 1e-8))[:, None, :]
    e = WIDER * _normal_points(block.u.shape[1])
    off = np.einsum("ipq,kq->kip", spread, e) * block.free
    u = np.stack([block.clipped(block.u + one) for one in off])
    shaped = counts.reshape(len(block.u), block.depth, -1)
    log_weights = np.stack([_log_likelihood(block, one, shaped, theta) for one in u])
    log_weights += 0.5 * (e**2).sum(axis=1)[:, None] / WIDER**2
    weights = _weights_under_prior(block, u, log_weights)
    # files keep them in single precision: so a fit predicts alike before it is saved
    return ItemNodes(
        u.astype(np.float32).astype(np.float64), weights.astype(np.float32).astype(np.float64)
    )


def _both(block: ItemBlock) -> Array:
    """Pairs of parameters that are free, (n_items, n_parameters, n_parameters)."""
    return np.asarray(block.free[:, :, None] & block.free[:, None, :])


def _normal_points(width: int) -> Array:
    """Low-discrepancy standard normal points, the same each time: (n_nodes, width)."""
    return np.asarray(
        ndtri(qmc.Sobol(width, rng=np.random.default_rng(1)).random_base2(LOG2_NODES))
    )


def _log_likelihood(block: ItemBlock, u: Array, counts: Array, theta: Array) -> Array:
    """Expected log-likelihood of every item at parameters u: (n_items,)."""
    parts = [slice(a, a + CHUNK) for a in range(0, len(u), CHUNK)]
    return np.concatenate(
        [(block.model.log_likelihood(u[p], theta) * counts[p]).sum(axis=(1, 2)) for p in parts]
    )


def _weights_under_prior(block: ItemBlock, u: Array, log_weights: Array) -> Array:
    """Weights of the points under a normal prior, whose centre and spread they teach by EM."""
    mean, sd = block.prior_mean, np.where(np.isfinite(block.prior_sd), block.prior_sd, 1e6)
    rounds = ROUNDS if len(block.u) >= HYPER_ITEMS else 1
    for _ in range(rounds):
        total = log_weights - 0.5 * (((u - mean) / sd) ** 2 * block.free).sum(axis=2)
        weights = np.exp(total - total.max(axis=0))
        weights /= weights.sum(axis=0)
        n_free = np.maximum(block.free.sum(axis=0), 1)
        mean = np.einsum("ki,kip,ip->p", weights, u, block.free) / n_free
        square = np.einsum("ki,kip,ip->p", weights, (u - mean) ** 2, block.free) / n_free
        sd = np.maximum(np.sqrt(square), LEAST_SPREAD)
    return np.asarray(weights)
