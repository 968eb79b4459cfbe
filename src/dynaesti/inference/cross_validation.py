"""k-fold cross-validation of priors, as the paper recommends.

Predictive densities are exact Gaussian integrals, where the paper uses draws.
"""

import numpy as np

from dynaesti.inference.observations import Observations
from dynaesti.inference.single_curve import GraftedCurve, graft_kernels
from dynaesti.inference.site_likelihood import Integration
from dynaesti.inference.sites import Moments
from dynaesti.inference.solvers.contract import SolverName
from dynaesti.model import Kernel


def cross_validate(
    observations: Observations,
    kernels: list[Kernel],
    solver: SolverName | None,
    folds: int,
    seed: int,
) -> list[float]:
    """Sum of the log predictive densities of held-out emissions, for each kernel.

    The folds are drawn once and are the same for all kernels.
    """
    count = len(observations.emissions)
    fold = np.random.default_rng(seed).permutation(count) % min(folds, count)
    scores = np.zeros(len(kernels))
    for k in range(int(fold.max()) + 1):
        train = observations.take(np.flatnonzero(fold != k))
        held = observations.take(np.flatnonzero(fold == k))
        for j, component in enumerate(graft_kernels(train, kernels, solver)):
            scores[j] += _predictive(component, held)
    return [float(score) for score in scores]


def _predictive(component: GraftedCurve, held: Observations) -> float:
    """Σ log ∫ f_i(y) p(y(t_i)) dy over held-out emissions, each by itself, with the nugget."""
    count = len(held.emissions)
    single = Observations(held.axis, np.arange(count, dtype=np.float64), held.emissions, held.link)
    posterior = Moments(*component.posterior.marginals(held.offsets))
    mean = posterior.mean + held.mean_at(held.offsets)
    predictive = Moments(mean, posterior.variance + component.kernel.nugget_variance)
    likelihood = single.likelihood
    log_z = np.zeros(count)
    every = np.arange(count)
    guess = Moments(predictive.mean.copy(), predictive.variance.copy())
    likelihood.match(every, every, predictive, log_z, guess, Integration(tabulated=False))
    exact = likelihood.is_gaussian
    log_z[exact] = likelihood.gaussian_log_density(
        np.flatnonzero(exact), predictive.mean[exact], predictive.variance[exact]
    )
    return float(log_z.sum())
