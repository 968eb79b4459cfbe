"""Smoothed importance weights."""

import numpy as np
import pytest

from dynaesti.inference.audit.psis import smooth_weights


@pytest.mark.parametrize("k", [0.2, 0.6, 1.0])
def test_pareto_k_recovers_the_tail(k):
    raw = np.random.default_rng(0).random(100_000) ** -k
    assert smooth_weights(np.log(raw))[1] == pytest.approx(k, abs=0.12)
    assert smooth_weights(np.log(raw))[0].sum() == pytest.approx(1.0)
