"""Curves: many curves fitted together, as a user holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, as_vector, single_blas_thread
from dynaesti.data import make_frame
from dynaesti.errors import ConvergenceWarning, DynaestiWarning, InputError, warn_user
from dynaesti.inference import (
    TRUSTED,
    CurveData,
    GraftedCurves,
    Marginals,
    SolverName,
    graft_kernels,
)
from dynaesti.results.curve import Curve, from_components
from dynaesti.results.curve_priors import MIN_WEIGHT
from dynaesti.results.frames import median_columns

# curves whose exact posteriors are computed in one call: each takes a tenth of a second
MOST_EXACT = 100


@dataclass(frozen=True, eq=False)
class Curves:
    """Many curves fitted together, as `CurvFiFE.fit_many` returns them.

    `curves[label]` is one `Curve`; iterating gives all of them, and `label in curves` asks whether
    there is one. `mean`, `sd` and `quantile` answer for all curves at once. Values are on the
    link's scale.

    Parameters
    ----------
    data : CurveData
        Emissions of all curves, grouped by curve.
    fits : tuple of GraftedCurves
        All curves under each prior.
    weights : array (n_priors, n_curves)
        Posterior weight of each prior for each curve.
    population : array (n_priors,)
        Weight of each prior in the population.
    method : str
        How hyper-parameters were found: "given" or "learn".
    frame : str or None
        Kind of data frame that came in and goes out.
    solver : {"dense", "lowrank", "statespace"} or None
        None: the cheapest that is exact.

    Examples
    --------
    >>> import dynaesti as dy
    >>> groups = ["a"] * 4 + ["b"] * 4
    >>> votes = dy.Bernoulli([0, 0, 1, 1, 1, 1, 0, 1])
    >>> curves = dy.CurvFiFE(bandwidth=2.0).fit_many(groups, [0, 1, 2, 3] * 2, votes)
    >>> len(curves), curves.labels.tolist(), "b" in curves
    (2, ['a', 'b'], True)
    >>> curves.mean([0, 3, 5]).shape
    (2, 3)
    >>> curves.quantile([0, 3, 5], [0.1, 0.9]).shape
    (2, 2, 3)
    >>> list(curves.to_frame([0, 3]).columns)
    ['group', 'time', 'mean', 'sd', 'lower', 'median', 'upper']
    >>> curves["a"].converged
    True
    """

    data: CurveData
    fits: tuple[GraftedCurves, ...]
    weights: Array
    population: Array
    method: str
    frame: str | None
    solver: SolverName | None

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Labels of the curves, sorted, (n_curves,)."""
        return self.data.labels

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Curve]:
        return (self._curve(k) for k in range(len(self)))

    def __contains__(self, label: Any) -> bool:
        return bool(np.any(self.labels == label))

    def __getitem__(self, label: Any) -> Curve:
        found = np.flatnonzero(self.labels == label) if np.ndim(label) == 0 else np.zeros(0)
        if not found.size:
            raise InputError(
                f"no curve labelled {label!r} among {len(self)} (such as "
                f"{', '.join(map(repr, self.labels[:3].tolist()))})"
            )
        return self._curve(int(found[0]))

    def _curve(self, k: int) -> Curve:
        one = self.data.one(k)
        kernels = [fit.kernel.anchored(*one.span) for fit in self.fits]
        starts = [fit.sites(k) for fit in self.fits]
        components = graft_kernels(one, kernels, self.solver, starts)
        with np.errstate(divide="ignore"):
            return from_components(
                one,
                components,
                [float(p) for p in np.log(self.population)],
                self.method,
                self.frame,
                self.solver,
            )

    @property
    def converged(self) -> Bools:
        """Whether EP converged under every prior that counts, for each curve: (n_curves,)."""
        converged = np.array([fit.ep.converged for fit in self.fits])
        return np.asarray((converged | (self.weights < MIN_WEIGHT)).all(axis=0))

    @property
    def log_evidence(self) -> Array:
        """Log evidence of each curve, averaged over the population's priors: (n_curves,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.population)[:, None] + np.array(
                [fit.ep.log_evidence for fit in self.fits]
            )
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    @property
    def bandwidths(self) -> Any:
        """The priors and their weights in the population, as a frame."""
        return make_frame(
            {"kernel": [fit.kernel.describe() for fit in self.fits], "weight": self.population},
            self.frame,
        )

    @single_blas_thread()
    def marginals(self, t: Any) -> Marginals:
        """Latent marginals of every curve at the times.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        Marginals
            (n_priors, n_curves · n_times): all times of the first curve, then of the second, ….
        """
        offsets = self.data.observations.axis.offsets(t, "t")
        keep = np.flatnonzero(self.weights.max(axis=1) > MIN_WEIGHT)
        means, variances = zip(
            *(self.fits[k].predict(offsets, self.solver) for k in keep), strict=True
        )
        weights = self.weights[keep] / self.weights[keep].sum(axis=0)
        base = np.tile(self.data.observations.mean_at(offsets), len(self))
        return Marginals(
            np.repeat(weights, offsets.size, axis=1),
            np.array(means) + base,
            np.sqrt(np.array(variances)),
        )

    def _shaped(self, values: Array) -> Array:
        return values.reshape(*values.shape[:-1], len(self), -1)

    def mean(self, t: Any) -> Array:
        """Mean of every curve at each time.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        array (n_curves, n_times)
        """
        return self._shaped(self._moments(t)[0])

    def sd(self, t: Any) -> Array:
        """Standard deviation of every curve at each time.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        array (n_curves, n_times)
        """
        return self._shaped(self._moments(t)[1])

    def _moments(self, t: Any) -> tuple[Array, Array]:
        """Mean and sd at all points, curves then times.

        Where a far tail would decide them (see `Marginals.heavy`), they are those of the exact
        posterior, curve by curve; if that concerns too many curves, those of the central part of
        the distribution.
        """
        marginals = self.marginals(t)
        link = self.data.observations.link
        heavy = marginals.heavy(link)
        if not heavy.any():
            return marginals.mean(link), marginals.sd(link)
        finite = _finite(marginals, heavy)
        mean = finite.mean(link)
        sd = finite.sd(link)
        curves = np.flatnonzero(heavy.reshape(len(self), -1).any(axis=1))
        if curves.size > MOST_EXACT:
            warn_user(
                f"rates are so uncertain for {curves.size:,} of {len(self):,} curves that mean and "
                f"sd depend on their tails: those of the central {TRUSTED:.1%} are given; medians "
                "and bands are not affected",
                DynaestiWarning,
            )
            central_mean, central_sd = marginals.trusted_moments(link)
            return np.where(heavy, central_mean, mean), np.where(heavy, central_sd, sd)
        by_curve = mean.reshape(len(self), -1), sd.reshape(len(self), -1)
        for k in curves:
            one = self._curve(int(k))
            by_curve[0][k] = one.mean(t)
            by_curve[1][k] = one.sd(t)
        return mean, sd

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles of every curve, exact under the link.

        Parameters
        ----------
        t : times (n_times,)
        q : float or sequence of float
            Probabilities between 0 and 1.

        Returns
        -------
        array (n_curves, n_times) or (n_q, n_curves, n_times)
            One table for each of several `q`.
        """
        tables = self._shaped(
            self.marginals(t).quantiles(as_vector(q, "q"), self.data.observations.link)
        )
        return tables[0] if np.ndim(q) == 0 else tables

    def to_frame(self, t: Any, level: float = 0.7) -> Any:
        """Moments, median and band of every curve as a long frame.

        Parameters
        ----------
        t : times (n_times,)
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        frame
            Columns group, time, mean, sd, lower, median, upper; a row for each curve and time.
        """
        axis = self.data.observations.axis
        times = axis.restore(axis.offsets(t, "t"))
        keys = {
            "group": np.repeat(self.labels, times.size),
            "time": np.tile(times, len(self)),
        }
        columns = median_columns(
            self.marginals(t), self._moments(t), keys, level, self.data.observations.link
        )
        return make_frame(columns, self.frame)

    def __repr__(self) -> str:
        n_unconverged = int((~self.converged).sum())
        note = f"; EP did not converge for {n_unconverged}" if n_unconverged else ""
        n_emissions = len(self.data.observations.emissions)
        n_sites = self.data.layout.n_sites
        return f"<Curves: {len(self)} curves, {n_emissions} emissions at {n_sites} instants{note}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


def _finite(mix: Marginals, heavy: Bools) -> Marginals:
    """The marginals with sd 0 at points whose moments are taken in another way."""
    return Marginals(mix.weights, mix.means, np.where(heavy, 0.0, mix.sds))


def warn_if_any_unconverged(curves: Curves) -> Curves:
    """The curves, after a warning if EP did not converge for some."""
    unconverged = np.flatnonzero(~curves.converged)
    if unconverged.size:
        warn_user(
            f"grafting did not converge for {unconverged.size} of {len(curves)} curves (first: "
            f"{curves.labels[unconverged[0]]!r}); curves[label].audit() says how far off their "
            "bands are",
            ConvergenceWarning,
        )
    return curves
