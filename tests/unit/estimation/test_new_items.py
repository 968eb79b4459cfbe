"""Items that join a fit: by request only, in memory and in shards alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import in_pandas
from support.simulated import classroom_with_new_items

pd = pytest.importorskip("pandas")


def test_new_items_join_by_request_only(tmp_path):
    old, new, _, names = classroom_with_new_items()
    fit = dy.DynAEsti("2PL", bandwidth=40.0).fit(old)
    with pytest.raises(dy.InputError, match=r"item: 4 of 20 were never seen.*new_items=True"):
        fit.update(new)
    grown = fit.update(new, new_items=True)
    assert len(fit.items) == 16
    assert_allclose(dy.load(grown.save(tmp_path / "grown.dyn")).items["b"], grown.items["b"])
    again = grown.update(new[new["item"].isin(names)].head(5).assign(date=130.0))  # known by now
    assert len(again.responses) == len(grown.responses) + 5
    assert_allclose(
        fit.update(old.head(3).assign(date=120.0), new_items=True).items["b"], fit.items["b"]
    )  # none are new
    mixed = dy.DynAEsti(
        {**dict.fromkeys(old["item"].unique(), "2PL"), old["item"].iloc[0]: "1PL"}, bandwidth=40.0
    ).fit(old)
    with pytest.raises(dy.InputError, match=r"2 models.*new_items='"):
        mixed.update(new, new_items=True)


def test_new_items_beside_several_models_name_theirs(tmp_path):
    """Those of each model are learned under the priors of the others of that model."""
    old, new, _, names = classroom_with_new_items(people=120)
    known = sorted(old["item"].unique())
    models = {label: "3PL" if k % 2 else "2PL" for k, label in enumerate(known)}
    estimator = dy.DynAEsti(models, bandwidth=40.0)
    fit = estimator.fit(old)
    each = {label: "3PL" if k % 2 else "2PL" for k, label in enumerate(names)}
    grown = fit.update(new, new_items=each)
    found = in_pandas(grown.items).set_index("item")
    assert found.loc[list(each), "model"].to_dict() == each
    assert_allclose(grown.items["b"][: len(known)], fit.items["b"])
    alike = in_pandas(fit.update(new, new_items="2PL").items).set_index("item")
    assert (alike.loc[list(names), "model"] == "2PL").all()
    apart = found.loc[list(names), "b"] - alike.loc[list(names), "b"]
    assert np.abs(apart).max() < 1.0  # the same answers, seen by another model
    shards = dy.prepare(old, tmp_path / "shards", shards=2)
    sharded = estimator.fit(shards, out=tmp_path / "run").update(new, new_items=each)
    ours = in_pandas(sharded.items).set_index("item")
    assert_allclose(ours["b"], found.loc[ours.index, "b"], atol=1e-4)
    assert dy.load(tmp_path / "run").items["model"].tolist() == ours["model"].tolist()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("GRM", "no item of the fit has the model GRM"),
        ("weird", "no item model 'weird'"),
        ({"x": "2PL"}, r"4 of 4 new items have no model"),
        (3, "new_items: expected True, the name of a model"),
    ],
)
def test_models_that_new_items_cannot_have_are_refused(asked, words):
    old, new, _, _ = classroom_with_new_items(people=20)
    fit = dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False).fit(old)
    with pytest.raises(dy.InputError, match=words):
        fit.update(new, new_items=asked)


def test_shards_let_them_in_alike(tmp_path):
    """The same as in memory; a refresh then learns all items again, the new ones among them."""
    old, new, both, _ = classroom_with_new_items(people=120)
    options = {"model": "2PL", "bandwidth": 40.0}
    grown = dy.DynAEsti(**options).fit(old).update(new, new_items=True)
    shards = dy.prepare(old, tmp_path / "shards", shards=3)
    fit = dy.DynAEsti(**options).fit(shards, out=tmp_path / "run")
    with pytest.raises(dy.InputError, match=r"never seen.*new_items=True"):
        fit.update(new)
    fit = fit.update(new, new_items=True)
    for name in ("a", "b", "se_b", "n"):
        assert_allclose(fit.items[name], grown.items[name], rtol=1e-5, atol=1e-5)
    who = list(old["id"].unique()[:5])
    assert_allclose(
        fit.ability([30.0, 90.0], who)["mean"], grown.ability([30.0, 90.0], who)["mean"], atol=1e-5
    )
    fit = dy.refit_items(dy.load(tmp_path / "run"))
    whole = dy.DynAEsti(**options).fit(both)
    ours, truth = (in_pandas(f.items).set_index("item") for f in (fit, whole))
    assert np.abs((ours["b"] - truth["b"]) / truth["se_b"]).max() < 0.1
