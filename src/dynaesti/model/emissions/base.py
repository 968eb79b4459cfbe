"""Emissions: what a family of observations must tell, and checks that families share."""

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from dynaesti.core import Array, Ints, as_vector, raise_where
from dynaesti.model.links import POSITIVE, REAL, UNIT, Link, LinkedPoints


class Emissions:
    """Many observations of one kind. Subclasses hold arrays of equal length and one formula."""

    kind: ClassVar[str]
    support: ClassVar[str] = REAL  # what y may be
    link: ClassVar[str] = "identity"  # the link when the user names none
    unit_prior: ClassVar[bool] = True  # y on a scale where mean 0 and variance 1 are a fair prior
    discrete: ClassVar[bool] = (
        False  # whether f is a probability, not a density or a likelihood known up to a factor
    )

    def __len__(self) -> int:
        raise NotImplementedError

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        """Log f_i(y) for the observations `rows`, at points of shape (len(rows), …)."""
        raise NotImplementedError

    def unique_index(self) -> Ints | None:
        """For each observation the index of the first one with the same likelihood.

        None when all may differ.
        """
        return None

    def gaussian(self) -> tuple[Array, Array] | None:
        """(observations, sds) when the likelihood is exactly Gaussian in y."""
        return None

    def initial_latent(self, link: Link) -> Array | None:  # noqa: ARG002
        """A crude latent value for each observation, to centre a learned prior.

        None where there is none.
        """
        return None

    def plot_values(self) -> Array | None:
        """What to draw for each observation on the link's scale.

        None where there is nothing to draw.
        """
        return None

    def take(self, rows: Ints) -> "Emissions":
        """The chosen observations, `rows` rising."""
        raise NotImplementedError


class ArrayEmissions(Emissions):
    """A family whose dataclass fields are arrays over observations (first axis)."""

    def _columns(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(
            next(value for value in self._columns().values() if isinstance(value, np.ndarray))
        )

    def take(self, rows: Ints) -> Emissions:
        chosen = {
            key: value[rows] if isinstance(value, np.ndarray) else value
            for key, value in self._columns().items()
        }
        return type(self)(**chosen)

    def unique_index(self) -> Ints | None:
        return first_equal_row(
            [
                value.reshape(len(self), -1)
                for value in self._columns().values()
                if isinstance(value, np.ndarray)
            ]
        )

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)


def first_equal_row(columns: list[Array]) -> Ints:
    """For each row of a table the first row that equals it."""
    table = np.column_stack(columns)
    by = (
        table[:, 0] if table.shape[1] == 1 else table
    )  # sorting numbers is far cheaper than sorting rows
    _, first, inverse = np.unique(by, axis=0, return_index=True, return_inverse=True)
    return first[inverse].astype(np.int64)


def as_column(values: Array, rows: Ints, at: LinkedPoints) -> Array:
    """Parameters of the chosen rows, shaped to broadcast against the points."""
    return values[rows].reshape((-1,) + (1,) * (at.x.ndim - 1))


def as_counts(values: Any, name: str) -> Array:
    """Whole numbers from 0."""
    counts = as_vector(values, name)
    raise_where(
        (counts < 0) | (counts != np.round(counts)),
        name,
        "not whole numbers of at least 0",
        "give counts",
    )
    return counts


def as_positive(values: Any, name: str, length: int) -> Array:
    """Positive numbers, one for all or one each."""
    vector = as_vector(values, name, length)
    raise_where(vector <= 0, name, "not positive", "give positive numbers")
    return vector


def refuse_extreme(name: str, values: Array, noise: Array) -> None:
    """Refuse values or noise whose squares cannot be computed with."""
    far = (np.abs(values) > EXTREME) | (noise > EXTREME) | (noise < 1 / EXTREME)
    raise_where(far, name, f"too extreme (beyond {EXTREME:g}, or its inverse)", "use another unit")


EXTREME = 1e100


def inside(values: Array, link: Link) -> Array:
    """Values moved into the link's range, for a rough start only."""
    if link.range == UNIT:
        return np.clip(values, 0.01, 0.99)
    return (
        np.maximum(values, 1e-3 * max(1e-300, float(np.abs(values).max())))
        if link.range == POSITIVE
        else values
    )
