"""A person whose answers come one by one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom


@pytest.mark.parametrize(
    "kernel",
    [
        dy.RBF(),
        dy.Matern32(),
        0.3 * dy.Level() + 0.7 * dy.RBF(),
        dy.Level(amplitude="learn") + dy.Matern32(),
        dy.RBF(np.inf),
    ],
)
def test_answers_one_by_one_converge_as_grafting_does(monkeypatch, kernel):
    """Rank-one steps and derivatives against integrating every site in every sweep.

    Steep items with guessing, so that both work.
    """
    table = classroom(30, 8, 60)
    fit = dy.DynAEsti(
        "3PL",
        kernel=kernel,
        iterations=3,
        fixed={f"i{k:02d}": {"a": 4.0, "c": 0.3} for k in range(8)},
    ).fit(table)
    rng = np.random.default_rng(0)
    more = [
        (float(t), f"i{rng.integers(8):02d}", float(rng.integers(2)))
        for t in rng.uniform(0.2, 1.1, 12)
    ]

    def played():
        live = fit.live("p003")
        for answer in more:
            live = live.add(*answer)
        return live

    quick = played()
    for name in ("update_low_rank", "update_level_matern32"):
        monkeypatch.setattr(f"dynaesti.inference.online.curve.{name}", lambda *_: (False, 0.0))
    slow = played()
    assert_allclose(
        quick.marginals([0.1, 0.6, 1.1]).means, slow.marginals([0.1, 0.6, 1.1]).means, atol=2e-6
    )
    assert_allclose(
        quick.marginals([0.1, 0.6, 1.1]).sds, slow.marginals([0.1, 0.6, 1.1]).sds, rtol=3e-6
    )
    assert_allclose(quick.weights, slow.weights, atol=2e-6)


def test_live_updates_equal_scoring():
    """Answers that come one by one give the curve of all of them together."""
    table = classroom(60, 6, 40)
    late = (table["id"] == "p002") & (table["date"] > 0.9)
    fit = dy.DynAEsti().fit(table[~late])
    live = fit.live("p002")
    for row in table[late].sort_values("date").itertuples():
        live = live.add(row.date, row.item, row.resp)
    at = [0.3, 0.7, 0.95]
    whole = fit.score(table[table["id"] == "p002"], at=at)
    mix = live.marginals(at)
    assert_allclose((mix.weights * mix.means).sum(axis=0), whole["mean"], atol=2e-6)
    again = live.add(0.95, "i00", 1.0).add(
        0.95, "i01", 0.0
    )  # two at one instant, one of them asked before
    both = pd.concat(
        [
            table[table["id"] == "p002"],
            pd.DataFrame({"id": "p002", "item": ["i00", "i01"], "resp": [1.0, 0.0], "date": 0.95}),
        ]
    )
    assert_allclose(again.ability(at)["mean"], fit.score(both, at=at)["mean"], atol=2e-6)
    assert_allclose(again.ability(at)["sd"], fit.score(both, at=at)["sd"], rtol=1e-5)
    with pytest.raises(dy.InputError, match="outside the item's categories"):
        live.add(1.0, "i00", 4.0)


@pytest.mark.nojit
@pytest.mark.parametrize(
    "kernel",
    [dy.RBF(0.4), dy.Level(amplitude=0.6) + dy.Matern32(0.4, amplitude=0.8), dy.RBF(np.inf)],
)
def test_live_updates_stay_within_their_arrays(kernel):
    """A compiled loop would write beyond an array of another shape without a word.

    So once without the compiler.
    """
    table = classroom(4, 4, 8)
    fit = dy.DynAEsti("2PL", kernel=kernel, iterations=2, standard_errors=False).fit(table)
    live = fit.live("p001").add(1.1, "i00", 1.0)
    more = {"id": ["p001"], "item": ["i00"], "resp": [1.0], "date": [1.1]}
    assert_allclose(
        live.ability([0.5, 1.2])["mean"],
        fit.update(more).ability([0.5, 1.2], ["p001"])["mean"],
        atol=1e-5,
    )
