"""Which way items run: the first principal component of the standardised answers, found without
making a matrix of them.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from dynaesti.core import Array, Ints

ROUNDS = 60
STILL = 1e-9


def standardised(item: Ints, value: Array, items: int) -> Array:
    """Each answer in standard deviations of its item's, from its mean."""
    n = np.maximum(np.bincount(item, minlength=items), 1)
    mean = np.bincount(item, value, items) / n
    sd = np.sqrt(np.maximum(np.bincount(item, value**2, items) / n - mean**2, 1e-12))
    return np.asarray((value - mean[item]) / sd[item])


def first_component(
    person: Ints, item: Ints, score: Array, people: int, items: int
) -> tuple[Array, Array]:
    """Loadings of the items, and everyone's standardised place on the component, of answers that
    are standardised scores.
    """
    n = np.maximum(np.bincount(item, minlength=items), 1)
    matrix = csr_array((score, (person, item)), shape=(people, items))
    loading = np.asarray(matrix.T @ (matrix @ np.eye(1, items, int(n.argmax()))[0]))
    for _ in range(ROUNDS):
        new = np.asarray(matrix.T @ (matrix @ loading))
        norm = float(np.linalg.norm(new))
        if norm == 0:
            break
        new = new / norm
        done = np.abs(new - loading).max() < STILL
        loading = new
        if done:
            break
    place = np.asarray(matrix @ loading) / np.sqrt(
        np.maximum(np.asarray(abs(matrix) @ loading**2), 1e-12)
    )
    return loading, (place - place.mean()) / max(float(place.std()), 1e-12)


def backward_items(
    person: Ints,
    item: Ints,
    value: Array,
    people: int,
    items: int,
    beyond: float = 3.0,
    fewest: int = 30,
) -> Ints:
    """Items whose answers go, beyond chance, against what the others have in common.

    Of two camps the smaller one.
    """
    score = standardised(item, value, items)
    loading, _ = first_component(person, item, score, people, items)
    part = score * loading[item]
    rest = np.bincount(person, part, people)[person] - part  # without this very answer
    product = np.bincount(item, score * rest, items)
    spread = np.sqrt(np.maximum(np.bincount(item, (score * rest) ** 2, items), 1e-300))
    z = np.where(np.bincount(item, minlength=items) >= fewest, product / spread, 0.0)
    up = np.flatnonzero(z > beyond)
    down = np.flatnonzero(z < -beyond)
    return down if down.size <= up.size else up
