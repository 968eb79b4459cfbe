"""Items that join a fit, against a fit of everything."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import in_pandas
from support.simulated import classroom_with_new_items

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("model", ["1PL", "2PL", "GRM", "PCM", "RSM", "poisson"])
def test_new_items_are_near_those_of_a_fit_of_everything(model):
    old, new, both, names = classroom_with_new_items(model)
    # without a cohort: that of the first half of the time, continued, is not that of the whole
    options = {"model": model, "bandwidth": 40.0, "cohort": None}
    first, whole = dy.DynAEsti(**options).fit(old), dy.DynAEsti(**options).fit(both)
    grown = first.update(new, new_items=True)
    mine, theirs = (in_pandas(fit.items).set_index("item").loc[names] for fit in (grown, whole))
    for name in [c for c in mine.columns if c in ("a", "b", "b1", "b2", "intercept")]:
        apart = (
            (mine[name] - theirs[name]) / theirs[f"se_{name}"]
            if f"se_{name}" in theirs
            else mine[name] - theirs[name]
        )
        assert np.abs(apart).max() < 1.5, name
    assert (mine["n"] == theirs["n"]).all()
    known = in_pandas(first.items).set_index("item")
    place = next(name for name in ("b", "b1", "intercept") if name in known)
    assert_allclose(
        in_pandas(grown.items).set_index("item").loc[known.index, place], known[place]
    )  # they stay as they were
    at = [20.0, 90.0]
    ours, truth = grown.ability(at), whole.ability(at)
    assert np.sqrt(np.mean(((ours["mean"] - truth["mean"]) / truth["sd"]) ** 2)) < 0.35


def test_answers_to_new_items_inform_each_other():
    """Strangers who answer nothing else.

    Near a fit of everything, standard errors included; weights count as answers.
    """
    old, new, _, names = classroom_with_new_items(people=300, seed=3)
    new = new[new["item"].isin(names)].assign(id=lambda t: "s" + t["id"])
    fit = dy.DynAEsti("2PL", bandwidth=40.0).fit(old)
    mine, theirs = (
        in_pandas(f.items).set_index("item").loc[names]
        for f in (
            fit.update(new, new_items=True),
            dy.DynAEsti("2PL", bandwidth=40.0).fit(pd.concat([old, new])),
        )
    )
    for name in ("a", "b"):
        assert np.abs((mine[name] - theirs[name]) / theirs[f"se_{name}"]).max() < 0.2
        assert_allclose(mine[f"se_{name}"], theirs[f"se_{name}"], rtol=0.15)
    weighed = dy.DynAEsti("2PL", bandwidth=40.0).fit(old.assign(w=1.0), weight="w")
    once, twice = (
        in_pandas(weighed.update(more, new_items=True).items).set_index("item").loc[names, "a"]
        for more in (new.assign(w=2.0), pd.concat([new, new]).assign(w=1.0))
    )
    assert_allclose(once, twice, rtol=1e-3)
