"""Where the responses of a fit come from: one interface for memory and shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Formula, Labels, Responses
from dynaesti.estimation import (
    Checkpoint,
    Estimate,
    People,
    PeopleInMemory,
    PriorMixture,
    ProgressLine,
    ResponseCoding,
    ResponseCounts,
    build_people_sites,
    count_responses,
    fingerprint,
    kernel_weights,
)
from dynaesti.model import (
    Effects,
    ItemBank,
    ItemModel,
    plain_effects,
    standardised_effects,
    sum_effects,
)
from dynaesti.results.fit import Fit
from dynaesti.results.orientation import is_positively_oriented, reflected


class ResponseSource(Protocol):
    """Responses, wherever they are kept."""

    @property
    def items(self) -> Labels:
        """The items' labels."""

    @property
    def item_models(self) -> Labels | None:
        """Names of the items' models, where the data have them."""

    @property
    def groups(self) -> Sequence[Any]:
        """Labels of the groups of people; empty where there are none."""

    @property
    def earlier_bank(self) -> ItemBank | None:
        """Items of an earlier fit to start from."""

    @property
    def earlier_priors(self) -> PriorMixture | None:
        """Kernels of an earlier fit to start from."""

    def values(self) -> Array:
        """All distinct responses, sorted."""

    def response_counts(self, models: tuple[ItemModel, ...]) -> ResponseCounts:
        """Responses in each category of each item."""

    def effects(self, formula: Formula) -> Effects:
        """The columns of a formula, with levels, centres and scales of all responses."""

    def people(
        self, coding: ResponseCoding, bank: ItemBank, effects: Effects | None = None
    ) -> People:
        """The people that E-steps run over; called once."""

    def responses_of(self, people: Ints) -> Responses:
        """The responses of some people, in memory."""

    def checkpoint(self, options: Mapping[str, str]) -> Checkpoint | None:
        """Where the state of EM is kept, if anywhere."""

    def announce(self, report: ProgressLine, bank: ItemBank) -> None:
        """Say what is about to be fitted, where that may take long."""

    def result(
        self,
        estimate: Estimate,
        coding: ResponseCoding,
        options: Mapping[str, Any],
        orient: Mapping[str, Any] | None,
    ) -> Any:
        """The fit, with the scale in the direction that `orient` asks for."""


@dataclass
class ResponsesInMemory:
    """Responses that are all in memory."""

    responses: Responses
    threads: int | None
    checkpoint_path: str | PathLike[str] | None
    checkpoint_every: float
    earlier_bank: ItemBank | None = None
    earlier_priors: PriorMixture | None = None

    @property
    def items(self) -> Labels:
        return self.responses.items

    @property
    def item_models(self) -> Labels | None:
        return self.responses.models

    @property
    def groups(self) -> Sequence[Any]:
        return self.responses.groups

    def values(self) -> Array:
        return np.unique(self.responses.resp)

    def response_counts(self, models: tuple[ItemModel, ...]) -> ResponseCounts:
        return count_responses(self.responses, models)

    def effects(self, formula: Formula) -> Effects:
        covariates = self.responses.covariates
        levels = {name: column.levels for name, column in covariates.items() if column.levels}
        plain = plain_effects(formula, levels)
        return standardised_effects(plain, sum_effects(plain, self.responses))

    def people(
        self, coding: ResponseCoding, bank: ItemBank, effects: Effects | None = None
    ) -> People:
        self._people = PeopleInMemory(
            build_people_sites(self.responses, coding, bank, effects), self.threads
        )
        return self._people

    def responses_of(self, people: Ints) -> Responses:
        return self.responses.select_people(people)

    def checkpoint(self, options: Mapping[str, str]) -> Checkpoint | None:
        if self.checkpoint_path is None:
            return None
        identity = fingerprint(self.responses, options)
        return Checkpoint(self.checkpoint_path, identity, self.checkpoint_every)

    def announce(self, report: ProgressLine, bank: ItemBank) -> None:
        """Say nothing: a fit in memory takes seconds."""

    def result(
        self,
        estimate: Estimate,
        coding: ResponseCoding,
        options: Mapping[str, Any],
        orient: Mapping[str, Any] | None,
    ) -> Fit:
        fitted = estimate.fitted(coding, options)
        ep = self._people.ep
        made = Fit(
            **vars(fitted),
            responses=self.responses,
            ep=ep,
            weights=kernel_weights(fitted.population, ep),
            known_sites=self._people.sites,
        )
        return made if is_positively_oriented(made, orient, made) else reflected(made)
