"""A prior of items that takes the shape of its population: a mixture of normals.

Items of one log may be of several kinds: cases that nobody disputes beside contested ones, warm-up
questions beside tests. One normal prior draws the items that few people answered towards a middle
where no item is. The mixture is learned by EM from weighted points of all items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.model import HYPER_ITEMS, ItemBlock

ROUNDS = 60  # of EM
START_SPREADS = (0.5, 1.0, 2.0)  # of the components, over that of the fit's prior
# A component begins as one of so many items of the fit's prior: few items keep one normal prior.
PRIOR_ITEMS = 5.0
LEAST_SPREAD = 0.05  # of a component: with few points an empty direction would collapse


@dataclass(frozen=True)
class NormalMixture:
    """A mixture of normals over items' unconstrained parameters.

    Parameters
    ----------
    shares : array (n_components,)
        Sum 1.
    means : array (n_components, n_parameters)
    covariances : array (n_components, n_parameters, n_parameters)
    """

    shares: Array
    means: Array
    covariances: Array

    @classmethod
    def around(cls, mean: Array, sd: Array, spreads: tuple[float, ...]) -> NormalMixture:
        """Equal shares about one mean, each with a spread in units of sd."""
        n = len(spreads)
        covariances = np.stack([np.diag((sd * spread) ** 2) for spread in spreads])
        return cls(np.full(n, 1.0 / n), np.tile(mean, (n, 1)), covariances)

    def log_densities(self, u: Array, free: Bools) -> Array:
        """Log of share × density of each component, up to a constant: (n_components, …, n_items).

        Parameters that are given, not `free`, do not count; u is (…, n_items, n_parameters).
        """
        roots = np.linalg.cholesky(np.linalg.inv(self.covariances))
        out = []
        for share, mean, root in zip(self.shares, self.means, roots, strict=True):
            away = np.where(free, u - mean, 0.0) @ root
            inner = np.log(np.diagonal(root)).sum() - 0.5 * (away**2).sum(axis=-1)
            out.append(np.log(share) + inner)
        return np.stack(out)


def learn_item_prior(block: ItemBlock, items: Ints, u: Array, log_weights: Array) -> NormalMixture:
    """The prior of a block's items, by EM from points of some of them.

    Parameters
    ----------
    block : ItemBlock
    items : array (n_items,)
        Which ones.
    u : array (n_nodes, n_items, n_parameters)
        Points.
    log_weights : array (n_nodes, n_items)
        Log likelihood of the points over the density that they were drawn from.
    """
    is_proper = np.isfinite(block.prior_sd)
    sd = np.where(is_proper, block.prior_sd, 1e6)
    if len(block.u) < HYPER_ITEMS or not is_proper.all():
        return NormalMixture.around(block.prior_mean, sd, (1.0,))
    prior = NormalMixture.around(block.prior_mean, sd, START_SPREADS)
    known = np.diag(sd**2)
    free = block.free[items]
    for _ in range(ROUNDS):
        joint = posterior_weights(prior, u, log_weights, free)
        prior = _updated(joint, u, free, block.prior_mean, known)
    return prior


def posterior_weights(prior: NormalMixture, u: Array, log_weights: Array, free: Bools) -> Array:
    """Weights of components and points, (n_components, n_nodes, n_items), sum 1 for each item."""
    total = log_weights + prior.log_densities(u, free)
    joint = np.exp(total - total.max(axis=(0, 1)))
    return np.asarray(joint / joint.sum(axis=(0, 1)))


def _updated(joint: Array, u: Array, free: Bools, mean: Array, known: Array) -> NormalMixture:
    """The M-step of one round, each component with `PRIOR_ITEMS` items of the fit's prior."""
    shares = joint.sum(axis=(1, 2)) + PRIOR_ITEMS
    means = []
    covariances = []
    for weights in joint:
        n_free = np.einsum("ki,ip->p", weights, free) + PRIOR_ITEMS
        centre = (np.einsum("ki,kip,ip->p", weights, u, free) + PRIOR_ITEMS * mean) / n_free
        away = np.where(free, u - centre, 0.0)
        square = np.einsum("ki,kip,kiq->pq", weights, away, away, optimize=True)
        square += PRIOR_ITEMS * known
        means.append(centre)
        covariances.append(
            square / np.sqrt(np.outer(n_free, n_free)) + LEAST_SPREAD**2 * np.eye(centre.size)
        )
    return NormalMixture(shares / shares.sum(), np.array(means), np.array(covariances))
