"""Answers to items of a fitted bank as emissions, so that one person's curve is a `Curve` like any
other.
"""

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.model.emissions.base import Emissions
from dynaesti.model.items.bank import ItemBank
from dynaesti.model.items.custom import CustomItemModel
from dynaesti.model.links import LinkedPoints


class BankResponses(Emissions):
    """Answers to known items: y is the ability on the reported scale, y = gain · z + shift."""

    kind = "bank_answers"

    def __init__(
        self, bank: ItemBank, item: Ints, code: Array, weight: Array, gain: float, shift: float
    ) -> None:
        self.bank = bank
        self.item = item
        self.code = code
        self.weight = weight
        self.gain = gain
        self.shift = shift

    def __len__(self) -> int:
        return self.item.size

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        theta = self.bank.ability_scale.theta(
            (np.asarray(at.y).reshape(rows.size, -1) - self.shift) / self.gain
        )
        out = np.empty(theta.shape)
        block_of, place = self.bank.index_in_blocks()
        for k, block in enumerate(self.bank.blocks):
            mine = np.flatnonzero(block_of[self.item[rows]] == k)
            if not mine.size:
                continue
            items = place[self.item[rows[mine]]]
            basis = block.model.log_likelihood(block.u[items], theta[mine])
            code = self.code[rows[mine]]
            if block.model.categorical or isinstance(block.model, CustomItemModel):
                out[mine] = basis[np.arange(mine.size), code.astype(np.int64)]
            else:
                terms, constant = block.model.terms(code, block.values[items])
                out[mine] = np.einsum("nr,nrg->ng", terms, basis) + constant[:, None]
        return np.asarray((out * self.weight[rows][:, None]).reshape(np.shape(at.y)))

    def unique_index(self) -> Ints:
        _, first, inverse = np.unique(
            np.stack([self.item, self.code, self.weight], axis=1),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        return np.asarray(first[inverse].astype(np.int64))

    def take(self, rows: Ints) -> "BankResponses":
        return BankResponses(
            self.bank, self.item[rows], self.code[rows], self.weight[rows], self.gain, self.shift
        )
