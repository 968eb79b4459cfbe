"""Expectation propagation over many curves, chunk by chunk on threads.

`graft_in_chunks` is the driver that the fits of curves and of abilities share; `graft_many` applies
it to emissions grouped by curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Ints, Ragged, chunks, run_in_threads, starts_of_runs
from dynaesti.errors import InputError
from dynaesti.inference.grafting import EPProblem, graft
from dynaesti.inference.observations import Observations
from dynaesti.inference.predict import predict_marginals
from dynaesti.inference.single_curve import (
    CurveMomentMatcher,
    beyond_table,
    full_and_tilted,
    is_one_number,
    table_covers_prior,
)
from dynaesti.inference.site_likelihood import SiteLikelihood
from dynaesti.inference.sites import EPResult, Moments, NaturalGaussian, SiteLayout
from dynaesti.inference.solvers.choice import build_batched_solver
from dynaesti.inference.solvers.contract import SolverName
from dynaesti.model import Kernel, check_evidence


def graft_in_chunks(
    layout: SiteLayout,
    curve_chunks: Sequence[Ints],
    graft_chunk: Callable[[int], AbstractContextManager[EPResult]],
    threads: int | None,
) -> EPResult:
    """Run EP chunk by chunk on threads and lay the results end to end.

    Parameters
    ----------
    layout : SiteLayout
    curve_chunks : sequence of arrays
        Numbers of consecutive curves that are grafted together.
    graft_chunk : callable
        From the number of a chunk to a context with its result. The result may lie in memory that
        is used again after the context.
    threads : int, optional
        Number of threads. Default: all.
    """
    result = EPResult.empty(layout.n_sites, layout.n_curves)

    def run(number: int) -> None:
        curves = curve_chunks[number]
        where = slice(int(curves[0]), int(curves[-1]) + 1)
        with graft_chunk(number) as found:
            result.write(layout.curve_slice(curves), where, found)

    run_in_threads(run, range(len(curve_chunks)), threads)
    return result


@dataclass(frozen=True)
class CurveData:
    """Emissions of many curves, with a label for each curve."""

    observations: Observations
    labels: npt.NDArray[Any]  # (n_curves,)
    layout: SiteLayout  # factor_row holds the emissions' numbers

    def __len__(self) -> int:
        return self.labels.size

    @cached_property
    def likelihood(self) -> SiteLikelihood:
        """The emissions grouped into sites."""
        return self.observations.grouped(Ragged(self.layout.factor_start, self.layout.factor_row))

    @cached_property
    def merged(self) -> CurveData:
        """The data with all emissions of a curve in one site: exact for constant curves."""
        return CurveData(self.observations, self.labels, self.layout.merged)

    def one(self, curve: int) -> Observations:
        """The observations of one curve, on the common time axis."""
        sites = self.layout.curve_slice(np.array([curve]))
        factors = slice(self.layout.factor_start[sites.start], self.layout.factor_start[sites.stop])
        return self.observations.take(np.sort(self.layout.factor_row[factors]))


def group_by_curve(labels: Any, observations: Observations) -> CurveData:
    """Sort and group emissions by curve label and instant."""
    names = np.asarray(labels)
    if names.ndim != 1 or names.size != len(observations.emissions):
        raise InputError(
            f"groups: {names.size} labels for {len(observations.emissions)} emissions; give one "
            f"each"
        )
    # NaN is not equal to itself
    missing = np.array(
        [label is None or label != label for label in np.asarray(labels, dtype=object).tolist()]
    )
    if missing.any():
        raise InputError(
            f"groups: {int(missing.sum())} labels are missing (first: position "
            f"{int(missing.argmax())})"
        )
    try:
        unique, code = np.unique(names, return_inverse=True)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in names.tolist()})
        raise InputError(
            f"groups: labels of different kinds ({', '.join(kinds)}) cannot be compared; make "
            f"them alike"
        ) from None
    order = np.lexsort((observations.offsets, code)).astype(np.int64)
    code = code[order]
    times = observations.offsets[order]
    first = starts_of_runs(code, times)
    layout = SiteLayout(
        times[first],
        np.searchsorted(code[first], np.arange(unique.size + 1)).astype(np.int64),
        np.append(first, order.size).astype(np.int64),
        order,
        np.ones(order.size),
        order,
    )
    return CurveData(observations, unique, layout)


@dataclass(frozen=True)
class GraftedCurves:
    """All curves grafted under one kernel.

    `data` has the sites that the kernel saw: one for each instant, or one for each constant curve.
    """

    data: CurveData
    kernel: Kernel
    ep: EPResult
    latent_sites: NaturalGaussian

    def sites(self, curve: int) -> NaturalGaussian:
        """The sites of one curve."""
        return self.ep.sites.select(self.data.layout.curve_slice(np.array([curve])))

    def predict(self, offsets: Array, solver: SolverName | None) -> Moments:
        """Means and variances of every curve at the same times, curve after curve.

        Returns
        -------
        Moments (n_curves · n_offsets,)
        """
        n_curves = len(self.data)
        return predict_marginals(
            self.kernel,
            self.data.layout,
            self.latent_sites,
            np.tile(offsets, n_curves),
            offsets.size * np.arange(n_curves + 1),
            solver=solver,
        )


def graft_many(
    data: CurveData, kernel: Kernel, solver: SolverName | None, threads: int | None
) -> GraftedCurves:
    """Graft all curves under one kernel, with likelihood tables where they are wide enough."""
    if is_one_number(kernel, data.observations):
        data = data.merged
    layout = data.layout
    gaussian, constant = data.likelihood.gaussian_factors(
        data.observations.mean_at(data.observations.offsets)
    )
    offset = data.observations.mean_at(layout.times)
    ends = np.array([layout.times.min(), layout.times.max()])
    first, last = layout.spans
    tabulated = table_covers_prior(kernel.anchored(*ends), data.likelihood, offset, ends) and (
        data.likelihood.table is not None  # built here, before threads ask for it
    )
    curve_chunks = chunks(layout.site_start)

    def graft_chunk(number: int) -> EPResult:
        curves = curve_chunks[number]
        where = layout.curve_slice(curves)
        starts = layout.site_start[curves[0] : curves[-1] + 2] - where.start
        prior = build_batched_solver(
            kernel, layout.times[where], starts, first[curves], last[curves], solver
        )
        nugget = np.full(curves.size, kernel.nugget_variance)
        has_factors = data.likelihood.has_factors[where]
        sites = np.arange(where.start, where.stop)

        def grafted(by_table: bool) -> EPResult:
            wide = tabulated and not by_table  # by formula, because the table was too narrow
            match = CurveMomentMatcher.of(data.likelihood, sites, offset[where], by_table, wide)
            return graft(EPProblem(prior, match, gaussian.select(where), nugget, has_factors))

        result = grafted(tabulated)
        if tabulated:
            _, tilted = full_and_tilted(result.cavity, gaussian.select(where), result.sites)
            shifted = Moments(tilted.mean + offset[where], tilted.variance)
            if (beyond_table(data.likelihood, shifted) & has_factors).any():
                result = grafted(False)  # the data move a curve beyond what its prior expects
        result.log_evidence[:] += np.add.reduceat(constant[where], starts[:-1])
        return result

    ep = graft_in_chunks(
        layout, curve_chunks, lambda number: nullcontext(graft_chunk(number)), threads
    )
    check_evidence(data.observations.emissions, ep.log_evidence)
    latent = gaussian.times(ep.sites).through_nugget(kernel.nugget_variance)
    return GraftedCurves(data, kernel, ep, latent)
