"""Intervals of item parameters, in both metrics."""

import numpy as np
import pytest
from scipy.stats import norm

import dynaesti as dy
from support.simulated import classroom


@pytest.fixture(scope="module")
def fit():
    return dy.DynAEsti("3PL", bandwidth=np.inf).fit(classroom(200, 6, 20))


def table_of(fit, level=0.95):
    found = fit.item_intervals(level)
    return found.set_index(["item", "parameter"])


def test_difficulties_and_intercepts_are_symmetric(fit):
    found = table_of(fit, 0.9)
    z = norm.ppf(0.95)
    for row in fit.items.itertuples():
        for name in ("b", "intercept"):
            told = found.loc[(row.item, name)]
            estimate, se = getattr(row, name), getattr(row, f"se_{name}")
            np.testing.assert_allclose(
                [told.estimate, told.lower, told.upper],
                [estimate, estimate - z * se, estimate + z * se],
            )


def test_no_interval_leaves_what_is_possible(fit):
    found = table_of(fit, 0.999).reset_index()
    slopes, guesses = (found[found.parameter == name] for name in ("a", "c"))
    assert (slopes.lower > 0).all()
    assert ((guesses.lower > 0) & (guesses.upper < 1)).all()
    assert ((found.lower <= found.estimate) & (found.estimate <= found.upper)).all()


def test_near_the_estimate_all_agree_with_the_delta_method(fit):
    found = table_of(fit, 0.01)
    half = (found.upper - found.lower) / 2
    np.testing.assert_allclose(half, norm.ppf(0.505) * found.se, rtol=1e-3)


def test_models_of_several_kinds_leave_out_what_an_item_has_not():
    table = classroom(60, 4, 20)
    models = {"i00": "1PL", "i01": "1PL", "i02": "3PL", "i03": "3PL"}
    found = dy.DynAEsti(models, bandwidth=np.inf).fit(table).item_intervals()
    assert not ((found["item"] == "i00") & (found["parameter"] == "c")).any()
    assert np.isfinite(found["estimate"]).all()


def test_without_standard_errors_there_are_none():
    fit = dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False).fit(classroom(20, 4, 10))
    with pytest.raises(dy.InputError, match="standard_errors=True"):
        fit.item_intervals()
