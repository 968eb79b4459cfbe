"""Tasks on one shard: small, picklable, run by threads or on a Dask worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array, Ints, Place
from dynaesti.data import Responses
from dynaesti.estimation import (
    TIGHT,
    Answers,
    Census,
    Coding,
    Expectation,
    Information,
    Stock,
    Tally,
    build_answers,
    gathered,
    look_at,
    row_slopes,
    tabulated,
    take_stock,
)
from dynaesti.inference import RowTable
from dynaesti.model import Bank, ItemModel, Kernel
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.site_store import read_sites, write_sites


@dataclass(frozen=True)
class Layout:
    """What work on any shard rests on: where the answers are, how they are coded, and where the sites are kept."""

    shards: Shards
    coding: Coding
    bank: Bank  # for its rows' places; the parameters are those at the start
    clock: str
    run: Place

    def answers(self, k: int) -> Answers:
        """A shard's answers as sites."""
        return build_answers(self.shards.responses(k, self.clock), self.coding, self.bank)


# --- errands -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TakeStock:
    """Count a shard's responses."""

    shards: Shards
    models: tuple[ItemModel, ...]

    def __call__(self, shard: int, threads: int | None) -> Stock:  # noqa: ARG002
        return take_stock(self.shards.responses(shard), self.models)


@dataclass(frozen=True)
class TakeCensus:
    """A line for each person of a shard."""

    layout: Layout

    def __call__(self, shard: int, threads: int | None) -> list[Census]:  # noqa: ARG002
        return [self.layout.answers(shard).census]


@dataclass(frozen=True)
class TakePeople:
    """The answers of some of a shard's people."""

    layout: Layout
    chosen: dict[int, Ints]

    def __call__(self, shard: int, threads: int | None) -> list[Answers]:  # noqa: ARG002
        return [self.layout.answers(shard).take(self.chosen[shard])]


@dataclass(frozen=True)
class TakeResponses:
    """The responses of some of a shard's people."""

    layout: Layout
    chosen: dict[int, Ints]

    def __call__(self, shard: int, threads: int | None) -> list[Responses]:  # noqa: ARG002
        return [self.layout.shards.responses(shard, self.layout.clock).take(self.chosen[shard])]


_at_hand: dict[tuple[str, str], Any] = {}  # of the last scene
_lock = threading.Lock()


@dataclass(frozen=True)
class Scene:
    """Items and priors to look at everyone with. The rows are tabulated once in every process, not sent."""

    bank: Bank
    z: Array
    kernels: tuple[Kernel, ...]
    share: Array
    token: str

    @property
    def table(self) -> RowTable:
        """The items' rows."""
        found: RowTable = self._made("table", lambda: tabulated(self.bank, self.z))
        return found

    @property
    def slopes(self) -> Array:
        """Their derivatives by the items' parameters."""
        found: Array = self._made("slopes", lambda: row_slopes(self.bank, self.z))
        return found

    def _made(self, name: str, make: Callable[[], Any]) -> Any:
        with _lock:
            if (self.token, name) not in _at_hand:
                for key in [key for key in _at_hand if key[0] != self.token]:
                    del _at_hand[key]
                _at_hand[self.token, name] = make()
            return _at_hand[self.token, name]


@dataclass(frozen=True)
class Look:
    """A look at a shard."""

    layout: Layout
    scene: Scene
    tolerance: float
    counting: bool
    begin: tuple[int, ...]  # for each shard the look whose sites it begins from
    version: int  # the look it is

    def __call__(self, shard: int, threads: int | None) -> Tally:
        kernels, run = list(self.scene.kernels), self.layout.run
        engine = Expectation(self.layout.answers(shard), threads, most_lanes=1)
        sites = read_sites(run, shard, self.begin[shard], kernels, engine.answers)
        tally, expected = look_at(
            engine,
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
class Inform:
    """What a shard's answers say about the items together."""

    layout: Layout
    scene: Scene
    begin: tuple[int, ...]
    joint: bool

    def __call__(self, shard: int, threads: int | None) -> Information:
        scene, kernels = self.scene, list(self.scene.kernels)
        engine = Expectation(self.layout.answers(shard), threads, most_lanes=1)
        sites = read_sites(self.layout.run, shard, self.begin[shard], kernels, engine.answers)
        expected = engine.run(
            scene.table, kernels, scene.share, [sites.get(kernel) for kernel in kernels], TIGHT
        )
        return gathered(
            engine, scene.bank, scene.table, scene.slopes, kernels, expected, self.joint
        )


def summed(parts: list[Any]) -> Any:
    """The sum of what knows how to add itself."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
