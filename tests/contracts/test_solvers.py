"""Every solver against dense Gaussian-process algebra, and against each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.inference.solvers.choice import build_posterior
from support.kernels import KERNELS, SMOOTH, SOLVERS, T, component, placed, solve
from support.oracles import dense_posterior
from support.simulated import polling


@pytest.mark.nojit
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KERNELS)
def test_solvers_meet_the_textbook(name, solver, rng):
    kernel = placed(name)
    if solver == "lowrank" and not kernel.low_rank:
        pytest.skip("no low-rank form")
    tau, nu = rng.uniform(0, 3, T.size), rng.normal(size=T.size)
    tau[::7] = -0.05  # lucky guesses
    tau[3] = 0.0
    mean, var, log_partition, proper = solve(solver, kernel, tau, nu)
    truth = dense_posterior(kernel, T, tau, nu)
    assert proper
    assert_allclose(mean, truth[0], atol=2e-6)
    assert_allclose(var, truth[1], rtol=1e-5)
    assert_allclose(log_partition, truth[2], atol=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_improper_sites_are_seen_and_negative_detours_forgiven(solver):
    kernel = dy.RBF(30.0) if solver == "lowrank" else dy.Matern32(30.0)
    tau = np.zeros(T.size)
    tau[:3], tau[10] = (
        -0.5,
        5.0,
    )  # a filter meets a negative variance on the way; the whole is proper
    _, var, _, proper = solve(solver, kernel, tau, tau)
    assert proper
    assert_allclose(var, dense_posterior(kernel, T, tau, tau)[1], rtol=1e-5)
    tau[10] = 0.0
    assert not solve(solver, kernel, tau, tau)[3]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KERNELS)
def test_posteriors_at_any_time(name, solver, rng):
    """Means, covariances, slopes and draws at any time equal Gaussian conditioning."""
    kernel = placed(name)
    if solver == "lowrank" and not kernel.low_rank:
        pytest.skip("no low-rank form")
    tau, nu = rng.uniform(0.5, 3, T.size), rng.normal(size=T.size)
    given = build_posterior(solver, kernel, T, tau, nu)
    t = np.array([-2.0, 0.5, 3.3, 9.9, 14.0])
    gain = np.linalg.solve(kernel.cov(T[:, None], T) + np.diag(1 / tau), kernel.cov(T[:, None], t))
    cov = kernel.cov(t[:, None], t) - kernel.cov(t[:, None], T) @ gain
    mean, var = given.marginals(t)
    assert_allclose(mean, gain.T @ (nu / tau), atol=3e-5)
    assert_allclose(var, np.diag(cov), rtol=1e-5, atol=1e-7)
    assert_allclose(given.covariance(t), cov, atol=3e-5)
    draws = given.sample(t, 4000, rng)
    assert_allclose(np.cov(draws.T), cov, atol=0.12 * np.diag(cov).max())
    if name in SMOOTH:
        slope_gain = np.linalg.solve(
            kernel.cov(T[:, None], T) + np.diag(1 / tau), kernel.cov_slope(t[:, None], T).T
        )
        slope, slope_var, cross = given.slopes(t)
        assert_allclose(slope, slope_gain.T @ (nu / tau), atol=2e-5)
        assert_allclose(
            slope_var,
            np.diag(
                kernel.cov_slopes(t[:, None], t) - kernel.cov_slope(t[:, None], T) @ slope_gain
            ),
            rtol=1e-3,
            atol=1e-5,
        )
        assert_allclose(
            cross,
            np.diag(kernel.cov_slope(t[:, None], t) - kernel.cov_slope(t[:, None], T) @ gain),
            atol=2e-5,
        )


@pytest.mark.parametrize("kernel", [dy.RBF(0.25), dy.Matern52(0.3)])
def test_solvers_graft_alike(kernel):
    x, _, votes = polling(2)
    names = ["dense", "lowrank"] if kernel.low_rank else ["dense", "statespace"]
    one, two = (component(x, dy.Bernoulli(votes), kernel, solver=name) for name in names)
    assert_allclose(one.ep.sites.precision, two.ep.sites.precision, atol=3e-6)
    assert_allclose(one.ep.sites.shift, two.ep.sites.shift, atol=3e-6)
    assert abs(one.log_evidence - two.log_evidence) < 3e-6
    for t, off in (
        (np.linspace(0, 1, 40), 3e-6),
        (np.linspace(-0.3, 1.4, 40), 3e-5),
    ):  # within and beyond the data
        assert_allclose(one.posterior.marginals(t), two.posterior.marginals(t), atol=off)


@pytest.mark.parametrize("kernel", [dy.Matern32(), dy.RBF(), dy.Level() + dy.Matern52()])
def test_learning_with_a_forced_chain(kernel):
    """Priors of the list have chains of different sizes, a constant among them.

    The same as densely.
    """
    x, _, votes = polling(3, 24)
    chain, dense = (
        dy.CurvFiFE(kernel, solver=name, refine=False).fit(x, dy.Bernoulli(votes))
        for name in ("statespace", "dense")
    )
    assert_allclose(chain.mean(x), dense.mean(x), atol=1e-5)
    assert chain.log_evidence == pytest.approx(dense.log_evidence, abs=1e-5)
