"""Responses to items of a fitted bank as emissions.

With them, one person's ability is a `Curve` like any other.
"""

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.model.emissions.base import Emissions
from dynaesti.model.items.bank import ItemBank
from dynaesti.model.links import LinkedPoints


class BankResponses(Emissions):
    """Responses to items of a bank; y is the ability on the reported scale.

    Parameters
    ----------
    bank : ItemBank
        The items.
    item : int array (n,)
        Number of each response's item.
    code : array (n,)
        Category or amount of each response.
    weight : array (n,)
        Weight of each response.
    gain, shift : float
        The reported scale is y = gain · z + shift, with z the standardised ability.
    seen_beside : array (n,), optional
        What each response sees beside the ability, by effects of answers: on the scale of z.
    """

    kind = "bank_answers"

    def __init__(
        self,
        bank: ItemBank,
        item: Ints,
        code: Array,
        weight: Array,
        gain: float,
        shift: float,
        seen_beside: Array | None = None,
    ) -> None:
        self.bank = bank
        self.item = item
        self.code = code
        self.weight = weight
        self.gain = gain
        self.shift = shift
        self.seen_beside = np.zeros(item.size) if seen_beside is None else seen_beside

    def __len__(self) -> int:
        return self.item.size

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        z = (np.asarray(at.y).reshape(rows.size, -1) - self.shift) / self.gain
        theta = self.bank.ability_scale.theta(z + self.seen_beside[rows][:, None])
        out = np.empty(theta.shape)
        block_of, index = self.bank.index_in_blocks()
        for k, block in enumerate(self.bank.blocks):
            mine = np.flatnonzero(block_of[self.item[rows]] == k)
            if not mine.size:
                continue
            items = index[self.item[rows[mine]]]
            out[mine] = block.model.log_likelihood_of(
                block.u[items], theta[mine], self.code[rows[mine]], block.values[items]
            )
        return np.asarray((out * self.weight[rows][:, None]).reshape(np.shape(at.y)))

    def unique_index(self) -> Ints:
        _, first, inverse = np.unique(
            np.stack([self.item, self.code, self.weight, self.seen_beside], axis=1),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        return np.asarray(first[inverse].astype(np.int64))

    def take(self, rows: Ints) -> "BankResponses":
        return BankResponses(
            self.bank,
            self.item[rows],
            self.code[rows],
            self.weight[rows],
            self.gain,
            self.shift,
            self.seen_beside[rows],
        )
