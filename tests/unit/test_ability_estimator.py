"""DynAEsti: tables, options, parameters and questions that are refused in words."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import classroom


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.rename(columns={"resp": "rsp"}),
            "no column for resp.*did you mean resp='rsp'",
        ),
        (lambda t: t.assign(resp=t["resp"] + 2), "its model takes 0 and 1 only"),
        (lambda t: t.assign(resp="maybe"), "rows hold text where numbers belong .'maybe' in row 0"),
        (lambda t: t.assign(date=np.nan), "rows have no time"),
        (lambda t: t.assign(id=None), "rows have none"),
        (lambda t: t.iloc[:0], "no rows"),
        (lambda t: t.assign(date=0.0), "everybody answered at one instant"),
    ],
)
def test_bad_tables_are_refused_in_words(change, message):
    with pytest.raises(dy.InputError, match=message):
        dy.DynAEsti().fit(change(classroom(5, 3, 4)))


def test_bad_options_and_questions_are_refused_in_words():
    for options, message in (
        ({"scale": "z"}, "scale"),
        ({"direction": "up"}, "direction"),
        ({"priors": "flat"}, "priors"),
        ({"kernel": 3}, "kernel"),
        ({"iterations": 0}, "iterations"),
        ({"orient": "x"}, "orient"),
    ):
        with pytest.raises(dy.InputError, match=message):
            dy.DynAEsti(**options)
    with pytest.raises(dy.InputError, match="no item model '9PL'"):
        dy.DynAEsti("9PL").fit(classroom(5, 3, 4))
    fit = dy.DynAEsti(bandwidth=0.5).fit(classroom(10, 3, 8))
    with pytest.raises(dy.InputError, match="'p01' was never seen; did you mean 'p001'"):
        fit.ability([0.5], ["p01"])
    with pytest.raises(dy.InputError, match="outside their item's categories"):
        fit.score([{"id": "x", "item": "i00", "resp": 5, "date": 0.1}])
    with pytest.raises(dy.InputError, match="item: 'nope' was never seen"):
        fit.predict([{"id": "x", "item": "nope", "date": 0.1}])


@pytest.mark.parametrize(
    ("model", "fixed"),
    [
        ("2PL", {"i00": {"intercept": 0.4}}),
        ("2PL", {"nope": {"a": 1.0}}),
        ("3PL", {"i00": {"c": 1.5}}),
        ("2PL", {"i00": {"q": 1.0}}),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(model, fixed):
    with pytest.raises(dy.InputError, match=r"item parameters|fixed"):
        dy.DynAEsti(model, bandwidth=0.4, fixed=fixed).fit(classroom(10, 3, 8))
