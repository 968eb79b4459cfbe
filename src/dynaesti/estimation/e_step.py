"""The E-step: every person's curve grafted under each kernel, and the expected counts.

`EStep` works on people in memory; `people` says how results of several groups add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Ints, Workspace, chunks, run_in_threads, single_blas_thread
from dynaesti.errors import InputError
from dynaesti.estimation.expected_counts import add_counts, add_scores, leave_each_out
from dynaesti.estimation.population import PriorMixture, posterior_weights
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.estimation.solver_cache import SolverCache
from dynaesti.estimation.static_abilities import STRIDES, StaticAbilityIntegrator, Tables
from dynaesti.inference import (
    CACHE_SIZE,
    EPProblem,
    EPResult,
    EPSettings,
    LogLikelihoodTable,
    MomentMatcher,
    Moments,
    NaturalGaussian,
    PriorMeanSolver,
    SiteLayout,
    Solver,
    graft,
    graft_in_chunks,
    match_sites_cached,
)
from dynaesti.model import Kernel, SmoothBasis

EP_TOLERANCE_FINAL = 1e-7  # of the last E-step, whose result is kept
CACHE_SLACK = 0.1  # error of matching by derivatives, as a fraction of the tolerance of EP
MAX_BUFFERS = 8  # expected counts are added up in at most so many fixed parts
MAX_COUNTS = 40_000_000  # numbers in all buffers together
# weight of a kernel for a person above which convergence of the curve is reported, and for anyone
# above which the range of its curves is
MIN_WEIGHT = 1e-3


@dataclass(frozen=True)
class EStepPosterior:
    """Everyone's curve under every kernel, and each person's weights of the kernels."""

    ep: tuple[EPResult, ...]  # one for each kernel
    weights: Array  # (n_kernels, n_people)

    @property
    def log_evidence(self) -> Array:
        """Log evidence of each person under each kernel: (n_kernels, n_people)."""
        return np.array([result.log_evidence for result in self.ep])

    def selected(self, layout: SiteLayout, people: Ints) -> EStepPosterior:
        """The curves of some people, with a site for each instant of the layout."""
        sites = layout.sites_of(people)
        ep = tuple(result.select(sites, people) for result in self.ep)
        return EStepPosterior(ep, self.weights[:, people])

    def by_kernel(self, priors: PriorMixture) -> Iterator[tuple[Kernel, EPResult, Array]]:
        """Each kernel with everyone's curves under it, and its weight for each person."""
        return zip(priors.kernels, self.ep, self.weights, strict=True)

    @property
    def n_unconverged(self) -> int:
        """Number of curves on which EP did not converge, under kernels with enough weight."""
        return sum(
            int((~result.converged & (weight > MIN_WEIGHT)).sum())
            for result, weight in zip(self.ep, self.weights, strict=True)
        )

    def max_abs_ability(self) -> float:
        """Largest distance of any curve from 0, plus three standard deviations.

        Kernels that have too little weight for everyone do not count.
        """
        farthest = 0.0
        for result, weight in zip(self.ep, self.weights, strict=True):
            tilted = result.tilted
            if weight.max(initial=0.0) > MIN_WEIGHT:
                reach = np.abs(tilted.mean) + 3 * np.sqrt(tilted.variance)
                farthest = max(farthest, float(reach.max()))
        return farthest


def kernel_weights(population: Array, ep: tuple[EPResult, ...]) -> Array:
    """Each person's weights of the kernels (n_kernels, n_people), given the population's."""
    return posterior_weights(population, np.array([result.log_evidence for result in ep]))


