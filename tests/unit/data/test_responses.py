"""Responses: roles of columns, missing values, joining."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom

read = dy.Responses.read


def test_models_follow_their_items():
    first = pd.DataFrame(
        {
            "id": list("aabb"),
            "item": [1, 2, 1, 2],
            "resp": [1, 0, 0, 1],
            "date": range(4),
            "mod": ["2PL", "3PL"] * 2,
        }
    )
    more = pd.DataFrame({"id": ["c"], "item": [2], "resp": [1], "date": [9]})
    joined = read(first, model="mod").append(read(more))
    assert joined.models.tolist() == ["2PL", "3PL"]
    with pytest.raises(dy.ResponseError, match="name no model"):
        read(first, model="mod").append(read(more.assign(item=7)))


def test_timestamps_synonyms_and_missing_answers():
    table = classroom(8, 3, 10)
    table["timestamp"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(table["date"] * 100, unit="D")
    odd = table.rename(columns={"id": "student", "item": "problem", "resp": "correct"}).drop(
        columns="date"
    )
    odd.loc[3, "correct"] = np.nan
    fit = dy.DynAEsti(bandwidth=30.0).fit(odd)
    assert fit.responses.dropped == 1
    assert fit.responses.unit == "days"
    assert any("student" in note for note in fit.responses.notes)
    out = fit.ability([pd.Timestamp("2024-02-01")], ["p000"])
    assert out["time"][0] == pd.Timestamp("2024-02-01")
    assert_allclose(fit.ability("2024-02-01", ["p000"])["mean"], out["mean"])
    with pytest.raises(dy.InputError, match="is no time"):
        fit.ability(["soon"], ["p000"])
    own = dy.DynAEsti(bandwidth=30.0, clock="person").fit(odd)
    assert np.isfinite(own.ability([0.0, 50.0], ["p000"])["mean"]).all()
    assert np.isfinite(own.predict(odd)["expected"]).all()


def test_columns_of_ones_own_names_and_labels_of_mixed_types():
    table = classroom(25, 4, 12).rename(
        columns={"id": "kid", "item": "thing", "resp": "ok", "date": "t0"}
    )
    fit = dy.DynAEsti(bandwidth=0.4).fit(table, id="kid", item="thing", resp="ok", time="t0")
    assert "p" not in fit.predict([{"kid": "p000", "thing": "i01", "t0": 0.5, "value": 77}]).columns
    table["kid"] = [int(k[1:]) if int(k[1:]) < 12 else k for k in table["kid"]]
    mixed = dy.DynAEsti(bandwidth=0.4).fit(
        table[table["t0"] < 0.8], id="kid", item="thing", resp="ok", time="t0"
    )
    late = table[(table["t0"] >= 0.8) & table["kid"].isin([2, 10])]
    grown = mixed.update(late)
    whole = mixed.score(table[table["kid"] == 10], at=[0.5])
    assert_allclose(grown.ability([0.5], [10])["mean"], whole["mean"], atol=1e-6)
