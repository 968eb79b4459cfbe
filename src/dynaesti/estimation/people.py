"""Everyone at once: a look at all people's answers with given items, and what it adds up to.

Whatever a look tells of the items is a sum over people. So people may be anywhere: in memory, in
shards on disk, on other machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Ints
from dynaesti.estimation.e_step import (
    EStep,
    EStepPosterior,
    Grafts,
    max_abs_ability,
    person_weights,
    scale_gradient,
)
from dynaesti.estimation.likelihood_table import tabulate_items
from dynaesti.estimation.site_layout import SiteLayout
from dynaesti.estimation.standard_errors import (
    ItemInformation,
    collect_information,
    likelihood_gradients,
)
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.inference import LogLikelihoodTable
from dynaesti.model import ItemBank, Kernel

CheckpointArrays = dict[str, npt.NDArray[np.float64]]
StartingSites = dict[Kernel, tuple[Array, Array]]


@dataclass
class EStepResult:
    """What a look at some people adds to the whole."""

    counts: Array | None  # (rows, points)
    evidence: Array  # (priors, people): log evidence of each person under each prior
    unit: Array  # (2, 2): how abilities ask to be shifted and stretched, see `scale_gradient`
    farthest: float  # how far from 0 any ability goes
    n_unconverged: int  # curves for which grafting did not settle


def sum_e_steps(parts: Sequence[EStepResult]) -> EStepResult:
    """The tally of all of them, people in order. The first one's counts are used up."""
    whole = parts[0].counts
    for part in parts[1:]:
        if whole is not None and part.counts is not None:
            whole += part.counts
    return EStepResult(
        whole,
        np.concatenate([part.evidence for part in parts], axis=1),
        np.sum([part.unit for part in parts], axis=0),
        max(part.farthest for part in parts),
        sum(part.n_unconverged for part in parts),
    )


class People(Protocol):
    """Everyone, wherever their answers are kept.

    Settled sites are remembered from look to look, to begin the next one with.
    """

    @property
    def person_summary(self) -> PersonSummary:
        """A line for each person."""

    @property
    def answers(self) -> int:
        """How many answers they gave."""

    def take(self, people: Ints) -> SiteLayout:
        """The answers of some people, in memory."""

    def look(
        self,
        bank: ItemBank,
        z: Array,
        kernels: list[Kernel],
        share: Array,
        tolerance: float,
        counting: bool = True,
    ) -> EStepResult:
        """Graft everyone's curve under every prior and add up what follows.

        `share` is the population's distribution over them.
        """

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Drop what is remembered of other priors than these."""

    def information(
        self, bank: ItemBank, z: Array, kernels: list[Kernel], share: Array, joint: bool
    ) -> ItemInformation:
        """What the answers say about the items together, for standard errors.

        After a last, tight look.
        """

    def memory(self) -> CheckpointArrays:
        """What a checkpoint must hold for the next look to begin where the last one ended."""

    def restore(self, memory: CheckpointArrays, kernels: list[Kernel]) -> None:
        """Begin the next look there."""


def e_step_over(
    e_step: EStep,
    sites: StartingSites,
    table: LogLikelihoodTable,
    kernels: list[Kernel],
    share: Array,
    tolerance: float,
    counting: bool,
) -> tuple[EStepResult, EStepPosterior]:
    """A look at people in memory, from the sites remembered of them."""
    expected = e_step.run(
        table, kernels, share, [sites.get(kernel) for kernel in kernels], tolerance
    )
    n_unconverged = sum(
        int((~g.converged & (w > 1e-3)).sum())
        for g, w in zip(expected.grafted, expected.weights, strict=True)
    )
    tally = EStepResult(
        e_step.counts(kernels, expected, table) if counting else None,
        expected.evidence,
        scale_gradient(e_step.answers, kernels, expected),
        max_abs_ability(expected),
        n_unconverged,
    )
    return tally, expected


class PeopleInMemory:
    """A crowd whose answers are all in memory."""

    def __init__(self, answers: SiteLayout, threads: int | None = None) -> None:
        self.e_step = EStep(answers, threads)
        self.sites: StartingSites = {}
        self.grafted: tuple[Grafts, ...] = ()  # of the last look

    @property
    def person_summary(self) -> PersonSummary:
        return self.e_step.answers.person_summary

    @property
    def answers(self) -> int:
        return len(self.e_step.answers)

    def take(self, people: Ints) -> SiteLayout:
        return self.e_step.answers.take(people)

    def look(
        self,
        bank: ItemBank,
        z: Array,
        kernels: list[Kernel],
        share: Array,
        tolerance: float,
        counting: bool = True,
    ) -> EStepResult:
        self.grafted = ()  # room for the next ones
        tally, expected = e_step_over(
            self.e_step, self.sites, tabulate_items(bank, z), kernels, share, tolerance, counting
        )
        self.sites = {
            kernel: (g.precision, g.shift)
            for kernel, g in zip(kernels, expected.grafted, strict=True)
        }
        self.grafted = expected.grafted
        return tally

    def drop_cached(self, kernels: list[Kernel]) -> None:
        self.sites = {kernel: pair for kernel, pair in self.sites.items() if kernel in kernels}
        self.e_step.drop_cached(kernels)

    def information(
        self, bank: ItemBank, z: Array, kernels: list[Kernel], share: Array, joint: bool
    ) -> ItemInformation:
        expected = EStepPosterior(self.grafted, person_weights(share, self.grafted))
        return collect_information(
            self.e_step,
            bank,
            tabulate_items(bank, z),
            likelihood_gradients(bank, z),
            kernels,
            expected,
            joint,
        )

    def memory(self) -> CheckpointArrays:
        return {f"sites{k}": np.stack(pair) for k, pair in enumerate(self.sites.values())}

    def restore(self, memory: CheckpointArrays, kernels: list[Kernel]) -> None:
        self.sites = {
            kernel: (memory[f"sites{k}"][0], memory[f"sites{k}"][1])
            for k, kernel in enumerate(kernels)
            if f"sites{k}" in memory
        }
