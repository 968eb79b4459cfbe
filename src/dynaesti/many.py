"""Many curves at once: thousands of short ragged curves share their emissions' table, their priors and compiled, threaded calls."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.arrays import Array, Bools, Ints, as_vector
from dynaesti.components import SiteMatch, graft_components, merges_all, within_table
from dynaesti.curves import KEEP, Curve, from_components, softmax
from dynaesti.errors import ConvergenceWarning, InputError
from dynaesti.frames import make_frame
from dynaesti.grafting import Problem, graft, seen_by_curve
from dynaesti.likelihood import Groups, Likelihood
from dynaesti.mixtures import Mixture
from dynaesti.observations import Observations
from dynaesti.priors import Solver, SolverName, assemble, choose, posterior
from dynaesti.priors.features import ragged_features
from dynaesti.priors.kernels import Kernel
from dynaesti.priors.weights import LowRank

CHUNK = 20_000  # sites that one thread takes at a time: fixed, so that results do not depend on the number of threads
POPULATION_ROUNDS = 200


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
        a, b = self.groups.start[self.site_start[curve]], self.groups.start[self.site_start[curve + 1]]
        return np.sort(self.groups.members[a:b])

    @cached_property
    def merged(self) -> Ragged:
        """The same with all emissions of a curve in one site: for constant curves, where that is exact."""
        first, last = self.spans()
        groups = Groups(self.groups.start[self.site_start], self.groups.members)
        return Ragged(self.observations, self.labels, 0.5 * (first + last), np.arange(len(self) + 1), groups)

    def one(self, curve: int) -> Observations:
        """The observations of one curve by itself, on the common time axis."""
        return self.observations.take(self.rows(curve))


def ragged(labels: Any, observations: Observations) -> Ragged:
    """Sort and group emissions by curve label and instant."""
    names = np.asarray(labels)
    if names.ndim != 1 or names.size != len(observations.emissions):
        raise InputError(f"groups: {names.size} labels for {len(observations.emissions)} emissions; give one each")
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise InputError(f"groups: {int(np.isnan(names).sum())} labels are missing (first: position {int(np.isnan(names).argmax())})")
    try:
        unique, code = np.unique(names, return_inverse=True)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in names.tolist()})
        raise InputError(f"groups: labels of different kinds ({', '.join(kinds)}) cannot be told apart; make them alike") from None
    order = np.lexsort((observations.offsets, code)).astype(np.int64)
    code, times = code[order], observations.offsets[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(code) > 0) | (np.diff(times) > 0)]))
    site_start = np.searchsorted(code[first], np.arange(unique.size + 1)).astype(np.int64)
    return Ragged(observations, unique, times[first], site_start, Groups(np.append(first, order.size).astype(np.int64), order))


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


def _solver_for(data: Ragged, kernel: Kernel, curves: Ints, forced: SolverName | None, times: Array, starts: Ints) -> Solver:
    """The prior of the chosen curves at `times` (starts[k]:starts[k+1] for the k-th), its features spanning the curves' own data."""
    first, last = data.spans()
    name = choose(kernel, int(np.diff(starts).max()), float((last - first)[curves].max()), forced)
    placed = [kernel.place(float(first[c]), float(last[c])) for c in curves] if _needs_place(kernel) else None
    if name == "lowrank" and placed is None:
        return LowRank(*ragged_features(kernel, times, starts, first[curves], last[curves]))
    pieces = [times[a:b] for a, b in pairwise(starts)]
    return assemble(name, placed or [kernel] * curves.size, pieces)


def _needs_place(kernel: Kernel) -> bool:
    return kernel.place(0.0, 1.0) != kernel


