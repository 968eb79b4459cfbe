"""People in shards behind the interface that EM sees."""

from __future__ import annotations

import uuid
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Responses
from dynaesti.estimation import (
    CheckpointArrays,
    EStepResult,
    ItemInformation,
    PersonSummary,
    SiteLayout,
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


# --- the crowd
# -----------------------------------------------------------------------------------------------


class PeopleInShards:
    """A crowd in shards."""

    def __init__(
        self,
        layout: ShardContext,
        executor: Executor,
        listen: Listen | None = None,
        begin: tuple[int, ...] | None = None,
    ) -> None:
        self.layout = layout
        self.executor = executor
        self.listen = listen
        self.versions = begin or (0,) * len(layout.shards)  # of each shard's sites
        self.held = self.marked = (
            self.versions
        )  # those of an earlier fit, and those that the last checkpoint speaks of
        self.busy = [k for k, part in enumerate(layout.shards.parts) if part.people]

    @cached_property
    def person_summary(self) -> PersonSummary:
        return PersonSummary.joined(
            self.executor.run(SummarisePeopleTask(self.layout), self.busy, sum_results)
        )

    @property
    def answers(self) -> int:
        return self.layout.shards.rows

    def take(self, people: Ints) -> SiteLayout:
        chosen = self._chosen(people)
        return SiteLayout.joined(
            self.executor.run(CollectPeopleTask(self.layout, chosen), list(chosen), sum_results)
        )

    def responses(self, people: Ints) -> Responses:
        """The responses of some people, in memory."""
        chosen = self._chosen(people)
        return Responses.concatenate(
            self.executor.run(CollectResponsesTask(self.layout, chosen), list(chosen), sum_results)
        )

    def _chosen(self, people: Ints) -> dict[int, Ints]:
        """People by shard, as numbers within it."""
        bounds = np.concatenate(
            [[0], np.cumsum([self.layout.shards.parts[k].people for k in self.busy])]
        )
        cuts = np.searchsorted(people, bounds)
        return {
            k: people[cuts[n] : cuts[n + 1]] - bounds[n]
            for n, k in enumerate(self.busy)
            if cuts[n + 1] > cuts[n]
        }

    def look(
        self,
        bank: ItemBank,
        z: Array,
        kernels: list[Kernel],
        share: Array,
        tolerance: float,
        counting: bool = True,
    ) -> EStepResult:
        scene = ModelSnapshot(bank, z, tuple(kernels), share, uuid.uuid4().hex)
        self.clean(self.held, self.marked, self.versions)
        now = max(self.versions) + 1
        tally = self.executor.run(
            EStepTask(self.layout, scene, tolerance, counting, self.versions, now),
            self.busy,
            sum_e_steps,
            self.listen,
        )
        self.versions = (now,) * len(self.versions)
        return tally

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Nothing to do: the next look reads what it needs, and writes what it used."""

    def information(
        self, bank: ItemBank, z: Array, kernels: list[Kernel], share: Array, joint: bool
    ) -> ItemInformation:
        scene = ModelSnapshot(bank, z, tuple(kernels), share, uuid.uuid4().hex)
        found: ItemInformation = self.executor.run(
            InformationTask(self.layout, scene, self.versions, joint), self.busy, sum_results
        )
        return found

    def memory(self) -> CheckpointArrays:
        self.marked = (
            self.versions
        )  # by the time of the next look the mark that asks for this is written
        return {"versions": np.array(self.versions, dtype=np.float64)}

    def restore(self, memory: CheckpointArrays, kernels: list[Kernel]) -> None:  # noqa: ARG002
        self.versions = self.marked = tuple(int(version) for version in memory["versions"])

    def needs(self, bank: ItemBank) -> str:
        """What memory a look takes, in words.

        Set by the largest shard and the items, not by the data.
        """
        cells = bank.row_count * ability_grid(bank).size
        largest = max(self.layout.shards.parts[k].rows for k in self.busy)
        workers = getattr(self.executor, "threads", 1)
        return (
            f"memory about "
            f"{(BASE + cells * 8 * (3 + workers) + workers * largest * ANSWER_BYTES) / 1e9:.1f} "
            f"GB (largest shard "
            f"{largest:,} answers, {workers} at a time; items' tables {cells * 8 * 3 / 1e6:,.0f} "
            f"MB)"
        )

    def clean(self, *kept: tuple[int, ...]) -> None:
        """Remove the sites of all looks but these."""
        clean_sites(self.layout.run, *kept)
