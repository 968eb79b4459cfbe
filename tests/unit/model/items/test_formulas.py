"""Formulas of item models, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import beta, norm, poisson

from dynaesti.model.items.registry import MODELS, item_model
from support.simulated import draw_items

THETA = np.linspace(-4, 4, 9)


def test_formulas_by_hand():
    a, b, c = 1.3, 0.4, 0.2
    three = item_model("3PL")
    u = three.unconstrain({"a": np.array([a]), "b": np.array([b]), "c": np.array([c])}, 2)
    assert_allclose(
        np.exp(three.log_likelihood(u, THETA))[0, 1],
        c + (1 - c) * expit(a * (THETA - b)),
        rtol=1e-12,
    )
    grm = item_model("GRM")
    u = grm.unconstrain({"a": np.array([a]), "b1": np.array([-1.0]), "b2": np.array([0.5])}, 3)
    up = expit(a * (THETA - np.array([[-1.0], [0.5]])))
    assert_allclose(
        np.exp(grm.log_likelihood(u, THETA))[0], [1 - up[0], up[0] - up[1], up[1]], rtol=1e-10
    )
    gpcm = item_model("GPCM")
    u = gpcm.unconstrain({"a": np.array([a]), "b1": np.array([-1.0]), "b2": np.array([0.5])}, 3)
    odds = np.exp(np.array([0 * THETA, a * (THETA + 1), a * (THETA + 1) + a * (THETA - 0.5)]))
    assert_allclose(np.exp(gpcm.log_likelihood(u, THETA))[0], odds / odds.sum(axis=0), rtol=1e-10)


def test_the_golf_model_is_built_outward_from_par():
    """ω_s = sgn(s) Σ a_v (θ − b_v): two steps up from par, one down."""
    golf = MODELS["golf"](pivot=1)
    u = np.log(np.array([[0.5, 0.7, 1.1, 1, 1, 1]]))
    u[0, 3:] = -1.0, 0.3, 0.9
    low = -0.5 * (THETA + 1.0)
    one = 0.7 * (THETA - 0.3)
    two = one + 1.1 * (THETA - 0.9)
    odds = np.exp(np.array([low, 0 * THETA, one, two]))
    assert_allclose(np.exp(golf.log_likelihood(u, THETA))[0], odds / odds.sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "beta"])
def test_amounts_are_sums_of_terms(name):
    model, u = draw_items(name, False, 0)
    y = {"poisson": 3.0, "gaussian": 0.7, "beta": 0.3}[name]
    terms, constant = model.terms(np.array([y]), np.zeros((1, 0)))
    ours = np.einsum("r,irg->ig", terms[0], model.log_likelihood(u, THETA)) + constant[0]
    told = model.constrain(u)
    t = told["a"][:, None] * (THETA - told["b"][:, None])
    scale = np.exp(u[:, -1:])
    truth = {
        "poisson": lambda: poisson.logpmf(y, np.exp(t)),
        "gaussian": lambda: norm.logpdf(y, t, scale),
        "beta": lambda: beta.logpdf(y, scale * expit(t), scale * expit(-t)),
    }[name]()
    assert_allclose(ours, truth, rtol=1e-9, atol=1e-9)
