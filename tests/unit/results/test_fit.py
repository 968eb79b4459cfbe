"""A fit in memory: abilities, scores, updates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

import dynaesti as dy
from support.simulated import classroom


def test_updates_equal_scoring_the_whole_person():
    table = classroom(40, 6, 30)
    late = (table["id"] == "p002") & (table["date"] > 0.8)
    fit = dy.DynAEsti(bandwidth=0.4).fit(table[~late])
    grown = fit.update(table[late])
    whole = fit.score(table[table["id"] == "p002"], at=[0.3, 0.9, 1.2])
    assert_allclose(grown.ability([0.3, 0.9, 1.2], ["p002"])["mean"], whole["mean"], atol=1e-6)
    assert_allclose(
        grown.ability([0.3], ["p005"])["mean"], fit.ability([0.3], ["p005"])["mean"], atol=1e-12
    )
    assert len(grown.responses) == len(table)
    assert_allclose(grown.items["b"], fit.items["b"], rtol=1e-12)


def test_what_a_fit_can_tell(tmp_path):
    table = classroom(40, 6, 20)
    fit = dy.DynAEsti(scale="items").fit(table)
    assert_allclose(np.log(fit.items["a"]).mean(), 0.0, atol=1e-9)
    change = fit.change("p001", 0.1, 0.9)
    both = fit.ability([0.1, 0.9], ["p001"])["mean"].to_numpy()
    assert_allclose(change.mean, both[1] - both[0], atol=1e-4)
    assert_allclose(change.rose, ndtr(change.mean / change.sd), atol=0.02)  # nearly normal
    above = fit.probability_above(0.0, [0.5], ["p001"])
    here = fit.ability([0.5], ["p001"])
    assert_allclose(above["probability"], ndtr(here["mean"] / here["sd"]), atol=0.02)
    best = fit.next_item("p001", 0.5, exclude=["i00"], count=3)
    assert "i00" not in list(best["item"])
    assert 0 < fit.reliability() < 1
    assert fit.plausible("p001", [0.1, 0.5], 7).shape == (7, 2)
    filtered = fit.curve("p001", until=0.5)
    assert filtered.sd([1.0])[0] > fit.curve("p001").sd([1.0])[0]
    wide = fit.uncertain("p001", [0.5], draws=40)
    assert wide["sd"][0] > 0.98 * fit.ability([0.5], ["p001"])["sd"][0]
    new = fit.predict([{"id": "nobody", "item": "i00", "date": 0.5}])
    assert_allclose(new["p0"][0] + new["p1"][0], 1.0)
    assert "40 people" in fit.summary()
    path = fit.save(tmp_path / "run.dyn")
    again = dy.load(path)
    assert isinstance(again, dy.Fit)
    assert_allclose(again.ability([0.5])["mean"], fit.ability([0.5])["mean"], rtol=1e-12)
    assert again.items.equals(fit.items)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(dy.StorageError):
        dy.load(path)


def test_scoring_on_each_persons_own_clock():
    table = classroom(40, 6, 20)
    away = dict(zip(table["id"].unique(), np.random.default_rng(1).uniform(0, 50, 40), strict=True))
    table["date"] += table["id"].map(away)
    fit = dy.DynAEsti(bandwidth=0.4, clock="person").fit(table)
    one = table[table["id"] == "p003"]
    assert_allclose(
        fit.score(one, at=[0.5])["mean"], fit.ability([0.5], ["p003"])["mean"], atol=1e-6
    )
    stranger = one.assign(id="new", date=one["date"] + 1000.0)
    first = one["date"].min()
    assert_allclose(fit.score(stranger)["time"].min(), 0.0, atol=1e-9)
    assert first > 0
