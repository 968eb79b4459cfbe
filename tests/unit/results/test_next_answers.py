"""Next answers against the slow way: update a fit with what came before, then predict."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom

pytest.importorskip("pandas")


@pytest.mark.parametrize("effects", [None, "load + practice(item) + random(rater)"])
@pytest.mark.parametrize("bandwidth", [0.4, np.inf])
def test_each_answer_is_predicted_by_those_before_it(effects, bandwidth):
    table = classroom(20, 5, 9)
    table.loc[::4, "date"] = table.loc[::4, "date"].round(1)  # some answers share an instant
    rng = np.random.default_rng(0)
    table["load"] = rng.normal(size=len(table))
    table["rater"] = rng.integers(0, 3, len(table))
    new = table["id"].isin(sorted(table["id"].unique())[:2])
    estimator = dy.DynAEsti("2PL", effects=effects, bandwidth=bandwidth, standard_errors=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = estimator.fit(table[~new])
        found = dy.evaluation.next_answers(fit, table[new])
        slow = []
        for _, row in table[new].iterrows():
            before = table[new & (table["id"] == row["id"]) & (table["date"] < row["date"])]
            known = fit.update(before) if len(before) else fit
            slow.append(float(known.predict(row.to_frame().T)["p1"].iloc[0]))
    assert_allclose(found["p1"], slow, atol=2e-6)
    assert found["id"].tolist() == table[new]["id"].tolist()
    given = np.where(table[new]["resp"] == 1, slow, 1 - np.array(slow))
    assert_allclose(found["p"], given, atol=2e-6)
