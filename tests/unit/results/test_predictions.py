"""Chances of responses."""

import numpy as np
from numpy.testing import assert_allclose

import dynaesti as dy
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
