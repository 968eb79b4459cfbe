"""Bandwidths and amplitudes: averaged, picked, on adaptive grids."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import polling


@pytest.mark.parametrize("method", ["evidence", "loo", "cv"])
def test_picking_finds_the_best_on_a_fine_grid(method):
    x, _, votes = polling(3)
    picked = dy.CurvFiFE(bandwidth=method, seed=4).fit(x, dy.Bernoulli(votes))
    assert len(picked.priors) == 1
    assert picked.method == method
    fits = [dy.CurvFiFE(bandwidth=h).fit(x, dy.Bernoulli(votes)) for h in np.geomspace(0.03, 2, 60)]
    if method == "evidence":
        assert picked.log_evidence > max(f.log_evidence for f in fits) - 0.02
    elif method == "loo":
        assert picked.loo.sum() > max(f.loo.sum() for f in fits) - 0.05
    else:
        assert (
            picked.loo.sum() > max(f.loo.sum() for f in fits) - 1.5
        )  # another criterion, but near the same place
