"""Emissions of several kinds in one fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.model.emissions.mixed import as_emissions, emission_blocks


@pytest.mark.nojit
def test_kinds_may_be_mixed_in_one_fit():
    t = np.linspace(0, 1, 20)
    parts = [
        dy.Ordinal(np.tile([0, 1], 5), [0.0]),
        lambda y: -0.5 * (y - 1) ** 2,
        dy.Gaussian(np.ones(9), 0.4),
    ]
    curve = dy.CurvFiFE(dy.RBF(0.3, amplitude=1.0), mean=0.0).fit(t, parts)
    by_hand = (
        [lambda y, g=g: -np.logaddexp(0, -y if g else y) for g in np.tile([0, 1], 5)]
        + [lambda y: -0.5 * (y - 1) ** 2]
        + [lambda y: -0.5 * ((y - 1) / 0.4) ** 2 - np.log(0.4 * np.sqrt(2 * np.pi))] * 9
    )
    other = dy.CurvFiFE(dy.RBF(0.3, amplitude=1.0), mean=0.0).fit(t, by_hand)
    assert_allclose(curve.mean(t), other.mean(t), atol=1e-7)
    assert curve.log_evidence == pytest.approx(other.log_evidence, abs=1e-6)
    assert_allclose(curve.loo, other.loo, atol=1e-5)
    assert [part.kind for part, _ in emission_blocks(as_emissions(parts))] == [
        "ordinal",
        "functions",
        "gaussian",
    ]
