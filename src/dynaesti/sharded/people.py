"""People in shards behind the interface that EM sees."""

from __future__ import annotations

import uuid
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Ints, starts_of
from dynaesti.data import Responses
from dynaesti.estimation import (
    CheckpointArrays,
    EStepResult,
    ItemInformation,
    PeopleSites,
    PersonSummary,
    ability_grid,
    sum_e_steps,
)
from dynaesti.model import ItemBank, Kernel
from dynaesti.sharded.executors import Executor, Listen
from dynaesti.sharded.site_store import clean_sites
from dynaesti.sharded.tasks import (
    CollectPeopleTask,
    CollectResponsesTask,
    EStepTask,
    InformationTask,
    ModelSnapshot,
    ShardContext,
    SummarisePeopleTask,
    sum_results,
)

# memory of the process itself, and for each answer of a shard at work
BASE = 350e6
ANSWER_BYTES = 420


class PeopleInShards:
    """People in shards, behind the interface that EM sees."""

    def __init__(
        self,
        context: ShardContext,
        executor: Executor,
        listen: Listen | None = None,
        begin: tuple[int, ...] | None = None,
    ) -> None:
        self.context = context
        self.executor = executor
        self.listen = listen
        self.versions = begin or (0,) * len(context.shards)  # of each shard's sites
        self.held = self.checkpointed = (
            self.versions
        )  # those of an earlier fit, and those that the last checkpoint speaks of
        self.busy = [k for k, part in enumerate(context.shards.parts) if part.people]

    @cached_property
    def person_summary(self) -> PersonSummary:
        return PersonSummary.concatenate(
            self.executor.run(SummarisePeopleTask(self.context), self.busy, sum_results)
        )

    @property
    def n_responses(self) -> int:
        return self.context.shards.rows

    def subset(self, people: Ints) -> PeopleSites:
        chosen = self._chosen(people)
        return PeopleSites.concatenate(
            self.executor.run(CollectPeopleTask(self.context, chosen), list(chosen), sum_results)
        )

    def responses(self, people: Ints) -> Responses:
        """The responses of some people, in memory."""
        chosen = self._chosen(people)
        return Responses.concatenate(
            self.executor.run(CollectResponsesTask(self.context, chosen), list(chosen), sum_results)
        )

    def _chosen(self, people: Ints) -> dict[int, Ints]:
        """People by shard, as numbers within it."""
        bounds = starts_of(
            np.array([self.context.shards.parts[k].people for k in self.busy], dtype=np.int64)
        )
        cuts = np.searchsorted(people, bounds)
        return {
            k: people[cuts[n] : cuts[n + 1]] - bounds[n]
            for n, k in enumerate(self.busy)
            if cuts[n + 1] > cuts[n]
        }

    def e_step(
        self,
        bank: ItemBank,
        grid: Array,
        kernels: list[Kernel],
        population: Array,
        tolerance: float,
        with_counts: bool = True,
    ) -> EStepResult:
        model = ModelSnapshot(bank, grid, tuple(kernels), population, uuid.uuid4().hex)
        self.delete_stale_sites(self.held, self.checkpointed, self.versions)
        now = max(self.versions) + 1
        result = self.executor.run(
            EStepTask(self.context, model, tolerance, with_counts, self.versions, now),
            self.busy,
            sum_e_steps,
            self.listen,
        )
        self.versions = (now,) * len(self.versions)
        return result

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Nothing to do: the next look reads what it needs, and writes what it used."""

    def information(
        self, bank: ItemBank, grid: Array, kernels: list[Kernel], population: Array, joint: bool
    ) -> ItemInformation:
        model = ModelSnapshot(bank, grid, tuple(kernels), population, uuid.uuid4().hex)
        found: ItemInformation = self.executor.run(
            InformationTask(self.context, model, self.versions, joint), self.busy, sum_results
        )
        return found

    def checkpoint_arrays(self) -> CheckpointArrays:
        self.checkpointed = (
            self.versions
        )  # by the time of the next look the mark that asks for this is written
        return {"versions": np.array(self.versions, dtype=np.float64)}

    def restore(self, arrays: CheckpointArrays, kernels: list[Kernel]) -> None:  # noqa: ARG002
        self.versions = self.checkpointed = tuple(int(version) for version in arrays["versions"])

    def memory_estimate(self, bank: ItemBank) -> str:
        """What memory a look takes, in words.

        Set by the largest shard and the items, not by the data.
        """
        cells = bank.row_count * ability_grid(bank).size
        largest = max(self.context.shards.parts[k].rows for k in self.busy)
        workers = getattr(self.executor, "threads", 1)
        return (
            f"memory about "
            f"{(BASE + cells * 8 * (3 + workers) + workers * largest * ANSWER_BYTES) / 1e9:.1f} "
            f"GB (largest shard "
            f"{largest:,} answers, {workers} at a time; items' tables {cells * 8 * 3 / 1e6:,.0f} "
            f"MB)"
        )

    def delete_stale_sites(self, *kept: tuple[int, ...]) -> None:
        """Remove the sites of all E-steps but these versions."""
        clean_sites(self.context.run, *kept)
