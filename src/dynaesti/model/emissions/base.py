"""The interface of emission families, and checks that families share."""

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from dynaesti.core import Array, Ints, as_vector, raise_where
from dynaesti.model.links import POSITIVE, REAL, UNIT, Link, LinkedPoints


class Emissions:
    """Base class of emissions: many observations of a curve with one kind of likelihood.

    An emission i has a likelihood f_i(y), where y is the curve on the link's scale at the time of
    the observation. Families of the package are `Bernoulli`, `Binomial`, `Poisson`,
    `NegativeBinomial`, `Gaussian`, `StudentT`, `Ordinal`, `ItemResponses` and `Table`; a list of
    functions log f_i(y), or a list that mixes families, may be given wherever emissions are.

    Parameters
    ----------
    None
        The base class takes none. Subclasses take the observations, and define the attributes
        below, the length and `log_prob`.

    Attributes
    ----------
    kind : str
        Name under which the family is saved.
    support : str
        Values that y may take: `REAL`, `POSITIVE` or `UNIT` of the links.
    link : str
        Link that is used when the user names none.
    unit_prior : bool
        Whether mean 0 and variance 1 are a fair prior of the latent curve.
    discrete : bool
        Whether f is a probability, not a density or a likelihood known up to a factor.

    Examples
    --------
    >>> import dynaesti as dy
    >>> votes = dy.Bernoulli([1, 0, 1, 1])
    >>> isinstance(votes, dy.Emissions), len(votes)
    (True, 4)
    """

    kind: ClassVar[str]
    support: ClassVar[str] = REAL
    link: ClassVar[str] = "identity"
    unit_prior: ClassVar[bool] = True
    discrete: ClassVar[bool] = False

    def __len__(self) -> int:
        raise NotImplementedError

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        """Log-likelihoods log f_i(y) of some observations.

        Parameters
        ----------
        at : LinkedPoints, of shape (n, ...)
            Points of the curve, each observation's own.
        rows : int array (n,)
            Indices of the observations.

        Returns
        -------
        array (n, ...)
            Log-likelihoods.
        """
        raise NotImplementedError

    def unique_index(self) -> Ints | None:
        """For each observation the index of the first one with the same likelihood.

        Returns
        -------
        int array (n_observations,) or None
            None when all may differ.
        """
        return None

    def gaussian(self) -> tuple[Array, Array] | None:
        """Values and standard deviations when the likelihood is exactly Gaussian in y, else None.

        Returns
        -------
        values, sds : array (n_observations,), or None
            f_i(y) = N(value_i; y, sd_i²).
        """
        return None

    def initial_latent(self, link: Link) -> Array | None:  # noqa: ARG002
        """Rough latent value of each observation, by which a learned prior is centred.

        Parameters
        ----------
        link : Link
            The link of the curve.

        Returns
        -------
        array (n_observations,) or None
            None where there is none.
        """
        return None

    def plot_values(self) -> Array | None:
        """Value of each observation on the link's scale, for plots.

        Returns
        -------
        array (n_observations,) or None
            None where there is nothing to draw.
        """
        return None

    def take(self, rows: Ints) -> "Emissions":
        """Some of the observations.

        Parameters
        ----------
        rows : int array
            Indices of the observations, increasing.

        Returns
        -------
        Emissions
            The chosen ones, of the same kind.
        """
        raise NotImplementedError


class ArrayEmissions(Emissions):
    """Base class of families whose dataclass fields are arrays with a row for each observation."""

    def _columns(self) -> dict[str, Any]:
        """Fields by name."""
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
        """Replace fields of the frozen dataclass by what was checked."""
        for key, value in values.items():
            object.__setattr__(self, key, value)


def first_equal_row(columns: list[Array]) -> Ints:
    """For each row of a table, given as columns, the index of the first row that equals it."""
    table = np.column_stack(columns)
    # sorting numbers is far cheaper than sorting rows
    keys = table[:, 0] if table.shape[1] == 1 else table
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first[inverse].astype(np.int64)


def as_column(values: Array, rows: Ints, at: LinkedPoints) -> Array:
    """Values of the chosen observations, shaped to broadcast against the points."""
    return values[rows].reshape((-1,) + (1,) * (at.x.ndim - 1))


def as_counts(values: Any, name: str) -> Array:
    """Array of whole numbers from 0, or an InputError that names the argument."""
    counts = as_vector(values, name)
    raise_where(
        (counts < 0) | (counts != np.round(counts)),
        name,
        "not whole numbers of at least 0",
        "give counts",
    )
    return counts


def as_positive(values: Any, name: str, length: int) -> Array:
    """Array (length,) of positive numbers from one for all or one each, or an InputError."""
    vector = as_vector(values, name, length)
    raise_where(vector <= 0, name, "not positive", "give positive numbers")
    return vector


EXTREME = 1e100  # of values and noise, whose squares must be finite


def refuse_extreme(name: str, values: Array, noise: Array) -> None:
    """Refuse values or noise whose squares overflow or underflow."""
    far = (np.abs(values) > EXTREME) | (noise > EXTREME) | (noise < 1 / EXTREME)
    raise_where(far, name, f"too extreme (beyond {EXTREME:g}, or its inverse)", "use another unit")


def inside(values: Array, link: Link) -> Array:
    """Values moved into the link's range, for rough latent values only."""
    if link.range == UNIT:
        return np.clip(values, 0.01, 0.99)
    return (
        np.maximum(values, 1e-3 * max(1e-300, float(np.abs(values).max())))
        if link.range == POSITIVE
        else values
    )
