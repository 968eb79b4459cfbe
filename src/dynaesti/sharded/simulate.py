"""Answers drawn straight into shards, a shard at a time: as many as the disk holds."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

import numpy as np

from dynaesti.core import Array, Folder, as_rng, whole_number
from dynaesti.data import UNSTATED, TimeAxis, as_labels
from dynaesti.errors import InputError
from dynaesti.model import SimulationModel, item_model, numbered_labels
from dynaesti.sharded.shards import Shards, default_shards, shard_numbers, write_part


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
    seed: int = 0,
    truth: bool = True,
    tell: Callable[[int, int], None] | None = None,
) -> tuple[Shards, dict[str, Any]]:
    """Draw answers as `simulate.answers` does, without holding them.

    (the shards, the items' true parameters).

    `per_person`: how many answers each gives, or the least and the most (spread evenly over their
    logarithms). The true abilities are written beside the shards, in the folder `truth`.
    """
    n = whole_number(people, "people", 1)
    least, most = (per_person, per_person) if isinstance(per_person, int) else per_person
    if not 1 <= least <= most:
        raise InputError(
            f"per_person: expected numbers from 1 on, the least first; got {least} and {most}"
        )
    world = SimulationModel(
        item_model(model), whole_number(items, "items", 1), span, bandwidth, level, growth
    )
    u = world.parameters(as_rng(seed))
    mean = least if least == most else (most - least) / np.log(most / least)
    count = default_shards(n * mean) if shards is None else whole_number(shards, "shards", 1)
    ids = numbered_labels("p", n)
    shard = shard_numbers(ids.tolist(), count)
    place = Folder(fspath(out))
    parts = []
    for k in range(count):
        mine = np.flatnonzero(shard == k)
        rng = np.random.default_rng([seed, k])
        counts = (
            np.exp(rng.uniform(np.log(least), np.log(most + 1), mine.size))
            .astype(np.int64)
            .clip(least, most)
        )
        person, item, resp, t, theta = world.answers(u, counts, rng)
        parts.append(
            write_part(place, f"shard-{k:05d}.parquet", ids[mine][person], item, resp, t, None)
        )
        if truth:
            _write_truth(place, k, ids[mine][person], t, theta)
        if tell is not None:
            tell(k + 1, count)
    made = Shards(
        fspath(out),
        tuple(parts),
        as_labels(world.names.tolist()),
        None,
        TimeAxis(0.0, 0, stamps=False, zoned=False),
        UNSTATED,
        {"id": "id", "item": "item", "resp": "resp", "time": "time"},
        (),
        0,
        weighted=False,
        print=f"{seed}-{people}-{items}-{per_person}-{model}-{span}-{bandwidth}-{level}-{growth}",
    )
    made.save()
    return made, world.described(u)


def _write_truth(place: Folder, k: int, ids: Any, t: Array, theta: Array) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with place.writing(f"truth/shard-{k:05d}.parquet") as file:
        pq.write_table(pa.table({"id": pa.array(ids), "time": t, "ability": theta}), file)
