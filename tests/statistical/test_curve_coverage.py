"""Accuracy and coverage of curves: the polling problem, and draws from the prior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

import dynaesti as dy
from dynaesti.estimation.hyper_grid import BANDWIDTH_CENTRE, BANDWIDTH_SD, STATIC_PRIOR
from support.simulated import draw_curve, polling


def cover(curve, x, truth):
    q = curve.quantile(x, [0.15, 0.85, 0.025, 0.975])
    return np.mean((q[0] < truth) & (truth < q[1])), np.mean((q[2] < truth) & (truth < q[3]))


def test_polling_study():
    """200 seeds of the paper's polling problem.

    Accuracy and coverage (the paper's code: 0.094, 0.64, 0.92).
    """
    errors, covers = [], []
    for seed in range(200):
        x, truth, votes = polling(seed)
        curve = dy.CurvFiFE().fit(x, dy.Bernoulli(votes))
        errors.append(np.sqrt(np.trapezoid((curve.median(x) - truth) ** 2, x)))
        covers.append(cover(curve, x, truth))
    assert np.mean(errors) <= 0.096
    inner, outer = np.mean(covers, axis=0)
    assert 0.68 <= inner <= 0.76
    assert 0.935 <= outer <= 0.975


@pytest.mark.parametrize("kind", ["polls", "counts", "answers"])
def test_bands_cover_what_the_prior_draws(kind):
    """500 curves from the prior itself, bandwidth included.

    Calibrated to a percentage point (simulation error 0.9 points at 70 %).
    """
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 100)
    covers = []
    for _ in range(500):
        h = (
            np.inf
            if rng.random() < STATIC_PRIOR
            else BANDWIDTH_CENTRE * np.exp(BANDWIDTH_SD * rng.normal())
        )
        theta = draw_curve(rng, x, h)
        if kind == "polls":
            curve = (
                dy.CurvFiFE()
                .fit(x, dy.Bernoulli((rng.random(100) < ndtr(theta)).astype(int)))
                .latent
            )
        elif kind == "counts":
            curve = (
                dy.CurvFiFE(dy.RBF(amplitude=1.0), mean=2.0)
                .fit(x, dy.Poisson(rng.poisson(np.exp(2 + theta))))
                .latent
            )
            theta = 2 + theta
        else:
            a, b, c = (
                np.exp(0.2 * rng.normal(size=100)),
                rng.normal(size=100),
                0.2 * rng.random(100),
            )
            p = c + (1 - c) / (1 + np.exp(-a * (theta - b)))
            curve = dy.CurvFiFE().fit(
                x, dy.ItemResponses((rng.random(100) < p).astype(int), "3PL", a=a, b=b, c=c)
            )
        covers.append(cover(curve, x, theta))
    inner, outer = np.mean(covers, axis=0)
    assert 0.69 <= inner <= 0.71
    assert 0.94 <= outer <= 0.96


def test_learning_pools_the_population():
    rng = np.random.default_rng(1)
    who, when = np.repeat(np.arange(150), 40), np.tile(np.linspace(0, 1, 40), 150)
    cov = np.exp(-0.5 * ((when[:40, None] - when[:40]) / 0.3) ** 2) + 1e-9 * np.eye(40)
    theta = (np.linalg.cholesky(cov) @ rng.normal(size=(40, 150))).T.ravel()
    from scipy.special import ndtr

    votes = (rng.random(6000) < ndtr(theta)).astype(int)
    curves = dy.CurvFiFE().fit_many(who, when, dy.Bernoulli(votes))
    typical = np.exp(
        curves.population @ np.log([min(f.kernel.bandwidth, 10.0) for f in curves.fits])
    )
    assert 0.2 < typical < 0.4
    apart = dy.CurvFiFE().fit_many(who, when, dy.Bernoulli(votes), pool=False)
    assert curves.log_evidence.sum() > apart.log_evidence.sum()
    lower, upper = curves.quantile(when[:40], [0.15, 0.85])
    cover = np.mean((lower < ndtr(theta.reshape(150, 40))) & (ndtr(theta.reshape(150, 40)) < upper))
    assert 0.65 < cover < 0.75  # simulation error 0.02
    t = [0.2, 0.6]
    assert_allclose(curves[7].mean(t), curves.mean(t)[7], atol=1e-4)
