"""One prior grafted onto the data: a component. A learned curve is a small mixture of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit, single_blas_thread
from dynaesti.inference.grafting import EPProblem, graft
from dynaesti.inference.observations import Observations
from dynaesti.inference.site_likelihood import Likelihood
from dynaesti.inference.sites import through_nugget
from dynaesti.inference.solvers.choice import (
    build_posterior,
    build_solver,
    choose_solver,
    state_dimensions,
)
from dynaesti.inference.solvers.contract import Posterior, SolverName
from dynaesti.inference.solvers.weight_space import WeightPosterior
from dynaesti.model import Kernel

MOST_FEATURES = 30_000_000  # doubles of features at a time
# sds of the prior, and of what was found at an instant, that must lie within a table for it to be
# read
PRIOR_ROOM = 5.0
ROOM = 6.0
HIGHEST_RANK = 50  # of a small form: draws get rare in more dimensions, and tensors large


@dataclass(frozen=True)
class GraftedCurve:
    """A kernel and its settled sites on the groups it sees.

    One an instant, or a single one that holds every emission.
    """

    kernel: Kernel
    solver: SolverName
    instants: Array
    groups: Ints
    precision: Array  # grafted sites
    shift: Array
    curve_precision: (
        Array  # grafted and Gaussian sites together, as seen by the curve through the nugget
    )
    curve_shift: Array
    cavity_mean: (
        Array  # what all other groups say of each group's latent value, prior mean included
    )
    cavity_var: Array
    log_z: Array
    log_evidence: float
    log_partition: float  # log ∫ prior × curve sites
    sweeps: int
    converged: bool
    residual: float
    covariance_correction: Array | None = (
        None  # second-order correction of the weights' covariance, in its own units, see `refining`
    )

    @cached_property
    def posterior(self) -> Posterior:
        """The curve given the sites, as deviation from the prior mean."""
        found = build_posterior(
            self.solver, self.kernel, self.instants, self.curve_precision, self.curve_shift
        )
        if self.covariance_correction is None:
            return found
        assert isinstance(found, WeightPosterior)  # only these are ever widened
        return found.corrected(self.covariance_correction)

    def corrected(self, covariance_correction: Array, gain: float) -> "GraftedCurve":
        """The component with a correction of its weights' covariance and of its log evidence."""
        assert isinstance(self.posterior, WeightPosterior)
        out = replace(
            self, covariance_correction=covariance_correction, log_evidence=self.log_evidence + gain
        )
        out.__dict__["posterior"] = self.posterior.corrected(
            covariance_correction
        )  # known already: building it anew costs as much as the correction
        return out


def weight_space_posterior(component: GraftedCurve) -> WeightPosterior | None:
    """The posterior in few weights, where the prior has such a form."""
    posterior = component.posterior
    return (
        posterior
        if isinstance(posterior, WeightPosterior) and posterior.rank <= HIGHEST_RANK
        else None
    )


def is_one_number(kernel: Kernel, observations: Observations) -> bool:
    """Whether the curve is one number.

    Then all emissions multiply into one group and quadrature over it is exact.
    """
    return kernel.static and not callable(observations.mean)


@single_blas_thread()
def graft_components(
    observations: Observations,
    kernels: Sequence[Kernel],
    solver: SolverName | None = None,
    starts: Sequence[tuple[Array, Array] | None] | None = None,
) -> list[GraftedCurve]:
    """Graft each kernel onto the observations, from given sites where there are any.

    Likelihoods are read from a table over where the prior lets the curve go; data that drag it
    beyond are integrated by formula.
    """
    starts = starts or [None] * len(kernels)
    ends = observations.instants[[0, -1]]
    offset = observations.mean_at(observations.instants)
    span = observations.span[1] - observations.span[0]
    names = [choose_solver(kernel, observations.instants.size, span, solver) for kernel in kernels]
    ways = [
        (
            name,
            table_covers_prior(kernel, observations.likelihood, offset, ends),
            state_dimensions(name, kernel, ends),
        )
        for name, kernel in zip(names, kernels, strict=True)
    ]
    found: dict[int, GraftedCurve] = {}
    for way in dict.fromkeys(ways):
        mine = [k for k, other in enumerate(ways) if other == way]
        for batch in _batches(mine, observations.instants.size):
            made, beyond = _graft_batch(
                observations, *way[:2], [kernels[k] for k in batch], [starts[k] for k in batch]
            )
            found.update(zip(batch, made, strict=True))
            for k in (
                batch[j] for j in np.flatnonzero(beyond)
            ):  # what the table's ends made of it is no place to start from
                found[k] = _graft_batch(
                    observations, names[k], False, [kernels[k]], [None], wide=True
                )[0][0]
    return [found[k] for k in range(len(kernels))]


