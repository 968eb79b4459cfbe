"""Effects and noise of a curve by simulation."""

import numpy as np
import pytest

import dynaesti as dy
from support.oracles import in_pandas
from support.simulated import house_polls


def test_houses_and_noise_are_found():
    """Intervals of house effects, against their average, hold the truth; sizes are near it."""
    truth = np.array([0.2, -0.1, -0.1])
    inside, noise = [], []
    for seed in range(12):
        t, emissions, columns = house_polls(60, seed)
        found = dy.CurvFiFE(effects="random(house)", noise=True).fit(t, emissions, columns).effects
        by_term = in_pandas(found).set_index("term")
        rows = by_term.loc[[f"random(house)[{house}]" for house in "ABC"]]
        inside.append((rows["lower"] < truth) & (truth < rows["upper"]))
        noise.append(by_term.loc["sd of noise", "estimate"])
    assert np.mean(inside) > 0.85
    assert np.mean(noise) == pytest.approx(0.1, abs=0.02)