class EStep:
    """E-steps over the same people in every iteration of EM.

    Solvers and memory are kept from one E-step to the next.

    Parameters
    ----------
    sites : PeopleSites
    threads : int, optional
        Number of threads. Default: all.
    max_buffers : int
        Expected counts are added up in at most so many parts. The number affects rounding.
    """

    def __init__(
        self, sites: PeopleSites, threads: int | None = None, max_buffers: int = MAX_BUFFERS
    ) -> None:
        self.sites = sites
        self.threads = threads
        self.max_buffers = max_buffers
        layout = sites.layout
        # chunks by factors, not by sites: a site may hold the four rounds of a tournament
        self._chunks = {
            False: chunks(layout.factor_start[layout.site_start]),
            True: chunks(layout.merged.factor_start),
        }
        self._solvers = SolverCache(sites, self._chunks)
        self._columns: tuple[SmoothBasis, Array] | None = None
        self._selected: tuple[Ints, EStep] | None = None
        self._workspaces: list[tuple[Workspace, Workspace]] = []  # a pair for each thread at work

    @single_blas_thread()
    def run(
        self,
        table: LogLikelihoodTable,
        priors: PriorMixture,
        starts: list[NaturalGaussian | None],
        tolerance: float,
    ) -> EStepPosterior:
        """Graft everyone under every kernel.

        Parameters
        ----------
        table : LogLikelihoodTable
            Rows of all items on the ability grid.
        priors : PriorMixture
            Of everyone's curve.
        starts : list of NaturalGaussian or None
            Sites to start from under each kernel.
        tolerance : float
            Of expectation propagation.
        """
        results: list[EPResult] = []
        mean = self.prior_mean(priors)
        merged = [priors.merges_instants(kernel) for kernel in priors.kernels]
        for k, (kernel, given) in enumerate(zip(priors.kernels, starts, strict=True)):
            start = given
            if start is None:  # sites hardly depend on the kernel: start from those of another
                similar = [j for j in range(k) if merged[j] == merged[k]]
                start = results[similar[-1]].sites if similar else None
            results.append(self.graft(kernel, table, start, tolerance, mean))
        return EStepPosterior(tuple(results), kernel_weights(priors.weights, tuple(results)))

    def prior_mean(self, priors: PriorMixture) -> Array | None:
        """The cohort's mean with effects at every site, (n_sites,); None where it is 0."""
        cohort = priors.cohort
        if cohort is None:
            return None
        columns = self.cohort_columns(cohort.basis)
        if cohort.n_groups == 1:
            mean = columns @ cohort.curves[0]
        else:
            mean = np.einsum("sb,sb->s", columns, cohort.curves[self.sites.group_of_site])
        x = self.sites.columns_of_effects
        return np.asarray(mean if x is None else mean + x @ cohort.effect_values)

    def cohort_columns(self, basis: SmoothBasis) -> Array:
        """The functions of a basis at every instant, (n_sites, n_columns); the last are kept."""
        kept = self._columns
        if kept is None or kept[0] is not basis:
            kept = self._columns = (basis, basis.columns(self.sites.layout.times))
        return kept[1]

    def selected(self, people: Ints) -> EStep:
        """E-steps over some of the people; those over the last choice are kept."""
        kept = self._selected
        if kept is None or not np.array_equal(kept[0], people):
            kept = self._selected = (people, EStep(self.sites.select(people), self.threads))
        return kept[1]

    def graft(
        self,
        kernel: Kernel,
        table: LogLikelihoodTable,
        start: NaturalGaussian | None,
        tolerance: float,
        mean: Array | None = None,
    ) -> EPResult:
        """Graft everyone's curve under one kernel, with the prior mean (n_sites,) or 0."""
        merges = kernel.static and mean is None
        layout = self.sites.merged_if(merges)
        curve_chunks = self._chunks[merges]
        exact = _integrator(kernel, layout, table) if merges else None

        @contextmanager
        def graft_chunk(number: int) -> Iterator[EPResult]:
            people = curve_chunks[number]
            begin = None if start is None else start.select(layout.curve_slice(people))
            spaces = self._workspaces.pop() if self._workspaces else (Workspace(), Workspace())
            result = None if exact is None else _integrated(exact, people, begin)
            if result is None:
                problem = self._problem(kernel, table, number, tolerance, spaces[1], mean)
                result = graft(problem, begin, EPSettings(tolerance=tolerance), spaces[0])
            result.log_evidence[:] += self.sites.constant[people]
            yield result
            self._workspaces.append(spaces)

        return graft_in_chunks(layout, curve_chunks, graft_chunk, self.threads)

    def _problem(
        self,
        kernel: Kernel,
        table: LogLikelihoodTable,
        number: int,
        tolerance: float,
        workspace: Workspace,
        mean: Array | None,
    ) -> EPProblem:
        """The EP problem of one chunk of people."""
        merges = kernel.static and mean is None
        people = self._chunks[merges][number]
        layout = self.sites.merged_if(merges)
        where = layout.curve_slice(people)
        sites = np.arange(where.start, where.stop)
        solver: Solver = self._solvers.get(kernel, number, merges)
        if mean is not None:
            solver = PriorMeanSolver(solver, mean[where])
        return EPProblem(
            solver,
            self.matcher(layout, sites, table, tolerance, workspace),
            NaturalGaussian.empty(sites.size),
            np.full(people.size, kernel.nugget_variance),
            np.ones(sites.size, dtype=bool),
        )

    def matcher(
        self,
        layout: SiteLayout,
        sites: Ints,
        table: LogLikelihoodTable,
        tolerance: float,
        workspace: Workspace,
    ) -> MomentMatcher:
        """The moment matcher of some sites, with a cache of their last integrals."""
        cache = workspace.arrays(sites.size, CACHE_SIZE)
        cache[:, -1] = np.nan  # no integral yet
        factors = layout.factors(sites)

        def match(some: Ints, cavity: Moments, log_z: Array, tilted: Moments) -> None:
            failed = match_sites_cached(
                some, factors, table, cavity, cache, CACHE_SLACK * tolerance, log_z, tilted
            )
            if failed >= 0:
                raise InputError(
                    f"the answers at one instant (site {int(sites[0]) + failed}) are impossible at "
                    "every ability; check the responses and the item parameters that were given"
                )

        return match

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Drop the cached solvers of all but the given kernels."""
        self._solvers.keep_only(kernels)
        if self._selected is not None:
            self._selected[1].drop_cached(kernels)

    # --- sums over people -----------------------------------------------------------------------

    def counts(
        self, priors: PriorMixture, posterior: EStepPosterior, table: LogLikelihoodTable
    ) -> Array:
        """Expected counts (n_rows, n_grid).

        They are added up in a fixed order, so that the number of threads does not change a bit.
        """
        total = np.zeros(table.log_lik.shape)
        for kernel, result, weights in posterior.by_kernel(priors):
            self._add_counts(kernel, priors, result, weights, table, total)
        return total

    def _add_counts(
        self,
        kernel: Kernel,
        priors: PriorMixture,
        result: EPResult,
        weights: Array,
        table: LogLikelihoodTable,
        total: Array,
    ) -> None:
        """Add the expected counts of everyone under one kernel to `total`."""
        merges = priors.merges_instants(kernel)
        layout = self.sites.merged_if(merges)
        tilted = result.tilted
        site_weight = np.repeat(weights, np.diff(layout.site_start))
        moments = np.stack([*result.cavity, *tilted, site_weight], axis=1)
        factors = layout.factors(np.arange(layout.n_sites))

        def add(sites: Ints, into: Array) -> None:
            add_counts(sites, factors, table, moments, into)

        if layout.one_factor_per_site:
            # the responses of a row one after the other: it is fetched from memory once, and no
            # other thread writes to it
            by_row = self.sites.sites_by_row
            run_in_threads(lambda sites: add(sites, total), by_row, self.threads)
        elif merges:
            exact = _integrator(kernel, layout, table)

            def add_static(number: int, into: Tables) -> None:
                people = self._chunks[True][number]
                if exact.strides(tilted.variance[people]).all():
                    exact.count(people, *tilted, weights, into)
                else:
                    add(people, into[1])

            self._accumulate_in_buffers(add_static, True, total)
        else:
            self._accumulate_in_buffers(
                lambda number, into: add(self._sites(number), into[1]), False, total
            )

    def _sites(self, number: int) -> Ints:
        """Sites of the people of a chunk."""
        where = self.sites.layout.curve_slice(self._chunks[False][number])
        return np.arange(where.start, where.stop)

    def _accumulate_in_buffers(
        self, add: Callable[[int, Tables], None], static: bool, total: Array
    ) -> None:
        """Add chunk by chunk to separate buffers, then to `total`.

        Sites with several factors write to several rows, so that threads cannot share a table.
        Static abilities have a table for each stride.
        """
        n_chunks = len(self._chunks[static])
        affordable = max(2, MAX_COUNTS // total.size)
        n_buffers = max(1, min(self.max_buffers, n_chunks, affordable))
        buffers: list[Tables] = [{1: total}]
        buffers += [{1: np.zeros(total.shape)} for _ in range(n_buffers - 1)]

        def run(buffer: int) -> None:
            for number in range(buffer, n_chunks, n_buffers):
                add(number, buffers[buffer])

        run_in_threads(run, range(n_buffers), self.threads)
        for tables in buffers:
            for stride, found in sorted(tables.items()):
                if found is not total:
                    total[:, ::stride] += found

    def mean_response(self, kernel: Kernel, merges: bool, precision: Array, moves: Array) -> Array:
        """How far everyone's curve moves at each site when the latent sites move.

        Parameters
        ----------
        kernel : Kernel
        merges : bool
            Whether instants are merged, see `PriorMixture.merges_instants`.
        precision : array (n_sites,)
            Of the latent sites.
        moves : array (n_moves, n_sites)
            Moves of the latent sites.

        Returns
        -------
        array (n_moves, n_sites)
        """
        layout = self.sites.merged_if(merges)
        out = np.zeros(moves.shape)

        def run(number: int) -> None:
            people = self._chunks[merges][number]
            where = layout.curve_slice(people)
            solver = self._solvers.get(kernel, number, merges)
            every = np.arange(people.size)
            for k, move in enumerate(moves):
                pulled = NaturalGaussian(precision[where], precision[where] * move[where])
                moved = Moments(out[k, where], np.zeros(pulled.precision.size))
                solver.marginals(
                    every, pulled, moved, np.zeros(people.size), np.ones(people.size, dtype=bool)
                )

        run_in_threads(run, range(len(self._chunks[merges])), self.threads)
        return out

    def scores(
        self,
        priors: PriorMixture,
        posterior: EStepPosterior,
        table: LogLikelihoodTable,
        gradients: Array,
    ) -> Array:
        """Expected score of every factor by its item's parameters: (n_factors, n_parameters).

        ``gradients`` (n_rows, n_parameters, n_grid) are those of the log-likelihood rows.
        """
        out = np.zeros((self.sites.layout.factor_row.size, gradients.shape[1]))
        for kernel, result, weights in posterior.by_kernel(priors):
            merges = priors.merges_instants(kernel)
            self._add_scores(kernel, merges, result, weights, table, gradients, out)
        return out

    def _add_scores(
        self,
        kernel: Kernel,
        merges: bool,
        result: EPResult,
        weights: Array,
        table: LogLikelihoodTable,
        gradients: Array,
        out: Array,
    ) -> None:
        """Add the scores of everyone under one kernel to `out`."""
        layout = self.sites.merged_if(merges)
        tilted = result.tilted
        factors = layout.factors(np.arange(layout.n_sites))
        exact = _integrator(kernel, layout, table) if merges else None
        strides = STRIDES if merges else ()
        coarse = {stride: np.ascontiguousarray(gradients[:, :, ::stride]) for stride in strides}

        def run(number: int) -> None:
            people = self._chunks[merges][number]
            if exact is not None and exact.strides(tilted.variance[people]).all():
                exact.score(people, *tilted, weights, coarse, out)
                return
            add_scores(
                people,
                weights,
                layout.site_start,
                factors,
                table,
                result.cavity,
                tilted,
                gradients,
                out,
            )

        run_in_threads(run, range(len(self._chunks[merges])), self.threads)


def _integrated(
    exact: StaticAbilityIntegrator, people: Ints, start: NaturalGaussian | None
) -> EPResult | None:
    """Constant abilities by exact integration, as sites that match their moments.

    None where the integral is not accurate for everyone.
    """
    around = None
    if start is not None:
        shrink = 1.0 + exact.variance * start.precision
        if (shrink > 0).all():
            around = (exact.variance * start.shift / shrink, exact.variance / shrink)
    result = EPResult.empty(people.size, people.size)
    posterior = Moments(np.zeros(people.size), np.zeros(people.size))
    if not exact.integrate(people, around, result.log_z, posterior).all():
        return None
    result.sites.precision[:] = 1.0 / posterior.variance - 1.0 / exact.variance
    result.sites.shift[:] = posterior.mean / posterior.variance
    result.cavity.variance[:] = exact.variance
    result.log_evidence[:] = result.log_z
    result.converged[:] = True
    return result


def _integrator(
    kernel: Kernel, layout: SiteLayout, table: LogLikelihoodTable
) -> StaticAbilityIntegrator:
    """Exact integration of constant abilities under a static kernel."""
    variance = float(kernel.cov(np.zeros(1), np.zeros(1))[0])
    return StaticAbilityIntegrator(table, variance, layout.factors(np.arange(layout.n_sites)))


def leave_one_out_abilities(
    sites: PeopleSites, layout: SiteLayout, result: EPResult, table: LogLikelihoodTable
) -> Moments:
    """Mean and variance of ability at each response's instant without that response.

    `layout` has the sites as the kernel of the result sees them.

    Returns
    -------
    Moments (n_responses,)
    """
    out = Moments(np.zeros(sites.n_responses), np.ones(sites.n_responses))
    leave_each_out(
        layout.n_sites,
        layout.factors(np.arange(layout.n_sites)),
        layout.factor_response,
        table,
        result.cavity,
        result.tilted,
        out,
    )
    return out
