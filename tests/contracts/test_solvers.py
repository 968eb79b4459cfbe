"""Kernels against finite differences.

Features and state space against dense covariances; all solvers equal.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.inference.solvers.basis import kernel_basis
from dynaesti.inference.solvers.choice import build_posterior, choose_solver
from support.kernels import KERNELS, SMOOTH, SOLVERS, T, placed, solve
from support.oracles import dense_posterior


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_are_derivatives(name):
    kernel, s, t, e = placed(name), np.array([3.1, 4.0, 9.2]), np.array([7.7, 4.6, 1.0]), 1e-5
    assert_allclose(
        kernel.cov_slope(s, t),
        (kernel.cov(s + e, t) - kernel.cov(s - e, t)) / (2 * e),
        rtol=1e-5,
        atol=1e-8,
    )
    assert_allclose(
        kernel.cov_slopes(s, t),
        (kernel.cov_slope(s, t + e) - kernel.cov_slope(s, t - e)) / (2 * e),
        rtol=1e-4,
        atol=1e-7,
    )


@pytest.mark.parametrize("name", [k for k in KERNELS if placed(k).low_rank])
def test_features_reproduce_the_covariance(name):
    kernel = placed(name)
    basis = kernel_basis(kernel, 0.0, 10.0)
    b = basis.features(T)
    assert_allclose(b @ b.T, kernel.cov(T[:, None], T), atol=1e-7 * kernel.cov(T, T).max())
    e = 1e-5
    assert_allclose(
        basis.slopes(T), (basis.features(T + e) - basis.features(T - e)) / (2 * e), atol=1e-5
    )


def test_rank_follows_the_span_not_the_data():
    assert kernel_basis(dy.RBF(0.2), 0, 1).rank <= 1.6 / 0.2 + 7
    assert kernel_basis(dy.RBF(2.0), 0, 1).rank <= 6


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
    """Means, covariances, slopes and draws between and beyond the data equal Gaussian conditioning."""
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


def test_the_fit_picks_a_solver_by_cost():
    assert choose_solver(dy.RBF(1.0), 10**6, 10.0) == "lowrank"
    assert choose_solver(dy.Matern32(1.0), 10**6, 10.0) == "statespace"
    assert choose_solver(dy.Matern32(1.0), 5, 10.0) == "dense"
    assert choose_solver(dy.RBF(0.1), 100, 10.0) == "dense"  # as many features as instants
    with pytest.raises(dy.InputError, match="too short"):
        choose_solver(dy.RBF(1e-9), 10**6, 10.0)
    with pytest.raises(dy.InputError, match="no low-rank form"):
        choose_solver(dy.Matern32(1.0), 5, 10.0, "lowrank")


def test_long_series_in_state_space_keep_their_digits():
    """20,000 points at tiny gaps: variances stay positive and agree with a low-rank neighbour."""
    t = np.linspace(0, 1, 20_000)
    tau, nu = np.full(t.size, 0.6), np.sin(9 * t)
    mean, var, _, proper = solve("statespace", dy.Matern52(0.3), tau, nu, t)
    assert proper
    assert var.min() > 0
    few = slice(None, None, 400)
    coarse = solve("dense", dy.Matern52(0.3), 400 * tau[few], 400 * nu[few], t[few])
    assert_allclose(mean[few][5:-5], coarse[0][5:-5], atol=5e-3)


def test_words_and_numbers_are_checked():
    for bad in (-1.0, 0.0, "magic", None, True, np.nan):
        with pytest.raises(dy.InputError):
            dy.RBF(bad)
    with pytest.raises(dy.InputError):
        dy.RBF(amplitude=-2.0)
    with pytest.raises(dy.InputError):
        -1.0 * dy.RBF()
    with pytest.raises(dy.InputError):
        dy.Periodic(0.0)


@pytest.mark.parametrize(
    "kernel", [dy.Matern32(0.2, amplitude=1.3), 0.4 * dy.Level() + 0.6 * dy.Matern32(0.05)]
)
def test_the_default_prior_by_hand_equals_the_general_chain(kernel):
    """Ragged curves of 1 to 300 sites, some of negative precision.

    Improper ones are flagged alike.
    """
    from dynaesti.inference.solvers.level_matern32 import level_matern32_form, level_matern32_solver
    from dynaesti.inference.solvers.state_space import batched_state_space

    rng = np.random.default_rng(3)
    starts = np.concatenate([[0], np.cumsum([1, 2, 40, 300, 25])])
    times = np.concatenate([np.sort(rng.uniform(0, 1, n)) for n in np.diff(starts)])
    precision, shift = rng.normal(0.3, 0.3, times.size), rng.normal(size=times.size)
    precision[starts[4] :] = -3.0  # no proper posterior
    found = []
    for solver in (
        level_matern32_solver(level_matern32_form(kernel), times, starts),
        batched_state_space(kernel, times, starts),
    ):
        mean, var, partition, proper = (
            np.zeros(times.size),
            np.ones(times.size),
            np.zeros(5),
            np.zeros(5, dtype=bool),
        )
        solver.marginals(np.arange(5), precision, shift, mean, var, partition, proper)
        found.append((mean[: starts[4]], var[: starts[4]], partition[:4], proper))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
    assert found[0][3].tolist() == [True] * 4 + [False]


def test_few_instants_and_very_short_bandwidths():
    """Instants that know nothing of each other.

    No more features than instants, however short the bandwidth.
    """
    days, votes = [1.0, 2.0, 4.0, 5.0, 7.0, 8.0], dy.Bernoulli([0, 0, 1, 0, 1, 1])
    for h in (1e-2, 1e-5, 1e-300):
        curve = dy.CurvFiFE(bandwidth=h).fit(days, votes)
        assert_allclose(curve.mean([1.0, 4.0, 6.0]), [1 / 3, 2 / 3, 1 / 2], atol=2e-3)


def test_chains_of_one_state_and_their_constant():
    days, votes = np.arange(12.0), dy.Bernoulli([0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1])
    chain, dense = (
        dy.CurvFiFE(dy.Matern12(), solver=solver).fit(days, votes)
        for solver in ("statespace", "dense")
    )
    assert_allclose(chain.mean(days), dense.mean(days), atol=2e-3)  # as grafted, and refined
