"""Anchors told on any scale give one fit."""

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from support.simulated import classroom


@pytest.mark.parametrize(
    ("zero", "unit", "held"),
    [(500.0, 100.0, 10), (500.0, 100.0, 20), (50.0, 10.0, 3), (-3e4, 0.01, 10)],
)
def test_anchors_on_a_reporting_scale_give_the_same_fit(drawn, zero, unit, held):
    items = pd.DataFrame(drawn.items)[["item", "a", "b"]]
    plain = dy.DynAEsti(fixed=items.head(held), standard_errors=False).fit(drawn.table)
    told = items.assign(a=items["a"] / unit, b=zero + unit * items["b"]).head(held)
    scaled = dy.DynAEsti(fixed=told, standard_errors=False).fit(drawn.table)
    assert scaled.scale.name == "anchors"
    assert scaled.log_evidence == pytest.approx(plain.log_evidence, abs=0.2)
    assert np.abs((scaled.ability()["mean"] - zero) / unit - plain.ability()["mean"]).max() < 0.03


@pytest.mark.parametrize("held", [2, 10])
@pytest.mark.parametrize("names", [["b"], ["a", "b"]])
def test_no_scale_of_anchors_is_better_than_another(drawn, held, names):
    """Beyond the standard one, which is left as it is, all scales give one fit.

    Difficulties alone have a unit, too.
    """
    items, found = pd.DataFrame(drawn.items)[["item", "a", "b"]].head(held), []
    for zero, unit in ((500.0, 100.0), (10.0, 3.0), (0.0, 0.26)):
        told = items.assign(a=items["a"] / unit, b=zero + unit * items["b"])[["item", *names]]
        fit = dy.DynAEsti(fixed=told, standard_errors=False).fit(drawn.table)
        found.append(np.append((fit.ability()["mean"].to_numpy() - zero) / unit, fit.log_evidence))
    np.testing.assert_allclose(found[1], found[0], atol=0.02)
    np.testing.assert_allclose(found[2], found[0], atol=0.02)
    assert 0.5 < found[0][:-1].std() < 1.5


@pytest.mark.parametrize(("zero", "unit"), [(500.0, 100.0), (10.0, 3.0), (1e5, 10.0)])
def test_measurements_are_anchored_on_any_scale(zero, unit):
    table = classroom(60, 12, 30, seed=2, model="gaussian")
    items = dy.DynAEsti("gaussian").fit(table).items.head(6)[["item", "a", "b", "sigma"]]
    plain = dy.DynAEsti("gaussian", fixed=items, standard_errors=False).fit(table)
    told = items.assign(a=items["a"] / unit, b=zero + unit * items["b"])
    scaled = dy.DynAEsti("gaussian", fixed=told, standard_errors=False).fit(table)
    np.testing.assert_allclose(
        (scaled.ability()["mean"] - zero) / unit, plain.ability()["mean"], atol=0.01
    )
    assert scaled.log_evidence == pytest.approx(plain.log_evidence, abs=0.05)
