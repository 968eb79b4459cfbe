"""What people answered to each item, beside its response curve."""

from __future__ import annotations

import numpy as np

from dynaesti.core import Ints
from dynaesti.results import Fit

MOST_POINTS = 6  # of an item
LEAST_ANSWERS = 8  # behind a point


def observed_shares(fit: Fit, items: Ints) -> list[list[list[float]]]:
    """Share of the higher response to each item, by ability known without the answer.

    A point is a list of ability, share, its standard error and the number of answers; items of more
    or less than two responses have none.
    """
    r = fit.responses
    ability = fit.leave_one_out[1]
    order = np.lexsort((ability, r.item))
    start = np.searchsorted(r.item[order], np.arange(r.items.size + 1))
    block_of, index = fit.bank.index_in_blocks()
    out: list[list[list[float]]] = []
    for item in items:
        block = fit.bank.blocks[int(block_of[item])]
        rows = order[start[item] : start[item + 1]]
        if not block.model.categorical or block.values.shape[1] != 2:
            out.append([])
            continue
        high = block.values[index[item], -1]
        n_points = int(np.clip(rows.size // LEAST_ANSWERS, 1, MOST_POINTS))
        out.append([_point(ability[part], r.resp[part] == high) for part in
                    np.array_split(rows, n_points) if part.size])  # fmt: skip
    return out


def _point(ability: np.ndarray, is_high: np.ndarray) -> list[float]:
    """A point of some answers, with the standard error that shares of 0 and 1 have too."""
    n = is_high.size
    share = float(is_high.mean())
    smoothed = (is_high.sum() + 1.0) / (n + 2.0)
    error = float(np.sqrt(smoothed * (1.0 - smoothed) / n))
    return [round(float(ability.mean()), 2), round(share, 3), round(error, 3), n]
