"""Responses drawn from the model straight into shards, one shard at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np

from dynaesti.core import Array, Folder, as_rng, whole_number
from dynaesti.data import UNSTATED, TimeAxis, as_labels
from dynaesti.errors import InputError
from dynaesti.model import SimulationModel, item_model, numbered_labels
from dynaesti.sharded.executors import OnProgress
from dynaesti.sharded.shards import (
    Shard,
    Shards,
    default_shards,
    shard_file,
    shard_numbers,
    write_shard,
)

COLUMNS = {"id": "id", "item": "item", "resp": "resp", "time": "time"}


def simulate_shards(
    out: str | PathLike[str],
    people: int,
    items: int,
    per_person: int | tuple[int, int],
    *,
    shards: int | None = None,
    model: str = "2PL",
    span: float = 100.0,
    bandwidth: float = 25.0,
    level: float = 0.5,
    growth: float = 0.0,
    groups: Mapping[str, float] | None = None,
    seed: int = 0,
    truth: bool = True,
    on_progress: OnProgress | None = None,
) -> tuple[Shards, dict[str, Any]]:
    """Draw responses as `simulate.responses` does, without holding them in memory.

    Parameters
    ----------
    out : path
        Folder of the shards.
    people, items : int
        Number of people and of items.
    per_person : int or (int, int)
        Number of responses of each person, or the least and the most (uniform in its logarithm).
    shards : int, optional
        Number of shards. Default: about a million responses in each.
    model, span, bandwidth, level, growth, groups
        As in `simulate.responses`.
    seed : int, default 0
        Seed; each shard has a stream of its own.
    truth : bool, default True
        Whether to write the true abilities, into the folder `truth` beside the shards.
    on_progress : callable, optional
        Called with the number of shards done, and of all shards.

    Returns
    -------
    shards : Shards
        The responses.
    items : dict of str to array (n_items,)
        Column "item" and the true item parameters.
    """
    n = whole_number(people, "people", 1)
    least, most = _least_and_most(per_person)
    n_items = whole_number(items, "items", 1)
    curves = (span, bandwidth, level, growth, groups or {})
    world = SimulationModel(item_model(model), n_items, *curves)
    u = world.parameters(as_rng(seed))
    count = _shard_count(n, least, most) if shards is None else whole_number(shards, "shards", 1)
    ids = numbered_labels("p", n)
    draw = _ShardDraw(Folder(fspath(out)), world, u, least, most, truth)
    made = Shards(
        fspath(out),
        draw.write_all(ids, count, seed, on_progress),
        as_labels(world.names.tolist()),
        None,
        TimeAxis(0.0, 0, stamps=False, zoned=False),
        UNSTATED,
        {**COLUMNS, "group": "group"} if world.groups else COLUMNS,
        (),
        0,
        weighted=False,
        identity=f"{count}-{seed}-{people}-{per_person}-{model}-{world.identity}",
        groups=tuple(world.groups),
    )
    made.save()
    return made, world.described(u)


def _least_and_most(per_person: int | tuple[int, int]) -> tuple[int, int]:
    """Bounds of the number of responses of each person."""
    least, most = (per_person, per_person) if isinstance(per_person, int) else per_person
    if not 1 <= least <= most:
        raise InputError(
            f"per_person: expected numbers from 1 on, the least first; got {least} and {most}"
        )
    return least, most


def _shard_count(people: int, least: int, most: int) -> int:
    """Default number of shards, from the mean of counts that are uniform in their logarithm."""
    mean = least if least == most else (most - least) / np.log(most / least)
    return default_shards(people * mean)


@dataclass(frozen=True)
class _ShardDraw:
    """Draws responses and writes them, one shard after the other."""

    folder: Folder
    world: SimulationModel
    u: Array  # (n_items, n_parameters) unconstrained item parameters
    least: int  # responses of a person
    most: int
    truth: bool  # whether to write the true abilities

    def write_all(
        self, ids: Any, count: int, seed: int, on_progress: OnProgress | None
    ) -> tuple[Shard, ...]:
        """Draw and write the responses of all people."""
        shard = shard_numbers(ids.tolist(), count)
        parts = []
        for k in range(count):
            parts.append(self.write(k, ids[shard == k], np.random.default_rng([seed, k])))
            if on_progress is not None:
                on_progress(k + 1, count)
        return tuple(parts)

    def write(self, k: int, ids: Any, rng: np.random.Generator) -> Shard:
        """Draw and write the responses of these people as shard k."""
        log_counts = rng.uniform(np.log(self.least), np.log(self.most + 1), ids.size)
        counts = np.exp(log_counts).astype(np.int64).clip(self.least, self.most)
        person, item, resp, t, theta = self.world.answers(self.u, counts, rng)
        name = shard_file(k)
        group = self.world.group_numbers(ids.size)[person] if self.world.groups else None
        made = write_shard(self.folder, name, ids[person], item, resp, t, None, group)
        if self.truth:
            _write_truth(self.folder, k, ids[person], t, theta)
        return made


def _write_truth(folder: Folder, k: int, ids: Any, t: Array, theta: Array) -> None:
    """Write the true abilities at each response of a shard."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with folder.writing(f"truth/{shard_file(k)}") as file:
        pq.write_table(pa.table({"id": pa.array(ids), "time": t, "ability": theta}), file)
