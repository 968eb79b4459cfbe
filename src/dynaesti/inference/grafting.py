"""Grafting: parallel expectation propagation (EP) over many curves.

The paper's section II-A and appendix. `graft` is the algorithm and `sweep` one of its iterations;
solvers supply the Gaussian-process prior, a `MomentMatcher` the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dynaesti.core import Array, Bools, Ints, Workspace
from dynaesti.inference.damped import DampingSettings, converge_damped
from dynaesti.inference.ep_kernels import restore_previous_sites, take_proposed_sites
from dynaesti.inference.ep_state import EPState
from dynaesti.inference.sites import EPResult, Moments, NaturalGaussian
from dynaesti.inference.solvers.contract import Solver


class MomentMatcher(Protocol):
    """Computes tilted moments of the chosen sites from their full cavities.

    They are written into `log_z` and `tilted`, which holds a guess before the call.
    """

    def __call__(self, sites: Ints, cavity: Moments, log_z: Array, tilted: Moments, /) -> None: ...


@dataclass(frozen=True)
class EPProblem:
    """Many curves: their prior at all sites, and the factors observed there."""

    solver: Solver  # GP prior of all curves
    match: MomentMatcher  # tilted moments of the factors that are not Gaussian
    gaussian_factors: NaturalGaussian  # (n_sites,) exactly Gaussian factors, multiplied
    nugget: Array  # (n_curves,) variance between curve and emission
    has_factors: Bools  # (n_sites,) sites with factors that are not Gaussian


@dataclass(frozen=True)
class EPSettings:
    """When to stop, and when full steps have failed.

    Numbers come from `benchmarks/gold.py` unless a comment names another source.
    """

    tolerance: float = 1e-7  # on tilted against posterior means (in sds) and variances (relative)
    max_sweeps: int = 200
    patience: int = 4  # sweeps before slow progress counts: ordinary problems take 6 to 11 in all
    slow: float = 0.7  # residuals must shrink by this factor a sweep, else the curve is damped
    damping: DampingSettings = field(default_factory=DampingSettings)


DEFAULT = EPSettings()


def graft(
    problem: EPProblem,
    start: NaturalGaussian | None = None,
    settings: EPSettings = DEFAULT,
    workspace: Workspace | None = None,
) -> EPResult:
    """Replace the factors at every instant by a Gaussian site: parallel expectation propagation.

    All sites of all curves are refined at once (:func:`sweep`), with full steps, until tilted and
    posterior moments agree. Curves that turn improper or converge slowly are finished one by one
    with damping (:mod:`dynaesti.inference.damped`). Starting sites that give an improper posterior
    (items may have changed since) are replaced by flat ones.

    Parameters
    ----------
    problem : EPProblem
    start : NaturalGaussian (n_sites,), optional
        Sites to start from. Default: flat ones.
    settings : EPSettings
    workspace : Workspace, optional
        Memory to use.

    Returns
    -------
    EPResult
        Its arrays lie in the workspace, where one is given: copy them before that is used again.
    """
    state = EPState(problem, start, workspace or Workspace())
    active = state.curves
    difficult: list[Ints] = []
    previous = state.residual.copy()
    for number in range(settings.max_sweeps):
        proper = sweep(problem, state, active)
        if not proper.all():
            restore_previous_sites(active[~proper], state.site_start, state.work)
        residual = state.residual[active]
        slow = (number >= settings.patience) & (residual > settings.slow * previous[active])
        converged = proper & (residual < settings.tolerance)
        failing = (~proper | slow) & ~converged
        previous[active] = residual
        difficult.append(active[failing])
        active = active[~failing & ~converged]
        if active.size == 0:
            break
        take_proposed_sites(active, state.site_start, state.work)
    for curve in np.concatenate([*difficult, active]):
        converge_damped(
            problem,
            state,
            sweep,
            int(curve),
            settings.tolerance,
            settings.max_sweeps,
            settings.damping,
        )
    return state.result(settings.tolerance)


def sweep(problem: EPProblem, state: EPState, curves: Ints) -> Bools:
    """One sweep over the chosen curves: propose a site for each instant, given all others.

    1. posterior = GP prior × all sites
    2. cavity    = posterior / own site
    3. tilted    = cavity × own factors; its mean and variance by quadrature
    4. site      = tilted / cavity, proposed here and taken by the caller

    Negative site precisions are right where a likelihood is convex (lucky guesses) and are kept;
    only the whole posterior must stay proper.

    Returns
    -------
    bool array (len(curves),)
        Which posteriors are proper.
    """
    proper = state.update_posterior(problem, curves)
    proper = state.update_cavities(problem, proper)
    problem.match(
        state.sites_of(proper), state.arrays.full_cavity, state.arrays.log_z, state.arrays.tilted
    )
    state.propose_sites(proper)
    return state.proper[curves]
