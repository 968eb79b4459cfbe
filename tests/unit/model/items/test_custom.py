"""Item models of the user."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.errors import InputError
from dynaesti.model.items.custom import CustomItemModel
from dynaesti.model.items.registry import item_model
from support.simulated import classroom


def test_an_own_model_equals_the_built_in_one():
    table = classroom(40, 5, 20)
    own = dy.CustomItemModel(
        lambda theta, resp, p: -np.logaddexp(0.0, -(2 * resp - 1) * p[0] * (theta - p[1])),
        {"a": (1.0, 0.0, np.inf), "b": (0.0, -np.inf, np.inf)},
        "mine",
    )
    mine = dy.DynAEsti(own, bandwidth=0.4, priors=None).fit(table)
    built_in = dy.DynAEsti("2PL", bandwidth=0.4, priors=None).fit(table)
    assert_allclose(mine.log_evidence, built_in.log_evidence, atol=1e-2)
    assert_allclose(mine.items["b"], built_in.items["b"], atol=0.05)


def test_an_own_model_is_checked():
    with pytest.raises(InputError, match="start, lower, upper"):
        CustomItemModel(lambda theta, resp, params: theta, {"a": (1.0, 2.0, 3.0)})
    with pytest.raises(InputError, match="no item model '5PL'"):
        item_model("5PL")
