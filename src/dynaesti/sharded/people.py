"""People in shards behind the interface that EM sees."""

from __future__ import annotations

import uuid
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Ints, starts_of
from dynaesti.data import Responses
from dynaesti.estimation import (
    CheckpointArrays,
    EStepRequest,
    EStepResult,
    ItemInformation,
    PeopleSites,
    PersonSummary,
    PriorMixture,
    ability_grid,
    sum_e_steps,
)
from dynaesti.model import ItemBank, Kernel
from dynaesti.sharded.executors import Executor, OnProgress
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

PROCESS_BYTES = 350e6  # memory of the process itself
RESPONSE_BYTES = 420  # memory for each response of a shard in an E-step


class PeopleInShards:
    """People in shards, behind the interface that EM sees.

    Parameters
    ----------
    context : ShardContext
        Shards, coding and items, and the folder of the run.
    executor : Executor
        What runs the tasks.
    on_progress : callable, optional
        Called with the number of shards done in an E-step, and of all shards.
    begin : tuple of int, optional
        Versions of an earlier fit's sites, from which each shard starts.
    """

    def __init__(
        self,
        context: ShardContext,
        executor: Executor,
        on_progress: OnProgress | None = None,
        begin: tuple[int, ...] | None = None,
    ) -> None:
        self.context = context
        self.executor = executor
        self.on_progress = on_progress
        self.versions = begin or (0,) * len(context.shards)  # of each shard's sites
        self.earlier = self.versions  # those of an earlier fit
        self.checkpointed = self.versions  # those that the last checkpoint refers to
        self.nonempty = context.shards.nonempty

    @cached_property
    def person_summary(self) -> PersonSummary:
        return PersonSummary.concatenate(
            self.executor.run(SummarisePeopleTask(self.context), self.nonempty, sum_results)
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
        """The responses of some people (numbers over all shards), in memory."""
        chosen = self._chosen(people)
        return Responses.concatenate(
            self.executor.run(CollectResponsesTask(self.context, chosen), list(chosen), sum_results)
        )

    def _chosen(self, people: Ints) -> dict[int, Ints]:
        """People by shard, as numbers within the shard."""
        bounds = starts_of(
            np.array([self.context.shards.parts[k].people for k in self.nonempty], dtype=np.int64)
        )
        cuts = np.searchsorted(people, bounds)
        return {
            k: people[cuts[n] : cuts[n + 1]] - bounds[n]
            for n, k in enumerate(self.nonempty)
            if cuts[n + 1] > cuts[n]
        }

    def e_step(
        self,
        bank: ItemBank,
        grid: Array,
        priors: PriorMixture,
        request: EStepRequest,
    ) -> EStepResult:
        model = ModelSnapshot(bank, grid, priors, uuid.uuid4().hex)
        self.delete_stale_sites(self.earlier, self.checkpointed, self.versions)
        now = max(self.versions) + 1
        result = self.executor.run(
            EStepTask(self.context, model, request, self.versions, now),
            self.nonempty,
            sum_e_steps,
            self.on_progress,
        )
        self.versions = (now,) * len(self.versions)
        return result

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Do nothing: each E-step reads the sites that it needs, and writes those it found."""

    def information(
        self, bank: ItemBank, grid: Array, priors: PriorMixture, joint: bool
    ) -> ItemInformation:
        model = ModelSnapshot(bank, grid, priors, uuid.uuid4().hex)
        found: ItemInformation = self.executor.run(
            InformationTask(self.context, model, self.versions, joint), self.nonempty, sum_results
        )
        return found

    def checkpoint_arrays(self) -> CheckpointArrays:
        self.checkpointed = self.versions  # written before the next E-step begins
        return {"versions": np.array(self.versions, dtype=np.float64)}

    def restore(self, arrays: CheckpointArrays, kernels: list[Kernel]) -> None:  # noqa: ARG002
        self.versions = tuple(int(version) for version in arrays["versions"])
        self.checkpointed = self.versions

    def memory_estimate(self, bank: ItemBank) -> str:
        """Memory that an E-step takes, in words: set by the largest shard and by the items."""
        cells = bank.row_count * ability_grid(bank).size
        largest = max(self.context.shards.parts[k].rows for k in self.nonempty)
        workers = getattr(self.executor, "threads", 1)
        tables = cells * 8  # bytes; three of them, and one for each worker
        needed = PROCESS_BYTES + (3 + workers) * tables + workers * largest * RESPONSE_BYTES
        return (
            f"memory about {needed / 1e9:.1f} GB (largest shard {largest:,} answers, {workers} at "
            f"a time; items' tables {3 * tables / 1e6:,.0f} MB)"
        )

    def delete_stale_sites(self, *kept: tuple[int, ...]) -> None:
        """Remove the sites of all E-steps but these versions."""
        clean_sites(self.context.run, *kept)
