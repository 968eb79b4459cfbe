"""Cross-validation by its definition."""

import numpy as np
import pytest
from scipy.special import ndtr

import dynaesti as dy
from support.simulated import polling


def test_cross_validation_is_held_out_likelihood():
    """The paper's k-fold score by its definition.

    Refit without a fold, integrate the held-out likelihood over the curve.
    """
    from dynaesti.inference.cross_validation import cross_validate
    from dynaesti.inference.observations import observe

    x, _, votes = polling(3, 30)
    score = cross_validate(observe(x, dy.Bernoulli(votes), None), [dy.RBF(0.3)], None, 5, seed=1)[0]
    fold = np.random.default_rng(1).permutation(30) % 5
    expected = 0.0
    for k in range(5):
        out = fold == k
        latent = (
            dy.CurvFiFE(bandwidth=0.3, refine=False).fit(x[~out], dy.Bernoulli(votes[~out])).latent
        )
        z = (2 * votes[out] - 1) * latent.mean(x[out]) / np.sqrt(1 + latent.sd(x[out]) ** 2 + 1e-4)
        expected += np.log(ndtr(z)).sum()
    assert score == pytest.approx(expected, abs=1e-5)
