"""Filters: kernels as Markov processes, and answers one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import least_squares
from scipy.stats import norm

import dynaesti as dy
from dynaesti.inference import add_answers, curves_at, markov_form, start_filter, transitions
from dynaesti.inference.online.markov_form import RBF_ERROR, RBF_POLES, RBF_ZERO

KERNELS = (
    0.3 * dy.Level() + 0.7 * dy.RBF(2.0),
    dy.Matern52(3.0),
    0.5 * dy.Level() + 0.2 * dy.Matern12(1.0) + 0.3 * dy.Matern32(5.0),
    dy.RBF(np.inf),
)


def covariances(form, k, gaps):
    """Covariance of the k-th curve with itself a gap later, by its transitions."""
    seen = form.seen[k]
    return np.array([seen @ step @ seen for step in transitions(form, gaps)[:, k]])


@pytest.mark.parametrize("k", range(4))
def test_transitions_give_the_kernels_covariance(k):
    gaps = np.linspace(0.0, 20.0, 60)
    kernel = KERNELS[k]
    has_rbf = any(isinstance(s, dy.RBF) and not s.constant for s in kernel.summands)
    found = covariances(markov_form(KERNELS), k, gaps)
    assert_allclose(found, kernel.cov(gaps, 0.0), atol=RBF_ERROR if has_rbf else 1e-11)


def test_the_process_for_an_rbf_is_the_nearest_of_its_kind():
    """Reweighted least squares from a rough start does not find a nearer one."""
    t = np.concatenate([np.linspace(0, 6, 121), [7, 8, 10]])

    def covariance(q):
        poles = np.array([-q[0] + 1j * q[1], -q[0] - 1j * q[1], -q[2] + 1j * q[3],
                          -q[2] - 1j * q[3], -q[4]])  # fmt: skip
        companion = np.diag(np.ones(4), 1)
        companion[-1] = -np.poly(poles).real[1:][::-1]
        into = np.eye(5)[-1:]
        p = solve_continuous_lyapunov(companion, -into.T @ into)
        seen = np.array([1.0, 0.0, q[5], 0.0, 0.0])
        values, vectors = np.linalg.eig(companion)
        c = (seen @ vectors) * np.linalg.solve(vectors, p @ seen)
        return (np.exp(np.outer(t, values)) @ c).real / (seen @ p @ seen)

    kept = np.array([*np.column_stack([-RBF_POLES.real, RBF_POLES.imag]).ravel()[:5], RBF_ZERO])
    target = np.exp(-(t**2) / 2)
    error = np.abs(covariance(kept) - target).max()
    assert error < RBF_ERROR
    q = np.array([1.7, 1.1, 1.7, 2.4, 1.7, 0.04])
    weights = np.ones(t.size)
    best = np.inf
    for _ in range(12):
        q = least_squares(lambda q, w=weights: 1e4 * w * (covariance(q) - target), q).x
        away = np.abs(covariance(q) - target)
        best = min(best, away.max())
        weights = weights * np.sqrt(away / away.max() + 0.02)
        weights /= weights.max()
    assert error < 1.02 * best


def test_kernels_without_a_state_are_refused():
    with pytest.raises(dy.InputError, match="Periodic"):
        markov_form((dy.Level() + dy.Periodic(7.0),))
    with pytest.raises(dy.InputError, match="at most 12"):
        markov_form((dy.RBF(1.0) + dy.RBF(2.0) + dy.RBF(3.0),))


def gaussian(values, sd):
    return lambda z: (
        -0.5 * ((z - values[:, None, None]) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))
    )


@pytest.mark.parametrize("sd", [0.01, 0.5])
def test_gaussian_answers_are_exact(sd):
    """Against dense regression, with several answers at an instant that share its nugget."""
    kernels = (0.4 * dy.Level() + 0.6 * dy.Matern32(3.0), dy.Matern52(2.0, amplitude=1.3),
               dy.Matern12(4.0))  # fmt: skip
    weights = np.array([0.5, 0.2, 0.3])
    form = markov_form(kernels)
    form = form._replace(nugget=np.array([0.01, 0.02, 0.0]))
    rng = np.random.default_rng(3)
    times = np.sort(rng.choice(np.linspace(0, 9, 12), 20))
    offset = rng.normal(0, 0.3, times.size)
    y = np.sin(times) + offset + rng.normal(0, 0.05 + sd, times.size)
    numbers = start_filter(form, weights)[None]
    for t, value, o in zip(times, y, offset, strict=True):
        likelihood = gaussian(np.array([value]), sd)
        ends = np.array([t]), np.array([o]), np.zeros(1)
        numbers = add_answers(form, numbers, *ends, likelihood)
    found, now = (one[0] for one in curves_at(form, numbers, np.array([11.0])))
    logs = []
    for k, kernel in enumerate(kernels):
        prior = kernel.cov(times[:, None], times)
        noisy = prior + form.nugget[k] * (times[:, None] == times) + sd**2 * np.eye(times.size)
        to = kernel.cov(np.array([11.0])[:, None], times)
        mean = to @ np.linalg.solve(noisy, y - offset)
        variance = kernel.cov(11.0, 11.0) - to @ np.linalg.solve(noisy, to.T)
        assert_allclose(now[k, 0], mean[0], rtol=1e-7, atol=1e-8)
        assert_allclose(now[k, 1], variance[0, 0], rtol=1e-7)
        away = y - offset
        log_det = np.linalg.slogdet(noisy)[1]
        logs.append(np.log(weights[k]) - 0.5 * (log_det + away @ np.linalg.solve(noisy, away)))
    logs = np.array(logs)
    assert_allclose(found, np.exp(logs - np.logaddexp.reduce(logs)), atol=1e-7)


@pytest.mark.parametrize(
    ("a", "b", "c", "sd"),
    [(1, 0, 0, 1), (5, 1, 0.2, 0.5), (30, 2, 0.3, 1), (0.2, 0, 0, 3), (12, -3, 0, 1)],
)
def test_one_answer_has_the_moments_of_brute_force(a, b, c, sd):
    """Steep items far off too: the nodes follow the tilted distribution."""
    form = markov_form((dy.Level(amplitude=float(sd)),))

    def log_p(z):
        return np.log(c + (1 - c) / (1 + np.exp(-a * (z - b))))

    numbers = start_filter(form, np.ones(1))[None]
    zero = np.zeros(1)
    numbers = add_answers(form, numbers, zero, zero, zero, log_p)
    mean, variance = curves_at(form, numbers, zero)[1][0, 0, :2]

    def moment(k):
        def f(z):
            return z**k * np.exp(log_p(z)) * norm.pdf(z, 0, sd)

        ends = (-12 * sd, 12 * sd)
        return quad(f, *ends, points=[b, b - 0.2, b + 0.2], epsabs=0, epsrel=1e-11, limit=500)[0]

    truth = moment(1) / moment(0)
    assert_allclose(mean, truth, rtol=1e-5, atol=1e-9)
    assert_allclose(variance, moment(2) / moment(0) - truth**2, rtol=1e-5)


def test_unknown_effects_widen_what_an_answer_sees():
    """With variance beside the curve, an answer is one of a curve with that much noise."""
    form = markov_form((dy.Level(),))
    zero = np.zeros(1)
    start = start_filter(form, np.ones(1))[None]
    log_p = gaussian(np.array([1.0]), 0.5)
    found = add_answers(form, start, zero, zero, np.array([0.75]), log_p)
    same = add_answers(form, start, zero, zero, zero, gaussian(np.array([1.0]), 1.0))
    assert_allclose(curves_at(form, found, zero)[1], curves_at(form, same, zero)[1], rtol=1e-9)


def test_impossible_answers_are_refused():
    form = markov_form((dy.Level(),))
    start = start_filter(form, np.ones(1))[None]
    zero = np.zeros(1)
    with pytest.raises(dy.InputError, match="impossible"):
        add_answers(form, start, zero, zero, zero, lambda z: np.full(z.shape, -np.inf))
