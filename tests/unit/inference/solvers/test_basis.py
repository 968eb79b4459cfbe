"""Features of kernels: as many as the span needs."""

from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.inference.solvers.basis import kernel_basis


def test_rank_follows_the_span_not_the_data():
    assert kernel_basis(dy.RBF(0.2), 0, 1).rank <= 1.6 / 0.2 + 7
    assert kernel_basis(dy.RBF(2.0), 0, 1).rank <= 6


def test_few_instants_and_very_short_bandwidths():
    """Instants that know nothing of each other.

    No more features than instants, however short the bandwidth.
    """
    days, votes = [1.0, 2.0, 4.0, 5.0, 7.0, 8.0], dy.Bernoulli([0, 0, 1, 0, 1, 1])
    for h in (1e-2, 1e-5, 1e-300):
        curve = dy.CurvFiFE(bandwidth=h).fit(days, votes)
        assert_allclose(curve.mean([1.0, 4.0, 6.0]), [1 / 3, 2 / 3, 1 / 2], atol=2e-3)
