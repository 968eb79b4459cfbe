"""Tasks on one shard: small and picklable, run by threads or by Dask workers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array, Folder, Ints
from dynaesti.data import Responses
from dynaesti.estimation import (
    EP_TOLERANCE_FINAL,
    EStep,
    EStepRequest,
    EStepResult,
    ItemInformation,
    PeopleSites,
    PersonSummary,
    PriorMixture,
    ResponseCoding,
    ResponseCounts,
    build_people_sites,
    collect_information,
    count_responses,
    e_step_over,
    likelihood_gradients,
    tabulate_items,
)
from dynaesti.inference import LogLikelihoodTable
from dynaesti.model import Effects, EffectSums, ItemBank, ItemModel, sum_effects
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.site_store import read_sites, write_sites


@dataclass(frozen=True)
class ShardContext:
    """What tasks on any shard need: the responses, their coding, and the folder of the sites."""

    shards: Shards
    coding: ResponseCoding
    bank: ItemBank  # for the layout of its rows; its parameters are those at the start
    clock: str
    run: Folder
    effects: Effects | None = None

    def sites(self, k: int) -> PeopleSites:
        """The sites of the people of shard k."""
        responses = self.shards.responses(k, self.clock)
        return build_people_sites(responses, self.coding, self.bank, self.effects)


@dataclass(frozen=True)
class CountResponsesTask:
    """Count a shard's responses."""

    shards: Shards
    models: tuple[ItemModel, ...]

    def __call__(self, shard: int, threads: int | None) -> ResponseCounts:  # noqa: ARG002
        return count_responses(self.shards.responses(shard), self.models)


@dataclass(frozen=True)
class SumEffectsTask:
    """Sum up what centres and scales of effects are made of, over a shard."""

    shards: Shards
    effects: Effects
    clock: str

    def __call__(self, shard: int, threads: int | None) -> EffectSums:  # noqa: ARG002
        return sum_effects(self.effects, self.shards.responses(shard, self.clock))


@dataclass(frozen=True)
class SummarisePeopleTask:
    """Summarise the people of a shard."""

    context: ShardContext

    def __call__(self, shard: int, threads: int | None) -> list[PersonSummary]:  # noqa: ARG002
        return [self.context.sites(shard).person_summary]


@dataclass(frozen=True)
class CollectPeopleTask:
    """Collect the sites of some of a shard's people."""

    context: ShardContext
    chosen: dict[int, Ints]

    def __call__(self, shard: int, threads: int | None) -> list[PeopleSites]:  # noqa: ARG002
        return [self.context.sites(shard).select(self.chosen[shard])]


@dataclass(frozen=True)
class CollectResponsesTask:
    """Collect the responses of some of a shard's people."""

    context: ShardContext
    chosen: dict[int, Ints]

    def __call__(self, shard: int, threads: int | None) -> list[Responses]:  # noqa: ARG002
        return [
            self.context.shards.responses(shard, self.context.clock).select_people(
                self.chosen[shard]
            )
        ]


@dataclass(frozen=True)
class ModelSnapshot:
    """Items and population of one E-step.

    Each process computes the items' tables once; they are not sent.
    """

    bank: ItemBank
    grid: Array  # (n_grid,) abilities
    priors: PriorMixture
    token: str  # by which a process recognises it

    @property
    def table(self) -> LogLikelihoodTable:
        """The items' log-likelihoods on the grid."""
        found: LogLikelihoodTable = _tables.get(
            (self.token, "table"), lambda: tabulate_items(self.bank, self.grid)
        )
        return found

    @property
    def gradients(self) -> Array:
        """Derivatives of the log-likelihoods by the items' parameters, on the grid."""
        found: Array = _tables.get(
            (self.token, "gradients"), lambda: likelihood_gradients(self.bank, self.grid)
        )
        return found


class _RecentTables:
    """The last few tables, so that two fits in one process do not evict each other's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def get(self, key: tuple[str, str], make: Callable[[], Any]) -> Any:
        """The table under this key; made where it is not among the recent ones."""
        with self._lock:
            if key not in self._made:
                while len(self._made) >= self._size:
                    self._made.popitem(last=False)
                self._made[key] = make()
            self._made.move_to_end(key)
            return self._made[key]


_tables = _RecentTables(size=3)  # those of two fits at once, and the gradients at the end of one


@dataclass(frozen=True)
class EStepTask:
    """Run the E-step over the people of a shard."""

    context: ShardContext
    model: ModelSnapshot
    request: EStepRequest
    begin: tuple[int, ...]  # versions of the sites that each shard starts from
    version: int  # of the sites that it writes

    def __call__(self, shard: int, threads: int | None) -> EStepResult:
        priors = self.model.priors
        run = self.context.run
        e_step = EStep(self.context.sites(shard), threads, max_buffers=1)
        sites = read_sites(run, shard, self.begin[shard], priors, e_step.sites)
        model = self.model
        result, posterior = e_step_over(
            e_step, sites, model.bank, model.table, priors, self.request
        )
        write_sites(
            run,
            shard,
            self.version,
            {kernel: ep.sites for kernel, ep in zip(priors.kernels, posterior.ep, strict=True)},
        )
        return result


@dataclass(frozen=True)
class InformationTask:
    """Collect the information of a shard's responses about the items."""

    context: ShardContext
    model: ModelSnapshot
    begin: tuple[int, ...]
    joint: bool

    def __call__(self, shard: int, threads: int | None) -> ItemInformation:
        model = self.model
        priors = model.priors
        e_step = EStep(self.context.sites(shard), threads, max_buffers=1)
        sites = read_sites(self.context.run, shard, self.begin[shard], priors, e_step.sites)
        starts = [sites.get(kernel) for kernel in priors.kernels]
        posterior = e_step.run(model.table, priors, starts, EP_TOLERANCE_FINAL)
        return collect_information(
            e_step, model.bank, model.table, model.gradients, priors, posterior, self.joint
        )


def sum_results(parts: list[Any]) -> Any:
    """The sum of results that support +, in their order."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
