"""Tasks on one shard: small, picklable, run by threads or on a Dask worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array, Folder, Ints
from dynaesti.data import Responses
from dynaesti.estimation import (
    EP_TOLERANCE_FINAL,
    EStep,
    EStepResult,
    ItemInformation,
    PersonSummary,
    ResponseCoding,
    ResponseCounts,
    SiteLayout,
    build_site_layout,
    collect_information,
    count_responses,
    e_step_over,
    likelihood_gradients,
    tabulate_items,
)
from dynaesti.inference import LogLikelihoodTable
from dynaesti.model import ItemBank, ItemModel, Kernel
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.site_store import read_sites, write_sites


@dataclass(frozen=True)
class ShardContext:
    """What work on any shard rests on.

    Where the answers are, how they are coded, and where the sites are kept.
    """

    shards: Shards
    coding: ResponseCoding
    bank: ItemBank  # for its rows' places; the parameters are those at the start
    clock: str
    run: Folder

    def answers(self, k: int) -> SiteLayout:
        """A shard's answers as sites."""
        return build_site_layout(self.shards.responses(k, self.clock), self.coding, self.bank)


# --- errands
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountResponsesTask:
    """Count a shard's responses."""

    shards: Shards
    models: tuple[ItemModel, ...]

    def __call__(self, shard: int, threads: int | None) -> ResponseCounts:  # noqa: ARG002
        return count_responses(self.shards.responses(shard), self.models)


@dataclass(frozen=True)
class SummarisePeopleTask:
    """A line for each person of a shard."""

    layout: ShardContext

    def __call__(self, shard: int, threads: int | None) -> list[PersonSummary]:  # noqa: ARG002
        return [self.layout.answers(shard).person_summary]


@dataclass(frozen=True)
class CollectPeopleTask:
    """The answers of some of a shard's people."""

    layout: ShardContext
    chosen: dict[int, Ints]

    def __call__(self, shard: int, threads: int | None) -> list[SiteLayout]:  # noqa: ARG002
        return [self.layout.answers(shard).take(self.chosen[shard])]


@dataclass(frozen=True)
class CollectResponsesTask:
    """The responses of some of a shard's people."""

    layout: ShardContext
    chosen: dict[int, Ints]

    def __call__(self, shard: int, threads: int | None) -> list[Responses]:  # noqa: ARG002
        return [
            self.layout.shards.responses(shard, self.layout.clock).select_people(self.chosen[shard])
        ]


_at_hand: dict[tuple[str, str], Any] = {}  # of the last scene
_lock = threading.Lock()


@dataclass(frozen=True)
class ModelSnapshot:
    """Items and priors to look at everyone with.

    The rows are tabulated once in every process, not sent.
    """

    bank: ItemBank
    z: Array
    kernels: tuple[Kernel, ...]
    share: Array
    token: str

    @property
    def table(self) -> LogLikelihoodTable:
        """The items' rows."""
        found: LogLikelihoodTable = self._made("table", lambda: tabulate_items(self.bank, self.z))
        return found

    @property
    def slopes(self) -> Array:
        """Their derivatives by the items' parameters."""
        found: Array = self._made("slopes", lambda: likelihood_gradients(self.bank, self.z))
        return found

    def _made(self, name: str, make: Callable[[], Any]) -> Any:
        with _lock:
            if (self.token, name) not in _at_hand:
                for key in [key for key in _at_hand if key[0] != self.token]:
                    del _at_hand[key]
                _at_hand[self.token, name] = make()
            return _at_hand[self.token, name]


@dataclass(frozen=True)
class EStepTask:
    """A look at a shard."""

    layout: ShardContext
    scene: ModelSnapshot
    tolerance: float
    counting: bool
    begin: tuple[int, ...]  # for each shard the look whose sites it begins from
    version: int  # the look it is

    def __call__(self, shard: int, threads: int | None) -> EStepResult:
        kernels = list(self.scene.kernels)
        run = self.layout.run
        executor = EStep(self.layout.answers(shard), threads, max_buffers=1)
        sites = read_sites(run, shard, self.begin[shard], kernels, executor.answers)
        tally, expected = e_step_over(
            executor,
            sites,
            self.scene.table,
            kernels,
            self.scene.share,
            self.tolerance,
            self.counting,
        )
        write_sites(
            run,
            shard,
            self.version,
            {
                kernel: (g.precision, g.shift)
                for kernel, g in zip(kernels, expected.grafted, strict=True)
            },
        )
        return tally


@dataclass(frozen=True)
class InformationTask:
    """What a shard's answers say about the items together."""

    layout: ShardContext
    scene: ModelSnapshot
    begin: tuple[int, ...]
    joint: bool

    def __call__(self, shard: int, threads: int | None) -> ItemInformation:
        scene = self.scene
        kernels = list(self.scene.kernels)
        executor = EStep(self.layout.answers(shard), threads, max_buffers=1)
        sites = read_sites(self.layout.run, shard, self.begin[shard], kernels, executor.answers)
        expected = executor.run(
            scene.table,
            kernels,
            scene.share,
            [sites.get(kernel) for kernel in kernels],
            EP_TOLERANCE_FINAL,
        )
        return collect_information(
            executor, scene.bank, scene.table, scene.slopes, kernels, expected, self.joint
        )


def sum_results(parts: list[Any]) -> Any:
    """The sum of what knows how to add itself."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
