"""Everyone at once: a look at all people's answers with given items, and what it adds up to.

Whatever a look tells of the items is a sum over people. So people may be anywhere: in memory, in shards on disk, on other machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Ints
from dynaesti.estimation.e_step import (
    Expectation,
    Expected,
    Grafts,
    farthest_ability,
    person_weights,
    unit_sums,
)
from dynaesti.estimation.likelihood_table import tabulated
from dynaesti.estimation.site_layout import Answers
from dynaesti.estimation.standard_errors import Information, gathered, row_slopes
from dynaesti.estimation.subsample import Census
from dynaesti.inference import RowTable
from dynaesti.model import Bank, Kernel

Memory = dict[str, npt.NDArray[np.float64]]
Sites = dict[Kernel, tuple[Array, Array]]


@dataclass
class Tally:
    """What a look at some people adds to the whole."""

    counts: Array | None  # (rows, points)
    evidence: Array  # (priors, people): log evidence of each person under each prior
    unit: Array  # (2, 2): how abilities ask to be shifted and stretched, see `unit_sums`
    farthest: float  # how far from 0 any ability goes
    unsettled: int  # curves for which grafting did not settle


def added(parts: Sequence[Tally]) -> Tally:
    """The tally of all of them, people in order. The first one's counts are used up."""
    whole = parts[0].counts
    for part in parts[1:]:
        if whole is not None and part.counts is not None:
            whole += part.counts
    return Tally(
        whole,
        np.concatenate([part.evidence for part in parts], axis=1),
        np.sum([part.unit for part in parts], axis=0),
        max(part.farthest for part in parts),
        sum(part.unsettled for part in parts),
    )


class Crowd(Protocol):
    """Everyone, wherever their answers are kept. Settled sites are remembered from look to look, to begin the next one with."""

    @property
    def census(self) -> Census:
        """A line for each person."""

    @property
    def answers(self) -> int:
        """How many answers they gave."""

    def take(self, people: Ints) -> Answers:
        """The answers of some people, in memory."""

    def look(
        self,
        bank: Bank,
        z: Array,
        kernels: list[Kernel],
        share: Array,
        tolerance: float,
        counting: bool = True,
    ) -> Tally:
        """Graft everyone's curve under every prior and add up what follows; `share` is the population's distribution over them."""

    def forget(self, kernels: list[Kernel]) -> None:
        """Drop what is remembered of other priors than these."""

    def information(
        self, bank: Bank, z: Array, kernels: list[Kernel], share: Array, joint: bool
    ) -> Information:
        """What the answers say about the items together, for standard errors; after a last, tight look."""

    def memory(self) -> Memory:
        """What a checkpoint must hold for the next look to begin where the last one ended."""

    def recall(self, memory: Memory, kernels: list[Kernel]) -> None:
        """Begin the next look there."""


def look_at(
    engine: Expectation,
    sites: Sites,
    table: RowTable,
    kernels: list[Kernel],
    share: Array,
    tolerance: float,
    counting: bool,
) -> tuple[Tally, Expected]:
    """A look at people in memory, from the sites remembered of them."""
    expected = engine.run(
        table, kernels, share, [sites.get(kernel) for kernel in kernels], tolerance
    )
    unsettled = sum(
        int((~g.converged & (w > 1e-3)).sum())
        for g, w in zip(expected.grafted, expected.weights, strict=True)
    )
    tally = Tally(
        engine.counts(kernels, expected, table) if counting else None,
        expected.evidence,
        unit_sums(engine.answers, kernels, expected),
        farthest_ability(expected),
        unsettled,
    )
    return tally, expected


class InMemory:
    """A crowd whose answers are all in memory."""

    def __init__(self, answers: Answers, threads: int | None = None) -> None:
        self.engine = Expectation(answers, threads)
        self.sites: Sites = {}
        self.grafted: tuple[Grafts, ...] = ()  # of the last look

    @property
    def census(self) -> Census:
        return self.engine.answers.census

    @property
    def answers(self) -> int:
        return len(self.engine.answers)

    def take(self, people: Ints) -> Answers:
        return self.engine.answers.take(people)

    def look(
        self,
        bank: Bank,
        z: Array,
        kernels: list[Kernel],
        share: Array,
        tolerance: float,
        counting: bool = True,
    ) -> Tally:
        self.grafted = ()  # room for the next ones
        tally, expected = look_at(
            self.engine, self.sites, tabulated(bank, z), kernels, share, tolerance, counting
        )
        self.sites = {
            kernel: (g.precision, g.shift)
            for kernel, g in zip(kernels, expected.grafted, strict=True)
        }
        self.grafted = expected.grafted
        return tally

    def forget(self, kernels: list[Kernel]) -> None:
        self.sites = {kernel: pair for kernel, pair in self.sites.items() if kernel in kernels}
        self.engine.forget(kernels)

    def information(
        self, bank: Bank, z: Array, kernels: list[Kernel], share: Array, joint: bool
    ) -> Information:
        expected = Expected(self.grafted, person_weights(share, self.grafted))
        return gathered(
            self.engine, bank, tabulated(bank, z), row_slopes(bank, z), kernels, expected, joint
        )

    def memory(self) -> Memory:
        return {f"sites{k}": np.stack(pair) for k, pair in enumerate(self.sites.values())}

    def recall(self, memory: Memory, kernels: list[Kernel]) -> None:
        self.sites = {
            kernel: (memory[f"sites{k}"][0], memory[f"sites{k}"][1])
            for k, kernel in enumerate(kernels)
            if f"sites{k}" in memory
        }
