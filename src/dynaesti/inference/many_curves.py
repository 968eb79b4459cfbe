"""Expectation propagation over many curves under one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, Ints, chunks, run_in_threads
from dynaesti.errors import InputError
from dynaesti.inference.grafting import EPProblem, EPResult, graft
from dynaesti.inference.observations import Observations
from dynaesti.inference.predict import predict_marginals
from dynaesti.inference.single_curve import (
    CurveMomentMatcher,
    beyond_table,
    is_one_number,
    table_covers_prior,
    tilted_from,
)
from dynaesti.inference.site_likelihood import Groups, Likelihood
from dynaesti.inference.sites import through_nugget
from dynaesti.inference.solvers.choice import build_batched_solver
from dynaesti.inference.solvers.contract import SolverName
from dynaesti.model import Kernel, check_evidence


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
        a = self.groups.start[self.site_start[curve]]
        b = self.groups.start[self.site_start[curve + 1]]
        return np.sort(self.groups.members[a:b])

    @cached_property
    def merged(self) -> Ragged:
        """The same with all emissions of a curve in one site.

        For constant curves, where that is exact.
        """
        first, last = self.spans()
        groups = Groups(self.groups.start[self.site_start], self.groups.members)
        return Ragged(
            self.observations, self.labels, 0.5 * (first + last), np.arange(len(self) + 1), groups
        )

    def one(self, curve: int) -> Observations:
        """The observations of one curve by itself, on the common time axis."""
        return self.observations.take(self.rows(curve))


def build_ragged(labels: Any, observations: Observations) -> Ragged:
    """Sort and group emissions by curve label and instant."""
    names = np.asarray(labels)
    if names.ndim != 1 or names.size != len(observations.emissions):
        raise InputError(
            f"groups: {names.size} labels for {len(observations.emissions)} emissions; give one "
            f"each"
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
            f"groups: labels of different kinds ({', '.join(kinds)}) cannot be told apart; make "
            f"them alike"
        ) from None
    order = np.lexsort((observations.offsets, code)).astype(np.int64)
    code = code[order]
    times = observations.offsets[order]
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
    """One prior on all curves, and the sites it saw.

    One an instant, or one a curve where that is constant.
    """

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
    if is_one_number(kernel, data.observations):
        data = data.merged
    fixed = data.likelihood.fixed(data.observations.mean_at(data.observations.offsets))
    precision = np.zeros(data.times.size)
    shift = np.zeros(data.times.size)
    evidence = np.zeros(len(data))
    converged = np.zeros(len(data), dtype=bool)
    offset = data.observations.mean_at(data.times)
    ends = np.array([data.times.min(), data.times.max()])
    first, last = data.spans()
    tabulated = (
        table_covers_prior(kernel.anchored(*ends), data.likelihood, offset, ends)
        and data.likelihood.table is not None
    )  # before threads
    within = tabulated  # so that by formula means: the table did not reach

    def run(curves: Ints) -> None:
        a = data.site_start[curves[0]]
        b = data.site_start[curves[-1] + 1]
        where = slice(a, b)
        sites = np.arange(a, b)
        starts = data.site_start[curves[0] : curves[-1] + 2] - a
        prior = build_batched_solver(
            kernel, data.times[where], starts, first[curves], last[curves], solver
        )
        bent = data.likelihood.bent[where]

        def grafted(tabulated: bool) -> EPResult:
            match = CurveMomentMatcher(
                data.likelihood, sites, offset[where], tabulated, wide=not tabulated and within
            )
            return graft(
                EPProblem(
                    prior,
                    match,
                    fixed.precision[where],
                    fixed.shift[where],
                    np.full(curves.size, kernel.nugget_variance),
                    bent,
                )
            )

        result = grafted(tabulated)
        if tabulated:
            _, _, mean, var = tilted_from(
                result.cavity_mean,
                result.cavity_var,
                fixed.precision[where],
                fixed.shift[where],
                result.precision,
                result.shift,
            )
            if (
                beyond_table(data.likelihood, mean + offset[where], var) & bent
            ).any():  # data drag a curve farther than its prior
                result = grafted(False)
        precision[where] = result.precision
        shift[where] = result.shift
        converged[curves] = result.converged
        evidence[curves] = result.log_evidence + np.add.reduceat(fixed.constant[where], starts[:-1])

    run_in_threads(run, chunks(data.site_start), threads)
    check_evidence(data.observations.emissions, evidence)
    latent = through_nugget(
        fixed.precision + precision, fixed.shift + shift, kernel.nugget_variance
    )
    return ManyGrafted(data, kernel, precision, shift, *latent, evidence, converged)


def predict_many(
    fit: ManyGrafted, offsets: Array, solver: SolverName | None
) -> tuple[Array, Array]:
    """Means and variances of every curve at the times."""
    data = fit.data
    asked = np.tile(offsets, len(data))
    asked_start = offsets.size * np.arange(len(data) + 1)
    return predict_marginals(
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
