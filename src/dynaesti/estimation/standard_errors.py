"""Standard errors of the items: the observed information as a cross-product of expected scores.

By Fisher's identity the gradient of a person's log evidence by an item's parameters is the sum of
expected scores of their responses to it under the tilted distributions. The cross-product over
people estimates the information about all items together; its inverse includes the uncertainty that
items have from each other. Where parameters outnumber people it is singular. Then each item has a
block of its own (the information in its responses, with other items fixed), and the uncertainty
that all items share is added: that of the zero and unit of ability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array
from dynaesti.estimation.cohort_errors import (
    CohortInformation,
    ItemCovariance,
    cohort_covariance,
    collect_cohort_information,
)
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.scale import scale_information
from dynaesti.inference import LogLikelihoodTable, SiteLayout
from dynaesti.model import STEP, Cohort, ItemBank, ItemBlock

PEOPLE_EACH = 4  # least number of people for each parameter in the joint estimate
MOST_WORK = 3e10  # largest people × parameters² in the joint estimate
CHUNK = 2000
RANGE = 4.0  # abilities on either side of 0 over which a user's rows are compared


@dataclass(frozen=True)
class ItemInformation:
    """Information about the items: sums over people, so that those of several groups add up."""

    # (n_items, n_parameters, n_parameters), a block for each item; or all parameters together,
    # (n_free, n_free)
    items: Array
    unit: float  # on the abilities' log unit, where it is a parameter of its own
    anchorage: Array  # (2, 2) on the abilities' zero and log unit
    cohort: CohortInformation | None = None  # where the population's mean is learned

    def __add__(self, other: ItemInformation) -> ItemInformation:
        cohort = self.cohort
        if cohort is not None and other.cohort is not None:
            cohort = cohort + other.cohort
        return ItemInformation(
            self.items + other.items,
            self.unit + other.unit,
            self.anchorage + other.anchorage,
            cohort,
        )


def use_joint_information(bank: ItemBank, people: int) -> bool:
    """Whether there are enough people, at bearable cost, for a joint estimate of all parameters."""
    free = bank.free_count
    return (
        free > 0
        and people >= PEOPLE_EACH * free
        and people * free**2 <= MOST_WORK
        and not any(b.model.shares_thresholds for b in bank.blocks)
    )


def collect_information(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    gradients: Array,
    priors: PriorMixture,
    expected: EStepPosterior,
    joint: bool,
) -> ItemInformation:
    """The information in the responses of some people.

    `gradients` are those of `likelihood_gradients`; `joint` says whether all parameters are taken
    together.
    """
    layout = e_step.sites.layout
    scores = e_step.scores(priors, expected, table, gradients)
    unit = 0.0
    if bank.ability_scale.free_scale:  # information on the unit, with items fixed
        unit = float(
            (np.add.reduceat(scores[:, -1], layout.factor_start[layout.site_start[:-1]]) ** 2).sum()
        )
    return ItemInformation(
        _joint(bank, layout, scores) if joint else _own(bank, layout, scores),
        unit,
        scale_information(e_step, priors, expected),
        collect_cohort_information(e_step, bank, table, gradients, priors, expected),
    )


def estimated_cohort(
    cohort: Cohort | None, bank: ItemBank, information: ItemInformation
) -> Cohort | None:
    """The cohort with the covariance of its coefficients."""
    if cohort is None or information.cohort is None:
        return cohort
    width = max(block.u.shape[1] for block in bank.blocks)
    own = np.zeros((bank.item_count, width, width))
    moves = np.zeros((bank.item_count, width, 2))
    positions = _positions(bank) if information.items.ndim == 2 else None
    for block in bank.blocks:
        size = block.u.shape[1]
        if positions is None:
            part = information.items[block.items][:, :size, :size]
        else:
            at = positions[block.items, :size]
            part = information.items[at[:, :, None], at[:, None, :]]
        own[block.items, :size, :size] = _own_block(block, part)
        moves[block.items, :size] = _moves(block, bank)
    items = ItemCovariance(own, moves, information.anchorage, information.unit)
    return replace(cohort, covariance=cohort_covariance(cohort, information.cohort, items))


def item_covariances(bank: ItemBank, information: ItemInformation) -> tuple[Array, ...]:
    """Covariance of each item's parameters, block by block, zero where fixed.

    Blocks of slope 1, with which the abilities' unit is free, have the log of that unit as one more
    parameter, the last.

    Returns
    -------
    tuple of array (n_items, n_parameters, n_parameters)
        One for each block.
    """
    if information.items.ndim == 2:
        return _from_joint(bank, information.items)
    spread = shared_covariance(information)
    unit = 1.0 / information.unit if information.unit > 0 else 0.0
    parts = [
        information.items[block.items][:, : block.u.shape[1], : block.u.shape[1]]
        for block in bank.blocks
    ]
    return tuple(
        _with_unit(block, bank, _own_block(block, part) + _shared(block, bank, spread), unit)
        for block, part in zip(bank.blocks, parts, strict=True)
    )


def covariances_of(
    block: ItemBlock, bank: ItemBank, information: Array, shared: Array, unit: float
) -> Array:
    """Covariance of some items, from their own information and what all items share.

    Parameters
    ----------
    block : ItemBlock
    bank : ItemBank
    information : array (n_items, n_parameters, n_parameters)
    shared : array (2, 2)
        Covariance of the abilities' zero and log unit.
    unit : float
        Variance of the log unit, where it is a parameter of its own.
    """
    width = block.u.shape[1]
    return _with_unit(
        block,
        bank,
        _own_block(block, information[:, :width, :width]) + _shared(block, bank, shared),
        unit,
    )


def shared_covariance(information: ItemInformation) -> Array:
    """Covariance (2, 2) of the abilities' zero and log unit, which all items share."""
    return np.asarray(np.linalg.inv(information.anchorage + 1e-9 * np.eye(2)), dtype=np.float64)


