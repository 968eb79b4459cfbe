"""Anchors are held, whatever their labels and their scale."""

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy


@pytest.mark.parametrize("option", ["fixed", "start"])
def test_anchors_are_known_by_their_written_form(small, option):
    table = small.assign(item=[int(name[1]) for name in small["item"]])
    given = [{key: {"a": 2.0, "b": 1.0}} for key in (0, "0", 0.0)]
    given.append(pd.DataFrame({"item": ["0"], "a": [2.0], "b": [1.0]}))
    found = [
        dy.DynAEsti(**{option: one}, iterations=3, standard_errors=False).fit(table).items
        for one in given
    ]
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other)
    if option == "fixed":
        assert found[0].loc[0, ["a", "b"]].tolist() == [2.0, 1.0]


def test_rasch_anchors_come_with_their_slope(drawn):
    fit = dy.DynAEsti("1PL", bandwidth=np.inf).fit(drawn.table)
    again = dy.DynAEsti("1PL", bandwidth=np.inf, fixed=fit.items).fit(drawn.table)
    np.testing.assert_allclose(again.ability()["mean"], fit.ability()["mean"], atol=0.02)
    with pytest.raises(dy.InputError, match="slope in common"):
        dy.DynAEsti("1PL", fixed={f"i{k:02d}": {"b": 400.0 + 30 * k} for k in range(5)}).fit(
            drawn.table
        )


def test_given_parameters_stay_as_they_are(small):
    assert dy.DynAEsti(fixed={"i0": {"a": 1.0, "b": 35.0}}).fit(small).items.loc[
        0, ["a", "b"]
    ].tolist() == [1.0, 35.0]
    bare = dy.DynAEsti("3PL", fixed={"i0": {"a": 1.0, "b": 0.0, "c": 0.0}}).fit(small).items.loc[0]
    assert bare["c"] < 1e-8
    twice = pd.DataFrame({"item": ["i0", "i0"], "a": [1, 2], "b": [0, 0]})
    for bad in (
        {"i0": {"a": "x"}},
        {"i0": {"a": None}},
        {"i0": {"a": np.nan}},
        twice,
        {"i0": {"a": 1e6, "b": 0.0}, "i1": {"a": 1e-3, "b": 0.0}},
    ):
        with pytest.raises(dy.InputError):
            dy.DynAEsti(fixed=bad).fit(small)


def test_one_person_with_a_known_bank_has_a_band(drawn):
    table, items = pd.DataFrame(drawn.table), pd.DataFrame(drawn.items)[["item", "a", "b"]]
    one = table[table["id"] == table["id"][0]]
    bank = items[items["item"].isin(one["item"])]
    assert dy.DynAEsti(fixed=bank).fit(one).ability()["sd"].min() > 0.2
    stated = dy.DynAEsti(fixed=bank, population=(0.0, 1.0)).fit(one)
    assert (stated.shift, stated.gain) == pytest.approx((0.0, 1.0))
    # items and population known: nothing is learned, so others do not matter
    whole = dy.DynAEsti(fixed=items, population=(0.0, 1.0), kernel=stated.kernels[0]).fit(table)
    alone = dy.DynAEsti(fixed=bank, population=(0.0, 1.0), kernel=stated.kernels[0]).fit(one)
    np.testing.assert_allclose(
        alone.ability()["mean"], whole.ability(ids=[one["id"].iloc[0]])["mean"], atol=1e-5
    )
    with pytest.raises(dy.InputError, match="anchored items"):
        dy.DynAEsti(population=(0.0, 1.0)).fit(table)
