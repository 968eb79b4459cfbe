"""Everyone's responses, laid out as sites of their ability curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, vstack

from dynaesti.core import Array, Ints, starts_of, starts_of_runs
from dynaesti.data import Responses
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.inference import SiteLayout
from dynaesti.model import EffectRows, Effects, ItemBank, Kernel, PeopleEffects

ROW_PARTS = 16  # groups of rows whose counts are added up in parallel


@dataclass(frozen=True)
class PeopleSites:
    """The sites of everyone's ability curve; each person has one curve."""

    layout: SiteLayout
    constant: Array  # (n_people,) part of the log-likelihood that does not depend on ability
    # (n_people,) number of each person's group, 0 where there are none; people whom updates bring
    # may have −1, the average of all
    group: Ints
    effects: PeopleEffects | None = None  # columns of effects, where there are any

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.layout.n_curves

    @property
    def n_responses(self) -> int:
        """Number of responses."""
        return int(self.layout.factor_response[-1]) + 1 if self.layout.factor_response.size else 0

    def merged_if(self, merges: bool) -> SiteLayout:
        """One site for each instant, or one for each person where ability is a single number."""
        return self.layout.merged if merges else self.layout

    def for_kernel(self, kernel: Kernel, priors: PriorMixture) -> SiteLayout:
        """The sites under a kernel of the population's prior."""
        return self.merged_if(priors.merges_instants(kernel))

    @property
    def group_of_site(self) -> Ints:
        """Group of the person of each site, with a site for each instant."""
        return np.repeat(self.group, np.diff(self.layout.site_start))

    @property
    def columns_of_effects(self) -> csr_array | None:
        """Columns of effects at every site, (n_sites, n_effects); None without effects."""
        return None if self.effects is None else self.effects.at_sites

    def columns_of_ability(self, person: Ints, times: Array) -> csr_array | None:
        """Columns of effects in abilities of people at times; None without effects."""
        return None if self.effects is None else self.effects.of_ability(person, times)

    @cached_property
    def person_summary(self) -> PersonSummary:
        """The summary by which a stratified subsample of the people is drawn."""
        layout = self.layout
        first, last = layout.spans
        n_sites = np.diff(layout.site_start)
        begin = layout.factor_start[layout.site_start[:-1]]
        signature = layout.factor_weight * (layout.factor_row + 1.0)
        time_of_factor = np.repeat(layout.times, np.diff(layout.factor_start))
        return PersonSummary(
            n_sites,
            first,
            last,
            np.add.reduceat(layout.times, layout.site_start[:-1]) / n_sites,
            np.add.reduceat(signature, begin),
            np.add.reduceat(signature * time_of_factor, begin),
            self.group,
            layout.factor_response[layout.factor_start[layout.site_start[1:]] - 1]
            - layout.factor_response[begin]
            + 1,
        )

    @cached_property
    def sites_by_row(self) -> list[Ints]:
        """Sites ordered by their rows, divided between rows into parts of about equal size.

        Only where every site has one factor.
        """
        order = np.argsort(self.layout.factor_row, kind="stable")
        rows = self.layout.factor_row[order]
        even = np.linspace(0, rows.size - 1, ROW_PARTS + 1).astype(np.int64)[1:-1]
        cuts = np.searchsorted(rows, rows[even])
        return [part for part in np.split(order, np.unique(cuts)) if part.size]

    @staticmethod
    def concatenate(parts: Sequence[PeopleSites]) -> PeopleSites:
        """The people of all parts, one part after the other."""
        layouts = [part.layout for part in parts]
        before = np.cumsum([0, *(part.n_responses for part in parts)])
        responses = [one.factor_response + n for one, n in zip(layouts, before, strict=False)]
        layout = SiteLayout(
            np.concatenate([one.times for one in layouts]),
            _concatenate_starts([one.site_start for one in layouts]),
            _concatenate_starts([one.factor_start for one in layouts]),
            np.concatenate([one.factor_row for one in layouts]).astype(np.int64),
            np.concatenate([one.factor_weight for one in layouts]),
            np.concatenate(responses),
        )
        return PeopleSites(
            layout,
            np.concatenate([part.constant for part in parts]),
            np.concatenate([part.group for part in parts]),
            _concatenate_effects([part.effects for part in parts if part.effects is not None]),
        )

    def select(self, people: Ints) -> PeopleSites:
        """The sites of some people."""
        effects = self.effects
        if effects is not None:
            effects = effects.select(people, self.layout.sites_of(people))
        return PeopleSites(
            self.layout.select(people), self.constant[people], self.group[people], effects
        )