def sample_bank(
    bank: ItemBank, covariance: tuple[Array, ...], shared: Array, rng: np.random.Generator
) -> ItemBank:
    """A draw of the items from their estimated distribution.

    The abilities' zero and unit are drawn once for all items, then each item by itself.
    """
    together = np.linalg.cholesky(shared + 1e-12 * np.eye(2)) @ rng.standard_normal(2)
    blocks = []
    ability_scale = bank.ability_scale
    for block, cov in zip(bank.blocks, covariance, strict=True):
        width = block.u.shape[1]
        moves = _moves(block, bank)
        own = cov[:, :width, :width] - np.einsum("ipa,ab,iqb->ipq", moves, shared, moves)
        values, vectors = np.linalg.eigh(own)
        off = np.einsum(
            "ipq,iq->ip",
            vectors,
            np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(block.u.shape),
        )
        if (
            block.model.shares_thresholds
        ):  # a difficulty for each item, and one draw of the thresholds
            middle = off.mean(axis=1, keepdims=True)
            off = middle + (off - middle).mean(axis=0)
        blocks.append(replace(block, u=block.u + off + moves @ together))
        if cov.shape[1] > width:
            ability_scale = replace(
                bank.ability_scale,
                log_scale=bank.ability_scale.log_scale
                + float(np.sqrt(cov[0, -1, -1]) * rng.standard_normal()),
            )
    return replace(bank, blocks=tuple(blocks), ability_scale=ability_scale)


def _with_unit(block: ItemBlock, bank: ItemBank, cov: Array, unit: float) -> Array:
    """The covariances with the variance of the log unit appended, where the block needs it."""
    if not (block.model.has_unit_slope and bank.ability_scale.free_scale):
        return cov
    wide = np.pad(cov, ((0, 0), (0, 1), (0, 1)))
    wide[:, -1, -1] = unit
    return wide


def likelihood_gradients(bank: ItemBank, z: Array) -> Array:
    """Derivatives of the likelihood rows: (n_rows, n_parameters, n_grid).

    They are by the parameters of the row's item and, in the last columns, by the free parameters of
    the ability scale.
    """
    own = bank.log_likelihood_gradient(z)
    ability_scale = bank.ability_scale
    if not (ability_scale.free_location or ability_scale.free_scale):
        return own
    step = 1e-4
    # derivative by θ
    rise = (
        (bank.log_likelihood(z + step) - bank.log_likelihood(z - step))
        / (2 * step)
        / ability_scale.scale
    )
    parts = [rise] * ability_scale.free_location + [
        rise * ability_scale.scale * z
    ] * ability_scale.free_scale
    return np.concatenate([own, np.stack(parts, axis=1)], axis=1)


def _positions(bank: ItemBank) -> Array:
    """Index of each item's parameters in the bank's vector, −1 where fixed.

    The shape is (n_items, largest number of parameters).
    """
    width = max(block.u.shape[1] for block in bank.blocks)
    out = np.full((bank.item_count, width), -1, dtype=np.int64)
    used = 0
    for block in bank.blocks:
        position = np.full(block.u.shape, -1, dtype=np.int64)
        position[block.free] = used + np.arange(int(block.free.sum()))
        out[block.items, : block.u.shape[1]] = position
        used += int(block.free.sum())
    return out


def _joint(bank: ItemBank, layout: SiteLayout, scores: Array) -> Array:
    """Cross-product over people of the scores by all free parameters: (n_free, n_free)."""
    size = bank.free_count
    positions = _positions(bank)
    width = positions.shape[1]
    item = bank.item_of_row()[layout.factor_row]
    extra = scores.shape[1] - width
    total = np.zeros((size, size))
    bounds = layout.factor_start[layout.site_start]
    for a in range(0, layout.n_curves, CHUNK):
        b = min(a + CHUNK, layout.n_curves)
        mine = slice(int(bounds[a]), int(bounds[b]))
        person = np.repeat(np.arange(b - a), np.diff(bounds[a : b + 1]))
        table = np.zeros((b - a, size))
        for p in range(width):
            at = positions[item[mine], p]
            known = at >= 0
            np.add.at(table, (person[known], at[known]), scores[mine, p][known])
        for k in range(extra):
            table[:, size - extra + k] = np.bincount(person, scores[mine, width + k], b - a)
        total += table.T @ table
    return total


