"""Leave-one-out densities against refits and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import polling


@pytest.mark.parametrize("options", [{"bandwidth": 0.3}, {"bandwidth": np.inf}, {}])
def test_leave_one_out_equals_refitting(options):
    """The free leave-one-out density against a fit without the emission, on the same list of
    priors.
    """
    x, _, votes = polling(6, 14)
    x = np.round(x, 1)  # ties: groups of several emissions
    full = dy.CurvFiFE(**options).fit(x, dy.Bernoulli(votes))
    refit = []
    for k in range(x.size):
        rest = np.delete(np.arange(x.size), k)
        parts = [dy.CurvFiFE(p.kernel).fit(x[rest], dy.Bernoulli(votes[rest])) for p in full.priors]
        logs = np.array([p.log_prior for p in full.priors])
        without = np.logaddexp.reduce(
            [part.log_evidence + lp for part, lp in zip(parts, logs, strict=True)]
        )
        whole = np.logaddexp.reduce(
            [p.log_evidence + lp for p, lp in zip(full.priors, logs, strict=True)]
        )
        refit.append(whole - without)
    assert_allclose(
        full.loo, refit, atol=0.02
    )  # grafting's own error in two evidences of a dozen votes


def test_leave_one_out_of_gaussians_is_exact():
    rng = np.random.default_rng(1)
    t, y, sd = np.repeat(np.linspace(0, 1, 8), 2), rng.normal(size=16), rng.uniform(0.2, 1, 16)
    full = dy.CurvFiFE(dy.RBF(0.4, amplitude=1.0), mean=0.0).fit(t, dy.Gaussian(y, sd))
    for k in range(16):
        rest = np.delete(np.arange(16), k)
        without = dy.CurvFiFE(dy.RBF(0.4, amplitude=1.0), mean=0.0).fit(
            t[rest], dy.Gaussian(y[rest], sd[rest])
        )
        assert full.loo[k] == pytest.approx(full.log_evidence - without.log_evidence, abs=1e-6)
        shift = full.latent.mean([t[k]]) - without.latent.mean([t[k]])
        assert full.influence()["shift"][k] == pytest.approx(
            shift[0], abs=1e-3
        )  # emissions see the curve through the nugget


def test_influence_finds_the_outlier():
    t = np.linspace(0, 1, 30)
    y = np.sin(3 * t)
    y[11] += 2
    table = (
        dy.CurvFiFE(dy.RBF(0.4, amplitude=1.0), mean=0.0).fit(t, dy.Gaussian(y, 0.2)).influence()
    )
    assert np.abs(table["shift_in_sd"]).argmax() == 11
    assert table["loo"].argmin() == 11


def test_leave_one_out_of_forbidding_emissions():
    """Thirty windows on one constant: leaving any out stays finite."""
    windows = [lambda y, k=k: np.where(np.abs(y) < 1 + k / 100, 0.0, -np.inf) for k in range(30)]
    curve = dy.CurvFiFE(bandwidth=np.inf).fit(np.arange(30.0), windows)
    assert np.isfinite(curve.loo).all()
    assert_allclose(curve.loo[1:], 0.0, atol=1e-6)  # only the tightest window matters
