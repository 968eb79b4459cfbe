"""One curve under one kernel, kept converged as observations come in.

There are two forms: features (`OnlineLowRank`), and a level plus Matérn 3/2 in state space
(`OnlineLevelMatern32`). `start_online` chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dynaesti.core import Array, Ints, inserted
from dynaesti.errors import InputError
from dynaesti.inference.grafting import EPProblem, EPSettings, graft
from dynaesti.inference.moments.match import empty_cache, match_sites
from dynaesti.inference.moments.table import LogLikelihoodTable
from dynaesti.inference.online.kernels import OnlineSites, update_level_matern32, update_low_rank
from dynaesti.inference.sites import Moments, NaturalGaussian, SiteFactors
from dynaesti.inference.solvers.basis import Basis, expected_rank, kernel_basis
from dynaesti.inference.solvers.choice import MOST_RANK
from dynaesti.inference.solvers.contract import Solver
from dynaesti.inference.solvers.level_matern32 import (
    LevelMatern32Form,
    level_matern32_form,
    level_matern32_solver,
)
from dynaesti.inference.solvers.state_space import StateSpacePosterior
from dynaesti.inference.solvers.weight_space import (
    WeightPosterior,
    lowrank_at,
    lowrank_weights,
    pack_features,
)
from dynaesti.model import Kernel, Level

TOLERANCE = 2e-7


@dataclass(frozen=True, eq=False)
class OnlineLowRank:
    """A curve in features, and the posterior of its weights.

    A constant curve has one site for all observations, unless its prior mean moves.
    """

    kernel: Kernel
    merges: bool  # whether there is one site
    basis: Basis
    features: Array  # (rank, n_sites)
    online: OnlineSites
    factor: Array  # (rank, rank) L⁻¹ of the weights' precision
    weights: Array  # (rank,)
    log_evidence: float = 0.0

    def with_site(self, times: Array, index: int, mean: float) -> OnlineLowRank:
        """The curve with one more instant, whose site is flat, and its prior mean there."""
        if self.merges:
            return self
        column = self.basis.features(times[index : index + 1])[0]
        return replace(
            self,
            features=np.ascontiguousarray(inserted(self.features.T, index, column).T),
            online=_with_site(self.online, index, mean),
        )

    def converged(
        self, factors: SiteFactors, table: LogLikelihoodTable, changed: int | None
    ) -> OnlineLowRank:
        """The curve after EP from the present sites; one has changed (None: any may have)."""
        if self.merges:
            factors = factors._replace(group=factors.group[-1:] + 1)
            changed = None if changed is None else 0
        online = _to_integrate(self.online, changed)
        factor = self.factor.copy()
        weights = self.weights.copy()
        nugget = np.array([self.kernel.nugget_variance])
        number = -1 if changed is None else changed
        done, evidence = update_low_rank(
            self.features, nugget, number, factors, table, online, factor, weights, TOLERANCE
        )
        if not done:
            solver = pack_features([self.features.T])
            online, evidence = _grafted(solver, factors, table, nugget, self.online)
            latent = online.site.through_nugget(self.kernel.nugget_variance)
            lowrank_weights(self.features, *latent, factor, weights)
            lowrank_at(self.features, factor, weights, *online.posterior)
        return replace(self, online=online, factor=factor, weights=weights, log_evidence=evidence)

    def marginals(self, times: Array, asked: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Mean and variance at the times asked for."""
        latent = self.online.site.through_nugget(self.kernel.nugget_variance)
        return WeightPosterior(self.kernel, self.basis, self.features.T, *latent).marginals(asked)

    def response(self, times: Array, asked: Array, moves: Array) -> Array:  # noqa: ARG002
        """How far the mean moves at the times asked for when each site moves."""
        latent = self.online.site.through_nugget(self.kernel.nugget_variance)
        pulled = (latent.precision, latent.precision * moves)
        return WeightPosterior(self.kernel, self.basis, self.features.T, *pulled).marginals(asked)[
            0
        ]


@dataclass(frozen=True, eq=False)
class OnlineLevelMatern32:
    """A curve with a level plus Matérn 3/2 prior, at rising instants."""

    kernel: Kernel
    form: LevelMatern32Form
    times: Array  # (n_sites,)
    online: OnlineSites
    log_evidence: float = 0.0

    def with_site(self, times: Array, index: int, mean: float) -> OnlineLevelMatern32:
        """The curve with one more instant, whose site is flat, and its prior mean there."""
        online = _with_site(self.online, index, mean)
        return OnlineLevelMatern32(self.kernel, self.form, times, online)

    def converged(
        self, factors: SiteFactors, table: LogLikelihoodTable, changed: int | None
    ) -> OnlineLevelMatern32:
        """The curve after EP from the present sites; one has changed (None: any may have)."""
        online = _to_integrate(self.online, changed)
        nugget = np.array([self.kernel.nugget_variance])
        solver = level_matern32_solver(self.form, self.times, np.array([0, self.times.size]))
        number = -1 if changed is None else changed
        done, evidence = update_level_matern32(
            solver.chain, nugget, number, factors, table, online, TOLERANCE
        )
        if not done:
            online, evidence = _grafted(solver, factors, table, nugget, self.online)
        return OnlineLevelMatern32(self.kernel, self.form, self.times, online, evidence)

    def marginals(self, times: Array, asked: Array) -> tuple[Array, Array]:
        """Mean and variance at the times asked for."""
        latent = self.online.site.through_nugget(self.kernel.nugget_variance)
        return StateSpacePosterior(self.kernel, times, *latent).marginals(asked)

    def response(self, times: Array, asked: Array, moves: Array) -> Array:
        """How far the mean moves at the times asked for when each site moves."""
        latent = self.online.site.through_nugget(self.kernel.nugget_variance)
        pulled = (latent.precision, latent.precision * moves)
        return StateSpacePosterior(self.kernel, times, *pulled).marginals(asked)[0]


