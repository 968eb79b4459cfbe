"""One curve grafted under one kernel, or under several kernels at once.

Each pair of curve and kernel is a component of the mixture over hyper-parameters that a learned
curve consists of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit, single_blas_thread
from dynaesti.inference.grafting import EPProblem, graft
from dynaesti.inference.moments.match import empty_cache
from dynaesti.inference.observations import Observations
from dynaesti.inference.site_likelihood import Integration, SiteLikelihood
from dynaesti.inference.sites import EPResult, Moments, NaturalGaussian
from dynaesti.inference.solvers.choice import (
    build_posterior,
    build_solver,
    choose_solver,
    state_dimensions,
)
from dynaesti.inference.solvers.contract import Posterior, SolverName
from dynaesti.inference.solvers.weight_space import WeightPosterior
from dynaesti.model import Kernel

MAX_FEATURES = 30_000_000  # feature values in memory at a time
# sds of the prior, and of tilted distributions, that must lie within a table for it to be used
PRIOR_REACH = 5.0
TILTED_REACH = 6.0
# number of weights for importance sampling and second-order sums: beyond it few draws are
# effective, and tensors are large
MAX_RANK = 50


@dataclass(frozen=True)
class GraftedCurve:
    """A kernel and its converged sites.

    There is one site for each instant, or a single one for a constant curve.
    """

    kernel: Kernel
    solver: SolverName
    instants: Array  # (n_sites,)
    groups: Ints  # (n_sites,) the group of emissions at each site
    ep: EPResult  # of this one curve; its cavities include the prior mean
    latent_sites: NaturalGaussian  # sites and Gaussian emissions together, seen through the nugget
    covariance_correction: Array | None = None  # of the weights: see `second_order`
    known_posterior: Posterior | None = None  # where it has been built already
    # (2, n_sites) where corrected: skewness of each site, and how far it follows the curve per sd
    skewness: Array | None = None
    columns: Array | None = None  # (n_sites, n_columns) of effects

    @property
    def log_evidence(self) -> float:
        """Log probability of the emissions under this kernel."""
        return float(self.ep.log_evidence[0])

    @property
    def log_partition(self) -> float:
        """Log ∫ prior × latent sites."""
        return float(self.ep.log_partition[0])

    @property
    def sweeps(self) -> int:
        """Number of sweeps of expectation propagation."""
        return int(self.ep.sweeps[0])

    @property
    def converged(self) -> bool:
        """Whether tilted and posterior moments agree within the tolerance."""
        return bool(self.ep.converged[0])

    @property
    def residual(self) -> float:
        """Largest difference between tilted and posterior moments, in sds."""
        return float(self.ep.residual[0])

    @cached_property
    def posterior(self) -> Posterior:
        """The curve given the sites, as deviation from the prior mean."""
        if self.known_posterior is not None:
            return self.known_posterior
        found = build_posterior(
            self.solver, self.kernel, self.instants, *self.latent_sites, self.columns
        )
        if self.covariance_correction is None:
            return found
        assert isinstance(found, WeightPosterior)  # only these are ever corrected
        return found.corrected(self.covariance_correction)

    def corrected(self, covariance_correction: Array, gain: float, skewness: Array) -> GraftedCurve:
        """The curve with corrected covariance of its weights, and `gain` more log evidence."""
        assert isinstance(self.posterior, WeightPosterior)
        return GraftedCurve(
            self.kernel,
            self.solver,
            self.instants,
            self.groups,
            self.ep.with_log_evidence(self.ep.log_evidence + gain),
            self.latent_sites,
            covariance_correction,
            self.posterior.corrected(covariance_correction),
            skewness,
            self.columns,
        )


def weight_space_posterior(curve: GraftedCurve) -> WeightPosterior | None:
    """The posterior in at most `MAX_RANK` weights; None where the kernel has no such form."""
    posterior = curve.posterior
    if isinstance(posterior, WeightPosterior) and posterior.rank <= MAX_RANK:
        return posterior
    return None


def is_one_number(kernel: Kernel, observations: Observations) -> bool:
    """Whether the curve is constant.

    Then all emissions multiply into one group, and quadrature over it is exact.
    """
    return kernel.static and not callable(observations.mean)


@single_blas_thread()
def graft_kernels(
    observations: Observations,
    kernels: Sequence[Kernel],
    solver: SolverName | None = None,
    starts: Sequence[NaturalGaussian | None] | None = None,
) -> list[GraftedCurve]:
    """Graft the observations under each kernel, from given sites where there are any.

    Likelihoods are read from a table that covers where the prior expects the curve. Where the data
    move the curve beyond it, they are evaluated by formula.
    """
    starts = starts or [None] * len(kernels)
    ends = observations.instants[[0, -1]]
    offset = observations.mean_at(observations.instants)
    span = observations.span[1] - observations.span[0]
    names = [choose_solver(kernel, observations.instants.size, span, solver) for kernel in kernels]
    kinds = [
        (
            name,
            table_covers_prior(kernel, observations.likelihood, offset, ends),
            state_dimensions(name, kernel, ends),
        )
        for name, kernel in zip(names, kernels, strict=True)
    ]
    found: dict[int, GraftedCurve] = {}
    for kind in dict.fromkeys(kinds):
        name, tabulated, _ = kind
        alike = [k for k, other in enumerate(kinds) if other == kind]
        for batch in _batches(alike, observations.instants.size):
            made, beyond = _graft_batch(
                observations,
                name,
                [kernels[k] for k in batch],
                [starts[k] for k in batch],
                tabulated=tabulated,
            )
            found.update(zip(batch, made, strict=True))
            # their sites depend on the ends of the table, so are no good start
            for k in (batch[j] for j in np.flatnonzero(beyond)):
                again = _graft_batch(
                    observations, name, [kernels[k]], [None], tabulated=False, wide=True
                )
                found[k] = again[0][0]
    return [found[k] for k in range(len(kernels))]


def _batches(numbers: list[int], n_instants: int) -> list[list[int]]:
    """Batches of kernels whose features fit into memory together."""
    size = max(1, MAX_FEATURES // (20 * n_instants))
    return [numbers[a : a + size] for a in range(0, len(numbers), size)]


def _graft_batch(
    observations: Observations,
    name: SolverName,
    kernels: list[Kernel],
    starts: list[NaturalGaussian | None],
    *,
    tabulated: bool,
    wide: bool = False,
) -> tuple[list[GraftedCurve], Bools]:
    """Graft kernels of one kind together.

    Parameters
    ----------
    tabulated : bool
        Whether likelihoods are read from the table.
    wide : bool
        Whether mass is searched for far from the cavity too.

    Returns
    -------
    curves : list of GraftedCurve
        One for each kernel.
    beyond : bool array (n_kernels,)
        Which of them went beyond the table.
    """
    centre = np.array([0.5 * sum(observations.span)])
    everything = np.array([observations.instants.size])  # the group that holds every emission
    static = [is_one_number(kernel, observations) for kernel in kernels]
    instants = [centre if one else observations.instants for one in static]
    groups = [everything if one else np.arange(observations.instants.size) for one in static]
    group = np.concatenate(groups)
    offset = np.concatenate([observations.mean_at(t) for t in instants])
    likelihood = observations.likelihood
    problem = EPProblem(
        build_solver(name, kernels, instants, observations.columns_at_sites),
        CurveMomentMatcher.of(likelihood, group, offset, tabulated, wide),
        observations.gaussian_factors.natural.select(group),
        np.array([kernel.nugget_variance for kernel in kernels]),
        likelihood.has_factors[group],
    )
    result = graft(problem, _starting_sites(groups, starts))
    bounds = problem.solver.site_start
    made = []
    for k, kernel in enumerate(kernels):
        sites = slice(int(bounds[k]), int(bounds[k + 1]))
        ep = result.select(sites, slice(k, k + 1))
        ep = _with_mean(ep, offset[sites], observations, groups[k])
        latent = problem.gaussian_factors.select(sites).times(ep.sites)
        latent = latent.through_nugget(problem.nugget[k])
        curve = GraftedCurve(kernel, name, instants[k], groups[k], ep, latent)
        made.append(replace(curve, columns=observations.columns_at_sites))
    away = np.zeros(len(kernels))
    if tabulated:
        _reach_of_tilted(
            bounds,
            result.cavity,
            problem.gaussian_factors,
            result.sites,
            offset,
            problem.has_factors,
            likelihood.centre,
            away,
        )
    return made, away > likelihood.reach


def _with_mean(ep: EPResult, offset: Array, observations: Observations, groups: Ints) -> EPResult:
    """The result of one curve with the prior mean in its cavities.

    Grafting sees deviations from the prior mean, and leaves out the constants of Gaussian
    emissions: these are added to the log evidence.
    """
    constant = observations.gaussian_factors.constant[groups].sum()
    cavity = Moments(ep.cavity.mean + offset, ep.cavity.variance)
    return ep.with_log_evidence(ep.log_evidence + constant, cavity)


@jit
def _reach_of_tilted(
    site_start: Ints,
    cavity: Moments,
    gaussian: NaturalGaussian,
    site: NaturalGaussian,
    offset: Array,
    has_factors: Bools,
    centre: float,
    out: Array,
) -> None:
    """Largest distance from a table's centre that each curve's tilted distributions extend to.

    The same test as `beyond_table`, without temporary arrays.
    """
    for curve in range(out.size):
        for i in range(site_start[curve], site_start[curve + 1]):
            if has_factors[i]:
                v = cavity.variance[i] / (1.0 + cavity.variance[i] * gaussian.precision[i])
                m = v * (cavity.mean[i] / cavity.variance[i] + gaussian.shift[i])
                shrink = 1.0 + site.precision[i] * v
                mean = (m + site.shift[i] * v) / shrink + offset[i]
                reach = TILTED_REACH * np.sqrt(max(v / shrink, 0.0))
                out[curve] = max(out[curve], abs(mean - centre) + reach)


@dataclass(frozen=True)
class CurveMomentMatcher:
    """The moment matcher of emissions: tilted moments of deviations from the prior mean."""

    likelihood: SiteLikelihood
    group: Ints  # (n_sites,)
    offset: Array  # (n_sites,) prior mean
    integration: Integration

    @staticmethod
    def of(
        likelihood: SiteLikelihood, group: Ints, offset: Array, tabulated: bool, wide: bool
    ) -> CurveMomentMatcher:
        """A matcher with an empty cache, which keeps integrals from sweep to sweep."""
        integration = Integration(tabulated, empty_cache(group.size), wide)
        return CurveMomentMatcher(likelihood, group, offset, integration)

    def __call__(self, sites: Ints, cavity: Moments, log_z: Array, tilted: Moments) -> None:
        if not self.offset.any():
            self.likelihood.match(sites, self.group, cavity, log_z, tilted, self.integration)
            return
        tilted.mean[sites] += self.offset[sites]
        shifted = Moments(cavity.mean + self.offset, cavity.variance)
        self.likelihood.match(sites, self.group, shifted, log_z, tilted, self.integration)
        tilted.mean[sites] -= self.offset[sites]


def table_covers_prior(
    kernel: Kernel, likelihood: SiteLikelihood, offset: Array, times: Array
) -> bool:
    """Whether the likelihood table covers the prior.

    That is `PRIOR_REACH` sds to either side of its mean, at the given times.
    """
    away = float(np.abs(offset - likelihood.centre).max())
    return bool(away + PRIOR_REACH * np.sqrt(kernel.cov(times, times).max()) <= likelihood.reach)


def can_use_table(curve: GraftedCurve, observations: Observations, tilted: Moments) -> bool:
    """Whether the likelihood table covers the prior and all tilted distributions of a curve.

    ``tilted`` (n_sites,) are moments of latent values, the prior mean included.
    """
    likelihood = observations.likelihood
    times = observations.instants[[0, -1]]
    beyond = beyond_table(likelihood, tilted) & likelihood.has_factors[curve.groups]
    return not beyond.any() and table_covers_prior(
        curve.kernel, likelihood, observations.mean_at(times), times
    )


def full_cavity_and_tilted(
    curve: GraftedCurve, observations: Observations
) -> tuple[Moments, Moments]:
    """Full cavity and tilted distribution at each site, of latent values.

    The full cavity is what the non-Gaussian emissions of the site are multiplied with.
    """
    offset = observations.mean_at(curve.instants)
    gaussian = observations.gaussian_factors.natural.select(curve.groups)
    cavity = Moments(curve.ep.cavity.mean - offset, curve.ep.cavity.variance)
    full, tilted = full_and_tilted(cavity, gaussian, curve.ep.sites)
    return Moments(full.mean + offset, full.variance), Moments(
        tilted.mean + offset, tilted.variance
    )


def full_and_tilted(
    cavity: Moments, gaussian: NaturalGaussian, sites: NaturalGaussian
) -> tuple[Moments, Moments]:
    """Full cavity (cavity × Gaussian emissions) and tilted (full cavity × site) moments.

    All are of deviations from the prior mean.
    """
    variance = cavity.variance / (1.0 + cavity.variance * gaussian.precision)
    full = Moments(variance * (cavity.mean / cavity.variance + gaussian.shift), variance)
    return full, full.times(sites)


def beyond_table(likelihood: SiteLikelihood, tilted: Moments) -> Bools:
    """Which tilted distributions have mass beyond the likelihood table."""
    sd = np.sqrt(np.maximum(tilted.variance, 0.0))
    return np.asarray(
        np.abs(tilted.mean - likelihood.centre) + TILTED_REACH * sd > likelihood.reach
    )


def _starting_sites(
    groups: list[Ints], starts: list[NaturalGaussian | None]
) -> NaturalGaussian | None:
    """Starting sites of all kernels, laid end to end; None where no kernel has any."""
    if all(start is None for start in starts):
        return None
    sites = [
        start or NaturalGaussian.empty(g.size) for g, start in zip(groups, starts, strict=True)
    ]
    return NaturalGaussian(
        np.concatenate([one.precision for one in sites]),
        np.concatenate([one.shift for one in sites]),
    )
