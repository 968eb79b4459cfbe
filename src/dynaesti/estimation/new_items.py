"""New items: items that a fit has never seen join it.

They are learned from the responses of everyone who met one, with all earlier estimates fixed. The
algorithm is the EM of any fit, with an M-step for the new items alone, under the priors of the
present items. New items take the model and the categories of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Labels, Responses, as_labels, label_text, try_index_of
from dynaesti.errors import ConvergenceWarning, InputError, ResponseError, option, warn_user
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.e_step import EP_TOLERANCE_FINAL, EStep
from dynaesti.estimation.fitted import FittedModel
from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.m_step import update_block
from dynaesti.estimation.site_layout import PeopleSites, build_people_sites
from dynaesti.estimation.standard_errors import (
    ItemInformation,
    collect_information,
    covariances_of,
    likelihood_gradients,
)
from dynaesti.estimation.start_values import unit_of
from dynaesti.inference import NaturalGaussian
from dynaesti.model import ItemBank, ItemBlock, ItemPrior, item_model

MAX_ITERATIONS = 100
TOLERANCE = 0.01  # largest change of a parameter, in standard errors
EP_TOLERANCE = 1e-4  # of all E-steps but the last


def new_items_hint() -> str:
    """End of a message that refuses unknown items: the option that allows them."""
    return f"; {option('new_items', True)} lets new ones in"


def find_new_items(items: Labels, more: Responses) -> tuple[Labels, Ints]:
    """Labels of all items, new ones last; and the people in `more` who met a new one."""
    index = try_index_of(items, more.items.tolist())
    strange = np.flatnonzero(index < 0)
    if not strange.size:
        return items, np.zeros(0, dtype=np.int64)
    labels = as_labels([*items.tolist(), *(more.items.tolist()[k] for k in strange)])
    return labels, np.unique(more.person[np.isin(more.item, strange)])


def new_items_by_model(
    coding: ResponseCoding, items: Labels, more: Responses, asked: bool | str | Mapping[Any, str]
) -> list[tuple[str | None, Responses]]:
    """Further responses for one model of new items after the other.

    Parameters
    ----------
    coding : ResponseCoding
        Of the items that are known.
    items : array (n_items,)
        Their labels.
    more : Responses
    asked : bool, str or mapping of label to str
        The model of all new items, or of each. True: the one that all known items have.

    Returns
    -------
    list of (model, responses)
        The responses to known items, to new ones of this model and of those before it. The model
        is None where all items have the same.
    """
    unknown = try_index_of(items, more.items.tolist()) < 0
    new = [label for label, is_new in zip(more.items.tolist(), unknown, strict=True) if is_new]
    if asked is True or not new:
        if new:
            _check_one_model(coding)
        return [(None, more)]
    if isinstance(asked, str):
        names = dict.fromkeys(map(label_text, new), asked)
    elif isinstance(asked, Mapping):
        names = {label_text(label): str(name) for label, name in asked.items()}
        lacking = [label for label in new if label_text(label) not in names]
        if lacking:
            raise InputError(
                f"new_items: {len(lacking)} of {len(new)} new items have no model (first: "
                f"{lacking[0]!r}); give every one a model"
            )
    else:
        raise InputError(
            f"new_items: expected True, the name of a model, or a mapping from item to one, got "
            f"{asked!r}"
        )
    own = as_labels([names.get(label_text(label), "") for label in more.items.tolist()])
    steps: list[tuple[str | None, Responses]] = []
    taken = ~unknown
    for name in dict.fromkeys(own[unknown].tolist()):
        taken = taken | (unknown & (own == name))
        rows = np.flatnonzero(taken[more.item])
        steps.append((name, more.select_responses(rows, drop_unused=True)))
    return steps


def _check_one_model(coding: ResponseCoding) -> None:
    """Refuse new items of which it is not known which of several models they have."""
    kinds = {(type(model), model.signed) for model in coding.models}
    if len(kinds) > 1:
        some = coding.models[0].name
        raise InputError(
            f"item: the items have {len(kinds)} models, and an update does not tell those of new "
            f"ones; name them: {option('new_items', some)}"
        )


def extend_models(models: Labels | None, size: int, name: str | None = None) -> Labels | None:
    """Names of all items' models, new ones included, where the data gave such names."""
    if models is None:
        return None
    more = models[:1] if name is None else as_labels([name])
    return np.concatenate([models, np.repeat(more, size - models.size)])


