"""Emissions whose likelihoods are given as functions or as tables."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints, as_numbers, as_vector, raise_where
from dynaesti.errors import EmissionError, InputError
from dynaesti.model.emissions.base import Emissions
from dynaesti.model.links import POSITIVE, UNIT, Link, LinkedPoints


class Functions(Emissions):
    """Likelihoods given as functions log f_i(y), each of which works on arrays of y."""

    kind = "functions"

    def __init__(self, functions: Sequence[Callable[[Array], Any]]) -> None:
        self.functions = tuple(functions)

    def __len__(self) -> int:
        return len(self.functions)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        out = np.empty_like(at.x)
        for k, row in enumerate(rows):
            out[k] = self._call(int(row), at.y[k])
        return out

    def _call(self, row: int, y: Array) -> Array:
        """One function at points y, with its result checked."""
        try:
            values = np.asarray(self.functions[row](y), dtype=np.float64)
        except Exception as error:  # whatever the user's function raised, say which one it was
            raise EmissionError(
                f"emission {row}: its function raised {type(error).__name__}: {error}"
            ) from error
        if values.shape not in ((), y.shape):
            raise EmissionError(
                f"emission {row}: its function returned shape {values.shape} for points of shape "
                f"{y.shape}; it must work on arrays"
            )
        return np.broadcast_to(values, y.shape)

    def unique_index(self) -> Ints:
        first: dict[int, int] = {}
        return np.array(
            [first.setdefault(id(f), k) for k, f in enumerate(self.functions)], dtype=np.int64
        )

    def take(self, rows: Ints) -> "Functions":
        return Functions([self.functions[row] for row in rows])


class Table(Emissions):
    """Likelihoods given as tables of log f_i(y) on a grid.

    Between grid points log f is a cubic spline on the latent scale. Beyond the grid it goes on as a
    straight line, unless the table is -inf there.

    Parameters
    ----------
    grid : array (n_grid,)
        At least 4 strictly increasing values of y on the link's scale, or latent values.
    log_lik : array (n, n_grid) or (n_grid,)
        Log-likelihood of each emission, one row an emission; -inf where it is impossible.
    latent : bool, default False
        Whether `grid` holds latent values.

    Raises
    ------
    InputError
        If the grid does not increase, or shapes differ.
    EmissionError
        If a row has NaN or +inf, or is -inf everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> import dynaesti as dy
    >>> p = np.linspace(0.05, 0.95, 19)
    >>> table = dy.Table(p, [np.log(p), np.log(1 - p)])  # one yes, one no
    >>> len(table)
    2
    """

    kind = "table"

    def __init__(self, grid: Any, log_lik: Any, latent: bool = False) -> None:
        self.latent = latent
        self._built: dict[Link, tuple[int, list[Callable[[Array], Array]]]] = {}
        self.grid = as_vector(grid, "Table grid")
        rows = np.atleast_2d(as_numbers(log_lik, "Table log_lik"))
        if self.grid.size < 4 or not np.all(np.diff(self.grid) > 0):
            raise InputError("Table grid: needs at least 4 strictly rising points")
        if rows.ndim != 2 or rows.shape[1] != self.grid.size:
            raise InputError(
                f"Table log_lik: shape {rows.shape} for a grid of {self.grid.size}; give one row "
                "an emission"
            )
        raise_where(
            np.isnan(rows).any(axis=1) | (rows == np.inf).any(axis=1),
            "Table log_lik (rows)",
            "NaN or +inf somewhere",
            "give log-likelihoods; impossible is -inf",
            EmissionError,
        )
        raise_where(
            (rows == -np.inf).all(axis=1),
            "Table log_lik (rows)",
            "-inf everywhere",
            "an observation must be possible somewhere",
            EmissionError,
        )
        self.log_lik = rows

    def __len__(self) -> int:
        return len(self.log_lik)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        sign, splines = self._splines(at.link)
        x = at.x * sign
        return np.stack([splines[row](x[k]) for k, row in enumerate(rows)])

    def _splines(self, link: Link) -> tuple[int, list[Callable[[Array], Array]]]:
        """Interpolating function of each row, and the link's sign, built once for each link."""
        # by the link itself: every pair of functions is called "custom"
        if link not in self._built:
            knots, sign = self._knots(link)
            keep = np.concatenate([[True], np.diff(knots) > 0])
            self._built[link] = sign, [_spline(knots[keep], row[keep]) for row in self.log_lik]
        return self._built[link]

    def unique_index(self) -> Ints:
        return np.arange(len(self))

    def _knots(self, link: Link) -> tuple[Array, int]:
        """Grid on the latent scale times the link's sign, which increases, and the sign."""
        if self.latent:
            return self.grid, 1
        inner = self.grid
        if link.range == UNIT:  # the ends 0 and 1 are infinitely far on the latent scale
            inner = np.clip(self.grid, 1e-15, 1 - 1e-15)
        elif link.range == POSITIVE:
            inner = np.maximum(self.grid, 1e-300)
        return link.latent(inner) * link.sign, link.sign

    def latent_ends(self, link: Link) -> tuple[float, float]:
        """Lowest and highest latent value of the grid."""
        knots, sign = self._knots(link)
        ends = knots[[0, -1]] * sign
        return float(ends.min()), float(ends.max())

    def take(self, rows: Ints) -> "Table":
        return Table(self.grid, self.log_lik[rows], self.latent)


def _spline(knots: Array, values: Array) -> Callable[[Array], Array]:
    """Cubic spline through the finite knots, with straight lines beyond them.

    It is -inf where the table is. A single -inf at the very end of the grid is a limit (log 0 at
    y = 0), not a region: the line goes on there.
    """
    from scipy.interpolate import make_interp_spline

    possible = np.flatnonzero(np.isfinite(values))
    first = int(possible[0])
    last = int(possible[-1])
    if possible.size < 4 or possible.size < last - first + 1:
        # gaps within: straight lines, impossible next to impossible
        return partial(_broken_line, knots, values)
    inner = knots[first : last + 1]
    spline = make_interp_spline(inner, values[first : last + 1], k=3)
    low = -np.inf if first <= 1 else knots[first - 1]
    high = np.inf if last >= knots.size - 2 else knots[last + 1]

    def log_lik(x: Array) -> Array:
        inside = np.clip(x, inner[0], inner[-1])
        line = spline(inside) + (x - inside) * spline(inside, nu=1)
        return np.where((x <= low) | (x >= high), -np.inf, line)

    return log_lik


def _broken_line(knots: Array, values: Array, x: Array) -> Array:
    """Linear interpolation, -inf next to knots that are -inf."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.interp(x, knots, values), nan=-np.inf, neginf=-np.inf)
