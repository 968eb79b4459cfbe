"""Many curves at once: thousands of short ragged curves share their emissions' table, their priors and compiled, threaded calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.arrays import Array, Bools, Ints, as_vector
from dynaesti.components import (
    SiteMatch,
    beyond_table,
    graft_components,
    merges_all,
    tilted_from,
    within_table,
)
from dynaesti.curves import KEEP, Curve, from_components
from dynaesti.emissions import check_evidence
from dynaesti.errors import ConvergenceWarning, DynaestiWarning, InputError
from dynaesti.frames import make_frame
from dynaesti.grafting import Grafted, Problem, graft, seen_by_curve
from dynaesti.likelihood import Groups, Likelihood
from dynaesti.mixtures import TRUSTED, Mixture
from dynaesti.observations import Observations
from dynaesti.priors import SolverName, assemble_many
from dynaesti.priors.kernels import Kernel
from dynaesti.queries import marginals_at
from dynaesti.threads import chunks, in_threads, one_blas_thread

MOST_EXACT = (
    100  # curves whose exact posteriors are asked for in one go: each takes a tenth of a second
)


@dataclass(frozen=True)
class Ragged:
    """Emissions of many curves: sites sorted by curve and time, one an instant."""

    observations: Observations
    labels: npt.NDArray[Any]  # one a curve
    times: Array  # of each site
    site_start: Ints  # of each curve
    groups: Groups  # emissions of each site

    def __len__(self) -> int:
        return self.labels.size

    @cached_property
    def likelihood(self) -> Likelihood:
        """The emissions grouped into sites."""
        return self.observations.grouped(self.groups)

    def spans(self) -> tuple[Array, Array]:
        """First and last instant of each curve."""
        return self.times[self.site_start[:-1]], self.times[self.site_start[1:] - 1]

    def rows(self, curve: int) -> Ints:
        """The emissions of one curve, in the order given."""
        a, b = (
            self.groups.start[self.site_start[curve]],
            self.groups.start[self.site_start[curve + 1]],
        )
        return np.sort(self.groups.members[a:b])

    @cached_property
    def merged(self) -> Ragged:
        """The same with all emissions of a curve in one site: for constant curves, where that is exact."""
        first, last = self.spans()
        groups = Groups(self.groups.start[self.site_start], self.groups.members)
        return Ragged(
            self.observations, self.labels, 0.5 * (first + last), np.arange(len(self) + 1), groups
        )

    def one(self, curve: int) -> Observations:
        """The observations of one curve by itself, on the common time axis."""
        return self.observations.take(self.rows(curve))


def ragged(labels: Any, observations: Observations) -> Ragged:
    """Sort and group emissions by curve label and instant."""
    names = np.asarray(labels)
    if names.ndim != 1 or names.size != len(observations.emissions):
        raise InputError(
            f"groups: {names.size} labels for {len(observations.emissions)} emissions; give one each"
        )
    lost = np.array(
        [label is None or label != label for label in np.asarray(labels, dtype=object).tolist()]
    )  # NaN is not itself
    if lost.any():
        raise InputError(
            f"groups: {int(lost.sum())} labels are missing (first: position {int(lost.argmax())})"
        )
    try:
        unique, code = np.unique(names, return_inverse=True)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in names.tolist()})
        raise InputError(
            f"groups: labels of different kinds ({', '.join(kinds)}) cannot be told apart; make them alike"
        ) from None
    order = np.lexsort((observations.offsets, code)).astype(np.int64)
    code, times = code[order], observations.offsets[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(code) > 0) | (np.diff(times) > 0)]))
    site_start = np.searchsorted(code[first], np.arange(unique.size + 1)).astype(np.int64)
    return Ragged(
        observations,
        unique,
        times[first],
        site_start,
        Groups(np.append(first, order.size).astype(np.int64), order),
    )


@dataclass(frozen=True)
class ManyGrafted:
    """One prior on all curves, and the sites it saw: one an instant, or one a curve where that is constant."""

    data: Ragged
    kernel: Kernel
    precision: Array  # sites
    shift: Array
    curve_precision: Array
    curve_shift: Array
    log_evidence: Array  # (curves,)
    converged: Bools

    def sites(self, curve: int) -> slice:
        """The sites of one curve."""
        return slice(int(self.data.site_start[curve]), int(self.data.site_start[curve + 1]))


def graft_many(
    data: Ragged, kernel: Kernel, solver: SolverName | None, threads: int | None
) -> ManyGrafted:
    """Graft one prior onto all curves, chunk by chunk over threads."""
    if merges_all(kernel, data.observations):
        data = data.merged
    fixed = data.likelihood.fixed(data.observations.mean_at(data.observations.offsets))
    precision, shift = np.zeros(data.times.size), np.zeros(data.times.size)
    evidence, converged = np.zeros(len(data)), np.zeros(len(data), dtype=bool)
    offset = data.observations.mean_at(data.times)
    ends = np.array([data.times.min(), data.times.max()])
    first, last = data.spans()
    tabulated = (
        within_table(kernel.place(*ends), data.likelihood, offset, ends)
        and data.likelihood.table is not None
    )  # before threads
    within = tabulated  # so that by formula means: the table did not reach

    def run(curves: Ints) -> None:
        a, b = data.site_start[curves[0]], data.site_start[curves[-1] + 1]
        where, sites = slice(a, b), np.arange(a, b)
        starts = data.site_start[curves[0] : curves[-1] + 2] - a
        prior = assemble_many(
            kernel, data.times[where], starts, first[curves], last[curves], solver
        )
        bent = data.likelihood.bent[where]

        def grafted(tabulated: bool) -> Grafted:
            match = SiteMatch(
                data.likelihood, sites, offset[where], tabulated, wide=not tabulated and within
            )
            return graft(
                Problem(
                    prior,
                    match,
                    fixed.precision[where],
                    fixed.shift[where],
                    np.full(curves.size, kernel.instant_var),
                    bent,
                )
            )

        result = grafted(tabulated)
        if tabulated:
            _, _, mean, var = tilted_from(
                result.bare_mean,
                result.bare_var,
                fixed.precision[where],
                fixed.shift[where],
                result.precision,
                result.shift,
            )
            if (
                beyond_table(data.likelihood, mean + offset[where], var) & bent
            ).any():  # data drag a curve farther than its prior
                result = grafted(False)
        precision[where], shift[where] = result.precision, result.shift
        converged[curves] = result.converged
        evidence[curves] = result.log_evidence + np.add.reduceat(fixed.constant[where], starts[:-1])

    in_threads(run, chunks(data.site_start), threads)
    check_evidence(data.observations.emissions, evidence)
    on_curve = seen_by_curve(fixed.precision + precision, fixed.shift + shift, kernel.instant_var)
    return ManyGrafted(data, kernel, precision, shift, *on_curve, evidence, converged)


@dataclass(frozen=True, eq=False)
class Curves:
    """Many fitted curves. `curves[label]` is a Curve; `mean`, `sd`, `quantile` answer for all of them at once."""

    data: Ragged
    fits: tuple[ManyGrafted, ...]
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
                f"no curve labelled {label!r} among {len(self)} (such as {', '.join(map(repr, self.labels[:3].tolist()))})"
            )
        return self._curve(int(found[0]))

    def _curve(self, k: int) -> Curve:
        one = self.data.one(k)
        kernels = [fit.kernel.place(*one.span) for fit in self.fits]
        starts = [(fit.precision[fit.sites(k)], fit.shift[fit.sites(k)]) for fit in self.fits]
        components = graft_components(one, kernels, self.solver, starts)
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
        settled = np.array([fit.converged for fit in self.fits])
        return np.asarray((settled | (self.weights < KEEP)).all(axis=0))

    @property
    def log_evidence(self) -> Array:
        """Log evidence of each curve, averaged over the population's priors."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.population)[:, None] + np.array(
                [fit.log_evidence for fit in self.fits]
            )
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    @property
    def bandwidths(self) -> Any:
        """The priors and their weights in the population, as a frame."""
        return make_frame(
            {"kernel": [fit.kernel.describe() for fit in self.fits], "weight": self.population},
            self.frame,
        )

    @one_blas_thread()
    def mixture(self, t: Any) -> Mixture:
        """Latent marginals of every curve at the times: points run over curves, then times."""
        offsets = self.data.observations.axis.offsets(t, "t")
        keep = np.flatnonzero(self.weights.max(axis=1) > KEEP)
        means, variances = zip(
            *(_predict(self.fits[k], offsets, self.solver) for k in keep), strict=True
        )
        weights = self.weights[keep] / self.weights[keep].sum(axis=0)
        base = np.tile(self.data.observations.mean_at(offsets), len(self))
        return Mixture(
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
        """Mean and sd, curves then times. Where a far tail would decide them, a few curves are asked one by one for the exact ones."""
        mix, link = self.mixture(t), self.data.observations.link
        heavy = mix.heavy(link)
        curves = (
            np.flatnonzero(heavy.reshape(len(self), -1).any(axis=1))
            if heavy.any()
            else np.zeros(0, dtype=np.int64)
        )
        if curves.size > MOST_EXACT:
            warnings.warn(
                f"rates are so uncertain for {curves.size:,} of {len(self):,} curves that mean and sd hang on their tails: told "
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
            shaped[0][k], shaped[1][k] = one.mean(t), one.sd(t)
        return mean, sd

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles: (curves, times); for several q one such table each."""
        tables = self._shaped(
            self.mixture(t).quantiles(as_vector(q, "q"), self.data.observations.link)
        )
        return tables[0] if np.ndim(q) == 0 else tables

    def to_frame(self, t: Any, level: float = 0.7) -> Any:
        """A long frame: group, time, mean, sd, lower, median, upper."""
        mix, link = self.mixture(t), self.data.observations.link
        mean, sd = self._moments(t)
        lower, median, upper = mix.quantiles(
            np.array([0.5 - level / 2, 0.5, 0.5 + level / 2]), link
        )
        times = self.data.observations.axis.restore(self.data.observations.axis.offsets(t, "t"))
        return make_frame(
            {
                "group": np.repeat(self.labels, times.size),
                "time": np.tile(times, len(self)),
                "mean": mean,
                "sd": sd,
                "lower": lower,
                "median": median,
                "upper": upper,
            },
            self.frame,
        )

    def __repr__(self) -> str:
        loose = int((~self.converged).sum())
        sizes = (
            f"{len(self.data.observations.emissions)} emissions at {self.data.times.size} instants"
        )
        return (
            f"<Curves: {len(self)} curves, {sizes}{f'; {loose} did not settle' if loose else ''}>"
        )


def _finite(mix: Mixture, heavy: Bools) -> Mixture:
    """The mixture with narrow stand-ins at points whose moments are taken in another way."""
    return Mixture(mix.weights, mix.means, np.where(heavy, 0.0, mix.sds))


def told_many(curves: Curves) -> Curves:
    """The curves, after a warning when some did not settle."""
    loose = np.flatnonzero(~curves.converged)
    if loose.size:
        warnings.warn(
            f"grafting did not settle for {loose.size} of {len(curves)} curves (first: {curves.labels[loose[0]]!r}); "
            "curves[label].audit() tells how far off their bands are",
            ConvergenceWarning,
            stacklevel=3,
        )
    return curves


def _predict(fit: ManyGrafted, offsets: Array, solver: SolverName | None) -> tuple[Array, Array]:
    """Means and variances of every curve at the times."""
    data = fit.data
    asked, asked_start = np.tile(offsets, len(data)), offsets.size * np.arange(len(data) + 1)
    return marginals_at(
        fit.kernel,
        data.times,
        data.site_start,
        data.spans(),
        fit.curve_precision,
        fit.curve_shift,
        asked,
        asked_start,
        solver,
    )
