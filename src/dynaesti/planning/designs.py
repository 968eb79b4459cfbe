"""What a study will look like, and its answers drawn once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit

from dynaesti.core import Array, Ints, check_size, finite_number, positive_number, whole_number
from dynaesti.errors import InputError, option
from dynaesti.model import SimulationModel, item_model, numbered_labels

ASSIGNMENTS = ("shuffled", "random", "ordered")
PLANNED_MODELS = ("1PL", "2PL", "3PL", "4PL", "GRM", "PCM", "GPCM", "poisson", "gaussian", "beta")
FEWEST_PEOPLE = 10  # for fewer, a fit learns no cohort
GROUPS = ("control", "treated")


@dataclass(frozen=True)
class DrawnStudy:
    """The answers of one drawn study, and the truth behind them.

    Parameters
    ----------
    table : dict of str to array (n_answers,)
        Columns that `DynAEsti.fit` takes.
    ability : array (n_people, n_answers_each)
        True abilities at the answers.
    """

    table: dict[str, Any]
    ability: Array


@dataclass(frozen=True)
class Design:
    """A study as it is planned; see `plan` for what the numbers mean.

    Parameters
    ----------
    people, items, answers : int
        Number of people, of items, and of answers of each person.
    rise : float
        Everybody's rise over the span, or the control group's.
    groups : float or None
        How much more the treated group rises; None: there are no groups.
    model : str
    slope, guessing : float or None
        Of a typical item; None: those of the model's weak priors.
    span, bandwidth : float or None
        Bandwidth None stands for a quarter of the span.
    stays : float
    occasions : int or None
        None: each person answers at times of their own.
    assignment : str
    """

    people: int
    items: int
    answers: int
    rise: float
    groups: float | None
    model: str
    slope: float | None
    guessing: float | None
    span: float
    bandwidth: float | None
    stays: float
    occasions: int | None
    assignment: str

    def __post_init__(self) -> None:
        whole_number(self.people, "people", FEWEST_PEOPLE)
        whole_number(self.items, "items", 2)
        whole_number(self.answers, "answers", 2)
        check_size(self.people * self.answers, "people", 2e6)
        finite_number(self.rise, "rise")
        if self.groups is not None:
            finite_number(self.groups, "groups")
        positive_number(self.span, "span")
        if self.bandwidth is not None:
            positive_number(self.bandwidth, "bandwidth")
        if not 0 <= finite_number(self.stays, "stays") <= 1:
            raise InputError(f"stays: expected a fraction between 0 and 1, got {self.stays!r}")
        if self.assignment not in ASSIGNMENTS:
            raise InputError(
                f"assignment: expected one of {', '.join(ASSIGNMENTS)}, got {self.assignment!r}"
            )
        self._check_occasions()
        self._check_items()

    def _check_occasions(self) -> None:
        """Refuse a single occasion, at which nothing can rise, and more than there are answers."""
        if self.occasions is None:
            return
        whole_number(self.occasions, "occasions", 2)
        if self.occasions > self.answers:
            raise InputError(
                f"occasions: {self.occasions} occasions for {self.answers} answers of each person; "
                f"plan at least as many {option('answers')}"
            )

    def _check_items(self) -> None:
        """Refuse models that cannot be drawn, and parameters that a model does not have."""
        named = [name for name in PLANNED_MODELS if name.lower() == str(self.model).lower()]
        if not named:
            raise InputError(
                f"model: expected one of {', '.join(PLANNED_MODELS)}, got {self.model!r}"
            )
        names = self.world.model.parameter_names(self.world.categories)
        if self.slope is not None:
            positive_number(self.slope, "slope")
            if "log_a" not in names:
                raise InputError(
                    f"slope: all {self.model} items have slope 1; plan with "
                    f"{option('model', '2PL')} or {option('model', 'GPCM')}"
                )
        if self.guessing is not None:
            if not 0 < finite_number(self.guessing, "guessing") < 1:
                raise InputError(
                    f"guessing: expected a probability between 0 and 1, got {self.guessing!r}"
                )
            if "guess" not in names:
                raise InputError(
                    f"guessing: {self.model} items are not guessed; plan with "
                    f"{option('model', '3PL')}"
                )

    @cached_property
    def world(self) -> SimulationModel:
        """The model that abilities and items are drawn from."""
        return SimulationModel(
            item_model(self.model),
            self.items,
            self.span,
            self.span / 4 if self.bandwidth is None else self.bandwidth,
            self.stays,
            self.rise,
            {} if self.groups is None else dict(zip(GROUPS, (0.0, self.groups), strict=True)),
        )

    @property
    def effect(self) -> float:
        """What the study is to find: the rise, or with groups the difference in growth."""
        return self.rise if self.groups is None else self.groups

    def draw(self, rng: np.random.Generator) -> DrawnStudy:
        """Draw people, items and answers."""
        times = self.times(rng)
        curves = self.world.abilities(self.people, rng)
        grid = self.world.grid
        ability = np.stack([np.interp(t, grid, own) for t, own in zip(times, curves, strict=True)])
        u = self.item_parameters(rng)
        item = self.assigned(rng).ravel()
        table = {
            "id": np.repeat(numbered_labels("p", self.people), self.answers),
            "item": self.world.names[item],
            "resp": self.world.model.draw(u[item], ability.ravel(), rng),
            "date": times.ravel(),
        }
        if self.groups is not None:
            numbers = self.world.group_numbers(self.people)
            table["group"] = np.repeat(np.array(GROUPS)[numbers], self.answers)
        return DrawnStudy(table, ability)

    def times(self, rng: np.random.Generator) -> Array:
        """When each person answers, (n_people, n_answers), rising."""
        shape = (self.people, self.answers)
        if self.occasions is None:
            return np.sort(rng.uniform(0.0, self.span, shape), axis=1)
        occasion = np.arange(self.answers) * self.occasions // self.answers
        return np.broadcast_to(np.linspace(0.0, self.span, self.occasions)[occasion], shape)

    def item_parameters(self, rng: np.random.Generator) -> Array:
        """Draw unconstrained item parameters, about the slope and guessing of a typical item."""
        model, size = self.world.model, self.world.categories
        u = self.world.parameters(rng)
        typical = {
            "log_a": None if self.slope is None else np.log(self.slope),
            "guess": None if self.guessing is None else logit(self.guessing),
        }
        weak = zip(model.parameter_names(size), model.priors(size), strict=True)
        for k, (name, prior) in enumerate(weak):
            wanted = typical.get(name)
            if wanted is not None:
                u[:, k] += wanted - prior.mean
        return u

    def assigned(self, rng: np.random.Generator) -> Ints:
        """Which item each answer is to, (n_people, n_answers)."""
        shape = (self.people, self.answers)
        if self.assignment == "random":
            return rng.integers(0, self.items, shape)
        laps = -(-self.answers // self.items)
        order = np.tile(np.arange(self.items), (self.people * laps, 1))
        if self.assignment == "shuffled":
            order = rng.permuted(order, axis=1)
        return order.reshape(self.people, -1)[:, : self.answers]