def _from_joint(bank: ItemBank, information: Array) -> tuple[Array, ...]:
    """Each item's part of the inverse of the joint information, priors included."""
    total = information.copy()
    positions = _positions(bank)
    size = bank.free_count
    for block in bank.blocks:
        at = positions[block.items, : block.u.shape[1]]
        known = at >= 0
        total[at[known], at[known]] += np.broadcast_to(
            block.item_prior.spread**-2.0, block.u.shape
        )[known]
    cov = np.linalg.pinv(total, hermitian=True)
    out = []
    for block in bank.blocks:
        at = positions[block.items, : block.u.shape[1]]
        if block.model.has_unit_slope and bank.ability_scale.free_scale:
            at = np.pad(at, ((0, 0), (0, 1)), constant_values=size - 1)
        both = (at[:, :, None] >= 0) & (at[:, None, :] >= 0)
        out.append(np.where(both, cov[at[:, :, None], at[:, None, :]], 0.0))
    return tuple(out)


def _own(bank: ItemBank, layout: SiteLayout, scores: Array) -> Array:
    """Σ over responses of the outer product of their expected scores, for each item."""
    width = max(block.u.shape[1] for block in bank.blocks)
    item = bank.item_of_row()[layout.factor_row]
    own = scores[:, :width]
    # amounts have several factors for each response
    if layout.factor_response[-1] + 1 < layout.factor_response.size:
        first = np.flatnonzero(np.diff(layout.factor_response, prepend=-1))
        own = np.add.reduceat(own, first, axis=0)
        item = item[first]
    total = np.zeros((bank.item_count, width, width))
    for p in range(width):
        for q in range(p + 1):
            total[:, p, q] = total[:, q, p] = np.bincount(
                item, own[:, p] * own[:, q], minlength=bank.item_count
            )
    return total


def _own_block(block: ItemBlock, information: Array) -> Array:
    """Inverse of the free part of each item's information, priors included."""
    both = block.free[:, :, None] & block.free[:, None, :]
    eye = np.eye(block.u.shape[1])
    held = (
        np.where(both, information + np.diag(block.item_prior.spread**-2.0), 0.0)
        + np.where(block.free, 0.0, 1.0)[:, :, None] * eye
    )
    return np.where(both, np.linalg.pinv(held + 1e-12 * eye, hermitian=True), 0.0)


def _shared(block: ItemBlock, bank: ItemBank, spread: Array) -> Array:
    """Covariance from the uncertain zero and unit of ability, where these are not anchored."""
    moves = _moves(block, bank)
    return np.asarray(np.einsum("ipa,ab,iqb->ipq", moves, spread, moves))


def _moves_of_rows(block: ItemBlock, unit_is_free: bool) -> Array:
    """The same for models of which nothing is known but their rows.

    Parameters move so that the rows stay where they are, as nearly as they can, over the abilities
    that people have: exactly, where the formula can express every zero and unit.
    """
    theta = np.linspace(-RANGE, RANGE, 61)
    step = 1e-4
    rows = block.model.log_likelihood(block.u, theta)
    ahead, behind = (block.model.log_likelihood(block.u, theta + d) for d in (step, -step))
    rise = (ahead - behind) / (2 * step)
    weight = np.exp(rows - rows.max(axis=1, keepdims=True))
    weight = np.sqrt(weight / weight.sum(axis=1, keepdims=True) * np.exp(-0.5 * theta**2))
    out = np.zeros((*block.u.shape, 2))
    for k, gradient in enumerate(block.model.log_likelihood_gradient(block.u, theta)):
        free = block.free[k]
        by_parameter = (gradient[free] * weight[k]).reshape(int(free.sum()), -1).T
        by_scale = np.stack([rise[k] * weight[k], rise[k] * theta * weight[k]], axis=2)
        found = np.linalg.lstsq(by_parameter, -by_scale.reshape(-1, 2), rcond=1e-8)[0]
        out[k, free] = found
    if unit_is_free:
        out[:, :, 1] = 0.0
    return out


def _moves(block: ItemBlock, bank: ItemBank) -> Array:
    """Derivatives of items by the abilities' zero and log unit: (n_items, n_parameters, 2).

    They are zero where zero and unit are anchored.
    """
    if bank.ability_scale.free_location:
        return np.zeros((*block.u.shape, 2))
    if not block.model.can_be_rescaled:
        return _moves_of_rows(block, bank.ability_scale.free_scale)
    moves = []
    # in these cases the unit is a parameter of its own
    held = bank.ability_scale.free_scale or block.model.has_unit_slope
    for scale, shift in ((1.0, STEP), (1.0 if held else float(np.exp(STEP)), 0.0)):
        moved = block.model.unconstrain(block.model.constrain(block.u, scale, shift), block.size)
        moves.append((moved - block.u) / STEP)
    return np.where(block.free[..., None], np.stack(moves, axis=2), 0.0)
