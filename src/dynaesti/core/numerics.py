"""Small numerical functions."""

import numpy as np

from dynaesti.core.arrays import Array


def softmax(logs: Array) -> Array:
    """exp(logs), normalised along the first axis.

    They add up to 1 whatever the size of the logs.
    """
    weights = np.exp(logs - logs.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))
