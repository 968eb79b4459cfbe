"""The Curve a user holds: values, draws, densities, slopes, updates, frames."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

import dynaesti as dy
from support.simulated import polling


@pytest.fixture(scope="module")
def fixed():
    x, _, votes = polling(4)
    return dy.CurvFiFE(bandwidth=0.2).fit(x, dy.Bernoulli(votes))


T = np.array([-0.1, 0.2, 0.55, 1.0, 1.3])


def test_moments_and_quantiles_agree_with_draws(curve):
    draws = curve.sample(T, 60_000, seed=1)
    assert draws.shape == (60_000, 5)
    assert_allclose(draws.mean(axis=0), curve.mean(T), atol=0.006)
    assert_allclose(draws.std(axis=0), curve.sd(T), atol=0.006)
    q = [0.025, 0.15, 0.5, 0.85, 0.975]
    assert_allclose(np.quantile(draws, q, axis=0), curve.quantile(T, q), atol=0.015)
    assert_allclose(
        np.cov(curve.latent.sample(T, 60_000, seed=2).T), curve.covariance(T), atol=0.03
    )
    assert_allclose(curve.sample(T, 3, seed=9), curve.sample(T, 3, seed=9))


def test_quantiles_pass_through_the_link_and_invert_the_mixture(curve):
    q = np.array([0.001, 0.3, 0.5, 0.999])
    latent = curve.latent.quantile(T, q)
    assert_allclose(curve.quantile(T, q), norm.cdf(latent), atol=1e-12)
    mix = curve.marginals(T)
    assert_allclose(
        [(mix.weights * norm.cdf((row - mix.means) / mix.sds)).sum(axis=0) for row in latent],
        np.tile(q[:, None], (1, 5)),
        atol=1e-10,
    )
    assert_allclose(curve.median(T), curve.quantile(T, 0.5))
    lower, upper = curve.interval(T, 0.4)
    assert_allclose([lower, upper], curve.quantile(T, [0.3, 0.7]))


def test_probit_mean_has_its_closed_form(fixed):
    latent = fixed.latent
    assert_allclose(
        fixed.mean(T), norm.cdf(latent.mean(T) / np.sqrt(1 + latent.sd(T) ** 2)), atol=1e-12
    )


def test_log_density_is_the_normal_s_with_the_link_s_jacobian(fixed):
    t, y = T[1:3], np.array([0.3, 0.6])
    x = norm.ppf(y)
    expected = (
        multivariate_normal.logpdf(x, fixed.latent.mean(t), fixed.covariance(t))
        - norm.logpdf(x).sum()
    )
    assert fixed.log_density(t, y) == pytest.approx(expected, abs=1e-6)
    total = np.trapezoid(
        [np.exp(fixed.log_density([0.5], [p])) for p in np.linspace(1e-6, 1 - 1e-6, 2001)],
        np.linspace(1e-6, 1 - 1e-6, 2001),
    )
    assert total == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(dy.InputError, match="between 0 and 1"):
        fixed.log_density([0.5], [1.5])


def test_derivatives_are_slopes_of_draws(curve):
    t = np.array([0.3, 0.7])
    e = 1e-3
    draws = curve.sample(np.concatenate([t - e, t + e]), 60_000, seed=3)
    slopes = (draws[:, 2:] - draws[:, :2]) / (2 * e)
    got = curve.derivative(t)
    assert_allclose(slopes.mean(axis=0), got.mean, atol=0.03)
    assert_allclose(slopes.std(axis=0), got.sd, rtol=0.03)
    assert_allclose((slopes > 0).mean(axis=0), got.rising, atol=0.01)
    assert_allclose(
        curve.derivative(t).mean, (curve.mean(t + e) - curve.mean(t - e)) / (2 * e), atol=2e-3
    )
    with pytest.raises(dy.InputError, match="no derivative"):
        dy.CurvFiFE(dy.Matern12(0.3)).fit([0, 1, 2], dy.Bernoulli([0, 1, 1])).derivative([1.0])


def test_forecasts_widen_towards_the_prior(fixed):
    sd = fixed.latent.sd(np.array([1.0, 1.1, 1.3, 3.0]))
    assert np.all(np.diff(sd) > 0)
    assert sd[-1] == pytest.approx(1.0, abs=1e-6)
    assert_allclose(fixed.latent.mean([3.0]), 0.0, atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [None, dy.RBF(0.3), dy.Matern32(), 0.5 * dy.Level() + 0.5 * dy.RBF()]
)
def test_update_equals_the_refit(kernel):
    x, _, votes = polling(8)
    new = np.array([0.5, 0.777, 1.05, 1.2])
    start = dy.CurvFiFE(kernel).fit(x[:80], dy.Bernoulli(votes[:80]))
    step = start.update(x[80:], dy.Bernoulli(votes[80:])).update(new, dy.Bernoulli([0, 1, 1, 0]))
    every, everything = (
        np.concatenate([x, new]),
        dy.Bernoulli(np.concatenate([votes, [0, 1, 1, 0]])),
    )
    t = np.linspace(-0.1, 1.4, 30)
    for prior, updated in zip(step.priors, step.components, strict=True):
        if updated is None:
            continue
        again = dy.CurvFiFE(prior.kernel).fit(every, everything)
        assert prior.log_evidence == pytest.approx(again.log_evidence, abs=1e-6)
        assert_allclose(updated.posterior.marginals(t)[0], again.latent.mean(t), atol=1e-6)
        assert_allclose(np.sqrt(updated.posterior.marginals(t)[1]), again.latent.sd(t), rtol=1e-6)


def test_the_latent_view_survives_updates_and_files(curve, tmp_path):
    latent = curve.latent
    assert_allclose(
        latent.update([0.5], dy.Bernoulli([1])).mean(T),
        curve.update([0.5], dy.Bernoulli([1])).latent.mean(T),
        rtol=0,
    )
    assert_allclose(
        dy.load(latent.save(tmp_path / "latent.dyn")).mean(T), latent.mean(T), rtol=1e-12
    )


def test_nothing_mutates(curve):
    before = curve.mean(T)
    curve.update([0.5], dy.Bernoulli([1]))
    assert_allclose(curve.mean(T), before, rtol=0)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_as_the_kind_that_came_in(kind, tmp_path):
    library = pytest.importorskip(kind)
    series = {
        "pandas": lambda v: library.Series(v),
        "polars": lambda v: library.Series(v),
        "pyarrow": lambda v: library.array(v),
    }[kind]
    curve = dy.CurvFiFE().fit(series([0.0, 1.0, 2.0, 3.0]), dy.Bernoulli(series([0, 1, 0, 1])))
    for frame in (
        curve.to_frame(),
        curve.bandwidths,
        curve.influence(),
        curve.exact([1.0], draws=400),
    ):
        assert type(frame).__module__.split(".")[0] == kind
    other = curve.to_frame([1.0, 2.0], kind="polars")
    assert list(other.columns) == ["time", "mean", "sd", "lower", "median", "upper"]
    with pytest.raises(dy.InputError, match="none of pandas"):
        curve.to_frame(kind="excel")


def test_evidence_of_the_average_is_the_average_of_evidences(curve):
    masses = np.exp([p.log_prior for p in curve.priors])
    assert masses.sum() == pytest.approx(1.0, abs=0.05)
    assert curve.log_evidence == pytest.approx(
        np.log(masses @ np.exp([p.log_evidence for p in curve.priors]))
    )
    assert sum(p.weight for p in curve.priors) == pytest.approx(1.0)
