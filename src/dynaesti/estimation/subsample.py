"""Per-person summaries, and the stratified subsample of people drawn by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dynaesti.core import Array, Ints

FEWEST = 20  # people in a sample


@dataclass(frozen=True)
class PersonSummary:
    """A line for each person.

    What decides who stands for all. Two people alike in all of it are alike in their answers, or
    nearly.
    """

    sites: Ints
    first: Array
    last: Array
    middle: Array  # mean instant
    told: (
        Array  # two sums over the answers, that tell people apart who answered at the same instants
    )
    told_when: Array

    @property
    def people(self) -> int:
        """How many people."""
        return self.sites.size

    @staticmethod
    def joined(parts: Sequence[PersonSummary]) -> PersonSummary:
        """One below the other."""
        return PersonSummary(
            *(
                np.concatenate([getattr(part, f.name) for part in parts])
                for f in fields(PersonSummary)
            )
        )

    def sample(self, sites: int) -> Ints:
        """People spread evenly over sizes and times, with about so many sites together.

        Labels and order do not matter.
        """
        total = int(self.sites.sum())
        if total <= 1.5 * sites:
            return np.arange(self.people)
        order = np.lexsort(
            (self.told_when, self.told, self.middle, self.last, self.first, self.sites)
        )
        wanted = min(max(FEWEST, round(self.people * sites / total)), self.people)
        return np.sort(
            order[np.unique(np.linspace(0, self.people - 1, wanted).round().astype(np.int64))]
        )
