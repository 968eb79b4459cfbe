"""A curve of the paper's polling problem."""

import pytest

import dynaesti as dy
from support.simulated import polling


@pytest.fixture(scope="session")
def curve():
    x, _, votes = polling(4)
    return dy.CurvFiFE().fit(x, dy.Bernoulli(votes))