def graft_many(data: Ragged, kernel: Kernel, solver: SolverName | None, threads: int | None) -> ManyGrafted:
    """Graft one prior onto all curves, chunk by chunk over threads."""
    if merges_all(kernel, data.observations):
        data = data.merged
    fixed = data.likelihood.fixed(data.observations.mean_at(data.observations.offsets))
    precision, shift = np.zeros(data.times.size), np.zeros(data.times.size)
    evidence, converged = np.zeros(len(data)), np.zeros(len(data), dtype=bool)
    offset = data.observations.mean_at(data.times)
    ends = np.array([data.times.min(), data.times.max()])
    tabulated = within_table(kernel.place(*ends), data.likelihood, offset, ends) and data.likelihood.table is not None  # before threads

    def run(curves: Ints) -> None:
        a, b = data.site_start[curves[0]], data.site_start[curves[-1] + 1]
        where, sites = slice(a, b), np.arange(a, b)
        starts = data.site_start[curves[0]:curves[-1] + 2] - a
        match = SiteMatch(data.likelihood, sites, offset[where], tabulated)
        problem = Problem(_solver_for(data, kernel, curves, solver, data.times[where], starts), match, fixed.precision[where],
                          fixed.shift[where], np.full(curves.size, kernel.instant_var), data.likelihood.bent[where])
        result = graft(problem)
        precision[where], shift[where] = result.precision, result.shift
        converged[curves] = result.converged
        evidence[curves] = result.log_evidence + np.add.reduceat(fixed.constant[where], starts[:-1])

    in_threads(run, _chunks(data.site_start), threads)
    on_curve = seen_by_curve(fixed.precision + precision, fixed.shift + shift, kernel.instant_var)
    return ManyGrafted(data, kernel, precision, shift, *on_curve, evidence, converged)


def in_threads(run: Callable[[Ints], None], chunks: Sequence[Ints], threads: int | None) -> None:
    """Run every chunk; errors surface here."""
    workers = min(threads or os.cpu_count() or 1, len(chunks))
    if workers <= 1:
        for chunk in chunks:
            run(chunk)
        return
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(run, chunk) for chunk in chunks]:
            future.result()


def _chunks(site_start: Ints) -> list[Ints]:
    """Runs of whole curves with about CHUNK sites each."""
    cuts = np.unique(np.searchsorted(site_start, np.arange(0, site_start[-1], CHUNK)))
    bounds = np.append(cuts, site_start.size - 1)
    return [np.arange(a, b) for a, b in pairwise(bounds) if b > a]


def population_weights(log_evidence: Array, log_prior: Array, pool: bool) -> tuple[Array, Array]:
    """(weights of each curve (priors, curves), population's prior weights).

    With `pool` the population's distribution over priors is learned by EM, the list's own prior counting as one curve more.
    """
    base = share = softmax(log_prior)
    for _ in range(POPULATION_ROUNDS if pool and share.size > 1 else 0):
        weights = _curve_weights(share, log_evidence)
        new = (base + weights.sum(axis=1)) / (1 + weights.shape[1])
        done = np.abs(new - share).max() < 1e-9
        share = new
        if done:
            break
    return _curve_weights(share, log_evidence), share


def _curve_weights(share: Array, log_evidence: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs = np.log(share)[:, None] + log_evidence
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=0)))


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
            raise InputError(f"no curve labelled {label!r} among {len(self)} (such as {', '.join(map(repr, self.labels[:3].tolist()))})")
        return self._curve(int(found[0]))

    def _curve(self, k: int) -> Curve:
        one = self.data.one(k)
        kernels = [fit.kernel.place(*one.span) for fit in self.fits]
        starts = [(fit.precision[fit.sites(k)], fit.shift[fit.sites(k)]) for fit in self.fits]
        components = graft_components(one, kernels, self.solver, starts)
        with np.errstate(divide="ignore"):
            return from_components(one, components, [float(p) for p in np.log(self.population)], self.method, self.frame, self.solver)

    @property
    def converged(self) -> Bools:
        """Whether grafting settled, for each curve."""
        settled = np.array([fit.converged for fit in self.fits])
        return np.asarray((settled | (self.weights < KEEP)).all(axis=0))

    @property
    def log_evidence(self) -> Array:
        """Log evidence of each curve, averaged over the population's priors."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.population)[:, None] + np.array([fit.log_evidence for fit in self.fits])
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    @property
    def bandwidths(self) -> Any:
        """The priors and their weights in the population, as a frame."""
        return make_frame({"kernel": [fit.kernel.describe() for fit in self.fits], "weight": self.population}, self.frame)

    def mixture(self, t: Any) -> Mixture:
        """Latent marginals of every curve at the times: points run over curves, then times."""
        offsets = self.data.observations.axis.offsets(t, "t")
        keep = np.flatnonzero(self.weights.max(axis=1) > KEEP)
        means, variances = zip(*(_predict(self.fits[k], offsets, self.solver) for k in keep), strict=True)
        weights = self.weights[keep] / self.weights[keep].sum(axis=0)
        base = np.tile(self.data.observations.mean_at(offsets), len(self))
        return Mixture(np.repeat(weights, offsets.size, axis=1), np.array(means) + base, np.sqrt(np.array(variances)))

    def _shaped(self, values: Array) -> Array:
        return values.reshape(*values.shape[:-1], len(self), -1)

    def mean(self, t: Any) -> Array:
        """Means: (curves, times)."""
        return self._shaped(self.mixture(t).mean(self.data.observations.link))

    def sd(self, t: Any) -> Array:
        """Standard deviations: (curves, times)."""
        return self._shaped(self.mixture(t).sd(self.data.observations.link))

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles: (curves, times); for several q one such table each."""
        tables = self._shaped(self.mixture(t).quantiles(as_vector(q, "q"), self.data.observations.link))
        return tables[0] if np.ndim(q) == 0 else tables

    def to_frame(self, t: Any, level: float = 0.7) -> Any:
        """A long frame: group, time, mean, sd, lower, median, upper."""
        mix, link = self.mixture(t), self.data.observations.link
        lower, median, upper = mix.quantiles(np.array([0.5 - level / 2, 0.5, 0.5 + level / 2]), link)
        times = self.data.observations.axis.restore(self.data.observations.axis.offsets(t, "t"))
        return make_frame({"group": np.repeat(self.labels, times.size), "time": np.tile(times, len(self)), "mean": mix.mean(link),
                           "sd": mix.sd(link), "lower": lower, "median": median, "upper": upper}, self.frame)

    def __repr__(self) -> str:
        loose = int((~self.converged).sum())
        sizes = f"{len(self.data.observations.emissions)} emissions at {self.data.times.size} instants"
        return f"<Curves: {len(self)} curves, {sizes}{f'; {loose} did not settle' if loose else ''}>"


