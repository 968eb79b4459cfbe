"""Chances of responses."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import expit

import dynaesti as dy
from dynaesti.estimation import ItemNodes
from support.simulated import classroom


def test_chances_are_named_by_the_responses():
    table = classroom(40, 4, 20, model="GRM")
    table["resp"] += 1  # 1, 2, 3
    table.loc[table["item"] == "i02", "resp"] = table.loc[table["item"] == "i02", "resp"].clip(
        upper=2
    )
    shown = dy.DynAEsti("GRM", bandwidth=0.4).fit(table).predict(table)
    assert {"p1", "p2", "p3"} < set(shown.columns)
    assert_allclose(np.nansum(shown[["p1", "p2", "p3"]], axis=1), 1.0, rtol=1e-9)
    assert shown.loc[shown["item"] == "i02", "p3"].isna().all()
    given = shown.to_numpy()[
        np.arange(len(shown)), [shown.columns.get_loc(f"p{r:g}") for r in shown["resp"]]
    ]
    assert_allclose(given.astype(float), shown["p"], rtol=1e-12)


SLOPES = np.array([0.3, 1.0, 2.5, 5.0, 8.0, 17.0])
DIFFICULTIES = np.array([-1.0, 0.1, 0.7, -0.4, 1.3, 0.25])


def exact_chances(slopes, difficulties):
    """Pr[right] of newcomers to 2PL items, by a sum over a dense grid."""
    theta = np.linspace(-9, 9, 36_001)
    density = np.exp(-0.5 * theta**2)
    density /= density.sum()
    return np.array(
        [
            (expit(a * (theta - b)) * density).sum()
            for a, b in zip(slopes, difficulties, strict=True)
        ]
    )


def newcomers_to(fit):
    labels = fit.item_labels.tolist()
    return fit.predict({"id": ["new"] * len(labels), "item": labels, "time": [0.0] * len(labels)})


def test_newcomers_to_steep_items_are_integrated_finely():
    """Abilities of sd 1 under slopes of 0.3 to 17: to 1e-4 of a dense sum."""
    items = {"item": [f"i{k}" for k in range(6)], "a": SLOPES, "b": DIFFICULTIES}
    found = newcomers_to(dy.Fit.from_bank(items))
    assert_allclose(found["p1"], exact_chances(SLOPES, DIFFICULTIES), atol=1e-4)


def test_averages_over_uncertain_items_are_integrated_finely_too():
    items = {"item": [f"i{k}" for k in range(6)], "a": SLOPES, "b": DIFFICULTIES}
    fit = dy.Fit.from_bank(items)
    (block,) = fit.bank.blocks
    moved = block.u + np.array([0.1, -0.2])
    unit = fit.bank.ability_scale
    parameters = block.model.constrain(moved, 1 / unit.scale, -unit.location / unit.scale)
    nodes = ItemNodes(np.stack([block.u, moved]), np.tile([[0.3], [0.7]], (1, 6)))
    found = newcomers_to(replace(fit, item_nodes=(nodes,)))
    expected = 0.3 * exact_chances(SLOPES, DIFFICULTIES) + 0.7 * exact_chances(
        parameters["a"], parameters["b"]
    )
    assert_allclose(found["p1"], expected, atol=1e-4)
