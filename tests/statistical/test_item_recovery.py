"""Items and abilities drawn from the model come back."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import dynaesti as dy
from dynaesti import evaluation as evaluate
from dynaesti.data.responses import Responses
from dynaesti.sharded.simulate import simulate_shards
from support.oracles import in_pandas
from support.simulated import classroom


def test_learned_items_and_abilities_come_back():
    table, real = classroom(300, 15, 40, seed=3, truth=True)
    fit = dy.DynAEsti("2PL").fit(table)
    assert fit.converged
    assert np.corrcoef(fit.items["b"], real["b"])[0, 1] > 0.98
    assert np.corrcoef(np.log(fit.items["a"]), np.log(real["a"]))[0, 1] > 0.8
    grid = np.linspace(0.05, 0.95, 10)
    found = fit.ability(grid)
    theta = np.array([np.interp(grid, real["grid"], row) for row in real["ability"]]).ravel()
    assert np.corrcoef(found["mean"], theta)[0, 1] > 0.75
    inside = (theta > found["lower"]) & (theta < found["upper"])
    assert 0.64 < inside.mean() < 0.76


@pytest.mark.parametrize(
    ("model", "simulated"),
    [
        ("4PL", "2PL"),
        ("1PL", "2PL"),
        ("GRM", "GRM"),
        ("PCM", "GRM"),
        ("GPCM", "GRM"),
        ("RSM", "GRM"),
        ("NRM", "GRM"),
        ("poisson", "poisson"),
        ("beta", "beta"),
        (dy.PivotPartialCredit(descending=False), "GRM"),
    ],
)
def test_every_model_fits_and_orders_the_items(model, simulated):
    table = classroom(150, 8, 30, model=simulated, seed=5)
    fit = dy.DynAEsti(model, bandwidth=0.4).fit(table)
    assert fit.converged
    assert np.isfinite(fit.log_evidence)
    shown = fit.predict(table)
    mean = (
        pd.DataFrame({"item": table["item"], "seen": table["resp"], "said": shown["expected"]})
        .groupby("item")
        .mean()
    )
    assert np.corrcoef(mean["seen"], mean["said"])[0, 1] > 0.9
    errors = [c for c in fit.items.columns if c.startswith("se_")]
    assert errors
    assert (fit.items[errors].to_numpy()[np.isfinite(fit.items[errors])] >= 0).all()


def test_anchors_free_the_population():
    """Items known from elsewhere: the population's mean and spread are found on their scale."""
    rng = np.random.default_rng(2)
    people, items = 400, 12
    a, b = np.ones(items), np.linspace(-2, 2, items)
    theta = 0.7 + 1.5 * rng.standard_normal(people)
    y = rng.uniform(size=(people, items)) < expit(a * (theta[:, None] - b))
    responses = Responses.from_matrices(y * 1.0, np.zeros((1, items)))
    anchors = {k: {"a": 1.0, "b": float(b[k])} for k in range(6)}
    fit = dy.DynAEsti("2PL", bandwidth=np.inf, fixed=anchors).fit(responses)
    assert fit.scale.name == "anchors"
    assert_allclose(fit.shift, 0.7, atol=0.2)
    assert_allclose(fit.gain, 1.5, atol=0.25)
    assert_allclose(fit.items["b"][:6], b[:6], atol=1e-12)
    assert_allclose(fit.items["b"][6:], b[6:], atol=0.4)


def test_rasch_learns_the_spread():
    rng = np.random.default_rng(3)
    theta = 1.4 * rng.standard_normal(500)
    b = np.linspace(-2, 2, 15)
    y = rng.uniform(size=(500, 15)) < expit(theta[:, None] - b)
    fit = dy.DynAEsti("Rasch", bandwidth=np.inf, scale="items").fit(
        Responses.from_matrices(y * 1.0, np.zeros((1, 15)))
    )
    assert_allclose(fit.gain, 1.4, atol=0.15)
    assert_allclose(fit.items["a"], 1.0)
    assert_allclose(fit.items["b"], b, atol=0.35)


def test_sparse_items_get_sensible_values():
    table = classroom(60, 80, 8, seed=4)
    fit = dy.DynAEsti().fit(table)
    assert fit.items["a"].between(0.1, 10).all()
    assert np.abs(fit.items["b"].to_numpy()).max() < 8
    assert fit.items["se_b"].median() > 0.3


