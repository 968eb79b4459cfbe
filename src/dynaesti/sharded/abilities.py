"""Everyone's abilities as Parquet files, a shard each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynaesti.core import ABILITIES, Array, Folder, Ints, as_vector
from dynaesti.errors import DynaestiWarning, warn_user
from dynaesti.inference import check_level
from dynaesti.results import Fit, band_columns
from dynaesti.sharded.shard_model import ShardModel
from dynaesti.sharded.shards import shard_file

ASKED = b"asked"  # key in the metadata of a file: times and band that were asked for
MAX_INSTANTS = 12  # of each person, unless times are asked for


@dataclass(frozen=True)
class WriteAbilitiesTask:
    """Write the abilities of a shard's people to a Parquet file."""

    model: ShardModel
    offsets: list[float] | None  # on the fit's clock; None: instants of each person's own
    level: float

    def __call__(self, shard: int, threads: int | None) -> int:
        import pyarrow as pa
        import pyarrow.parquet as pq

        fit = self.model.open(shard, threads)
        person, offsets = self._people_and_times(fit)
        keys = {
            "id": pa.array(fit.responses.people).take(pa.array(person)),
            "time": fit.from_clock(offsets),
        }
        table = pa.table(band_columns(fit.marginals(person, offsets), keys, self.level))
        asked = json.dumps({"offsets": self.offsets, "level": self.level})
        with self.model.run.writing(f"{ABILITIES}/{shard_file(shard)}") as file:
            pq.write_table(table.replace_schema_metadata({ASKED: asked}), file)
        return 1

    def _people_and_times(self, fit: Fit) -> tuple[Ints, Array]:
        """Person and time of each row."""
        if self.offsets is None:
            return spread_instants(fit)
        people = fit.responses.people.size
        return np.repeat(np.arange(people), len(self.offsets)), np.tile(self.offsets, people)


def spread_instants(fit: Fit) -> tuple[Ints, Array]:
    """Person and time of at most `MAX_INSTANTS` sites of each person.

    They are evenly spread; the first and the last are among them.
    """
    layout = fit.sites.layout
    counts = np.diff(layout.site_start)
    wanted = np.minimum(counts, MAX_INSTANTS)
    person = np.repeat(np.arange(counts.size), wanted)
    number = np.arange(person.size) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    step = number * (counts[person] - 1) / np.maximum(wanted[person] - 1, 1)
    single = wanted[person] == 1
    within = np.where(single, counts[person] - 1, np.rint(step)).astype(np.int64)
    return person, layout.times[layout.site_start[person] + within]


def asked_before(folder: Folder) -> tuple[list[float] | None, float] | None:
    """Times (on the fit's clock; None: each person's own) and level of files of abilities.

    None where the folder has no such files.
    """
    import pyarrow.parquet as pq

    names = [name for name in folder.names() if name.endswith(".parquet")]
    if not names:
        return None
    try:
        with folder.reading(names[0]) as file:
            asked = json.loads((pq.read_schema(file).metadata or {})[ASKED])
        check_level(asked["level"])
        offsets: Sequence[float] | None = asked["offsets"]
        times = None if offsets is None else as_vector(offsets, "times").tolist()
        return times, asked["level"]
    except Exception as error:  # whatever Parquet or JSON make of damage
        warn_user(
            f"{folder.path(names[0])}: damaged ({error}); abilities are written at times of each "
            f"person's own",
            DynaestiWarning,
        )
        return None, 0.7
