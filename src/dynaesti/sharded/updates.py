"""Add responses to the shards of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dynaesti.core import PARTS, Ints
from dynaesti.data import Responses
from dynaesti.results import (
    Fit,
    add_people,
    fit_new_people,
    read_new_responses,
    without_repeats,
)
from dynaesti.sharded.shard_model import ShardModel, absolute_address
from dynaesti.sharded.shards import Shard, shard_file, write_shard
from dynaesti.sharded.site_store import write_sites


@dataclass(frozen=True)
class UpdatedShard:
    """A shard after an update."""

    shard: int
    part: Shard
    gain: float  # of log evidence
    answered: Ints  # (n_items,) responses that came in
    span: tuple[float, float]
    max_abs_ability: float
    n_unconverged: int  # curves on which EP did not converge, more than before


@dataclass(frozen=True)
class UpdateTask:
    """Add responses to a shard: written beside the old file, under a new name."""

    model: ShardModel
    new: dict[int, Responses]
    version: int
    again: bool  # whether responses that the fit has already are added once more
    any_shard: int  # one that has people

    def __call__(self, shard: int, threads: int | None) -> list[UpdatedShard]:
        new = self.new[shard]
        if not self.model.shards.parts[shard].people:
            other = self.model.open(self.any_shard, threads)
            made = fit_new_people(other, read_new_responses(other, new))
            return [self._write(shard, made, None)]
        old = self.model.open(shard, threads)
        if not self.again:
            new = without_repeats(old, new)
        if not len(new):
            return []
        return [self._write(shard, add_people(old, new), old)]

    def _write(self, shard: int, made: Fit, old: Fit | None) -> UpdatedShard:
        """Write the shard and its sites; what came in is counted against the old fit of it."""
        run = self.model.run
        r = made.responses
        folder = run.child(PARTS)
        name = shard_file(shard, self.version)
        part = write_shard(
            folder,
            name,
            r.people[r.person],
            r.item,
            r.resp,
            r.offsets,
            r.weight,
            None if r.group is None else r.group[r.person],
            {
                name: r.covariates[name].values
                if levels is None
                else r.covariates[name].among(levels).values
                for name, levels in self.model.shards.covariates.items()
            },
        )
        sites = {
            kernel: self.model.oriented(result.sites)
            for kernel, result in zip(made.kernels, made.ep, strict=True)
        }
        write_sites(run, shard, self.version, sites)
        return UpdatedShard(
            shard,
            replace(part, file=absolute_address(folder.path(part.file))),
            made.log_evidence - (old.log_evidence if old else 0.0),
            made.responses_per_item - (old.responses_per_item if old else 0),
            made.time_range,
            made.max_abs_ability,
            made.n_unconverged - (old.n_unconverged if old else 0),
        )
