"""Measurements in any unit give one fit."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import classroom


@pytest.mark.parametrize(
    ("unit", "zero"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1.0, 1e9), (-3.0, 7.0)]
)
def test_measurements_do_not_depend_on_their_unit(unit, zero):
    table = classroom(40, 6, 20, seed=2, model="gaussian")
    plain = dy.DynAEsti("gaussian").fit(table)
    scaled = dy.DynAEsti("gaussian").fit(table.assign(resp=table["resp"] * unit + zero))
    sign = np.sign(unit)
    assert np.abs(sign * scaled.ability()["mean"] - plain.ability()["mean"]).max() < 1e-5
    assert scaled.log_evidence + len(table) * np.log(abs(unit)) == pytest.approx(
        plain.log_evidence, abs=1e-3
    )
    np.testing.assert_allclose(scaled.items["sigma"], abs(unit) * plain.items["sigma"], rtol=1e-5)
    np.testing.assert_allclose(
        scaled.predict(table.assign(resp=table["resp"] * unit + zero))["expected"],
        unit * plain.predict(table)["expected"] + zero,
        rtol=1e-5,
    )
    anchors = scaled.items.head(2)[["item", "a", "b", "sigma"]]
    held = dy.DynAEsti("gaussian", fixed=anchors).fit(
        table.assign(resp=table["resp"] * unit + zero)
    )
    np.testing.assert_allclose(
        held.items[["a", "b", "sigma"]].head(2),
        scaled.items[["a", "b", "sigma"]].head(2),
        rtol=1e-6,
    )
