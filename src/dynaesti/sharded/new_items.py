"""Items that join a fit of shards, learned from the responses of those who met them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynaesti.data import Responses
from dynaesti.estimation import NewItemFit, PeopleSites, extend_models, find_new_items
from dynaesti.results import responses_of_people, without_repeats

if TYPE_CHECKING:
    from dynaesti.sharded.fit import ShardedFit


def with_new_items(fit: ShardedFit, more: Responses, again: bool, model: str | None) -> ShardedFit:
    """The fit with new items of one model.

    Other responses of the people who met them are read from the shards.

    Parameters
    ----------
    fit : ShardedFit
    more : Responses
        With the new items.
    again : bool
        Whether responses that the fit has already count once more.
    model : str, optional
        Model of the new items, where those of the fit have several.
    """
    labels, people = find_new_items(fit.shards.items, more)
    if not people.size:
        return fit
    items = NewItemFit(fit, labels, more, model)
    models = extend_models(fit.shards.models, labels.size, model)
    parts = []
    for k, some in fit.people_by_shard(more.select_people(people)).items():
        known = fit.shard_or_other(k)
        theirs = more.select_people(people[some])
        named = replace(known.responses, items=labels, models=models)
        renamed = replace(known, responses=named, known_sites=None)
        if not again:
            theirs = without_repeats(renamed, theirs)
        parts.append(items.sites(responses_of_people(renamed, theirs)))
    found = items.fit(PeopleSites.concatenate(parts))
    missing = np.zeros(labels.size - fit.answered.size, dtype=np.int64)
    sums = fit.item_check_sums
    if sums is not None:
        sums = np.concatenate([sums, np.zeros((len(sums), missing.size))], axis=1)
    return replace(
        fit,
        item_check_sums=sums,
        shards=replace(fit.shards, items=labels, models=models),
        answered=np.append(fit.answered, missing),
        coding=found.coding,
        bank=found.bank,
        covariance=found.covariance,
        item_nodes=found.item_nodes,
        item_drift=found.item_drift,
    )
