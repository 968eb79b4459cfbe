"""Every kernel, and ways to ask any solver about one."""

import numpy as np

import dynaesti as dy
from dynaesti.inference.observations import observe
from dynaesti.inference.single_curve import graft_kernels
from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.inference.solvers.choice import build_solver

T = np.sort(np.random.default_rng(3).uniform(0, 10, 40))
KERNELS = {
    "rbf": dy.RBF(1.5),
    "rbf_short": dy.RBF(0.3),
    "matern12": dy.Matern12(2.0),
    "matern32": dy.Matern32(2.0),
    "matern52": dy.Matern52(2.0),
    "wiener": dy.Wiener(3.0),
    "level": dy.Level(),
    "trend": dy.Trend(2.0),
    "periodic": dy.Periodic(3.0, 0.8),
    "sum": 0.5 * dy.Level() + 0.5 * dy.RBF(2.0),
    "mixed": dy.Matern32(1.0) + 2.0 * dy.RBF(4.0) + dy.Trend(),
    "two": dy.Matern12(1.0) + dy.Matern52(5.0),
}
SMOOTH = [name for name in KERNELS if name not in ("matern12", "wiener", "two")]
SOLVERS = ["dense", "lowrank", "statespace"]


def placed(name):
    """The kernel of this name on the span of the times."""
    return KERNELS[name].anchored(0.0, 10.0)


def solve(name, kernel, tau, nu, t=T):
    """Means, variances, log partition and properness by the solver of this name."""
    solver = build_solver(name, [kernel], [t])
    mean, var, log_partition, proper = (
        np.empty(t.size),
        np.empty(t.size),
        np.empty(1),
        np.ones(1, dtype=bool),
    )
    sites, posterior = NaturalGaussian(tau, nu), Moments(mean, var)
    solver.marginals(np.array([0]), sites, posterior, log_partition, proper)
    return mean, var, log_partition[0], proper[0]


def component(times, emissions, kernel, link=None, solver=None):
    """A curve grafted under one prior."""
    return graft_kernels(observe(times, emissions, link), [kernel], solver)[0]
