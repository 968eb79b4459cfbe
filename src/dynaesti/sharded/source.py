"""Responses in shards as a source of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynaesti.core import CHECKPOINT, Array, Folder, Ints
from dynaesti.data import Formula, Labels, Responses
from dynaesti.errors import InputError, option
from dynaesti.estimation import (
    Checkpoint,
    Estimate,
    OnIteration,
    People,
    PriorMixture,
    ProgressLine,
    ResponseCoding,
    ResponseCounts,
)
from dynaesti.model import Effects, ItemBank, ItemModel, plain_effects, standardised_effects
from dynaesti.sharded.executors import Executor
from dynaesti.sharded.fit import ShardedFit, orient_shards
from dynaesti.sharded.people import PeopleInShards
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.tasks import CountResponsesTask, ShardContext, SumEffectsTask, sum_results


@dataclass
class ResponsesInShards:
    """Responses in shards as a source of a fit; what concerns people stays in the run's folder."""

    shards: Shards
    run: Folder
    clock: str
    executor: Executor
    report: OnIteration | None
    earlier: ShardedFit | None = None  # a fit of nearly the same responses

    @property
    def items(self) -> Labels:
        return self.shards.items

    @property
    def item_models(self) -> Labels | None:
        return self.shards.models

    @property
    def groups(self) -> Sequence[Any]:
        return self.shards.groups

    @property
    def earlier_bank(self) -> ItemBank | None:
        if self.earlier is None:
            return None
        bank = self.earlier.bank
        return bank.reflected() if self.earlier.is_reflected else bank

    @property
    def earlier_priors(self) -> PriorMixture | None:
        if self.earlier is None:
            return None
        priors = self.earlier.priors
        if self.earlier.is_reflected:
            priors = priors.reflected()
        return replace(priors, log_prior=np.log(np.maximum(priors.weights, 1e-12)))

    def values(self) -> Array:
        return self.shards.values()

    def response_counts(self, models: tuple[ItemModel, ...]) -> ResponseCounts:
        task = CountResponsesTask(self.shards, models)
        self._counts: ResponseCounts = self.executor.run(task, self.shards.nonempty, sum_results)
        return self._counts

    def effects(self, formula: Formula) -> Effects:
        held = self.shards.covariates
        for name, kind in formula.columns.items():
            is_category = held.get(name) is not None
            if name not in held or (kind != "any" and is_category != (kind == "category")):
                raise InputError(
                    f"effects: the shards were prepared without the column {name!r} of this "
                    f"formula; prepare them with {option('effects', formula.text)}"
                )
        levels = {name: found for name, found in held.items() if found is not None}
        plain = plain_effects(
            formula, {name: levels[name] for name in formula.columns if name in levels}
        )
        task = SumEffectsTask(self.shards, plain, self.clock)
        sums = self.executor.run(task, self.shards.nonempty, sum_results)
        return standardised_effects(plain, sums)

    def people(
        self, coding: ResponseCoding, bank: ItemBank, effects: Effects | None = None
    ) -> People:
        self._people = PeopleInShards(
            ShardContext(self.shards, coding, bank, self.clock, self.run, effects),
            self.executor,
            self.report.shard if isinstance(self.report, ProgressLine) else None,
            None if self.earlier is None else self.earlier.versions,
        )
        return self._people

    def responses_of(self, people: Ints) -> Responses:
        return self._people.responses(people)

    def checkpoint(self, options: Mapping[str, str]) -> Checkpoint:
        return Checkpoint(self.run.path(CHECKPOINT), self.shards.fingerprint(options), 0.0)

    def announce(self, report: ProgressLine, bank: ItemBank) -> None:
        shards = self.shards
        report.say(
            f"{shards.rows:,} answers of {shards.people:,} people to {shards.items.size:,} items "
            f"in {len(shards)} shards, on {self.executor.describe()}; "
            f"{self._people.memory_estimate(bank)}"
        )

    def result(
        self,
        estimate: Estimate,
        coding: ResponseCoding,
        options: Mapping[str, Any],
        orient: Mapping[str, Any] | None,
    ) -> ShardedFit:
        summary = self._people.person_summary
        made = ShardedFit(
            **vars(estimate.fitted(coding, options)),
            shards=self.shards,
            run=self.run,
            versions=self._people.versions,
            is_reflected=False,
            clock=self.clock,
            span=(float(summary.first.min()), float(summary.last.max())),
            log_evidence=estimate.expected.log_evidence,
            n_unconverged=estimate.expected.n_unconverged,
            answered=self._counts.number,
        )
        if self.earlier is not None:
            made = replace(made, batches=self.earlier.batches)
        made = orient_shards(made, orient).with_item_checks(self.executor)
        made.save()
        self._people.delete_stale_sites(made.versions)
        return made
