"""Responses as categories: models by item, weights, rare and missing categories."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom


def test_models_can_differ_by_item_and_weights_repeat_answers():
    table = classroom(40, 6, 20)
    kinds = {f"i{k:02d}": "2PL" if k < 3 else "3PL" for k in range(6)}
    fit = dy.DynAEsti(kinds, bandwidth=0.4).fit(table)
    assert fit.items.set_index("item").loc["i00", "model"] == "2PL"
    table["kind"] = table["item"].map(kinds)
    assert_allclose(
        dy.DynAEsti(bandwidth=0.4).fit(table, model="kind").log_evidence,
        fit.log_evidence,
        rtol=1e-9,
    )
    twice = pd.concat([table, table.iloc[:100]])
    weighted = table.assign(w=np.where(np.arange(len(table)) < 100, 2.0, 1.0))
    one, two = (
        dy.DynAEsti(bandwidth=0.4, tolerance=1e-4).fit(twice),
        dy.DynAEsti(bandwidth=0.4, tolerance=1e-4).fit(weighted, weight="w"),
    )
    assert_allclose(one.log_evidence, two.log_evidence, atol=1e-4)
    assert_allclose(one.items["b"], two.items["b"], atol=1e-3)


def test_rare_categories_of_a_rating_scale_are_merged_for_all_its_items():
    rng = np.random.default_rng(0)
    table = {
        "id": np.repeat(np.arange(60), 5),
        "item": np.tile(np.arange(5), 60),
        "resp": rng.integers(0, 3, 300),
        "date": rng.uniform(0, 1, 300),
    }
    table["resp"][:2] = 3
    fit = dy.DynAEsti("RSM", rare=10, bandwidth=np.inf).fit(table)
    assert all(block.size == 3 for block in fit.bank.blocks)
    assert len(fit.coding.merged) == 5


def test_a_thin_item_keeps_the_options_that_nobody_chose_yet():
    """Seen by chance only in part, its scale is that of its kin.

    One that many answered has what they gave.
    """
    rng = np.random.default_rng(0)
    item = np.append(np.tile(np.arange(6), 100), [6] * 8)
    resp = np.append(rng.integers(0, 3, 600), [0, 2] * 4)
    resp[item == 5] = rng.choice([0, 2], 100)
    table = {
        "id": np.append(np.repeat(np.arange(100), 6), np.arange(8)),
        "item": item,
        "resp": resp,
        "date": rng.uniform(0, 1, item.size),
    }
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(table)
    assert {int(i): block.size for block in fit.bank.blocks for i in block.items} == {
        **dict.fromkeys(range(5), 3),
        5: 2,
        6: 3,
    }
    chances = fit.predict({"id": [0], "item": [6], "date": [0.5]})
    assert 0.01 < chances["p1"][0] < 0.5
    with pytest.warns(dy.ConvergenceWarning):
        bare = dy.DynAEsti("GRM", bandwidth=np.inf, priors=None, iterations=1).fit(table)
    assert {int(i): block.size for block in bare.bank.blocks for i in block.items}[
        6
    ] == 2  # likelihood alone could not place them


def test_a_short_item_among_long_ones_keeps_its_own_scale():
    """Thirty right-or-wrong items beside six of five points, all graded.

    Nobody gave them a 4 because there is none.
    """
    rng = np.random.default_rng(1)
    long, short = np.repeat(np.arange(6), 60), np.repeat(np.arange(6, 36), 12)
    table = {
        "id": np.append(
            np.tile(np.arange(60), 6),
            np.concatenate([rng.choice(60, 12, replace=False) for _ in range(30)]),
        ),
        "item": np.append(long, short),
        "resp": np.append(rng.integers(0, 5, long.size), rng.integers(0, 2, short.size)),
        "date": rng.uniform(0, 1, long.size + short.size),
    }
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(table)
    assert {int(i): block.size for block in fit.bank.blocks for i in block.items} == {
        k: 5 if k < 6 else 2 for k in range(36)
    }