def _batches(jobs: list[int], count: int) -> list[list[int]]:
    size = max(1, MOST_FEATURES // (20 * count))
    return [jobs[a : a + size] for a in range(0, len(jobs), size)]


def _graft_batch(
    obs: Observations,
    name: SolverName,
    tabulated: bool,
    kernels: list[Kernel],
    starts: list[tuple[Array, Array] | None],
    wide: bool = False,
) -> tuple[list[GraftedCurve], Bools]:
    """Components of one kind, and which of them went beyond the table that their likelihoods were
    read from.
    """
    middle = np.array([0.5 * sum(obs.span)])
    single = np.array([obs.instants.size])  # the group that holds every emission
    every = np.arange(obs.instants.size)
    merged = [is_one_number(kernel, obs) for kernel in kernels]
    instants = [middle if one else obs.instants for one in merged]
    groups = [single if one else every for one in merged]
    group = np.concatenate(groups)
    offset = np.concatenate([obs.mean_at(t) for t in instants])
    fixed = obs.fixed
    nugget_variance = np.array([kernel.nugget_variance for kernel in kernels])
    match = CurveMomentMatcher(obs.likelihood, group, offset, tabulated, wide)
    problem = EPProblem(
        build_solver(name, kernels, instants),
        match,
        fixed.precision[group],
        fixed.shift[group],
        nugget_variance,
        obs.likelihood.bent[group],
    )
    result = graft(problem, _starting_sites(groups, starts))
    bounds = problem.solver.site_start
    precision, shift = through_nugget(
        fixed.precision[group] + result.precision,
        fixed.shift[group] + result.shift,
        np.repeat(nugget_variance, np.diff(bounds)),
    )
    out = []
    for k, kernel in enumerate(kernels):
        s = slice(bounds[k], bounds[k + 1])
        out.append(
            GraftedCurve(
                kernel,
                name,
                instants[k],
                groups[k],
                result.precision[s],
                result.shift[s],
                precision[s],
                shift[s],
                result.cavity_mean[s] + offset[s],
                result.cavity_var[s],
                result.log_z[s],
                float(result.log_evidence[k] + fixed.constant[groups[k]].sum()),
                float(result.log_partition[k]),
                int(result.sweeps[k]),
                bool(result.converged[k]),
                float(result.residual[k]),
            )
        )
    beyond = np.zeros(len(kernels), dtype=bool)
    if tabulated:
        away = np.zeros(len(kernels))
        _farthest(
            bounds,
            result.cavity_mean,
            result.cavity_var,
            problem.fixed_precision,
            problem.fixed_shift,
            result.precision,
            result.shift,
            offset,
            problem.bent,
            obs.likelihood.centre,
            away,
        )
        beyond = away > obs.likelihood.reach
    return out, beyond


@jit
def _farthest(
    site_start: Ints,
    cavity_mean: Array,
    cavity_var: Array,
    fixed_precision: Array,
    fixed_shift: Array,
    precision: Array,
    shift: Array,
    offset: Array,
    bent: Bools,
    centre: float,
    out: Array,
) -> None:
    """How far from a table's centre each job's tilted distributions reach.

    What `beyond_table` asks, without arrays on the way.
    """
    for job in range(out.size):
        for i in range(site_start[job], site_start[job + 1]):
            if bent[i]:
                v = cavity_var[i] / (1.0 + cavity_var[i] * fixed_precision[i])
                m = v * (cavity_mean[i] / cavity_var[i] + fixed_shift[i])
                thin = 1.0 + precision[i] * v
                out[job] = max(
                    out[job],
                    abs((m + shift[i] * v) / thin + offset[i] - centre)
                    + ROOM * np.sqrt(max(v / thin, 0.0)),
                )


@dataclass(frozen=True)
class CurveMomentMatcher:
    """Tilted moments for grafting, which knows sites but not what they observe.

    Deviations from the prior mean, group by group.
    """

    likelihood: Likelihood
    group: Ints
    offset: Array
    tabulated: bool
    wide: bool = False  # whether mass is looked for far and wide

    @cached_property
    def _known(self) -> Array:
        """What is remembered of each site from sweep to sweep: nothing yet."""
        return np.full((self.group.size, 8), np.nan)

    def __call__(
        self,
        sites: Ints,
        cavity_mean: Array,
        cavity_var: Array,
        log_z: Array,
        mean: Array,
        var: Array,
    ) -> None:
        if not self.offset.any():
            return self.likelihood.match(
                sites,
                self.group,
                cavity_mean,
                cavity_var,
                log_z,
                mean,
                var,
                self.tabulated,
                self._known,
                self.wide,
            )
        mean[sites] += self.offset[sites]
        self.likelihood.match(
            sites,
            self.group,
            cavity_mean + self.offset,
            cavity_var,
            log_z,
            mean,
            var,
            self.tabulated,
            self._known,
            self.wide,
        )
        mean[sites] -= self.offset[sites]
        return None


def table_covers_prior(kernel: Kernel, likelihood: Likelihood, offset: Array, times: Array) -> bool:
    """Whether tabulated rows reach wherever this prior lets the curve go.

    Five sds either side of its mean.
    """
    away = float(np.abs(offset - likelihood.centre).max())
    return bool(away + PRIOR_ROOM * np.sqrt(kernel.cov(times, times).max()) <= likelihood.reach)


def read_from_table(
    component: GraftedCurve, observations: Observations, mean: Array, var: Array
) -> bool:
    """Whether a component's likelihoods may be read from the table.

    Its tilted distributions lie within, and all that its prior expects.
    """
    likelihood = observations.likelihood
    times = observations.instants[[0, -1]]
    beyond = beyond_table(likelihood, mean, var) & likelihood.bent[component.groups]
    return not beyond.any() and table_covers_prior(
        component.kernel, likelihood, observations.mean_at(times), times
    )


def tilted(
    component: GraftedCurve, observations: Observations
) -> tuple[Array, Array, Array, Array]:
    """At each group the cavity that its bent members see, and their tilted distribution.

    Mean and variance each, of latent values.
    """
    fixed = observations.fixed
    groups = component.groups
    offset = observations.mean_at(component.instants)
    cavity_mean, cavity_var, mean, var = tilted_from(
        component.cavity_mean - offset,
        component.cavity_var,
        fixed.precision[groups],
        fixed.shift[groups],
        component.precision,
        component.shift,
    )
    return cavity_mean + offset, cavity_var, mean + offset, var


def tilted_from(
    cavity_mean: Array,
    cavity_var: Array,
    fixed_precision: Array,
    fixed_shift: Array,
    precision: Array,
    shift: Array,
) -> tuple[Array, Array, Array, Array]:
    """The same from bare cavities, which are without the groups' own Gaussian members.

    All counted from the prior mean.
    """
    full_var = cavity_var / (1.0 + cavity_var * fixed_precision)
    full_mean = full_var * (cavity_mean / cavity_var + fixed_shift)
    thin = 1.0 + precision * full_var
    return full_mean, full_var, (full_mean + shift * full_var) / thin, full_var / thin


def beyond_table(likelihood: Likelihood, mean: Array, var: Array) -> Bools:
    """Which tilted distributions with these moments have mass that tabulated rows do not reach."""
    return np.asarray(
        np.abs(mean - likelihood.centre) + ROOM * np.sqrt(np.maximum(var, 0.0)) > likelihood.reach
    )


def _starting_sites(
    groups: list[Ints], starts: list[tuple[Array, Array] | None]
) -> tuple[Array, Array] | None:
    if all(start is None for start in starts):
        return None
    pairs = [
        (np.zeros(g.size), np.zeros(g.size)) if start is None else start
        for g, start in zip(groups, starts, strict=True)
    ]
    return np.concatenate([p for p, _ in pairs]), np.concatenate([s for _, s in pairs])
