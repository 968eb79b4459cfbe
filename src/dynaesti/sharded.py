"""Everyone, in shards: each look reads a shard, grafts its people's curves from the sites it left last time, adds up and lets go.

Sites lie in the run's folder, a file for each shard and look. The look that a checkpoint speaks of keeps its files until the next
checkpoint is written, so a run that was killed goes on from there to the same answer.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np

from dynaesti.answers import Answers, Census
from dynaesti.arrays import Array, Ints
from dynaesti.bank import Bank
from dynaesti.coding import Coding, build_answers
from dynaesti.crowd import Memory, Sites, Tally, added, look_at
from dynaesti.engines import Engine, Listen
from dynaesti.expectation import TIGHT, Expectation, ability_grid, tabulated
from dynaesti.items import ItemModel
from dynaesti.places import Place
from dynaesti.priors.kernels import Kernel
from dynaesti.responses import Responses
from dynaesti.rows import RowTable
from dynaesti.saving import kernel_header
from dynaesti.shards import Shards
from dynaesti.stock import Stock, take_stock
from dynaesti.uncertainty import Information, gathered, row_slopes

SITES = "sites"
BASE, ANSWER_BYTES = (
    350e6,
    420,
)  # memory of the process itself, and for each answer of a shard at work


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


# --- sites on disk -----------------------------------------------------------------------------------------


def kernel_key(kernel: Kernel) -> str:
    """A short name for a prior, the same in every process."""
    return hashlib.sha1(json.dumps(kernel_header(kernel), sort_keys=True).encode()).hexdigest()[:16]


def sites_name(k: int, version: int) -> str:
    """The file of a shard's sites after a look."""
    return f"{SITES}/{k:05d}.{version}.npz"


def write_sites(run: Place, k: int, version: int, sites: Sites) -> None:
    """Keep a shard's sites. Single precision is enough to begin from: grafting stops by its own tolerance."""
    buffer = BytesIO()
    held: dict[str, Any] = {
        kernel_key(kernel): np.stack(pair).astype(np.float32) for kernel, pair in sites.items()
    }
    np.savez(buffer, **held)
    with run.writing(sites_name(k, version)) as file:
        file.write(buffer.getbuffer())


def read_sites(
    run: Place, k: int, version: int, kernels: Sequence[Kernel], answers: Answers
) -> Sites:
    """A shard's sites after a look; none where there is no such file, or a damaged one: the answer is the same without a beginning."""
    out: Sites = {}
    try:
        if not run.exists(sites_name(k, version)):
            return out
        with (
            run.reading(sites_name(k, version)) as file,
            np.load(BytesIO(file.read()), allow_pickle=False) as held,
        ):
            for kernel in kernels:
                pair = (
                    held[kernel_key(kernel)].astype(np.float64)
                    if kernel_key(kernel) in held
                    else np.zeros(0)
                )
                if (
                    pair.shape == (2, answers.for_kernel(kernel).times.size)
                    and np.isfinite(pair).all()
                ):
                    out[kernel] = pair[0], pair[1]
    except Exception:  # whatever zip, NumPy or the file system make of damage
        return {}
    return out


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


# --- the crowd -----------------------------------------------------------------------------------------------


class Sharded:
    """A crowd in shards."""

    def __init__(
        self,
        layout: Layout,
        engine: Engine,
        listen: Listen | None = None,
        begin: tuple[int, ...] | None = None,
    ) -> None:
        self.layout, self.engine, self.listen = layout, engine, listen
        self.versions = begin or (0,) * len(layout.shards)  # of each shard's sites
        self.held = self.marked = (
            self.versions
        )  # those of an earlier fit, and those that the last checkpoint speaks of
        self.busy = [k for k, part in enumerate(layout.shards.parts) if part.people]

    @cached_property
    def census(self) -> Census:
        return Census.joined(self.engine.run(TakeCensus(self.layout), self.busy, summed))

    @property
    def answers(self) -> int:
        return self.layout.shards.rows

    def take(self, people: Ints) -> Answers:
        chosen = self._chosen(people)
        return Answers.joined(
            self.engine.run(TakePeople(self.layout, chosen), list(chosen), summed)
        )

    def responses(self, people: Ints) -> Responses:
        """The responses of some people, in memory."""
        chosen = self._chosen(people)
        return Responses.stacked(
            self.engine.run(TakeResponses(self.layout, chosen), list(chosen), summed)
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
        bank: Bank,
        z: Array,
        kernels: list[Kernel],
        share: Array,
        tolerance: float,
        counting: bool = True,
    ) -> Tally:
        scene = Scene(bank, z, tuple(kernels), share, uuid.uuid4().hex)
        self.clean(self.held, self.marked, self.versions)
        now = max(self.versions) + 1
        tally = self.engine.run(
            Look(self.layout, scene, tolerance, counting, self.versions, now),
            self.busy,
            added,
            self.listen,
        )
        self.versions = (now,) * len(self.versions)
        return tally

    def forget(self, kernels: list[Kernel]) -> None:
        """Nothing to do: the next look reads what it needs, and writes what it used."""

    def information(
        self, bank: Bank, z: Array, kernels: list[Kernel], share: Array, joint: bool
    ) -> Information:
        scene = Scene(bank, z, tuple(kernels), share, uuid.uuid4().hex)
        found: Information = self.engine.run(
            Inform(self.layout, scene, self.versions, joint), self.busy, summed
        )
        return found

    def memory(self) -> Memory:
        self.marked = (
            self.versions
        )  # by the time of the next look the mark that asks for this is written
        return {"versions": np.array(self.versions, dtype=np.float64)}

    def recall(self, memory: Memory, kernels: list[Kernel]) -> None:  # noqa: ARG002
        self.versions = self.marked = tuple(int(version) for version in memory["versions"])

    def needs(self, bank: Bank) -> str:
        """What memory a look takes, in words: set by the largest shard and the items, not by the data."""
        cells = bank.row_count * ability_grid(bank).size
        largest = max(self.layout.shards.parts[k].rows for k in self.busy)
        workers = getattr(self.engine, "threads", 1)
        return (
            f"memory about {(BASE + cells * 8 * (3 + workers) + workers * largest * ANSWER_BYTES) / 1e9:.1f} GB (largest shard "
            f"{largest:,} answers, {workers} at a time; items' tables {cells * 8 * 3 / 1e6:,.0f} MB)"
        )

    def clean(self, *kept: tuple[int, ...]) -> None:
        """Remove the sites of all looks but these."""
        clean_sites(self.layout.run, *kept)


def clean_sites(run: Place, *kept: tuple[int, ...]) -> None:
    """Remove all sites but those of these versions, which count the shards."""
    names = {sites_name(k, version) for versions in kept for k, version in enumerate(versions)}
    place = run.child(SITES)
    for name in place.names():
        if f"{SITES}/{name}" not in names:
            place.remove(name)