class NewItemFit:
    """Estimation of new items for a fit.

    Parameters
    ----------
    fit : FittedModel
        The fit that they join.
    labels : array (n_items,)
        Labels of all items, new ones last.
    more : Responses
        Data with the new items.
    model : str, optional
        Their model. Default: that of the other items, which all have the same.
    """

    def __init__(
        self, fit: FittedModel, labels: Labels, more: Responses, model: str | None = None
    ) -> None:
        self.old = fit
        self.count = labels.size - len(fit.coding.models)
        template = _template_item(fit.coding, model)
        self.coding = replace(
            fit.coding,
            models=fit.coding.models + (fit.coding.models[template],) * self.count,
            table=np.concatenate(
                [fit.coding.table, np.tile(fit.coding.table[template], (self.count, 1))]
            ),
        )
        block_of, index = fit.bank.index_in_blocks()
        self.number = int(block_of[template])
        block = _initial_block(
            fit.bank.blocks[self.number], int(index[template]), len(fit.coding.models), self.count
        )
        # measurements of a new item have a zero and unit of their own
        if block.model.has_response_unit and block.values.shape[1]:
            number = try_index_of(labels, more.items.tolist())[more.item]
            block = replace(
                block, values=np.array([unit_of(more.resp[number == k]) for k in block.items])
            )
        self.bank = self._with(block)

    def sites(self, responses: Responses) -> PeopleSites:
        """The sites of people who met new items, with their earlier responses."""
        try:
            return build_people_sites(responses, self.coding, self.bank, self.old.priors.effects)
        except ResponseError as error:
            raise InputError(
                f"{error} (new items take the categories of the others; fit again where theirs "
                f"differ)"
            ) from None

    def fit(self, sites: PeopleSites) -> FittedModel:
        """The fitted model with the new items in it."""
        old = self.old
        e_step = EStep(sites, old.options["threads"])
        grid = ability_grid(self.bank, old.max_abs_ability)
        bank = self.bank
        starts: list[NaturalGaussian | None] = [None] * len(old.kernels)
        for _ in range(MAX_ITERATIONS):
            table = tabulate_items(bank, grid)
            posterior = e_step.run(table, old.priors, starts, EP_TOLERANCE)
            starts = [ep.sites for ep in posterior.ep]
            counts = e_step.counts(old.priors, posterior, table)
            moved, change = self._m_step(bank, counts, grid)
            bank = self._with(moved)
            if change < TOLERANCE:
                break
        else:
            warn_user(
                f"the new items did not converge within {MAX_ITERATIONS} iterations (last change "
                f"{change:.2g} standard errors); their answers say little, so take them with care "
                "until the next fit",
                ConvergenceWarning,
            )
        covariance = None
        if old.covariance is not None and old.scale_covariance is not None:
            table = tabulate_items(bank, grid)
            posterior = e_step.run(table, old.priors, starts, EP_TOLERANCE_FINAL)
            gradients = likelihood_gradients(bank, grid)
            found = collect_information(
                e_step, bank, table, gradients, old.priors, posterior, joint=False
            )
            covariance = self._covariance(bank, found, old.covariance, old.scale_covariance)
        nodes = None
        if old.item_nodes is not None:
            own = old.item_nodes[self.number].append(self._new_block(bank).u)
            nodes = (*old.item_nodes[: self.number], own, *old.item_nodes[self.number + 1 :])
        drift = None if old.item_drift is None else old.item_drift.append(bank.item_count)
        known = replace(old, item_nodes=nodes, item_drift=drift)
        return replace(known, coding=self.coding, bank=bank, covariance=covariance)

    def _m_step(self, bank: ItemBank, counts: Array, grid: Array) -> tuple[ItemBlock, float]:
        """The new items after an M-step, and the largest change in standard errors."""
        new = self._new_block(bank)
        end = bank.blocks[self.number].end_row
        rows = slice(end - self.count * new.depth, end)
        own_counts = np.ascontiguousarray(counts[rows])
        moved, curvature = update_block(new, own_counts, bank.ability_scale.theta(grid))
        if new.model.shares_thresholds:  # thresholds are those of the present items
            own = self.old.bank.blocks[self.number].u[:1]
            moved = replace(moved, u=moved.u.mean(axis=1, keepdims=True) + own - own.mean())
        precision = np.diagonal(curvature, axis1=1, axis2=2)
        return moved, float(np.abs((moved.u - new.u) * np.sqrt(precision)).max())

    def _new_block(self, bank: ItemBank) -> ItemBlock:
        """The new items as a block of their own, under the priors of the others."""
        prior = self.old.bank.blocks[self.number].item_prior
        return _last(bank.blocks[self.number], self.count, prior)

    def _covariance(
        self, bank: ItemBank, found: ItemInformation, old: tuple[Array, ...], shared: Array
    ) -> tuple[Array, ...]:
        """Covariances of all items, block by block, with those of the new items appended."""
        block = self._new_block(bank)
        own = old[self.number]
        more = covariances_of(block, bank, found.items[block.items], shared, own[0, -1, -1])
        grown = np.concatenate([own, more])
        return (*old[: self.number], grown, *old[self.number + 1 :])

    def _with(self, new: ItemBlock) -> ItemBank:
        """The fit's bank with the new items in their block; rows of later blocks shift."""
        blocks: list[ItemBlock] = []
        for k, block in enumerate(self.old.bank.blocks):
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
        return replace(self.old.bank, blocks=tuple(blocks))


def _template_item(coding: ResponseCoding, model: str | None) -> int:
    """The item whose coding new ones take: one of their model, with its most common categories."""
    wanted = None if model is None else item_model(model).name
    like = [k for k, one in enumerate(coding.models) if wanted in (None, one.name)]
    if not like:
        known = ", ".join(sorted({one.name for one in coding.models}))
        raise InputError(
            f"new_items: no item of the fit has the model {wanted}, whose priors and categories "
            f"new ones would take; there are {known}; fit again with them"
        )
    rows = [tuple(coding.table[k].tolist()) for k in like]
    return like[rows.index(Counter(rows).most_common(1)[0][0])]


def _initial_block(block: ItemBlock, like: int, first: int, count: int) -> ItemBlock:
    """New items as a block, at the centre of the others."""
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
    """The last items of a block as a block of their own, under the priors of the others."""
    # the linear term of the prior of an item whose parameters are all free
    given = replace(others, slope=np.tile(others.slope.min(axis=0), (count, 1)))
    return replace(
        block,
        first_row=0,
        items=block.items[-count:],
        u=block.u[-count:],
        free=block.free[-count:],
        values=block.values[-count:],
        given=given,
    )
