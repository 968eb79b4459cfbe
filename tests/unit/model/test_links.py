"""Links: tails, inverses, pairs of functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtr

import dynaesti as dy
from dynaesti.model.links import BUILT_IN, CustomLink


@pytest.mark.nojit
def test_links_keep_their_digits_in_the_tails():
    x = np.array([-30.0, -9.0, 0.0, 9.0, 30.0])
    assert_allclose(BUILT_IN["probit"].log_complement(x), stats.norm.logsf(x))
    assert_allclose(BUILT_IN["logit"].log_value(x), -np.logaddexp(0, -x))
    for link in BUILT_IN.values():
        small = np.linspace(-3, 3, 13)
        assert_allclose(link.latent(link.value(small)), small, atol=1e-12)
        assert_allclose(
            link.slope(small),
            (link.value(small + 1e-6) - link.value(small - 1e-6)) / 2e-6,
            rtol=1e-6,
        )


@pytest.mark.nojit
def test_a_custom_pair_may_rise_or_fall():
    t, y = np.arange(8.0), np.array([0, 0, 1, 0, 1, 1, 1, 1])
    up = dy.CurvFiFE(link=(ndtr, stats.norm.ppf)).fit(t, dy.Bernoulli(y))
    down = dy.CurvFiFE(link=(lambda x: ndtr(-x), lambda p: -stats.norm.ppf(p))).fit(
        t, dy.Bernoulli(y)
    )
    assert down.link.sign == -1
    assert_allclose(up.quantile(t, [0.1, 0.9]), down.quantile(t, [0.1, 0.9]), atol=1e-5)
    assert_allclose(up.derivative(t).rising, down.derivative(t).rising, atol=1e-4)
    with pytest.raises(dy.InputError, match="not strictly monotone"):
        CustomLink(np.cos, np.arccos)
    with pytest.raises(dy.InputError, match="does not undo"):
        CustomLink(np.exp, np.exp)
