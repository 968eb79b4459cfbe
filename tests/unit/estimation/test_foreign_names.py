"""Item parameters under the names of other packages."""

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.estimation.foreign_names import own_names
from support.simulated import classroom


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["a1", "d", "g", "u"], ["a", "intercept", "c", "d"]),
        (["a1", "d1", "d2"], ["a", "intercept1", "intercept2"]),
        (["Discrimination", "Difficulty", "Guessing"], ["a", "b", "c"]),
        (["slope", "threshold_1", "threshold_2"], ["a", "b1", "b2"]),
        (["Dscrmn", "Dffclt", "Gussng"], ["a", "b", "c"]),
        (["Dscrmn", "Extrmt1"], ["a", "b1"]),
        (["a", "b", "c", "d"], ["a", "b", "c", "d"]),
        (["alpha1", "delta1"], ["alpha1", "delta1"]),
        (["difficulty", "content"], ["b", "content"]),
    ],
)
def test_names_are_read_as_a_set(theirs, ours):
    assert list(own_names(theirs).values()) == ours


def test_an_anchored_fit_is_the_same_under_any_names():
    table = classroom(40, 6, 20)
    bank = pd.DataFrame(
        {
            "item": [f"i{k:02d}" for k in range(6)],
            "a": np.linspace(0.8, 1.5, 6),
            "b": np.linspace(-1, 1, 6),
        }
    )
    mirt = pd.DataFrame({"item": bank["item"], "a1": bank["a"], "d": -bank["a"] * bank["b"]})
    words = bank.rename(columns={"a": "discrimination", "b": "difficulty"})
    one, *others = (
        dy.DynAEsti("2PL", bandwidth=np.inf, fixed=given).fit(table)
        for given in (bank, mirt, words, words.set_index("item").T.to_dict())
    )
    for other in others:
        np.testing.assert_allclose(other.items["b"], one.items["b"], atol=1e-9)
        assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)
