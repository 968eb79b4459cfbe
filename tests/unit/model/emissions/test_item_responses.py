"""Responses to known items as emissions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import dynaesti as dy
from support.oracles import log_prob_at

X = np.linspace(-3, 3, 7)


@pytest.mark.nojit
def test_item_models_meet_their_definitions():
    s = expit(1.7 * (X - 0.4))
    assert_allclose(np.exp(log_prob_at(dy.ItemResponses([1, 0], "2PL", a=1.7, b=0.4))), [s, 1 - s])
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses([1, 0], "3PL", a=1.7, b=0.4, c=0.2))),
        [0.2 + 0.8 * s, 0.8 * (1 - s)],
    )
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses([1, 0], "4PL", a=1.7, b=0.4, c=0.2, d=0.9))),
        [0.2 + 0.7 * s, 0.8 - 0.7 * s],
    )
    b = np.array([-1.0, 0.0, 1.5])
    above = np.column_stack([np.ones(7), expit(1.3 * (X[:, None] - b)), np.zeros(7)])
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses(range(4), "GRM", a=1.3, b=b))),
        -np.diff(above, axis=1).T,
    )
    odds = np.exp(np.column_stack([np.zeros(7), np.cumsum(1.3 * (X[:, None] - b), axis=1)]))
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses(range(4), "GPCM", a=1.3, b=b))),
        (odds / odds.sum(axis=1, keepdims=True)).T,
    )
