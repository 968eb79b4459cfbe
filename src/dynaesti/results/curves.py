"""Curves: many curves fitted together, as a user holds them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, as_vector, single_blas_thread
from dynaesti.data import make_frame
from dynaesti.errors import ConvergenceWarning, DynaestiWarning, InputError
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

MOST_EXACT = (
    100  # curves whose exact posteriors are asked for in one go: each takes a tenth of a second
)


@dataclass(frozen=True, eq=False)
class Curves:
    """Many fitted curves. `curves[label]` is a Curve.

    `mean`, `sd`, `quantile` answer for all of them at once.
    """

    data: CurveData
    fits: tuple[GraftedCurves, ...]
    weights: Array  # (priors, curves)
    population: Array  # weights of the priors in the population
    method: str
    frame: str | None
    solver: SolverName | None

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The curves' labels, sorted."""
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
        """Whether grafting settled, for each curve."""
        settled = np.array([fit.ep.converged for fit in self.fits])
        return np.asarray((settled | (self.weights < MIN_WEIGHT)).all(axis=0))

    @property
    def log_evidence(self) -> Array:
        """Log evidence of each curve, averaged over the population's priors."""
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
        """Latent marginals of every curve at the times: points run over curves, then times."""
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
        """Means: (curves, times)."""
        return self._shaped(self._moments(t)[0])

    def sd(self, t: Any) -> Array:
        """Standard deviations: (curves, times)."""
        return self._shaped(self._moments(t)[1])

    def _moments(self, t: Any) -> tuple[Array, Array]:
        """Mean and sd, curves then times.

        Where a far tail would decide them, a few curves are asked one by one for the exact ones.
        """
        mix = self.marginals(t)
        link = self.data.observations.link
        heavy = mix.heavy(link)
        curves = (
            np.flatnonzero(heavy.reshape(len(self), -1).any(axis=1))
            if heavy.any()
            else np.zeros(0, dtype=np.int64)
        )
        if curves.size > MOST_EXACT:
            warnings.warn(
                f"rates are so uncertain for {curves.size:,} of {len(self):,} curves that mean "
                f"and sd hang on their tails: told "
                f"are those of the central {TRUSTED:.1%}; medians and bands are as ever",
                DynaestiWarning,
                stacklevel=4,
            )
            trusted = mix.trusted_moments(link)
            return np.where(heavy, trusted[0], _finite(mix, heavy).mean(link)), np.where(
                heavy, trusted[1], _finite(mix, heavy).sd(link)
            )
        mean, sd = (
            (_finite(mix, heavy).mean(link), _finite(mix, heavy).sd(link))
            if curves.size
            else (mix.mean(link), mix.sd(link))
        )
        shaped = mean.reshape(len(self), -1), sd.reshape(len(self), -1)
        for k in curves:
            one = self._curve(int(k))
            shaped[0][k] = one.mean(t)
            shaped[1][k] = one.sd(t)
        return mean, sd

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles: (curves, times); for several q one such table each."""
        tables = self._shaped(
            self.marginals(t).quantiles(as_vector(q, "q"), self.data.observations.link)
        )
        return tables[0] if np.ndim(q) == 0 else tables

    def to_frame(self, t: Any, level: float = 0.7) -> Any:
        """A long frame: group, time, mean, sd, lower, median, upper."""
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
        loose = int((~self.converged).sum())
        sizes = f"{len(self.data.observations.emissions)} emissions at {self.data.layout.n_sites} instants"
        return (
            f"<Curves: {len(self)} curves, {sizes}{f'; {loose} did not settle' if loose else ''}>"
        )


def _finite(mix: Marginals, heavy: Bools) -> Marginals:
    """The mixture with narrow stand-ins at points whose moments are taken in another way."""
    return Marginals(mix.weights, mix.means, np.where(heavy, 0.0, mix.sds))


def told_many(curves: Curves) -> Curves:
    """The curves, after a warning when some did not settle."""
    loose = np.flatnonzero(~curves.converged)
    if loose.size:
        warnings.warn(
            f"grafting did not settle for {loose.size} of {len(curves)} curves (first: "
            f"{curves.labels[loose[0]]!r}); "
            "curves[label].audit() tells how far off their bands are",
            ConvergenceWarning,
            stacklevel=3,
        )
    return curves
