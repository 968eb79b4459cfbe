"""Expected scores of single responses: the gradients of the evidence of which item tests are made.

By Fisher's identity the gradient of a person's log evidence by anything that moves the likelihood
of a response is the expected score of that response under its tilted distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, gauss_hermite, jit, jit_internal
from dynaesti.estimation.e_step import EStep, EStepPosterior, leave_one_out_abilities
from dynaesti.estimation.population import PriorMixture
from dynaesti.inference import LogLikelihoodTable, Moments
from dynaesti.model import ItemBank

NODES = 5  # at which the ability behind a response is integrated, to predict its score
LEAST_CHANCE = 1e-12  # of a category, below which it is left out


@dataclass(frozen=True)
class ResponseScores:
    """Expected scores of every response, in the order of the responses.

    Scores are by the parameters of the response's item, then by ability and by the log of the unit
    of ability.
    """

    item: Ints  # (n_responses,)
    person: Ints  # (n_responses,)
    n_items: int
    n_people: int
    scores: Array  # (n_responses, n_parameters + 2)
    # (n_responses, n_parameters + 2, n_parameters + 2): products of scores that are expected, given
    # all other responses, less those that were seen; 0 for items without categories
    excess: Array
    cohort_design: Array  # (n_responses, n_coefficients) of the cohort and the effects

    @property
    def n_parameters(self) -> int:
        """Largest number of parameters of an item."""
        return int(self.scores.shape[1]) - 2

    @property
    def by_ability(self) -> int:
        """Number of the score by ability."""
        return self.n_parameters

    @property
    def by_unit(self) -> int:
        """Number of the score by the log unit of ability."""
        return self.n_parameters + 1


def response_scores(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    priors: PriorMixture,
    posterior: EStepPosterior,
) -> ResponseScores:
    """The scores of all responses of some people, at their curves and the items' parameters."""
    sites = e_step.sites
    layout = sites.layout
    found = _scored(e_step, bank, table, priors, posterior, score_gradients(bank, table))
    excess = found.products - found.scores[:, :, None] * found.scores[:, None, :]
    excess[rows_of_items(bank)[1][found.item] == 0] = 0.0
    design = np.zeros((found.item.size, 0))
    if priors.cohort is not None:
        x = sites.columns_of_effects
        design = priors.cohort.design(layout.times, sites.group_of_site, x)
        design = design if found.site.size == layout.n_sites else design[found.site]
    return ResponseScores(
        found.item,
        found.person,
        bank.item_count,
        layout.n_curves,
        found.scores,
        excess,
        design,
    )


class AbilityScores(NamedTuple):
    """Expected score of every response by ability, and the information that is expected of it."""

    item: Ints  # (n_responses,)
    person: Ints  # (n_responses,)
    time: Array  # (n_responses,)
    score: Array  # (n_responses,)
    information: Array  # (n_responses,) 0 for amounts


def ability_scores(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    priors: PriorMixture,
    posterior: EStepPosterior,
) -> AbilityScores:
    """The scores of all responses of some people by ability alone."""
    gradients = np.gradient(table.log_lik, table.step, axis=1, edge_order=2)[:, None]
    found = _scored(e_step, bank, table, priors, posterior, gradients)
    times = e_step.sites.layout.times[found.site]
    return AbilityScores(
        found.item, found.person, times, found.scores[:, 0], found.products[:, 0, 0]
    )


class _Scored(NamedTuple):
    """Scores of responses, with whose they are."""

    item: Ints  # (n_responses,)
    person: Ints  # (n_responses,)
    site: Ints  # (n_responses,)
    scores: Array  # (n_responses, n_scores)
    products: Array  # (n_responses, n_scores, n_scores) of scores, as expected; 0 for amounts


def _scored(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    priors: PriorMixture,
    posterior: EStepPosterior,
    gradients: Array,
) -> _Scored:
    layout = e_step.sites.layout
    scores = e_step.scores(priors, posterior, table, gradients)
    first = np.flatnonzero(np.diff(layout.factor_response, prepend=-1))
    if first.size < scores.shape[0]:  # amounts have several factors for each response
        scores = np.add.reduceat(scores, first, axis=0)
    site = np.repeat(np.arange(layout.n_sites), np.diff(layout.factor_start))[first]
    person = np.repeat(np.arange(layout.n_curves), np.diff(layout.site_start))[site]
    item = bank.item_of_row()[layout.factor_row[first]]
    ability = _leave_one_out(e_step, priors, posterior, table, person)
    products = _expected_products(bank, table, gradients, item, ability)
    products *= (layout.factor_weight[first] ** 2)[:, None, None]
    return _Scored(item, person, site, scores, products)


