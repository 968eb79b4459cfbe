"""Everyone's responses laid out as sites of their curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Responses
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.model import CustomItemModel, ItemBank, Kernel

ROW_PARTS = 16  # that the counts of all rows are added up in


@dataclass(frozen=True)
class SiteLayout:
    """Everyone's answers as sites.

    People in order, a site for each instant, members (row, coefficient) of each site.
    """

    times: Array  # (sites,)
    site_start: Ints  # (people + 1,)
    factor_start: Ints  # (sites + 1,)
    factor_row: Ints
    factor_weight: Array
    factor_response: Ints  # which answer (of the responses) a member belongs to
    constant: Array  # (people,): log-likelihood that no ability can change

    @property
    def people(self) -> int:
        """How many people."""
        return self.site_start.size - 1

    def __len__(self) -> int:
        return int(self.factor_response[-1]) + 1

    @cached_property
    def spans(self) -> tuple[Array, Array]:
        """First and last instant of each person."""
        return self.times[self.site_start[:-1]], self.times[self.site_start[1:] - 1]

    @cached_property
    def person_summary(self) -> PersonSummary:
        """What is worth knowing of everyone when some are to stand for all."""
        first, last = self.spans
        sites = np.diff(self.site_start)
        member = self.factor_start[self.site_start[:-1]]
        told = self.factor_weight * (self.factor_row + 1.0)
        when = np.repeat(self.times, np.diff(self.factor_start))
        return PersonSummary(
            sites,
            first,
            last,
            np.add.reduceat(self.times, self.site_start[:-1]) / sites,
            np.add.reduceat(told, member),
            np.add.reduceat(told * when, member),
        )

    @property
    def one_factor_per_site(self) -> bool:
        """Whether every site has one term of one answer."""
        return self.factor_row.size == self.times.size

    @cached_property
    def sites_by_row(self) -> list[Ints]:
        """The sites in the order of their rows, cut between rows into parts of about the same size.

        Where each has one.
        """
        order = np.argsort(self.factor_row, kind="stable")
        rows = self.factor_row[order]
        cuts = np.searchsorted(
            rows, rows[np.linspace(0, rows.size - 1, ROW_PARTS + 1).astype(np.int64)[1:-1]]
        )
        return [part for part in np.split(order, np.unique(cuts)) if part.size]

    @cached_property
    def merged(self) -> SiteLayout:
        """All answers of a person in one site: exact where abilities are constant."""
        first, last = self.spans
        return SiteLayout(
            0.5 * (first + last),
            np.arange(self.people + 1),
            self.factor_start[self.site_start],
            self.factor_row,
            self.factor_weight,
            self.factor_response,
            self.constant,
        )

    @staticmethod
    def joined(parts: Sequence[SiteLayout]) -> SiteLayout:
        """The people of all parts, one part after the other."""

        def starts(name: str) -> Ints:
            pieces = [getattr(part, name) for part in parts]
            ends = np.cumsum([0, *(piece[-1] for piece in pieces)])
            return np.concatenate(
                [piece[:-1] + end for piece, end in zip(pieces, ends, strict=False)] + [ends[-1:]]
            ).astype(np.int64)

        def whole(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in parts])

        before = np.cumsum([0, *(len(part) for part in parts)])
        answer = np.concatenate(
            [part.factor_response + n for part, n in zip(parts, before, strict=False)]
        )
        return SiteLayout(
            whole("times"),
            starts("site_start"),
            starts("factor_start"),
            whole("factor_row").astype(np.int64),
            whole("factor_weight"),
            answer,
            whole("constant"),
        )

    def take(self, people: Ints) -> SiteLayout:
        """Some of the people."""
        sites = take_rows(self.site_start, people)
        members = take_rows(self.factor_start, sites)
        counts = self.factor_start[sites + 1] - self.factor_start[sites]
        answer = np.cumsum(
            np.diff(self.factor_response[members], prepend=self.factor_response[members[:1]]) != 0
        )
        return SiteLayout(
            self.times[sites],
            _starts(self.site_start[people + 1] - self.site_start[people]),
            _starts(counts),
            self.factor_row[members],
            self.factor_weight[members],
            answer,
            self.constant[people],
        )

    def for_kernel(self, kernel: Kernel) -> SiteLayout:
        """The sites that a kernel sees."""
        return self.merged if kernel.static else self


def take_rows(start: Ints, chosen: Ints) -> Ints:
    """Indices start[c] … start[c + 1] of all chosen c, one run after the other."""
    counts = start[chosen + 1] - start[chosen]
    return np.asarray(
        np.arange(counts.sum()) + np.repeat(start[chosen] - (np.cumsum(counts) - counts), counts)
    )


def _starts(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def build_site_layout(responses: Responses, coding: ResponseCoding, bank: ItemBank) -> SiteLayout:
    """Everyone's answers as sites with members (row, coefficient)."""
    item = responses.item
    code = coding.code(responses, item)
    block_of, place = bank.index_in_blocks()
    weight = np.ones(len(responses)) if responses.weight is None else responses.weight
    depth = np.array(
        [
            1 if b.model.categorical or isinstance(b.model, CustomItemModel) else b.depth
            for b in bank.blocks
        ]
    )
    counts = depth[block_of[item]]
    begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.empty(begin[-1], dtype=np.int64)
    coefs = np.empty(begin[-1])
    constant = np.zeros(len(responses))
    for k, block in enumerate(bank.blocks):
        mine = np.flatnonzero(block_of[item] == k)
        first = block.first_row + place[item[mine]] * block.depth
        if depth[k] == 1:
            rows[begin[mine]] = first + code[mine].astype(np.int64)
            coefs[begin[mine]] = weight[mine]
            continue
        terms, constant[mine] = block.model.terms(code[mine], block.values[place[item[mine]]])
        constant[mine] *= weight[mine]
        for r in range(block.depth):
            rows[begin[mine] + r] = first + r
            coefs[begin[mine] + r] = terms[:, r] * weight[mine]
    times = responses.clock_times
    new = np.concatenate([[True], (np.diff(responses.person) > 0) | (np.diff(times) > 0)])
    first_answer = np.flatnonzero(new)
    site_start = np.searchsorted(
        responses.person[first_answer], np.arange(responses.people.size + 1)
    ).astype(np.int64)
    return SiteLayout(
        times[first_answer],
        site_start,
        begin[np.append(first_answer, len(responses))],
        rows,
        coefs,
        np.repeat(np.arange(len(responses)), counts),
        np.bincount(responses.person, constant, responses.people.size).astype(np.float64),
    )
