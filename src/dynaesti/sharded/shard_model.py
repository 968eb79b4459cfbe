"""The part of a sharded fit that tasks need: small enough to be sent to every worker."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Folder, is_address
from dynaesti.errors import InputError
from dynaesti.estimation import EP_TOLERANCE_FINAL, EStep, FittedModel, build_people_sites
from dynaesti.inference import NaturalGaussian
from dynaesti.results import Fit
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.site_store import read_sites


@dataclass(frozen=True)
class ShardModel:
    """A fitted model, its shards, and the folder with their sites.

    The trace, the items' covariance and points are left out: no task needs them.
    """

    model: FittedModel
    shards: Shards
    run: Folder
    versions: tuple[int, ...]  # of each shard's sites
    is_reflected: bool  # whether the scale was reflected after these were found
    clock: str

    @staticmethod
    def of(
        model: FittedModel,
        shards: Shards,
        run: Folder,
        versions: tuple[int, ...],
        is_reflected: bool,
        clock: str,
    ) -> ShardModel:
        """The model without what tasks do not need."""
        fields = {name: getattr(model, name) for name in FittedModel.__dataclass_fields__}
        dropped = dict.fromkeys(("covariance", "item_nodes", "item_drift"))
        unused = {"trace": model.trace[-1:], **dropped}
        small = FittedModel(**{**fields, **unused})
        return ShardModel(small, shards, run, versions, is_reflected, clock)

    def open(self, k: int, threads: int | None = None) -> Fit:
        """The people of one shard, as a fit of their own (without standard errors)."""
        if not isinstance(k, int | np.integer) or not 0 <= k < len(self.shards):
            raise InputError(f"shard: there are {len(self.shards)}, counted from 0; got {k!r}")
        if not self.shards.parts[k].people:
            raise InputError(f"shard: nobody is in shard {k}")
        model = self.model
        responses = self.shards.responses(k, self.clock)
        effects = model.priors.effects
        sites = build_people_sites(responses, model.coding, model.bank, effects)
        found = read_sites(self.run, k, self.versions[k], model.priors, sites)
        starts = [self.oriented(found[one]) if one in found else None for one in model.kernels]
        fields = {name: getattr(model, name) for name in FittedModel.__dataclass_fields__}
        empty = Fit(**fields, responses=responses, ep=(), weights=np.zeros(0), known_sites=sites)
        posterior = EStep(sites, threads).run(
            empty.likelihood_table, model.priors, starts, EP_TOLERANCE_FINAL
        )
        return replace(empty, ep=posterior.ep, weights=posterior.weights)

    def oriented(self, sites: NaturalGaussian) -> NaturalGaussian:
        """Sites on the reported scale from those on disk, and back."""
        return NaturalGaussian(sites.precision, -sites.shift) if self.is_reflected else sites


def absolute_address(path: str) -> str:
    """The path from the root, or the address, so that it is valid in every working folder."""
    return path if is_address(path) else os.path.abspath(path)
