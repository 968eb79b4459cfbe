"""Standard errors: items drawn from their covariance."""

import numpy as np
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.estimation.standard_errors import sample_bank
from support.simulated import classroom


def test_items_drawn_have_the_spread_that_is_told():
    fit = dy.DynAEsti("2PL", bandwidth=0.3).fit(classroom(60, 8, 30))
    rng = np.random.default_rng(0)
    draws = np.array(
        [
            sample_bank(fit.bank, fit.covariance, fit.scale_covariance, rng).blocks[0].u
            for _ in range(4000)
        ]
    )
    spread = np.einsum(
        "dip,diq->ipq", draws - draws.mean(axis=0), draws - draws.mean(axis=0)
    ) / len(draws)
    scale = np.sqrt(np.einsum("ipp->ip", fit.covariance[0]))
    assert_allclose(
        spread / scale[:, :, None] / scale[:, None, :],
        fit.covariance[0] / scale[:, :, None] / scale[:, None, :],
        atol=0.08,
    )
    middle = draws[:, :, 1].mean(
        axis=1
    )  # where the abilities' zero lies moves all difficulties together
    alone = np.sqrt((scale[:, 1] ** 2).sum()) / len(scale)
    assert middle.std() > 1.3 * alone
