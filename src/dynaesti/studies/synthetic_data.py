"""Simulated data of the paper's synthetic experiment."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from dynaesti.core import Array, Ints, as_rng, symmetric_root, whole_number

# the paper gives no mean; 0.5 reproduces its figures
PAPER_BANDWIDTH = 0.19
PAPER_SPREAD = 0.6
PAPER_MEAN = 0.5


@dataclass(frozen=True)
class Synthetic:
    """Data of the paper's experiment: responses, times, and the truth behind them."""

    responses: Ints  # (people, items)
    times: Array  # (people, items)
    ability: Array  # (people, items), on (0, 1)
    a: Array  # (items,) discriminations
    b: Array  # (items,) difficulties, on (0, 1)
    c: Array  # (items,) guessing

    @property
    def latent(self) -> Array:
        """Abilities on the normal scale."""
        return np.asarray(ndtri(self.ability))

    def curves(self, theta: Array) -> Array:
        """True item response functions (items, points) at abilities theta in (0, 1)."""
        rise = expit(self.a[:, None] * (ndtri(theta) - ndtri(self.b)[:, None]))
        return np.asarray(self.c[:, None] + (1 - self.c[:, None]) * rise)


def paper(people: int = 500, items: int = 500, *, static: bool = False, seed: int = 0) -> Synthetic:
    """Draw the paper's synthetic experiment.

    Items are transformed 3PL, abilities are curves between Latin hypercube end points, or constant
    with `static`.
    """
    rng = as_rng(seed)
    whole_number(people, "people", 1)
    whole_number(items, "items", 1)
    t = np.linspace(0.0, 1.0, items)
    a = np.exp(0.2 * rng.standard_normal(items))
    b = rng.uniform(0, 1, items)
    c = rng.uniform(0, 0.2, items)
    ends = np.stack(
        [(rng.permutation(people) + rng.uniform(size=people)) / people for _ in range(2)], axis=1
    )
    theta = np.tile(ends[:, :1], (1, items)) if static else _bridges(t, ends, rng)
    p = c + (1 - c) * expit(a * (ndtri(theta) - ndtri(b)))
    return Synthetic(
        (rng.uniform(size=p.shape) < p).astype(np.int64), np.tile(t, (people, 1)), theta, a, b, c
    )


def _bridges(t: Array, ends: Array, rng: np.random.Generator) -> Array:
    """Gaussian-process curves through given end points, drawn until they stay within (0, 1)."""

    def cov(x: Array, y: Array) -> Array:
        return np.asarray(
            PAPER_SPREAD**2 * np.exp(-0.5 * ((x[:, None] - y) / PAPER_BANDWIDTH) ** 2)
        )

    fixed = np.array([0.0, 1.0])
    gain = np.linalg.solve(cov(fixed, fixed), cov(fixed, t)).T
    root = symmetric_root(cov(t, t) - gain @ cov(fixed, t))
    mean = PAPER_MEAN + (ends - PAPER_MEAN) @ gain.T
    out = np.empty_like(mean)
    todo = np.arange(len(ends))
    while todo.size:
        draws = mean[todo] + rng.standard_normal((todo.size, t.size)) @ root
        fine = (draws > 0).all(axis=1) & (draws < 1).all(axis=1)
        out[todo[fine]] = draws[fine]
        todo = todo[~fine]
    return out
