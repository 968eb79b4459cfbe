"""Functions and tables as emissions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import log_prob_at


@pytest.mark.nojit
def test_functions_and_tables_meet_the_family():
    t, votes = np.linspace(0, 1, 30), (np.random.default_rng(0).random(30) < 0.6).astype(int)
    family = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(t, dy.Bernoulli(votes))
    functions = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(
        t, [lambda y, v=v: np.log(y if v else 1 - y) for v in votes]
    )
    grid = np.linspace(0, 1, 401)
    with np.errstate(divide="ignore"):
        rows = np.where(
            votes[:, None] == 1,
            np.log(np.maximum(grid, 1e-12)),
            np.log(np.maximum(1 - grid, 1e-12)),
        )
    table = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(t, dy.Table(grid, rows))
    assert_allclose(functions.mean(t), family.mean(t), atol=1e-8)
    assert_allclose(table.mean(t), family.mean(t), atol=1e-4)
    with np.errstate(
        divide="ignore"
    ):  # the natural table of a probability, -inf at its ends, is as good
        natural = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(
            t, dy.Table(grid, np.where(votes[:, None] == 1, np.log(grid), np.log(1 - grid)))
        )
    assert_allclose(natural.mean(t), family.mean(t), atol=1e-4)
    latent = dy.Table(
        np.linspace(-8, 8, 801),
        log_prob_at(dy.Bernoulli(votes), "probit", np.linspace(-8, 8, 801)),
        latent=True,
    )
    assert_allclose(
        dy.CurvFiFE(bandwidth=0.3, link="probit").fit(t, latent).mean(t), family.mean(t), atol=1e-7
    )
