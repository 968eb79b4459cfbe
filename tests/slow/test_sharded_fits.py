"""Fits of shards against fits in memory, model by model."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.cli.dispatch import main
from support.oracles import assert_same_fit, in_pandas
from support.simulated import shuffled_classroom

ITERATIONS = 40


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("2PL", {}),
        ("2PL", {"kernel": "rbf"}),
        ("3PL", {"bandwidth": np.inf}),
        ("GRM", {"rare": 3}),
        ("1PL", {"scale": "items"}),
        ("poisson", {"bandwidth": 0.4}),
        ("2PL", {"direction": "free", "orient": {"id": "p007"}}),
        ("2PL", {"clock": "person"}),
        ("2PL", {"priors": "hierarchical", "iterations": 12}),
    ],
)
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
        in_pandas(found.items).sort_values("item")["b"].to_numpy(),
        in_pandas(whole.items).sort_values("item")["b"].to_numpy(),
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


def test_shards_on_the_command_line(tmp_path, capsys):
    table = shuffled_classroom(80).sort_values("date")
    table.iloc[:-50].to_csv(tmp_path / "a.csv", index=False)
    table.iloc[-50:].to_csv(tmp_path / "b.csv", index=False)
    run, shards = str(tmp_path / "run"), str(tmp_path / "shards")
    assert (
        main(["prepare", str(tmp_path / "a.csv"), "--out", shards, "--shards", "3", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["answers"] == len(table) - 50
    assert main(["fit", shards, "--out", run, "--quiet", "--json", "--iterations", "30"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["people"] == 80
    for command in (
        ["items", run],
        ["ability", run, "--id", "p003", "--grid", "3"],
        ["predict", run, str(tmp_path / "b.csv")],
        ["score", run, str(tmp_path / "b.csv")],
        ["ability", run, "--now"],
    ):
        assert main([*command, "--json"]) == 0, command
    assert main(["evaluate", shards, "--json"]) == 0
    assert "only shard 1 of 3 is read" in capsys.readouterr().err
    assert main(["validate", shards]) in (0, 1)
    assert main(["ability", run, "--id", "nobody"]) == 3
    assert "there are 80 people in 3 shards" in capsys.readouterr().err
    assert main(["items", run, "--fit"]) == 3
    assert "fit of shards" in capsys.readouterr().err
    assert main(["update", run, str(tmp_path / "b.csv"), "--refit-items", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refitted"] is True
    assert main(["report", run]) == 0
    assert "f 3 shards with" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert main(["fit", shards, "--out", run]) == 3
    assert (
        main(
            [
                "simulate",
                "--people",
                "60",
                "--items",
                "10",
                "--answers-per-person",
                "5:30",
                "--shards",
                "2",
                "--out",
                str(tmp_path / "sim"),
                "--json",
            ]
        )
        == 0
    )
    assert (
        main(["fit", str(tmp_path / "a.csv"), "--dask", "local:2", "--out", str(tmp_path / "x")])
        == 3
    )
