"""Own models, separated items and measurements in any unit: right, or refused in words."""

import time

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from support.saying import told
from support.simulated import classroom


@pytest.mark.parametrize(
    "model",
    [
        lambda th, r, p: np.where(
            th < 0, -np.inf, -np.logaddexp(0, -(th - p[0]) * (1 if r else -1))
        ),
        lambda th, r, p: np.full_like(th, -np.inf),
        lambda th, r, p: np.where((th > p[0]) == (r == 1), np.log(0.99), np.log(0.01)),
        lambda th, r, p: np.where((th > p[0]) == (r == 1), np.log(0.6), np.log(0.4)),
    ],
)
def test_own_models_that_cannot_be_learned_from_are_refused(small, model):
    began = time.perf_counter()
    with pytest.raises(dy.InputError, match="item model"):
        dy.DynAEsti(dy.CustomItemModel(model, {"b": (0.0, -5.0, 5.0)})).fit(small)
    assert time.perf_counter() - began < 20


def test_own_models_that_only_round_to_nothing_are_fine(small):
    def naive(theta, resp, p):
        with np.errstate(divide="ignore", over="ignore"):
            right = 1 / (1 + np.exp(-(theta - p[0])))
            return np.log(right) if resp else np.log(1 - right)

    adaptive_moments = dy.CustomItemModel(
        lambda th, r, p: -np.logaddexp(0, -(th - p[0]) * (1 if r else -1)), {"b": (0.0, -5.0, 5.0)}
    )
    fits = [
        dy.DynAEsti(model, bandwidth=np.inf, standard_errors=False).fit(small)
        for model in (dy.CustomItemModel(naive, {"b": (0.0, -5.0, 5.0)}), adaptive_moments)
    ]
    assert fits[0].log_evidence == pytest.approx(fits[1].log_evidence, abs=1e-6)
    for params in ({"b": 0.0}, {"b": ("a", "b", "c")}, {"b": (0.0, 1.0)}):
        with pytest.raises(dy.InputError, match="needs"):
            dy.CustomItemModel(naive, params)


@pytest.mark.parametrize("shift", [5.0, np.log(3.0)])
def test_own_models_return_probabilities(small, shift):
    model = dy.CustomItemModel(
        lambda th, r, p: shift - np.logaddexp(0, (p[0] - th) * (1 if r else -1)),
        {"b": (0.0, -5.0, 5.0)},
    )
    with pytest.raises(dy.InputError, match="logarithm of a probability"):
        dy.DynAEsti(model).fit(small)


@pytest.mark.parametrize("model", ["1PL", "PCM"])
def test_spreads_without_an_estimate_are_told(model):
    rows = [
        (f"p{i}", f"i{j}", float(i >= 20), (7 * i + j) % 6) for i in range(40) for j in range(6)
    ]
    words, fit = told(
        lambda: dy.DynAEsti(model, bandwidth=np.inf).fit(
            pd.DataFrame(rows, columns=["id", "item", "resp", "date"])
        )
    )
    assert "no finite estimate" in words
    assert np.isinf(fit.items["se_a"]).all()


def test_separated_items_without_priors_are_named_and_nothing_explodes(small):
    for resp in ((small["item"] < "i3") * 1.0, np.where(small["item"] == "i0", 1.0, small["resp"])):
        words, fit = told(lambda resp=resp: dy.DynAEsti(priors=None).fit(small.assign(resp=resp)))
        assert "no finite estimate" in words
        assert "no finite estimate" in fit.summary()
        assert fit.log_evidence <= 0
        assert np.isinf(fit.items["se_b"]).any()


@pytest.mark.parametrize(("unit", "zero"), [(1.0, 1000.0), (10.0, 0.0), (1e-3, 5.0)])
def test_new_measurements_have_a_unit_of_their_own(unit, zero):
    table = classroom(60, 6, 30, seed=2, model="gaussian")
    new = table["item"] == "i05"
    fit = dy.DynAEsti("gaussian").fit(table[~new])
    grown = (
        fit.update(table[new].assign(resp=lambda t: t["resp"] * unit + zero), new_items=True)
        .items.set_index("item")
        .loc["i05"]
    )
    plain = fit.update(table[new], new_items=True).items.set_index("item").loc["i05"]
    assert grown["a"] == pytest.approx(plain["a"] * unit, rel=1e-3)
    assert grown["sigma"] == pytest.approx(plain["sigma"] * unit, rel=1e-3)


def test_shards_of_measurements_are_refreshed_in_their_own_unit(tmp_path):
    table = classroom(40, 6, 20, seed=2, model="gaussian").assign(
        resp=lambda t: 1000 + 50 * t["resp"]
    )
    early = table["date"] < 0.8
    fit = (
        dy.DynAEsti("gaussian")
        .fit(dy.prepare(table[early], tmp_path / "s", shards=2), out=tmp_path / "r")
        .update(table[~early])
    )
    found = dy.refit_items(fit).items
    whole = dy.DynAEsti("gaussian").fit(table).items
    np.testing.assert_allclose(found["sigma"], whole["sigma"], rtol=0.02)
    np.testing.assert_allclose(found["intercept"], whole["intercept"], rtol=0.02)