def test_amounts_far_from_zero():
    """Measurements near 1000 and counts near e⁵ keep their own zero and unit.

    Their fit statistics are about 1.
    """
    rng = np.random.default_rng(0)
    theta = rng.normal(0, 1, 150)
    table = pd.DataFrame(
        [(i, j, 0.0) for i in range(150) for j in range(8)], columns=["id", "item", "date"]
    )
    table["resp"] = 1000 + 10 * theta[table["id"]] + rng.normal(0, 10, len(table))
    for direction in ("positive", "free"):
        fit = dy.DynAEsti("gaussian", bandwidth=np.inf, direction=direction).fit(table)
        assert fit.converged
        assert_allclose(fit.items[["a", "intercept", "sigma"]].mean(), [10, 1000, 10], rtol=0.15)
        assert 0.9 < evaluate.item_fit(fit)["infit"].mean() < 1.1
    table["resp"] = rng.poisson(np.exp(5 + 0.1 * theta[table["id"]]))
    counts = dy.DynAEsti("poisson", bandwidth=np.inf).fit(table)
    assert_allclose(counts.items["a"].mean(), 0.1, atol=0.02)
    assert 0.9 < evaluate.item_fit(counts)["infit"].mean() < 1.1


def test_the_common_slope_of_rasch_items_has_an_honest_error():
    """Its spread over simulated data sets is what the standard error says."""
    slopes, errors = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        theta, b = 1.3 * rng.standard_normal(400), np.linspace(-1, 1, 6)
        y = (rng.random((400, 6)) < 1 / (1 + np.exp(-(theta[:, None] - b)))).astype(float)
        items = (
            dy.DynAEsti("1PL", bandwidth=np.inf, priors=None, threads=1)
            .fit(dy.Responses.from_matrices(y, np.zeros(y.shape)))
            .items
        )
        slopes.append(items["a"][0])
        errors.append(items["se_a"][0])
    assert abs(np.mean(slopes) - 1.3) < 0.06
    assert 0.7 < np.std(slopes) / np.mean(errors) < 1.4


def test_flat_items_have_far_thresholds():
    """Slopes of a tenth put thresholds at 40 and more.

    Items come to rest there, at an evidence like the truth's.
    """
    rng = np.random.default_rng(3)
    people, items, each = 1000, 5, 100
    a, place = rng.uniform(0.1, 0.2, items), np.array([-6.0, -1.0, 2.0])
    person, item = (
        np.repeat(np.arange(people), each),
        np.tile(np.arange(items), people * each // items),
    )
    theta = rng.standard_normal(people)[person]
    above = expit((a[item] * theta)[:, None] - place)
    resp = (rng.random(person.size)[:, None] < above).sum(axis=1) * 1.0
    table = {"id": person, "item": item, "resp": resp, "date": np.zeros(person.size)}
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(table)
    assert fit.converged
    assert fit.items["b1"].min() < -35
    fixed = {
        k: {"a": a[k], **{f"b{j + 1}": place[j] / a[k] for j in range(3)}} for k in range(items)
    }
    assert (
        fit.log_evidence
        > dy.DynAEsti("GRM", bandwidth=np.inf, fixed=fixed).fit(table).log_evidence - 3.0
    )  # priors want steeper ones


def test_simulated_shards_recover_their_truth(tmp_path):
    shards, items = simulate_shards(tmp_path / "s", 400, 30, (5, 120), shards=3, seed=2)
    again, _ = simulate_shards(tmp_path / "t", 400, 30, (5, 120), shards=3, seed=2)
    assert shards.rows == again.rows
    counts = np.concatenate([np.bincount(shards.responses(k).person) for k in range(3)])
    assert counts.min() >= 5
    assert counts.max() <= 120
    fit = dy.DynAEsti("2PL").fit(shards, out=tmp_path / "run")
    b = in_pandas(fit.items).set_index("item").loc[list(items["item"]), "b"].to_numpy()
    assert np.corrcoef(b, items["b"])[0, 1] > 0.98
    folder = fit.write_abilities()
    told = pd.concat([pd.read_parquet(f"{folder}/shard-{k:05d}.parquet") for k in range(3)])
    truth = pd.concat(
        [pd.read_parquet(tmp_path / "s" / "truth" / f"shard-{k:05d}.parquet") for k in range(3)]
    )
    both = told.merge(truth, on=["id", "time"])
    assert len(both) == len(told)
    assert told.groupby("id").size().max() <= 12
    assert np.corrcoef(both["mean"], both["ability"])[0, 1] > 0.75
    assert 0.6 < both.eval("lower < ability and ability < upper").mean() < 0.8
