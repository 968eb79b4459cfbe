"""Per-person summaries, and the stratified subsample of people drawn by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dynaesti.core import Array, Ints

MIN_PEOPLE = 20  # in a sample


@dataclass(frozen=True)
class PersonSummary:
    """One entry for each person, by which a subsample is stratified.

    People who agree in all entries gave the same responses, or nearly.
    """

    n_sites: Ints  # (n_people,)
    first: Array  # (n_people,) first instant
    last: Array  # (n_people,)
    mean_time: Array  # (n_people,)
    # order-independent sums over a person's responses, which distinguish people who answered at
    # the same instants
    signature: Array  # (n_people,)
    timed_signature: Array  # (n_people,)
    group: Ints  # (n_people,)
    n_responses: Ints  # (n_people,)

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.n_sites.size

    @property
    def typical_site_span(self) -> float:
        """Root mean square, over sites, of the time that their person's instants cover."""
        return float(np.sqrt(np.average((self.last - self.first) ** 2, weights=self.n_sites)))

    @staticmethod
    def concatenate(parts: Sequence[PersonSummary]) -> PersonSummary:
        """The people of all parts, one part after the other."""
        names = [field.name for field in fields(PersonSummary)]
        return PersonSummary(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def sample(self, n_sites: int) -> Ints:
        """Draw people evenly over numbers of sites and times, with about `n_sites` sites in all.

        The sample does not depend on labels or order.
        """
        total = int(self.n_sites.sum())
        if total <= 1.5 * n_sites:
            return np.arange(self.n_people)
        order = np.lexsort(
            (
                self.timed_signature,
                self.signature,
                self.mean_time,
                self.last,
                self.first,
                self.n_sites,
                self.group,
            )
        )
        size = min(max(MIN_PEOPLE, round(self.n_people * n_sites / total)), self.n_people)
        return spread_over_groups(order, self.group, size)


def spread_over_groups(order: Ints, group: Ints, size: int) -> Ints:
    """About `size` of the people in an order, evenly, with at least a few of every group."""
    even = np.linspace(0, order.size - 1, size).round().astype(np.int64)
    chosen = order[np.unique(even)]
    if not group.any():
        return np.sort(chosen)
    parts = [chosen]
    for g in np.unique(group):
        mine = order[group[order] == g]
        few = np.linspace(0, mine.size - 1, min(MIN_PEOPLE, mine.size))
        parts.append(mine[few.round().astype(np.int64)])
    return np.unique(np.concatenate(parts))
