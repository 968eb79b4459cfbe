"""The state of expectation propagation over many curves: sites, and what follows from them.

One `EPState` holds all arrays of a run. The steps of a sweep update them in place; the arithmetic
is in `ep_kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaesti.core import Array, Ints, Workspace, take_rows
from dynaesti.inference.ep_kernels import (
    N_ARRAYS,
    compute_cavities,
    integrate_nugget,
    propose_sites,
    site_arrays,
    site_evidence,
)
from dynaesti.inference.sites import EPResult, NaturalGaussian

if TYPE_CHECKING:
    from dynaesti.inference.grafting import EPProblem


class EPState:
    """Sites, cavities and tilted moments of many curves, updated in place.

    Each method performs one step of a sweep for chosen curves.

    Parameters
    ----------
    problem : EPProblem
    start : NaturalGaussian (n_sites,), optional
        Sites to start from. Default: flat ones.
    workspace : Workspace
        Memory for the arrays of all sites.
    """

    def __init__(
        self, problem: EPProblem, start: NaturalGaussian | None, workspace: Workspace
    ) -> None:
        self.site_start = problem.solver.site_start  # (n_curves + 1,)
        self.curves = np.arange(self.site_start.size - 1)
        self.work = workspace.arrays(N_ARRAYS, int(self.site_start[-1]))
        self.work[:] = 0.0  # flat sites
        self.arrays = site_arrays(self.work)
        for moments in (self.arrays.cavity, self.arrays.full_cavity, self.arrays.tilted):
            moments.variance[:] = 1.0
        self.arrays.gaussian.precision[:] = problem.gaussian_factors.precision
        self.arrays.gaussian.shift[:] = problem.gaussian_factors.shift
        if start is not None:
            self.arrays.site.precision[:] = start.precision
            self.arrays.site.shift[:] = start.shift
        n_curves = self.curves.size
        self.residual = np.full(n_curves, np.inf)
        self.proper = np.ones(n_curves, dtype=bool)
        self.sweeps = np.zeros(n_curves, dtype=np.int64)
        self.log_partition = np.zeros(n_curves)
        self.log_nugget = np.zeros(n_curves)

    def update_posterior(self, problem: EPProblem, curves: Ints) -> Ints:
        """Compute the posterior, prior × all sites; return the curves for which it is proper."""
        integrate_nugget(curves, self.site_start, problem.nugget, self.work, self.log_nugget)
        problem.solver.marginals(
            curves, self.arrays.latent_site, self.arrays.posterior, self.log_partition, self.proper
        )
        return curves[self.proper[curves]]

    def update_cavities(self, problem: EPProblem, curves: Ints) -> Ints:
        """Compute cavities, posterior / own site; return the curves for which all are proper."""
        compute_cavities(
            curves, self.site_start, problem.nugget, problem.has_factors, self.work, self.proper
        )
        return curves[self.proper[curves]]

    def propose_sites(self, curves: Ints) -> None:
        """Compute the proposed sites, tilted / cavity, and the residuals."""
        propose_sites(curves, self.site_start, self.work, self.residual)
        self.sweeps[curves] += 1

    def sites_of(self, curves: Ints) -> Ints:
        """Indices of the sites of the chosen curves."""
        if curves.size == self.curves.size:
            return np.arange(self.site_start[-1])
        return take_rows(self.site_start, curves)

    def log_evidence(self) -> Array:
        """Log evidence (n_curves,) at the present sites, without constants of Gaussian factors."""
        out = np.zeros(self.curves.size)
        site_evidence(self.curves, self.site_start, self.work, out)
        return out + self.log_partition + self.log_nugget

    def result(self, tolerance: float) -> EPResult:
        """The result at the present sites; its arrays are those of this state, not copies."""
        return EPResult(
            self.arrays.site,
            self.arrays.cavity,
            self.arrays.log_z,
            self.log_evidence(),
            self.log_partition,
            self.residual < tolerance,
            self.residual,
            self.sweeps,
        )
