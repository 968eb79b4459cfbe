"""Fits of shards against fits in memory.

The same answer, whoever does the work and whatever happens on the way.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.core.folder import Folder
from support.oracles import assert_same_fit
from support.simulated import shuffled_classroom

ITERATIONS = 40


@pytest.mark.parametrize(("model", "options"), [
    ("2PL", {}), ("2PL", {"kernel": "rbf"}), ("3PL", {"bandwidth": np.inf}), ("GRM", {"rare": 3}), ("1PL", {"scale": "items"}),
    ("poisson", {"bandwidth": 0.4}), ("2PL", {"direction": "free", "orient": {"id": "p007"}}), ("2PL", {"clock": "person"}),
    ("2PL", {"priors": "hierarchical", "iterations": 12}),
])  # fmt: skip
def test_a_fit_of_shards_is_the_fit_in_memory(tmp_path, model, options):
    table = shuffled_classroom(model=model if model in ("GRM", "poisson") else "2PL")
    estimator = dy.DynAEsti(model, **{"iterations": ITERATIONS, **options})
    whole = estimator.fit(table)
    shards = dy.prepare(table, tmp_path / "shards", shards=4)
    assert shards.rows == len(table)
    assert shards.people == table["id"].nunique()
    found = estimator.fit(shards, out=tmp_path / "run")
    assert_same_fit(found, whole)
    again = dy.load(tmp_path / "run")
    assert_same_fit(again, whole)
    assert "4 shards" in again.summary()


def test_sample_and_stage_for_stage_with_many_people(tmp_path, monkeypatch):
    """Where first passes are made on some people, the same ones are taken from shards as from
    memory.
    """
    from dynaesti.estimation import schedule as fitting

    monkeypatch.setattr(fitting, "SOME", 600)
    monkeypatch.setattr(fitting, "ANSWERS", 10)
    monkeypatch.setattr(fitting, "FEW", 400)
    table = shuffled_classroom(200)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    whole = estimator.fit(table)
    assert {"first look", "some people", "everyone"} <= {step.stage for step in whole.trace}
    assert_same_fit(
        estimator.fit(dy.prepare(table, tmp_path / "shards", shards=7), out=tmp_path / "run"), whole
    )


def test_labels_times_weights_and_models_come_through(tmp_path):
    table = shuffled_classroom(60).rename(columns={"id": "student", "date": "when"})
    table["when"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(
        (table["when"] * 40 * 86_400).round(), unit="s"
    )
    table["w"] = 0.5 + (np.arange(len(table)) % 3)
    table["kind"] = np.where(table["item"] == "i03", "1PL", "2PL")
    table.to_csv(tmp_path / "a.csv", index=False)
    names = {
        "id": "student",
        "item": "item",
        "resp": "resp",
        "time": "when",
        "weight": "w",
        "model": "kind",
    }
    estimator = dy.DynAEsti(iterations=ITERATIONS)
    whole = estimator.fit(table, **names)
    found = estimator.fit(
        dy.prepare(tmp_path / "a.csv", tmp_path / "shards", shards=3, **names), out=tmp_path / "run"
    )
    assert_allclose(
        found.items.sort_values("item")["b"].to_numpy(),
        whole.items.sort_values("item")["b"].to_numpy(),
        atol=1e-6,
    )
    at = ["2024-03-10", "2024-04-01"]
    assert_allclose(
        found.ability(at, ["p011"])["mean"], whole.ability(at, ["p011"])["mean"], atol=1e-6
    )
    asked = table[["student", "item", "when"]].head(40)
    assert_allclose(found.predict(asked)["p1"], whole.predict(asked)["p1"], atol=1e-6)
    assert found.change("p011", *at).mean == pytest.approx(whole.change("p011", *at).mean, abs=1e-6)
    assert_allclose(
        found.curve("p011").mean(pd.to_datetime(at)),
        whole.curve("p011").mean(pd.to_datetime(at)),
        atol=1e-6,
    )
    assert_allclose(
        found.score(table.head(30).replace({"student": {"p011": "new"}}))["mean"],
        whole.score(table.head(30).replace({"student": {"p011": "new"}}))["mean"],
        atol=1e-6,
    )


def test_elsewhere_through_fsspec(tmp_path):
    """Shards and run at an address that is no path."""
    import fsspec

    table = shuffled_classroom(60)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    whole = estimator.fit(table)
    dy.prepare(table, tmp_path / "shards", shards=3)
    fsspec.filesystem("memory").put(str(tmp_path / "shards"), "/far/shards", recursive=True)
    found = estimator.fit("memory://far/shards", out="memory://far/run")
    assert_same_fit(found, whole)
    assert_same_fit(dy.load("memory://far/run"), whole)
    assert Folder("memory://far/run").exists("fit.dyn")
    assert not Folder("memory://far/run").exists("fit.ckpt")
