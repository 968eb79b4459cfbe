"""Items that a fit has never seen join it.

Learned from the answers of everyone who met one, all that was learned before held still.

It is the EM of any fit, with the M-step for the new items alone, under the priors of the items that
are there. They take the model and the categories of the others.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Ints
from dynaesti.data import Labels, Responses, as_labels, try_index_of
from dynaesti.errors import ConvergenceWarning, InputError, ResponseError, option
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.e_step import EP_TOLERANCE_FINAL, EStep
from dynaesti.estimation.fitted import FittedModel
from dynaesti.estimation.likelihood_table import ability_grid, tabulate_items
from dynaesti.estimation.site_layout import SiteLayout, build_site_layout
from dynaesti.estimation.standard_errors import (
    collect_information,
    covariances_of,
    likelihood_gradients,
)
from dynaesti.estimation.start_values import unit_of
from dynaesti.model import GaussianItem, ItemBank, ItemBlock, ItemPrior

# of EM, and the largest step at rest, in standard errors
ROUNDS = 100
STILL = 0.01
LOOSE = 1e-4  # tolerance of grafting on the way


def find_new_items(items: Labels, more: Responses) -> tuple[Labels, Ints]:
    """All items' labels, new ones last; and the people of the data who met one of these."""
    place = try_index_of(items, more.items.tolist())
    strange = np.flatnonzero(place < 0)
    if not strange.size:
        return items, np.zeros(0, dtype=np.int64)
    labels = as_labels([*items.tolist(), *(more.items.tolist()[k] for k in strange)])
    return labels, np.unique(more.person[np.isin(more.item, strange)])


def new_items_hint() -> str:
    """End of a message that refuses unknown items: which option lets them in."""
    return f"; {option('new_items', True)} lets new ones in"


def extend_models(models: Labels | None, size: int) -> Labels | None:
    """Names of the items' models, where the data gave them, with those of new items."""
    return (
        None
        if models is None
        else np.concatenate([models, np.repeat(models[:1], size - models.size)])
    )


