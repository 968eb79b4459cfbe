"""Grafting: parallel expectation propagation over many ragged curves.

Each emission group f_i is replaced by a Gaussian site so that site × cavity has the mean and
variance of f_i × cavity, where the cavity is the message from the prior and all other sites. All
sites of all curves are refined at once, with full steps, until they settle. Negative site
precisions are right where a likelihood is locally convex (lucky guesses) and are kept; only the
whole posterior must stay proper. Curves that do not settle this way, few and hard, are handed one
by one to `rescue`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynaesti.core import Array, Bools, Ints, Workspace
from dynaesti.inference.damped import converge_damped
from dynaesti.inference.ep_kernels import (
    compute_cavities,
    copy_sites,
    integrate_nugget,
    propose_sites,
    site_evidence,
)
from dynaesti.inference.solvers.contract import Solver

TOLERANCE = 1e-7  # on tilted against posterior means (in sds) and variances (relative)
MOST_SWEEPS = 200
PATIENCE = 4  # sweeps before slow progress counts
SLOW = 0.7  # residuals that shrink by less than this a sweep


class MomentMatcher(Protocol):
    """Tilted moments of the chosen sites, written into log_z, mean and var (these two come in
    holding a guess).
    """

    def __call__(
        self,
        sites: Ints,
        cavity_mean: Array,
        cavity_var: Array,
        log_z: Array,
        mean: Array,
        var: Array,
    ) -> None: ...


@dataclass(frozen=True)
class EPProblem:
    """Many curves to graft.

    Gaussian emissions are in the fixed part; `nugget_variance` is each curve's nugget.
    """

    solver: Solver
    match: MomentMatcher
    fixed_precision: Array
    fixed_shift: Array
    nugget_variance: Array  # (jobs,)
    bent: Bools  # sites with something to match; the others are Gaussian and need no cavity


@dataclass(frozen=True)
class EPResult:
    """Sites at rest, with the cavities that belong to them."""

    precision: Array
    shift: Array
    cavity_mean: Array  # cavities without the groups' own Gaussian members
    cavity_var: Array
    log_z: Array  # log ∫ f·cavity: the leave-one-out density of each group
    log_evidence: Array  # (jobs,), without the constants of Gaussian emissions
    log_partition: Array  # (jobs,), log ∫ prior × sites as the curve sees them
    sweeps: Ints
    converged: Bools
    residual: Array


class EPState:
    """The sites of all jobs and everything that follows from them.

    `look` refreshes the rest for chosen jobs.
    """

    def __init__(
        self, problem: EPProblem, start: tuple[Array, Array] | None, room: Workspace
    ) -> None:
        self.problem = problem
        self.site_start = problem.solver.site_start
        self.jobs, n = np.arange(self.site_start.size - 1), int(self.site_start[-1])
        (
            self.precision,
            self.shift,
            self.last_precision,
            self.last_shift,
            self.proposed_precision,
            self.proposed_shift,
            self.full_cavity_mean,
            self.full_cavity_var,
            self.log_z,
            self.mean,
            self.var,
            self.cavity_mean,
            self.cavity_var,
            *inner,
        ) = room.arrays(17, n)
        self._on = inner[:2]
        self._curve = inner[2:]
        for part in (
            self.last_precision,
            self.last_shift,
            self.full_cavity_mean,
            self.cavity_mean,
            self.mean,
            self.log_z,
        ):
            part[:] = 0.0
        self.precision[:], self.shift[:] = (0.0, 0.0) if start is None else start
        self.full_cavity_var[:] = self.var[:] = self.cavity_var[:] = 1.0
        self.residual, self.proper = (
            np.full(self.jobs.size, np.inf),
            np.ones(self.jobs.size, dtype=bool),
        )
        self.sweeps = np.zeros(self.jobs.size, dtype=np.int64)
        self.partition, self._instant = np.zeros(self.jobs.size), np.zeros(self.jobs.size)

    def look(self, jobs: Ints) -> Bools:
        """Posteriors, cavities, tilted moments and aims of the chosen jobs.

        False for those that are improper.
        """
        p = self.problem
        integrate_nugget(
            jobs,
            self.site_start,
            p.nugget_variance,
            p.fixed_precision,
            p.fixed_shift,
            self.precision,
            self.shift,
            self._on[0],
            self._on[1],
            self._instant,
        )
        p.solver.marginals(
            jobs,
            self._on[0],
            self._on[1],
            self._curve[0],
            self._curve[1],
            self.partition,
            self.proper,
        )
        jobs_left = jobs[self.proper[jobs]]
        compute_cavities(
            jobs_left,
            self.site_start,
            p.nugget_variance,
            p.fixed_precision,
            p.fixed_shift,
            self._on[0],
            self._on[1],
            self._curve[0],
            self._curve[1],
            self.precision,
            self.shift,
            p.bent,
            self.cavity_mean,
            self.cavity_var,
            self.full_cavity_mean,
            self.full_cavity_var,
            self.mean,
            self.var,
            self.proper,
        )
        jobs_left = jobs_left[self.proper[jobs_left]]
        p.match(
            self.sites(jobs_left),
            self.full_cavity_mean,
            self.full_cavity_var,
            self.log_z,
            self.mean,
            self.var,
        )
        propose_sites(
            jobs_left,
            self.site_start,
            self.full_cavity_mean,
            self.full_cavity_var,
            self.mean,
            self.var,
            self.precision,
            self.shift,
            self.proposed_precision,
            self.proposed_shift,
            self.residual,
        )
        self.sweeps[jobs_left] += 1
        return self.proper[jobs]

    def sites(self, jobs: Ints) -> Ints:
        """The sites of the chosen jobs."""
        if jobs.size == self.jobs.size:
            return np.arange(self.site_start[-1])
        counts = self.site_start[jobs + 1] - self.site_start[jobs]
        skip = np.repeat(
            self.site_start[jobs] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts
        )
        return np.asarray(np.arange(counts.sum()) + skip)

    def evidence(self) -> Array:
        """Log evidence of every job at its present sites."""
        out = np.zeros(self.jobs.size)
        site_evidence(
            self.jobs,
            self.site_start,
            self.full_cavity_mean,
            self.full_cavity_var,
            self.precision,
            self.shift,
            self.log_z,
            out,
        )
        return out + self.partition + self._instant


def graft(
    problem: EPProblem,
    start: tuple[Array, Array] | None = None,
    tolerance: float = TOLERANCE,
    most_sweeps: int = MOST_SWEEPS,
    room: Workspace | None = None,
) -> EPResult:
    """Settle the sites of all curves, from nothing or from given (precision, shift).

    Warm sites that have become improper (their items have moved on) start from nothing. Where a
    room is given, the result lies in it: to be copied before it is used again.
    """
    state = EPState(problem, start, room or Workspace())
    hard = _full_sweeps(state, tolerance, most_sweeps)
    for job in hard:
        converge_damped(state, int(job), tolerance, most_sweeps)
    converged = state.residual < tolerance
    return EPResult(
        state.precision,
        state.shift,
        state.cavity_mean,
        state.cavity_var,
        state.log_z,
        state.evidence(),
        state.partition,
        state.sweeps,
        converged,
        state.residual,
    )


def _full_sweeps(state: EPState, tolerance: float, most_sweeps: int) -> Ints:
    """Parallel full steps; returns the jobs that turned improper or slow, at their last proper
    sites.
    """
    active = state.jobs
    hard = []
    bounds = state.site_start
    previous = state.residual.copy()
    for sweep in range(most_sweeps):
        fine = state.look(active)
        if not fine.all():
            copy_sites(
                active[~fine],
                bounds,
                state.last_precision,
                state.last_shift,
                state.precision,
                state.shift,
            )
        now = state.residual[active]
        slow = ~fine | ((sweep >= PATIENCE) & (now > SLOW * previous[active]))
        done = fine & (now < tolerance)
        hard.append(active[slow & ~done])
        previous[active] = now
        active = active[~slow & ~done]
        if active.size == 0:
            break
        copy_sites(
            active, bounds, state.precision, state.shift, state.last_precision, state.last_shift
        )
        copy_sites(
            active,
            bounds,
            state.proposed_precision,
            state.proposed_shift,
            state.precision,
            state.shift,
        )
    return np.concatenate([*hard, active])
