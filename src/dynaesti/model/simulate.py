"""Data drawn from the model, for checks and power studies.

Tests of any item models, curves of the prior.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Ints, as_rng, positive_number, symmetric_root, whole_number
from dynaesti.errors import InputError
from dynaesti.model.items.base import ItemModel
from dynaesti.model.items.registry import item_model


def curves(times: npt.ArrayLike, bandwidth: float, size: int, seed: Any = 0) -> Array:
    """Ability curves of unit variance drawn from the RBF prior: (size, times)."""
    t = np.asarray(times, dtype=np.float64)
    root = symmetric_root(np.exp(-0.5 * ((t[:, None] - t) / bandwidth) ** 2))
    return np.asarray(as_rng(seed).standard_normal((size, t.size)) @ root)


ORDERED = 4  # categories of drawn items that have several
WIDTH = 0.5  # of the weak priors, from which drawn items come
GRID = 241


@dataclass(frozen=True)
class SimulatedResponses:
    """Answers drawn from the model as columns, and the truth behind them.

    The items' parameters, everyone's ability at each answer.
    """

    table: dict[str, Any]
    items: dict[str, Any]
    abilities: dict[str, Any]


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
    seed: Any = 0,
) -> SimulatedResponses:
    """Answers at irregular times by people whose ability is a level plus an RBF curve of total
    variance 1, and may grow with time.

    `level` is the share of the variance that stays with a person; `growth` everybody's rise over
    the span, centred.
    """
    rng = as_rng(seed)
    n = whole_number(people, "people", 1)
    count = whole_number(per_person, "per_person", 1)
    world = SimulationModel(
        item_model(model), whole_number(items, "items", 1), span, bandwidth, level, growth
    )
    ability = world.abilities(n, rng)
    t = np.sort(rng.uniform(0.0, span, (n, count)), axis=1)
    theta = np.array([np.interp(t[k], world.grid, ability[k]) for k in range(n)]).ravel()
    u = world.parameters(rng)
    item = rng.integers(0, world.items, theta.size)
    resp = _responses(world.model, u, item, theta, rng)
    table = {
        "id": np.repeat(numbered_labels("p", n), count),
        "item": world.names[item],
        "resp": resp,
        "date": t.ravel(),
    }
    return SimulatedResponses(
        table, world.described(u), {"id": table["id"], "date": table["date"], "ability": theta}
    )


def numbered_labels(letter: str, count: int) -> npt.NDArray[np.str_]:
    """Names p000, p001, …, which sort as they count."""
    return np.array([f"{letter}{k:0{len(str(count - 1))}d}" for k in range(count)])


@dataclass(frozen=True)
class SimulationModel:
    """Where answers are drawn: the items' model, and how abilities move."""

    model: ItemModel
    items: int
    span: float
    bandwidth: float
    level: float
    growth: float

    def __post_init__(self) -> None:
        positive_number(self.span, "span"), positive_number(self.bandwidth, "bandwidth")
        if not 0 <= self.level <= 1:
            raise InputError(f"level: expected a share between 0 and 1, got {self.level!r}")

    @property
    def grid(self) -> Array:
        """Times at which abilities are drawn; between them they are straight."""
        return np.linspace(0.0, self.span, GRID)

    @property
    def categories(self) -> int:
        """Categories of the items."""
        return 2 if self.model.binary else ORDERED

    @property
    def names(self) -> npt.NDArray[np.str_]:
        """The items' names."""
        return numbered_labels("i", self.items)

    def abilities(self, people: int, rng: np.random.Generator) -> Array:
        """Ability curves on the grid: (people, times)."""
        moving = curves(self.grid, self.bandwidth, people, rng)
        return np.asarray(
            np.sqrt(self.level) * rng.standard_normal((people, 1))
            + np.sqrt(1 - self.level) * moving
            + self.growth * (self.grid / self.span - 0.5)
        )

    def parameters(self, rng: np.random.Generator) -> Array:
        """The items' parameters, unconstrained: (items, parameters)."""
        weak = self.model.priors(self.categories)
        spread = WIDTH * np.minimum(
            [w.sd for w in weak], 2.0
        )  # amounts have priors as wide as any unit needs
        return np.asarray(
            np.array([w.mean for w in weak]) + spread * rng.standard_normal((self.items, len(weak)))
        )

    def described(self, u: Array) -> dict[str, Any]:
        """The items' table."""
        return {"item": self.names, **self.model.constrain(u)}

    def answers(
        self, u: Array, counts: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Ints, Array, Array, Array]:
        """Answers of new people with so many each.

        (person, item, response, time, ability), sorted by person and time.
        """
        ability = self.abilities(counts.size, rng)
        grid = self.grid
        person = np.repeat(np.arange(counts.size), counts)
        t = rng.uniform(0.0, self.span, person.size)
        order = np.lexsort((t, person))
        t = t[order]
        place = np.minimum((t / self.span * (GRID - 1)).astype(np.int64), GRID - 2)
        part = (t - grid[place]) / (grid[1] - grid[0])
        theta = (1 - part) * ability[person, place] + part * ability[person, place + 1]
        item = rng.integers(0, self.items, person.size)
        return person, item, _responses(self.model, u, item, theta, rng), t, theta


def _responses(
    model: ItemModel, u: Array, item: Ints, theta: Array, rng: np.random.Generator
) -> Array:
    if model.categorical:
        p = np.exp(model.log_likelihood(u[item], theta[:, None]))[:, :, 0]
        return np.asarray(
            (rng.uniform(size=(theta.size, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1),
            dtype=np.float64,
        )
    values = np.zeros((theta.size, 0))
    mean, var = (f(u[item], theta[:, None], values)[:, 0] for f in (model.expected, model.variance))
    if model.name == "poisson":
        return rng.poisson(mean).astype(np.float64)
    if model.name == "gaussian":
        return np.asarray(mean + np.sqrt(var) * rng.standard_normal(theta.size))
    total = mean * (1 - mean) / var - 1
    return np.clip(rng.beta(mean * total, (1 - mean) * total), 1e-6, 1 - 1e-6)
