"""Points that stand for what is known of items with few responses, to predict with.

The parameters of an item that a few people met are known badly, and not as a normal distribution:
predictions at their maximum are too sure. Their posterior given everyone's abilities follows from
the expected counts, and is integrated by importance sampling: points drawn around the maximum by
its curvature, then around the mean that these have, weighted by what the counts and the prior say.
The prior is learned again, from weighted points of a sample of the items, since that of the fit
rests on the curvature and is a single normal distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from dynaesti.core import Array
from dynaesti.estimation.item_prior_mixture import learn_item_prior, posterior_weights
from dynaesti.estimation.m_step import update_block, without_empty_ends
from dynaesti.model import ItemBank, ItemBlock

LOG2_FIRST = 8  # 256 points an item to find where its posterior is
LOG2_NODES = 6  # 64 points to keep
LEARNERS = 1500  # items, at most, from which the prior is learned
FINEST = 400  # points of the grid of ability on which responses are weighed
# Spread of the points, over that of the curvature and then of the posterior: tails must be reached.
WIDER_FIRST = 1.6
WIDER = 1.3
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
    counts, grid = coarser(*without_empty_ends(counts, grid))
    theta = bank.ability_scale.theta(grid)
    return tuple(
        _nodes_of(block, np.ascontiguousarray(counts[block.first_row : block.end_row]), theta)
        for block in bank.blocks
    )


def _nodes_of(block: ItemBlock, counts: Array, theta: Array) -> ItemNodes:
    """Points of a block's items, about the maxima and then about the means of their posteriors."""
    curvature = update_block(block, counts, theta)[1]
    shaped = counts.reshape(len(block.u), block.depth, -1)
    root = _inverse_root(block, curvature)
    u, log_weights = _drawn(block, block.u, root, LOG2_FIRST, WIDER_FIRST, (shaped, theta))
    some = np.linspace(0, len(block.u) - 1, min(len(block.u), LEARNERS)).astype(np.int64)
    prior = learn_item_prior(block, some, u[:, some], log_weights[:, some])
    weights = posterior_weights(prior, u, log_weights, block.free).sum(axis=0)
    mean, covariance = _moments(u, weights)
    u, log_weights = _drawn(
        block, mean, _root(block, covariance), LOG2_NODES, WIDER, (shaped, theta)
    )
    weights = posterior_weights(prior, u, log_weights, block.free).sum(axis=0)
    # files keep them in single precision: so a fit predicts alike before it is saved
    return ItemNodes(
        u.astype(np.float32).astype(np.float64), weights.astype(np.float32).astype(np.float64)
    )


def coarser(counts: Array, grid: Array) -> tuple[Array, Array]:
    """Counts on every second, fourth, … point of a grid that is finer than need be.

    What is left out goes to its two neighbours, half and half: sums over smooth functions stay.
    """
    while grid.size > FINEST:
        counts = counts if grid.size % 2 else np.pad(counts, ((0, 0), (0, 1)))
        grid = grid if grid.size % 2 else np.append(grid, 2 * grid[-1] - grid[-2])
        half = 0.5 * counts[:, 1::2]
        kept = counts[:, ::2].copy()
        kept[:, :-1] += half
        kept[:, 1:] += half
        counts, grid = kept, grid[::2]
    return counts, grid


def _inverse_root(block: ItemBlock, curvature: Array) -> Array:
    """A root of the inverse of each item's curvature, on its free parameters."""
    values, vectors = np.linalg.eigh(np.where(_both(block), curvature, np.eye(block.u.shape[1])))
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-8))[:, None, :])


def _root(block: ItemBlock, covariance: Array) -> Array:
    """A root of each item's covariance, on its free parameters."""
    values, vectors = np.linalg.eigh(np.where(_both(block), covariance, np.eye(block.u.shape[1])))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 1e-8))[:, None, :])


def _drawn(
    block: ItemBlock,
    mean: Array,
    root: Array,
    log2_points: int,
    wider: float,
    counts: tuple[Array, Array],
) -> tuple[Array, Array]:
    """Points about a mean (n_items, n_parameters), spread by a root of a covariance.

    With how likely each is over the density that it was drawn from, (n_nodes, n_items).
    """
    e = wider * _normal_points(block.u.shape[1], log2_points)
    off = np.einsum("ipq,kq->kip", root, e) * block.free
    u = np.stack([block.clipped(mean + one) for one in off])
    log_weights = np.stack([_log_likelihood(block, one, *counts) for one in u])
    return u, log_weights + 0.5 * (e**2).sum(axis=1)[:, None] / wider**2


def _moments(u: Array, weights: Array) -> tuple[Array, Array]:
    """Mean (n_items, n_parameters) and covariance of weighted points."""
    mean = np.einsum("ki,kip->ip", weights, u)
    away = u - mean
    return mean, np.einsum("ki,kip,kiq->ipq", weights, away, away, optimize=True)


def _both(block: ItemBlock) -> Array:
    """Pairs of parameters that are free, (n_items, n_parameters, n_parameters)."""
    return np.asarray(block.free[:, :, None] & block.free[:, None, :])


def _normal_points(width: int, log2_points: int) -> Array:
    """Low-discrepancy standard normal points, the same each time: (n_nodes, width)."""
    drawn = qmc.Sobol(width, rng=np.random.default_rng(1)).random_base2(log2_points)
    return np.asarray(ndtri(drawn))


def _log_likelihood(block: ItemBlock, u: Array, counts: Array, theta: Array) -> Array:
    """Expected log-likelihood of every item at parameters u: (n_items,)."""
    parts = [slice(a, a + CHUNK) for a in range(0, len(u), CHUNK)]
    return np.concatenate(
        [(block.model.log_likelihood(u[p], theta) * counts[p]).sum(axis=(1, 2)) for p in parts]
    )