def score_gradients(bank: ItemBank, table: LogLikelihoodTable) -> Array:
    """Derivatives of the likelihood rows, (n_rows, n_parameters + 2, n_grid).

    They are by the free parameters of the row's item, by ability, and by the log of its unit.
    """
    z: Array = table.start + table.step * np.arange(float(table.log_lik.shape[1]))
    own = bank.log_likelihood_gradient(z)
    for block in bank.blocks:
        if not block.free.all():
            is_free = np.repeat(block.free, block.depth, axis=0)
            own[block.first_row : block.end_row, : is_free.shape[1]] *= is_free[:, :, None]
    by_ability = np.gradient(table.log_lik, table.step, axis=1, edge_order=2)
    return np.concatenate([own, by_ability[:, None], (z * by_ability)[:, None]], axis=1)


def rows_of_items(bank: ItemBank) -> tuple[Ints, Ints]:
    """First likelihood row of each item, and its number of categories: 0 for amounts."""
    first = np.zeros(bank.item_count, dtype=np.int64)
    number = np.zeros(bank.item_count, dtype=np.int64)
    for block in bank.blocks:
        first[block.items] = block.first_row + block.depth * np.arange(block.items.size)
        number[block.items] = block.depth if block.model.has_value_rows else 0
    return first, number


def _leave_one_out(
    e_step: EStep,
    priors: PriorMixture,
    posterior: EStepPosterior,
    table: LogLikelihoodTable,
    person: Ints,
) -> Moments:
    """Ability at each response's instant without it, over all kernels: (n_responses,)."""
    mean = np.zeros(person.size)
    square = np.zeros(person.size)
    for kernel, result, weights in posterior.by_kernel(priors):
        layout = e_step.sites.for_kernel(kernel, priors)
        found = leave_one_out_abilities(e_step.sites, layout, result, table)
        mean += weights[person] * found.mean
        square += weights[person] * (found.variance + found.mean**2)
    return Moments(mean, np.maximum(square - mean**2, 1e-12))


def _expected_products(
    bank: ItemBank, table: LogLikelihoodTable, gradients: Array, item: Ints, ability: Moments
) -> Array:
    """Products of scores that are expected of each response, (n_responses, n_scores, n_scores)."""
    out = np.zeros((item.size, gradients.shape[1], gradients.shape[1]))
    first, number = rows_of_items(bank)
    nodes, weights = gauss_hermite(NODES)
    _add_expected_products(
        first[item],
        number[item],
        ability.mean,
        np.sqrt(ability.variance),
        nodes,
        weights,
        table,
        gradients,
        out,
    )
    return out


@jit
def _add_expected_products(
    first: Ints,
    number: Ints,
    mean: Array,
    sd: Array,
    nodes: Array,
    weights: Array,
    table: LogLikelihoodTable,
    gradients: Array,
    out: Array,
) -> None:
    """Add the products of each response's scores, on average over its possible categories.

    Rows are interpolated linearly between the points of the grid: this is a variance. Expected
    scores over all categories are 0, so that those of the last follow from the others.
    """
    start, step, size = table.start, table.step, table.log_lik.shape[1]
    width = gradients.shape[1]
    total = np.empty(width)
    rest = np.empty(width)
    for m in range(first.size):
        if number[m] == 0:
            continue
        rest[:] = 0.0
        rest_chance = 1.0
        for row in range(first[m], first[m] + number[m] - 1):
            chance = 0.0
            total[:] = 0.0
            lik = table.lik[row]
            for k in range(nodes.size):
                u = min(max((mean[m] + sd[m] * nodes[k] - start) / step, 0.0), size - 1.001)
                i = int(u)
                part = u - i
                w = weights[k] * ((1.0 - part) * lik[i] + part * lik[i + 1])
                chance += w
                for p in range(width):
                    slope = gradients[row, p]
                    total[p] += w * ((1.0 - part) * slope[i] + part * slope[i + 1])
            scale = np.exp(table.top[row])
            chance *= scale
            rest_chance -= chance
            for p in range(width):
                total[p] *= scale
                rest[p] += total[p]
            if chance > LEAST_CHANCE:
                _add_products(total, chance, out[m])
        if rest_chance > LEAST_CHANCE:
            _add_products(rest, rest_chance, out[m])


@jit_internal
def _add_products(scores: Array, chance: float, out: Array) -> None:
    """Add the products of a category's scores, which are summed over its probability."""
    for p in range(scores.size):
        for q in range(scores.size):
            out[p, q] += scores[p] * scores[q] / chance
