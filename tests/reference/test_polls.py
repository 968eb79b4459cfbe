"""Polls before an election, by several houses, where the shared data are at hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy

POLLS = Path(__file__).parents[3] / "shared" / "data" / "polls_australia_2004_2007.csv"
pytestmark = pytest.mark.skipif(
    not POLLS.exists(), reason="the shared polls are not beside this clone"
)


def test_houses_and_noise_explain_how_far_polls_differ():
    table = pd.read_csv(POLLS)
    emissions = dy.Binomial(table["response"], table["n"])
    plain = dy.CurvFiFE().fit(table["time"], emissions)
    assert np.asarray(plain.residuals()["residual"]).std() > 1.4
    assert "noise=True" in plain.summary()
    model = dy.CurvFiFE(effects="random(item)", noise=True)
    curve = model.fit(table["time"], emissions, table)
    assert 0.95 < np.asarray(curve.residuals()["residual"]).std() < 1.05
    houses = curve.effects[curve.effects["term"].str.startswith("random(item)[")]
    order = houses.sort_values("estimate")["term"].str.extract(r"\[(.*)\]")[0].tolist()
    # Jackman's analysis of these polls: face-to-face interviews favour Labor, Galaxy does least
    assert order[0] == "Galaxy"
    assert order[1] == "Morgan, Phone"
    assert order[-1] == "Morgan, F2F"
