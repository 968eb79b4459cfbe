"""Small numerical functions."""

import numpy as np

from dynaesti.core.arrays import Array, Ints


def softmax(logs: Array) -> Array:
    """exp(logs), normalised along the first axis.

    They add up to 1 whatever the size of the logs.
    """
    weights = np.exp(logs - logs.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


def inserted(values: Array, index: int, value: float | Array) -> Array:
    """An array with one more value (row) before an index along its first axis.

    `numpy.insert`, which also takes lists and slices of indices, needs ten times as long on the
    short arrays of a live person.

    Parameters
    ----------
    values : array (n, ...)
    index : int
    value : float or array (...)

    Returns
    -------
    array (n + 1, ...)
    """
    out = np.empty((values.shape[0] + 1, *values.shape[1:]), dtype=values.dtype)
    out[:index] = values[:index]
    out[index] = value
    out[index + 1 :] = values[index:]
    return out


def person_error(values: Array, person: Ints) -> float:
    """Standard error of a mean over answers, with the answers of one person taken as one draw.

    Parameters
    ----------
    values : array (n_answers,)
    person : int array (n_answers,)
        Number of the person.

    Returns
    -------
    float
        NaN for a single person.
    """
    sums = np.bincount(person, values - values.mean())
    people = np.unique(person).size
    return (
        float(np.sqrt((sums**2).sum() * people / max(people - 1, 1)) / values.size)
        if people > 1
        else float("nan")
    )
