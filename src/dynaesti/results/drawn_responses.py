"""Responses drawn from a fit's items at given abilities."""

from __future__ import annotations

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.model import ItemBank


def draw_responses(bank: ItemBank, item: Ints, z: Array, rng: np.random.Generator) -> Array:
    """One response to each of some items, in the unit of the data.

    Parameters
    ----------
    bank : ItemBank
    item : int array (n_responses,)
        Numbers of the items.
    z : array (n_responses,)
        What each response sees: the ability and effects, standardised.
    rng : numpy.random.Generator

    Returns
    -------
    array (n_responses,)
    """
    block_of, index = bank.index_in_blocks()
    out = np.empty(z.size)
    for k, block in enumerate(bank.blocks):
        mine = np.flatnonzero(block_of[item] == k)
        own = index[item[mine]]
        drawn = block.model.draw(block.u[own], bank.ability_scale.theta(z[mine]), rng)
        of_item = block.values[own]
        if block.model.categorical:
            out[mine] = of_item[np.arange(mine.size), drawn.astype(np.int64)]
        elif block.model.has_response_unit:  # drawn in the unit that the items are fitted in
            out[mine] = of_item[:, 0] + of_item[:, 1] * drawn
        else:
            out[mine] = drawn
    return out