OnlineCurve: TypeAlias = OnlineLowRank | OnlineLevelMatern32


def start_online(
    kernel: Kernel,
    times: Array,
    horizon: tuple[float, float],
    sites: NaturalGaussian,
    mean: Array | None = None,
) -> OnlineCurve:
    """A curve with given sites, on which EP has not yet been run.

    Parameters
    ----------
    kernel : Kernel
    times : array (n_times,)
        Instants in rising order.
    horizon : (float, float)
        First and last time that the features cover.
    sites : NaturalGaussian (n_sites,)
        One for each instant, or a single one where the kernel and the prior mean are constant;
        about the prior mean.
    mean : array (n_times,), optional
        Prior mean at each instant. Default: 0.
    """
    merges = kernel.static and mean is None
    size = sites.precision.size
    nothing_yet = Moments(np.full(size, np.nan), np.full(size, np.nan))
    site = NaturalGaussian(sites.precision.copy(), sites.shift.copy())
    online = OnlineSites(
        site, nothing_yet, np.zeros(size) if mean is None else mean, empty_cache(size)
    )
    form = level_matern32_form(kernel)
    if form is not None:
        return OnlineLevelMatern32(kernel, form, times, online)
    if kernel.static:
        variance = sum(summand.variance for summand in kernel.summands)
        kernel = Level(amplitude=float(np.sqrt(variance)))
    if not kernel.static and expected_rank(kernel, horizon[1] - horizon[0]) > MOST_RANK:
        raise InputError(
            f"live: answers that span {horizon[1] - horizon[0]:.3g} need too many features of "
            f"{kernel.describe()}; use update(frame), or a kernel with Matern32"
        )
    basis = kernel_basis(kernel, *horizon)
    features = basis.features(times[:1] if merges else times)
    return OnlineLowRank(
        kernel,
        merges,
        basis,
        np.ascontiguousarray(features.T),
        online,
        np.empty((basis.rank, basis.rank)),
        np.empty(basis.rank),
    )


def _with_site(online: OnlineSites, index: int, mean: float) -> OnlineSites:
    """The sites with one more, which is flat and has not been integrated."""
    return OnlineSites(
        NaturalGaussian(*(inserted(part, index, 0.0) for part in online.site)),
        Moments(*(inserted(part, index, np.nan) for part in online.posterior)),
        inserted(online.mean, index, mean),
        inserted(online.cache, index, np.nan),
    )


def _to_integrate(online: OnlineSites, changed: int | None) -> OnlineSites:
    """A copy without the cached integral of the changed site (None: of all sites)."""
    cache = online.cache.copy()
    cache[slice(None) if changed is None else changed] = np.nan
    return OnlineSites(
        NaturalGaussian(*(part.copy() for part in online.site)),
        Moments(*(part.copy() for part in online.posterior)),
        online.mean,
        cache,
    )


def _grafted(
    solver: Solver,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    nugget: Array,
    start: OnlineSites,
) -> tuple[OnlineSites, float]:
    """Sites and log evidence by `graft`, for curves on which the quick update fails."""

    def match(sites: Ints, cavity: Moments, log_z: Array, tilted: Moments) -> None:
        shifted = Moments(cavity.mean + start.mean, cavity.variance)
        tilted.mean[sites] += start.mean[sites]
        if match_sites(sites, factors, table, shifted, log_z, tilted) >= 0:
            raise InputError(
                "the answers at one instant are impossible at every ability; check the responses"
            )
        tilted.mean[sites] -= start.mean[sites]

    size = start.cache.shape[0]
    nothing = NaturalGaussian.empty(size)
    problem = EPProblem(solver, match, nothing, nugget, np.ones(size, dtype=bool))
    found = graft(problem, start.site, EPSettings(tolerance=TOLERANCE))
    log_partition = np.empty(1)
    posterior = Moments(np.empty(size), np.empty(size))
    latent = found.sites.through_nugget(float(nugget[0]))
    solver.marginals(np.arange(1), latent, posterior, log_partition, np.ones(1, dtype=bool))
    return OnlineSites(found.sites, posterior, start.mean, empty_cache(size)), float(
        found.log_evidence[0]
    )