class NewItemFit:
    """New items on their way into a fit.

    First a place among the others, then what the answers say of them.
    """

    def __init__(self, fit: FittedModel, labels: Labels, more: Responses) -> None:
        self.fit = fit
        self.count = labels.size - len(fit.coding.models)
        pattern = _pattern(fit.coding)
        self.coding = replace(
            fit.coding,
            models=fit.coding.models + (fit.coding.models[pattern],) * self.count,
            table=np.concatenate(
                [fit.coding.table, np.tile(fit.coding.table[pattern], (self.count, 1))]
            ),
        )
        block_of, place = fit.bank.index_in_blocks()
        self.number = int(block_of[pattern])
        block = _beginners(
            fit.bank.blocks[self.number], int(place[pattern]), len(fit.coding.models), self.count
        )
        if (
            isinstance(block.model, GaussianItem) and block.values.shape[1]
        ):  # measurements of a new item have a zero and unit of their own
            number = try_index_of(labels, more.items.tolist())[more.item]
            block = replace(
                block, values=np.array([unit_of(more.resp[number == k]) for k in block.items])
            )
        self.bank = self._with(block)

    def answers(self, responses: Responses) -> SiteLayout:
        """The answers of people who met new items, their earlier ones included, as sites."""
        try:
            return build_site_layout(responses, self.coding, self.bank)
        except ResponseError as error:
            raise InputError(
                f"{error} (new items take the categories of the others; fit again where theirs "
                f"differ)"
            ) from None

    def learned(self, answers: SiteLayout) -> dict[str, Any]:
        """Coding, bank and covariance of the fit with these items in it."""
        fit = self.fit
        kernels = list(self.fit.kernels)
        e_step = EStep(answers, fit.options["threads"])
        bank = self.bank
        size = self.count
        grid = ability_grid(bank, fit.options["farthest"])
        sites: list[Any] = [None] * len(kernels)
        for _ in range(ROUNDS):
            table = tabulate_items(bank, grid)
            expected = e_step.run(table, kernels, fit.population, sites, LOOSE)
            sites = [(g.precision, g.shift) for g in expected.grafted]
            new = _last(bank.blocks[self.number], size, fit.bank.blocks[self.number].item_prior)
            counts = e_step.counts(kernels, expected, table)[
                bank.blocks[self.number].end_row - size * new.depth :
            ][: size * new.depth]
            moved, curvature = new.improved(
                np.ascontiguousarray(counts), bank.ability_scale.theta(grid)
            )
            if new.model.shared:  # thresholds are those of the items that are there
                own = fit.bank.blocks[self.number].u[:1]
                moved = replace(moved, u=moved.u.mean(axis=1, keepdims=True) + own - own.mean())
            step = float(
                np.abs((moved.u - new.u) * np.sqrt(np.diagonal(curvature, axis1=1, axis2=2))).max()
            )
            bank = self._with(moved)
            if step < STILL:
                break
        else:
            warnings.warn(
                f"the new items did not come to rest within {ROUNDS} steps (last step {step:.2g} "
                f"standard errors); their "
                "answers say little, so take them with care until the next fit or refresh",
                ConvergenceWarning,
                stacklevel=4,
            )
        covariance = None
        if fit.covariance is not None and fit.shared is not None:
            table = tabulate_items(bank, grid)
            expected = e_step.run(table, kernels, fit.population, sites, EP_TOLERANCE_FINAL)
            told = collect_information(
                e_step,
                bank,
                table,
                likelihood_gradients(bank, grid),
                kernels,
                expected,
                joint=False,
            )
            old = fit.covariance[self.number]
            block = _last(bank.blocks[self.number], size, fit.bank.blocks[self.number].item_prior)
            grown = np.concatenate(
                [
                    old,
                    covariances_of(
                        block, bank, told.items[block.items], fit.shared, old[0, -1, -1]
                    ),
                ]
            )
            covariance = (*fit.covariance[: self.number], grown, *fit.covariance[self.number + 1 :])
        return {"coding": self.coding, "bank": bank, "covariance": covariance}

    def _with(self, new: ItemBlock) -> ItemBank:
        """The fit's bank with the new items in their block; rows of later blocks move on."""
        blocks: list[ItemBlock] = []
        for k, block in enumerate(self.fit.bank.blocks):
            first_row = blocks[-1].end_row if blocks else 0
            if k == self.number:
                block = replace(
                    block,
                    items=np.concatenate([block.items, new.items]),
                    u=np.concatenate([block.u, new.u]),
                    free=np.concatenate([block.free, new.free]),
                    values=np.concatenate([block.values, new.values]),
                )
            blocks.append(replace(block, first_row=first_row))
        return replace(self.fit.bank, blocks=tuple(blocks))


def _pattern(coding: ResponseCoding) -> int:
    """The item that new ones are coded like: one with the commonest categories."""
    kinds = {(type(model), model.signed) for model in coding.models}
    if len(kinds) > 1:
        raise InputError(
            f"item: new items cannot join a fit whose items have {len(kinds)} models, since an "
            f"update does not tell theirs; "
            "fit again with them"
        )
    rows = [tuple(row) for row in coding.table.tolist()]
    return rows.index(Counter(rows).most_common(1)[0][0])


def _beginners(block: ItemBlock, like: int, first: int, count: int) -> ItemBlock:
    """New items as a block, in the middle of the others."""
    return ItemBlock(
        block.model,
        block.size,
        first + np.arange(count),
        0,
        np.tile(np.median(block.u, axis=0), (count, 1)),
        np.ones((count, block.u.shape[1]), dtype=bool),
        np.tile(block.values[like], (count, 1)),
        block.prior_mean,
        block.prior_sd,
    )


def _last(block: ItemBlock, count: int, others: ItemPrior) -> ItemBlock:
    """The last items of a block as one of their own, under the priors of the others."""
    given = replace(
        others, slope=np.tile(others.slope.min(axis=0), (count, 1))
    )  # the lean of an item that is free in everything
    return replace(
        block,
        first_row=0,
        items=block.items[-count:],
        u=block.u[-count:],
        free=block.free[-count:],
        values=block.values[-count:],
        given=given,
    )
