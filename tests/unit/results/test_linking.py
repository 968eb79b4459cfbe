"""Two fits on one scale, by common items."""

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.results.evaluation.linking import METHODS

TRUE_SLOPE, TRUE_INTERCEPT = 1.3, 0.7


def answers(seed, mean, sd, items, difficulties, leaked=()):
    rng = np.random.default_rng(seed)
    ability = mean + sd * rng.normal(size=1500)
    b = np.array([difficulties[k] - (1.5 if k in leaked else 0.0) for k in items])
    chance = 1 / (1 + np.exp(-1.2 * (ability[:, None] - b)))
    table = {
        "id": np.repeat(np.arange(1500), len(items)),
        "item": np.tile(items, 1500),
        "resp": (rng.random(chance.shape) < chance).ravel() * 1,
        "date": np.zeros(1500 * len(items)),
    }
    return pd.DataFrame(table)


@pytest.fixture(scope="module")
def forms():
    """Two forms of 14 items, 8 in common; the second one's people are abler and more varied."""
    b = np.linspace(-1.5, 2, 20)
    static = dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False)
    one = static.fit(answers(1, 0.0, 1.0, range(14), b))
    other = static.fit(answers(2, TRUE_INTERCEPT, TRUE_SLOPE, range(6, 20), b))
    leaked = static.fit(answers(3, TRUE_INTERCEPT, TRUE_SLOPE, range(6, 20), b, leaked=(9,)))
    return one, other, leaked


@pytest.mark.parametrize("method", METHODS)
def test_the_true_map_is_found(forms, method):
    one, other, _ = forms
    found = dy.evaluation.link(one, other, method=method)
    assert found.slope == pytest.approx(TRUE_SLOPE, abs=0.1)
    assert found.intercept == pytest.approx(TRUE_INTERCEPT, abs=0.1)
    assert found.used == 8
    back = dy.evaluation.link(other, one, method=method)
    assert back.slope * found.slope == pytest.approx(1.0, abs=0.03)
    np.testing.assert_allclose(found.abilities([0.0]), [found.intercept])


def test_stocking_lord_makes_test_characteristic_curves_alike(forms):
    """Against a fine grid search of the criterion, on the items as reported."""
    one, other, _ = forms
    found = dy.evaluation.link(one, other, purify=False)
    at, weight = np.linspace(-4, 4, 81), np.exp(-0.5 * np.linspace(-4, 4, 81) ** 2)
    common = list(range(6, 14))

    def score(fit, ability):
        items = fit.items.set_index("item")
        return sum(1 / (1 + np.exp(-items.a[k] * (ability - items.b[k]))) for k in common)

    def loss(slope, intercept):
        return (weight * (score(one, at) - score(other, (at - intercept) / slope)) ** 2).sum()

    grid = [
        (loss(slope, intercept), slope, intercept)
        for slope in np.linspace(1.1, 1.6, 51)
        for intercept in np.linspace(0.4, 1.0, 61)
    ]
    _, slope, intercept = min(grid)
    assert found.slope == pytest.approx(slope, abs=0.01)
    assert found.intercept == pytest.approx(intercept, abs=0.01)


def test_a_leaked_anchor_is_left_out(forms):
    one, _, leaked = forms
    found = dy.evaluation.link(one, leaked)
    flags = dict(zip(found.anchors["item"], found.anchors["drifted"], strict=True))
    assert [k for k, flag in flags.items() if flag] == [9]
    assert found.used == 7
    assert found.intercept == pytest.approx(TRUE_INTERCEPT, abs=0.1)
    assert dy.evaluation.link(one, leaked, purify=False).used == 8


def test_what_cannot_be_linked_is_said(forms):
    one, other, _ = forms
    with pytest.raises(dy.errors.InputError, match="none of stocking-lord"):
        dy.evaluation.link(one, other, method="magic")
    table = answers(4, 0, 1, range(3), np.zeros(20))
    table["item"] = [f"other{k}" for k in table["item"]]
    strange = dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False).fit(table)
    with pytest.raises(dy.errors.InputError, match="0 items in common"):
        dy.evaluation.link(one, strange)
