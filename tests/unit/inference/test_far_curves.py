"""Curves far from their prior are right, or refused."""

import time

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

import dynaesti as dy
from dynaesti.model.links import BUILT_IN, LinkedPoints

TIMES = np.arange(12.0)


@pytest.mark.parametrize("at", [8.0, 9.0, 12.0, 20.0, 100.0])
def test_curves_far_from_their_prior_are_exact(at):
    """Of a constant under a standard normal prior, with Gaussian factors: known in closed form."""
    factors = [lambda y: -0.5 * (y - at) ** 2] * 12
    grid = np.linspace(-130, 130, 2601)
    exact, evidence = at * 12 / 13, -0.5 * np.log(13) - 0.5 * at**2 * 12 / 13
    for emissions in (factors, dy.Table(grid, np.tile(-0.5 * (grid - at) ** 2, (12, 1)))):
        curve = dy.CurvFiFE(bandwidth=np.inf).fit(TIMES, emissions)
        assert curve.mean([5.0])[0] == pytest.approx(exact, rel=1e-6)
        assert curve.log_evidence == pytest.approx(evidence, rel=1e-6)
    assert dy.CurvFiFE(bandwidth=np.inf).fit_many([0] * 12, TIMES, factors).mean([5.0])[
        0, 0
    ] == pytest.approx(exact, rel=1e-6)
    audit = dy.CurvFiFE().fit(TIMES, factors).audit()
    assert audit.mean([5.0])[0] == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("away", [10.0, 12.0, 25.0])
def test_far_humps_are_found_on_both_sides(away):
    def humps(y):
        return np.logaddexp(-0.5 * (y + away) ** 2, -0.5 * (y - away) ** 2 - 3)

    curve = dy.CurvFiFE(bandwidth=np.inf).fit(TIMES, [humps] * 12)
    x = np.linspace(-40, 40, 800_001)
    log = 12 * humps(x) - 0.5 * x**2
    p = np.exp(log - log.max())
    assert curve.mean([5.0])[0] == pytest.approx(float(p @ x / p.sum()), abs=1e-4)
    assert curve.log_evidence == pytest.approx(
        log.max() + np.log(p.sum() * (x[1] - x[0])) - 0.5 * np.log(2 * np.pi), abs=1e-4
    )


@pytest.mark.parametrize("mean", [-15.0, 10.0, 15.0])
def test_a_prior_mean_far_from_the_votes_keeps_their_sign(mean):
    votes = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1.0])
    curve = dy.CurvFiFE(bandwidth=np.inf, mean=mean).fit(TIMES, dy.Bernoulli(votes))
    x = np.linspace(-20, 20, 400_001)
    from scipy.special import log_ndtr

    log = votes.sum() * log_ndtr(x) + (12 - votes.sum()) * log_ndtr(-x) - 0.5 * (x - mean) ** 2
    p = np.exp(log - log.max())
    assert curve.latent.mean([5.0])[0] == pytest.approx(float(p @ x / p.sum()), abs=1e-4)
    assert curve.log_evidence < 0


def test_a_curve_beyond_a_table_is_refused():
    grid = np.linspace(-5, 5, 50)
    with pytest.raises(dy.EmissionError, match="beyond the table's grid"):
        dy.CurvFiFE().fit(TIMES, dy.Table(grid, np.tile(-0.5 * (grid - 20) ** 2, (12, 1))))


def test_tables_keep_no_splines_of_another_link():
    grid = np.linspace(0.5, 6.0, 60)
    table = dy.Table(grid, np.tile(-0.5 * ((grid - 2.5) / 0.3) ** 2, (12, 1)))
    links = [
        (lambda x: np.exp(0.5 * x), lambda y: 2 * np.log(y)),
        (lambda x: np.exp(0.25 * x + 1), lambda y: 4 * (np.log(y) - 1)),
    ]
    for link in links:
        alone = dy.Table(grid, table.log_lik)
        again, fresh = (
            dy.CurvFiFE(bandwidth=3.0, link=link).fit(TIMES, one).median([5.0])[0]
            for one in (table, alone)
        )
        assert again == pytest.approx(fresh, rel=1e-12)


@pytest.mark.parametrize("size", [0.3, 5.0, 1e3, 1e6, 1e10, 1e14, 1e16, 1e300])
def test_negative_binomials_keep_their_digits(size):
    counts, x = np.array([0.0, 1, 3, 8, 40]), np.linspace(-2, 3, 7)
    got = dy.NegativeBinomial(counts, size).log_prob(
        LinkedPoints(np.tile(x, (5, 1)), BUILT_IN["log"]), np.arange(5)
    )
    wanted = (
        poisson.logpmf(counts[:, None], np.exp(x))
        if size > 1e7
        else nbinom.logpmf(counts[:, None], size, size / (size + np.exp(x)))
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_moments_of_long_series_take_no_time():
    counts = np.random.default_rng(0).poisson(2.0, 3000)
    curve = dy.CurvFiFE(dy.Matern32(50.0, amplitude=1.5)).fit(np.arange(3000.0), dy.Poisson(counts))
    began = time.process_time()
    assert np.isfinite(curve.sd([1500.0, 4000.0])).all()
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_rates_of_nothing_have_moments_that_the_data_allow():
    curve = dy.CurvFiFE().fit(TIMES, dy.Poisson([0] * 12))
    assert 0.05 < curve.mean([5.0])[0] < 0.25
    assert 0.03 < curve.sd([5.0])[0] < 0.3
    many = dy.CurvFiFE().fit_many(
        [0] * 12 + [1] * 12,
        np.tile(TIMES, 2),
        dy.Poisson([0] * 12 + [3, 5, 2, 6, 4, 2, 5, 1, 4, 7, 2, 3]),
    )
    assert many.sd([5.0])[0, 0] < 1.0
