"""Direction of items, from the first principal component of the standardised responses.

The matrix of people and items stays sparse.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from dynaesti.core import Array, Ints

MAX_ITERATIONS = 60  # of the power iteration
TOLERANCE = 1e-9  # change of the loadings, at which it has converged


def standardised(item: Ints, value: Array, items: int) -> Array:
    """Each response in standard deviations of its item, from the item's mean: array (n_responses,).

    Parameters
    ----------
    item : int array (n_responses,)
        The item of each response.
    value : array (n_responses,)
        The responses.
    items : int
        Number of items.
    """
    n = np.maximum(np.bincount(item, minlength=items), 1)
    mean = np.bincount(item, value, items) / n
    sd = np.sqrt(np.maximum(np.bincount(item, value**2, items) / n - mean**2, 1e-12))
    return np.asarray((value - mean[item]) / sd[item])


def first_component(
    person: Ints, item: Ints, score: Array, people: int, items: int
) -> tuple[Array, Array]:
    """First principal component of standardised responses, by power iteration.

    Parameters
    ----------
    person, item : int array (n_responses,)
        Whose response it is, and to which item.
    score : array (n_responses,)
        Responses as made by `standardised`.
    people, items : int
        Numbers of people and items.

    Returns
    -------
    loading : array (n_items,)
        Loadings of the items, of norm 1.
    component : array (n_people,)
        Everyone's value on the component, with mean 0 and standard deviation 1.
    """
    n = np.maximum(np.bincount(item, minlength=items), 1)
    matrix = csr_array((score, (person, item)), shape=(people, items))
    loading = np.asarray(matrix.T @ (matrix @ np.eye(1, items, int(n.argmax()))[0]))
    for _ in range(MAX_ITERATIONS):
        new = np.asarray(matrix.T @ (matrix @ loading))
        norm = float(np.linalg.norm(new))
        if norm == 0:
            break
        new = new / norm
        converged = np.abs(new - loading).max() < TOLERANCE
        loading = new
        if converged:
            break
    component = np.asarray(matrix @ loading) / np.sqrt(
        np.maximum(np.asarray(abs(matrix) @ loading**2), 1e-12)
    )
    return loading, (component - component.mean()) / max(float(component.std()), 1e-12)


def backward_items(
    person: Ints,
    item: Ints,
    value: Array,
    people: int,
    items: int,
    beyond: float = 3.0,
    fewest: int = 30,
) -> Ints:
    """Numbers of the items whose responses go against what the other items have in common.

    An item's z-score is its correlation with the first component of each person's other responses.
    Items with |z| > `beyond` and at least `fewest` responses have a direction; the direction of
    fewer items is the backward one.

    Parameters
    ----------
    person, item : int array (n_responses,)
        Whose response it is, and to which item.
    value : array (n_responses,)
        The responses.
    people, items : int
        Numbers of people and items.
    beyond : float, default=3.0
        Smallest |z| that is not put down to chance.
    fewest : int, default=30
        Responses that an item needs to be judged.
    """
    score = standardised(item, value, items)
    loading, _ = first_component(person, item, score, people, items)
    term = score * loading[item]
    others = np.bincount(person, term, people)[person] - term  # without this very response
    product = np.bincount(item, score * others, items)
    spread = np.sqrt(np.maximum(np.bincount(item, (score * others) ** 2, items), 1e-300))
    z = np.where(np.bincount(item, minlength=items) >= fewest, product / spread, 0.0)
    up = np.flatnonzero(z > beyond)
    down = np.flatnonzero(z < -beyond)
    return down if down.size <= up.size else up
