"""Data drawn from the model, for checks and power studies: responses to items, and curves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import (
    Array,
    Ints,
    as_rng,
    finite_number,
    positive_number,
    symmetric_root,
    whole_number,
)
from dynaesti.errors import InputError
from dynaesti.model.items.base import ItemModel
from dynaesti.model.items.registry import item_model


def curves(times: npt.ArrayLike, bandwidth: float, size: int, seed: Any = 0) -> Array:
    """Draw ability curves of mean 0 and variance 1 from the RBF prior.

    Parameters
    ----------
    times : array (n_times,)
        Times at which the curves are drawn.
    bandwidth : float
        Bandwidth of the RBF kernel, in the unit of the times.
    size : int
        Number of curves.
    seed : int or numpy.random.Generator, default 0
        Seed or source of randomness.

    Returns
    -------
    array (size, n_times)
        The curves.

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.simulate.curves([0.0, 1.0, 2.0], bandwidth=1.0, size=5).shape
    (5, 3)
    """
    t = np.asarray(times, dtype=np.float64)
    root = symmetric_root(np.exp(-0.5 * ((t[:, None] - t) / bandwidth) ** 2))
    return np.asarray(as_rng(seed).standard_normal((size, t.size)) @ root)


ORDERED = 4  # categories of drawn items that have several
PRIOR_FRACTION = 0.5  # sd of drawn items' parameters, relative to the weak priors'
COHORT_TIMES = 21  # at which the true cohort is written
GRID = 241  # times at which abilities are drawn


@dataclass(frozen=True)
class SimulatedResponses:
    """Responses drawn from the model, and the truth behind them.

    Parameters
    ----------
    table : dict of str to array (n_responses,)
        Columns "id", "item", "resp" and "date", which `DynAEsti.fit` takes.
    items : dict of str to array (n_items,)
        Column "item" and the true item parameters.
    abilities : dict of str to array (n_responses,)
        Columns "id", "date" and the true "ability" at each response.
    cohort : dict of str to array (n_times,)
        Columns "date" and the population's true "mean"; with groups, "group" before them.
    """

    table: dict[str, Any]
    items: dict[str, Any]
    abilities: dict[str, Any]
    cohort: dict[str, Any]


def responses(
    people: int = 200,
    items: int = 40,
    per_person: int = 60,
    *,
    model: str = "2PL",
    span: float = 100.0,
    bandwidth: float = 25.0,
    level: float = 0.5,
    growth: float = 0.0,
    groups: Mapping[str, float] | None = None,
    seed: Any = 0,
) -> SimulatedResponses:
    """Draw responses of people whose ability changes with time.

    Ability is a constant of variance `level` plus an RBF curve of variance 1 − `level`, plus a
    straight line that is the same for all. Times are uniform over the span, items are chosen at
    random, and item parameters come from the weak priors at half their width.

    Parameters
    ----------
    people, items, per_person : int, default 200, 40, 60
        Number of people, of items, and of responses of each person.
    model : str, default "2PL"
        Item model by its name; models with several categories have 4.
    span : float, default 100
        Length of time; times run from 0 to `span`.
    bandwidth : float, default 25
        Bandwidth of the RBF curve, in the same unit.
    level : float, default 0.5
        Fraction of the variance that is constant in time, between 0 and 1.
    growth : float, default 0
        Everybody's rise over the span, from −growth/2 to growth/2.
    groups : mapping of str to float, optional
        Groups, and how much more than `growth` each rises, such as ``{"control": 0, "treated":
        0.8}``. People belong to them in turn, and the table has a column "group".
    seed : int or numpy.random.Generator, default 0
        Seed or source of randomness.

    Returns
    -------
    SimulatedResponses
        The table of responses, the true items and the true abilities.

    Raises
    ------
    InputError
        If a number is out of range or there is no such model.

    Examples
    --------
    >>> import dynaesti as dy
    >>> drawn = dy.simulate.responses(people=3, items=5, per_person=4)
    >>> list(drawn.table)
    ['id', 'item', 'resp', 'date']
    >>> drawn.table["resp"].size, drawn.items["b"].size
    (12, 5)
    """
    rng = as_rng(seed)
    n = whole_number(people, "people", 1)
    count = whole_number(per_person, "per_person", 1)
    world = SimulationModel(
        item_model(model),
        whole_number(items, "items", 1),
        span,
        bandwidth,
        level,
        growth,
        groups or {},
    )
    ability = world.abilities(n, rng)
    t = np.sort(rng.uniform(0.0, span, (n, count)), axis=1)
    theta = np.array([np.interp(t[k], world.grid, ability[k]) for k in range(n)]).ravel()
    u = world.parameters(rng)
    item = rng.integers(0, world.items, theta.size)
    resp = world.model.draw(u[item], theta, rng)
    table = {
        "id": np.repeat(numbered_labels("p", n), count),
        "item": world.names[item],
        "resp": resp,
        "date": t.ravel(),
    }
    if world.groups:
        table["group"] = np.repeat(np.array(list(world.groups))[world.group_numbers(n)], count)
    abilities = {"id": table["id"], "date": table["date"], "ability": theta}
    return SimulatedResponses(table, world.described(u), abilities, world.cohort())


def numbered_labels(letter: str, count: int) -> npt.NDArray[np.str_]:
    """Names such as p000, p001, … with leading zeros, so that they sort by number."""
    return np.array([f"{letter}{k:0{len(str(count - 1))}d}" for k in range(count)])


@dataclass(frozen=True)
class SimulationModel:
    """The model that responses are drawn from.

    Parameters
    ----------
    model : ItemModel
        Model of all items.
    items : int
        Number of items.
    span, bandwidth, level, growth : float
        How abilities change with time, see `responses`.
    groups : mapping of str to float
        Further growth of each group.
    """

    model: ItemModel
    items: int
    span: float
    bandwidth: float
    level: float
    growth: float
    groups: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        positive_number(self.span, "span")
        for name, value in {"growth": self.growth, **self.groups}.items():
            finite_number(value, f"growth of {name}" if name in self.groups else name)
        positive_number(self.bandwidth, "bandwidth")
        if not 0 <= self.level <= 1:
            raise InputError(f"level: expected a fraction between 0 and 1, got {self.level!r}")

    @property
    def grid(self) -> Array:
        """Times at which abilities are drawn; between them they are interpolated."""
        return np.linspace(0.0, self.span, GRID)

    @property
    def identity(self) -> str:
        """All numbers of the model, as text."""
        groups = "".join(f"-{name}:{rise}" for name, rise in self.groups.items())
        return f"{self.items}-{self.span}-{self.bandwidth}-{self.level}-{self.growth}{groups}"

    @property
    def categories(self) -> int:
        """Number of categories of each item."""
        return 2 if self.model.binary else ORDERED

    @property
    def names(self) -> npt.NDArray[np.str_]:
        """Names of the items."""
        return numbered_labels("i", self.items)

    def group_numbers(self, people: int) -> Ints:
        """Number of each person's group: people belong to them in turn."""
        return np.arange(people) % max(len(self.groups), 1)

    @property
    def rises(self) -> Array:
        """How much each group rises over the span; one number where there are no groups."""
        return self.growth + np.array(list(self.groups.values()) or [0.0])

    def cohort(self) -> dict[str, Any]:
        """The population's mean at a few times, for each group."""
        times = np.linspace(0.0, self.span, COHORT_TIMES)
        means = self.rises[:, None] * (times / self.span - 0.5)
        columns = {"date": np.tile(times, self.rises.size), "mean": means.ravel()}
        if not self.groups:
            return columns
        return {"group": np.repeat(list(self.groups), COHORT_TIMES), **columns}

    def abilities(self, people: int, rng: np.random.Generator) -> Array:
        """Draw ability curves on the grid: (people, n_grid)."""
        changing = curves(self.grid, self.bandwidth, people, rng)
        rises = self.rises[self.group_numbers(people)]
        return np.asarray(
            np.sqrt(self.level) * rng.standard_normal((people, 1))
            + np.sqrt(1 - self.level) * changing
            + rises[:, None] * (self.grid / self.span - 0.5)
        )

    def parameters(self, rng: np.random.Generator) -> Array:
        """Draw unconstrained item parameters: (n_items, n_parameters)."""
        weak = self.model.priors(self.categories)
        # amounts have priors as wide as any unit needs
        spread = PRIOR_FRACTION * np.minimum([w.sd for w in weak], 2.0)
        return np.asarray(
            np.array([w.mean for w in weak]) + spread * rng.standard_normal((self.items, len(weak)))
        )

    def described(self, u: Array) -> dict[str, Any]:
        """Reported parameters of the items by name, with a column "item"."""
        return {"item": self.names, **self.model.constrain(u)}

    def answers(
        self, u: Array, counts: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Ints, Array, Array, Array]:
        """Draw responses of new people.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Unconstrained item parameters.
        counts : int array (n_people,)
            Number of responses of each person.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        person, item, response, time, ability : array (n_responses,)
            Sorted by person and time.
        """
        ability = self.abilities(counts.size, rng)
        grid = self.grid
        person = np.repeat(np.arange(counts.size), counts)
        t = rng.uniform(0.0, self.span, person.size)
        order = np.lexsort((t, person))
        t = t[order]
        below = np.minimum((t / self.span * (GRID - 1)).astype(np.int64), GRID - 2)
        part = (t - grid[below]) / (grid[1] - grid[0])
        theta = (1 - part) * ability[person, below] + part * ability[person, below + 1]
        item = rng.integers(0, self.items, person.size)
        return person, item, self.model.draw(u[item], theta, rng), t, theta
