"""Which way the scale and the items run."""

from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom


def test_items_that_run_backwards():
    table = classroom(80, 10, 30)
    flip = table["item"].isin(["i01", "i04", "i07"])
    table.loc[flip, "resp"] = 1 - table.loc[flip, "resp"]
    fit = dy.DynAEsti(direction="free", bandwidth=0.4).fit(table)
    slopes = fit.items.set_index("item")["a"]
    assert (slopes[["i01", "i04", "i07"]] < 0).all()
    assert (slopes.drop(["i01", "i04", "i07"]) > 0).all()
    turned = dy.DynAEsti(direction="free", bandwidth=0.4, orient={"item": "i01"}).fit(table)
    assert_allclose(turned.items["a"], -fit.items["a"], atol=1e-9)
    assert_allclose(turned.ability([0.5])["mean"], -fit.ability([0.5])["mean"], atol=1e-9)
    assert "run against the rest" in str(dy.DynAEsti(bandwidth=0.4).fit(table).health)