def told_many(curves: Curves) -> Curves:
    """The curves, after a warning when some did not settle."""
    loose = np.flatnonzero(~curves.converged)
    if loose.size:
        warnings.warn(f"grafting did not settle for {loose.size} of {len(curves)} curves (first: {curves.labels[loose[0]]!r}); "
                      "curves[label].audit() tells how far off their bands are", ConvergenceWarning, stacklevel=3)
    return curves


def _predict(fit: ManyGrafted, offsets: Array, solver: SolverName | None) -> tuple[Array, Array]:
    """Means and variances of every curve at the times."""
    data = fit.data
    means, variances = np.empty((len(data), offsets.size)), np.empty((len(data), offsets.size))

    first, last = data.spans()
    largest, longest = int(np.diff(data.site_start).max()), float((last - first).max())
    packed = not _needs_place(fit.kernel) and choose(fit.kernel, largest, longest, solver) == "lowrank"

    def one_by_one(curves: Ints) -> None:
        for curve in curves:
            where = fit.sites(curve)
            times = data.times[where]
            kernel = fit.kernel.place(float(times[0]), float(times[-1]))
            name = choose(kernel, times.size, float(times[-1] - times[0]), solver)
            given = posterior(name, kernel, times, fit.curve_precision[where], fit.curve_shift[where])
            means[curve], variances[curve] = given.marginals(offsets)

    def together(curves: Ints) -> None:
        """The times asked for join each curve's sites as ones that say nothing."""
        begin, end = data.site_start[curves[0]], data.site_start[curves[-1] + 1]
        starts = data.site_start[curves[0]:curves[-1] + 2] - begin + offsets.size * np.arange(curves.size + 1)
        asked = (starts[1:, None] - offsets.size + np.arange(offsets.size)).ravel()
        seen = np.setdiff1d(np.arange(starts[-1]), asked)
        times, precision, shift = np.empty(starts[-1]), np.zeros(starts[-1]), np.zeros(starts[-1])
        times[asked], times[seen] = np.tile(offsets, curves.size), data.times[begin:end]
        precision[seen], shift[seen] = fit.curve_precision[begin:end], fit.curve_shift[begin:end]
        prior = LowRank(*ragged_features(fit.kernel, times, starts, first[curves], last[curves]))
        mean, var, size = np.empty(starts[-1]), np.empty(starts[-1]), np.empty(curves.size)
        prior.marginals(np.arange(curves.size), precision, shift, mean, var, size, np.ones(curves.size, dtype=bool))
        rest = fit.kernel.cov(offsets, offsets) - prior.squares()[asked].reshape(curves.size, -1)
        means[curves], variances[curves] = mean[asked].reshape(rest.shape), var[asked].reshape(rest.shape) + np.maximum(rest, 0.0)

    run = together if packed else one_by_one
    in_threads(run, _chunks(data.site_start), None)
    return means.ravel(), variances.ravel()
