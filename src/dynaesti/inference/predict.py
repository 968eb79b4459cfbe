"""Posterior marginals of many grafted curves at any times, different ones for each curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import (
    Array,
    Bools,
    Ints,
    chunks,
    jit,
    last_of_rows,
    row_of_entries,
    run_in_threads,
    starts_of,
)
from dynaesti.inference.sites import Moments, NaturalGaussian, SiteLayout
from dynaesti.inference.solvers.choice import (
    build_batched_solver,
    build_posterior,
    choose_solver,
    depends_on_span,
)
from dynaesti.inference.solvers.contract import SolverName
from dynaesti.inference.solvers.state_space import is_markov
from dynaesti.inference.solvers.weight_space import LowRankSolver
from dynaesti.model import Kernel


def predict_marginals(
    kernel: Kernel,
    layout: SiteLayout,
    latent_sites: NaturalGaussian,
    asked: Array,
    asked_start: Ints,
    *,
    spans: tuple[Array, Array] | None = None,
    solver: SolverName | None = None,
    threads: int | None = None,
) -> Moments:
    """Mean and variance of many curves at the times asked for.

    Curve j is evaluated at the times ``asked[asked_start[j]:asked_start[j + 1]]``.

    Parameters
    ----------
    kernel : Kernel
    layout : SiteLayout
        The curves' sites, as this kernel sees them.
    latent_sites : NaturalGaussian (n_sites,)
    asked : array (n_asked,)
        Times of all curves, one curve after the other, in any order within a curve.
    asked_start : array (n_curves + 1,)
    spans : pair of arrays (n_curves,), optional
        First and last instant of each curve's data. Default: of its sites.
    solver : str, optional
        Name of the solver. Default: chosen by `choose_solver`.
    threads : int, optional
        Number of threads. Default: all.

    Returns
    -------
    Moments (n_asked,)
    """
    rising = np.lexsort((asked, row_of_entries(asked_start)))
    query = _Query(
        kernel, layout, latent_sites, asked[rising], asked_start, spans or layout.spans, solver
    )
    work = chunks(layout.site_start + asked_start)
    if query.is_packed:
        run_in_threads(query.answer_packed, work, threads)
    elif is_markov(kernel) and solver in (None, "statespace"):
        run_in_threads(query.answer_chains, work, threads)
    else:
        run_in_threads(query.answer_one_by_one, work, threads)
    out = Moments(np.empty(asked.size), np.empty(asked.size))
    out.mean[rising] = query.found.mean
    out.variance[rising] = query.found.variance
    return out


@dataclass(frozen=True)
class _Joint:
    """Consecutive curves with the times asked for added as flat sites."""

    asked: slice  # among all times asked for
    is_asked: Bools  # (n_joint,)
    times: Array  # (n_joint,) each curve's sites, then its times asked for
    sites: NaturalGaussian  # (n_joint,)
    start: Ints  # (n_curves + 1,)
    n_sites: Ints  # (n_curves,)


class _Query:
    """Times asked of many curves, rising within each, and the moments found there."""

    def __init__(
        self,
        kernel: Kernel,
        layout: SiteLayout,
        latent_sites: NaturalGaussian,
        asked: Array,
        asked_start: Ints,
        spans: tuple[Array, Array],
        solver: SolverName | None,
    ) -> None:
        self.kernel = kernel
        self.layout = layout
        self.latent_sites = latent_sites
        self.asked = asked
        self.asked_start = asked_start
        self.solver = solver
        self.first, self.last = spans
        self.found = Moments(np.empty(asked.size), np.empty(asked.size))
        longest = int(np.diff(layout.site_start).max())
        widest = float((self.last - self.first).max())
        self.is_packed = (
            not depends_on_span(kernel)
            and choose_solver(kernel, longest, widest, solver) == "lowrank"
        )

    def answer_one_by_one(self, curves: Ints) -> None:
        """Find the moments from each curve's own posterior."""
        for c in curves:
            want = slice(self.asked_start[c], self.asked_start[c + 1])
            if want.start == want.stop:
                continue
            have = slice(self.layout.site_start[c], self.layout.site_start[c + 1])
            first = float(self.first[c])
            last = float(self.last[c])
            kernel = self.kernel.anchored(first, last)
            name = choose_solver(kernel, int(have.stop - have.start), last - first, self.solver)
            posterior = build_posterior(
                name, kernel, self.layout.times[have], *self.latent_sites.select(have)
            )
            self.found.mean[want], self.found.variance[want] = posterior.marginals(self.asked[want])

    def _joint(self, curves: Ints) -> _Joint:
        """Join the sites of consecutive curves with the times asked for."""
        a = curves[0]
        b = curves[-1] + 1
        n_sites = np.diff(self.layout.site_start[a : b + 1])
        n_asked = np.diff(self.asked_start[a : b + 1])
        start = starts_of(n_sites + n_asked)
        is_asked = np.zeros(start[-1], dtype=bool)
        is_asked[last_of_rows(start, n_asked)] = True
        asked = slice(self.asked_start[a], self.asked_start[b])
        have = slice(self.layout.site_start[a], self.layout.site_start[b])
        times = np.empty(start[-1])
        times[is_asked] = self.asked[asked]
        times[~is_asked] = self.layout.times[have]
        sites = NaturalGaussian.empty(int(start[-1]))
        sites.precision[~is_asked] = self.latent_sites.precision[have]
        sites.shift[~is_asked] = self.latent_sites.shift[have]
        return _Joint(asked, is_asked, times, sites, start, n_sites)

    def answer_packed(self, curves: Ints) -> None:
        """Find the moments of many short curves in features, by one compiled call."""
        joint = self._joint(curves)
        prior = build_batched_solver(
            self.kernel, joint.times, joint.start, self.first[curves], self.last[curves], "lowrank"
        )
        assert isinstance(prior, LowRankSolver)
        found = _empty_moments(joint)
        prior.marginals(np.arange(curves.size), joint.sites, found, *_unused(curves))
        asked = self.asked[joint.asked]
        prior_variance = np.broadcast_to(self.kernel.cov(asked, asked), asked.shape)
        not_in_features = prior_variance - prior.squares()[joint.is_asked]
        self.found.mean[joint.asked] = found.mean[joint.is_asked]
        self.found.variance[joint.asked] = found.variance[joint.is_asked] + np.maximum(
            not_in_features, 0.0
        )

    def answer_chains(self, curves: Ints) -> None:
        """Find the moments of Markov chains, which pass through sites and new times in order."""
        joint = self._joint(curves)
        order = np.empty(joint.times.size, dtype=np.int64)
        _merge_order(joint.times, joint.start, joint.n_sites, order)
        chain = build_batched_solver(
            self.kernel,
            joint.times[order],
            joint.start,
            self.first[curves],
            self.last[curves],
            "statespace",
        )
        found = _empty_moments(joint)
        chain.marginals(np.arange(curves.size), joint.sites.select(order), found, *_unused(curves))
        unsorted = np.empty((2, joint.times.size))
        unsorted[:, order] = found
        self.found.mean[joint.asked] = unsorted[0, joint.is_asked]
        self.found.variance[joint.asked] = unsorted[1, joint.is_asked]


def _empty_moments(joint: _Joint) -> Moments:
    """Moments at all sites and times, to be filled."""
    return Moments(np.empty(joint.times.size), np.empty(joint.times.size))


def _unused(curves: Ints) -> tuple[Array, Bools]:
    """Arrays for log partitions and for which curves are proper, which are not needed here."""
    return np.empty(curves.size), np.ones(curves.size, dtype=bool)


@jit
def _merge_order(times: Array, start: Ints, n_first: Ints, order: Ints) -> None:
    """Merge two sorted parts of each row: the order that sorts start[j]:start[j + 1].

    The first n_first[j] entries of row j are rising, and so are the others.
    """
    for j in range(n_first.size):
        site = start[j]
        middle = start[j] + n_first[j]
        end = start[j + 1]
        ask = middle
        for k in range(start[j], end):
            if ask == end or (site < middle and times[site] <= times[ask]):
                order[k] = site
                site += 1
            else:
                order[k] = ask
                ask += 1
