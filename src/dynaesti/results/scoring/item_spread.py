"""Thin items in a small file: mean and covariance of what is known of their parameters.

A fit keeps 64 weighted points an item to predict with; a scorer keeps their first two moments, and
makes points of these that all items share.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from dynaesti.core import Array, symmetric_root
from dynaesti.estimation import ItemNodes

LOG2_POINTS = 5  # half of them: each comes with its mirror image


def item_moments(nodes: ItemNodes) -> tuple[Array, Array]:
    """Mean (n_items, p) and lower triangle of the covariance (n_items, p(p+1)/2), in 32 bits."""
    mean = np.einsum("nk,nkp->kp", nodes.weights, nodes.u)
    away = nodes.u - mean
    covariance = np.einsum("nk,nkp,nkq->kpq", nodes.weights, away, away)
    rows, columns = np.tril_indices(mean.shape[1])
    return mean.astype(np.float32), covariance[:, rows, columns].astype(np.float32)


def nodes_of_moments(mean: Array, lower: Array) -> ItemNodes:
    """Equally weighted points with these moments, the inverse of `item_moments`."""
    n_items, size = mean.shape
    covariance = np.zeros((n_items, size, size))
    rows, columns = np.tril_indices(size)
    covariance[:, rows, columns] = lower
    covariance[:, columns, rows] = lower
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    points = _standard_points(size)
    u = mean.astype(np.float64) + np.einsum("kpq,nq->nkp", root, points)
    return ItemNodes(u, np.full((points.shape[0], n_items), 1.0 / points.shape[0]))


@cache
def _standard_points(size: int) -> Array:
    """Points like draws of a standard normal variable, with mean 0 and covariance 1 exactly."""
    drawn = qmc.Sobol(size, rng=np.random.default_rng(0)).random_base2(LOG2_POINTS)
    half = ndtri(drawn)
    points = np.concatenate([half, -half])
    return np.asarray(points @ np.linalg.inv(symmetric_root(points.T @ points / len(points))))