def _concatenate_starts(parts: Sequence[Ints]) -> Ints:
    """Starts of rows laid end to end, from the starts within each part."""
    return starts_of(np.concatenate([np.diff(part) for part in parts]))


def _concatenate_effects(parts: Sequence[PeopleEffects]) -> PeopleEffects | None:
    """Columns of effects of all parts, one part after the other."""
    if not parts:
        return None
    rows = (
        csr_array(vstack([getattr(part, name) for part in parts], format="csr"))
        for name in ("at_sites", "level", "slope")
    )
    return PeopleEffects(*rows)


def build_people_sites(
    responses: Responses, coding: ResponseCoding, bank: ItemBank, effects: Effects | None = None
) -> PeopleSites:
    """Lay out everyone's responses as sites and factors.

    A person's instants are sites, and a response's likelihood terms are factors. Where responses of
    one instant differ in their columns of effects, they see different values, so that each run of
    equal ones is a site.
    """
    row, weight, n_factors, constant = _factors(responses, coding, bank)
    factor_start = starts_of(n_factors)
    times = responses.clock_times
    first = starts_of_runs(responses.person, times)
    rows = None
    if effects is not None:
        rows = effects.rows(responses)
        first = starts_of_runs(responses.person, times, _number_of_run(rows))
    people = np.arange(responses.people.size + 1)
    layout = SiteLayout(
        times[first],
        np.searchsorted(responses.person[first], people).astype(np.int64),
        factor_start[np.append(first, len(responses))],
        row,
        weight,
        np.repeat(np.arange(len(responses)), n_factors),
    )
    per_person = np.bincount(responses.person, constant, responses.people.size).astype(np.float64)
    group = np.zeros(people.size - 1, dtype=np.int64)
    columns = None
    if effects is not None and rows is not None:
        columns = PeopleEffects(rows.x[first], *effects.by_person(responses))
    if responses.group is not None:
        group = responses.group
    return PeopleSites(layout, per_person, group, columns)


def _number_of_run(rows: EffectRows) -> Ints:
    """Numbers that change from one response to the next where their columns of effects do."""
    before = rows.x[:-1]
    changed = abs(rows.x[1:] - before).sum(axis=1) > 0
    return np.concatenate([[0], np.cumsum(changed)]).astype(np.int64)


def _factors(
    responses: Responses, coding: ResponseCoding, bank: ItemBank
) -> tuple[Ints, Array, Ints, Array]:
    """The likelihood terms of all responses.

    Returns
    -------
    rows, weights : array (n_factors,)
        Rows of the likelihood table and their weights.
    number : int array (n_responses,)
        Number of factors of each response.
    constant : array (n_responses,)
        Part of its log-likelihood that does not depend on ability.
    """
    item = responses.item
    code = coding.code(responses, item)
    block_of, index = bank.index_in_blocks()
    response_weight = np.ones(len(responses)) if responses.weight is None else responses.weight
    number = np.array([1 if b.model.has_value_rows else b.model.term_count for b in bank.blocks])
    n_factors = number[block_of[item]]
    begin = starts_of(n_factors)
    row = np.empty(begin[-1], dtype=np.int64)
    weight = np.empty(begin[-1])
    constant = np.zeros(len(responses))
    for k, block in enumerate(bank.blocks):
        mine = np.flatnonzero(block_of[item] == k)
        first = block.first_row + index[item[mine]] * block.depth
        if block.model.has_value_rows:
            row[begin[mine]] = first + code[mine].astype(np.int64)
            weight[begin[mine]] = response_weight[mine]
            continue
        terms, constant[mine] = block.model.terms(code[mine], block.values[index[item[mine]]])
        constant[mine] *= response_weight[mine]
        rows = block.model.term_rows(code[mine], block.size)
        for r in range(number[k]):
            row[begin[mine] + r] = first + rows[:, r]
            weight[begin[mine] + r] = terms[:, r] * response_weight[mine]
    return row, weight, n_factors, constant
