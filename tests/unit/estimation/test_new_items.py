"""Items that join a fit: against a fit of everything, in memory and in shards."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.cli.dispatch import main
from support.simulated import classroom_with_new_items

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("model", ["1PL", "2PL", "GRM", "PCM", "RSM", "poisson"])
def test_new_items_are_near_those_of_a_fit_of_everything(model):
    old, new, both, names = classroom_with_new_items(model)
    options = {"model": model, "bandwidth": 40.0}
    first, whole = dy.DynAEsti(**options).fit(old), dy.DynAEsti(**options).fit(both)
    grown = first.update(new, new_items=True)
    mine, theirs = (fit.items.set_index("item").loc[names] for fit in (grown, whole))
    for name in [c for c in mine.columns if c in ("a", "b", "b1", "b2", "intercept")]:
        apart = (
            (mine[name] - theirs[name]) / theirs[f"se_{name}"]
            if f"se_{name}" in theirs
            else mine[name] - theirs[name]
        )
        assert np.abs(apart).max() < 1.5, name
    assert (mine["n"] == theirs["n"]).all()
    known = first.items.set_index("item")
    place = next(name for name in ("b", "b1", "intercept") if name in known)
    assert_allclose(
        grown.items.set_index("item").loc[known.index, place], known[place]
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
        f.items.set_index("item").loc[names]
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
        weighed.update(more, new_items=True).items.set_index("item").loc[names, "a"]
        for more in (new.assign(w=2.0), pd.concat([new, new]).assign(w=1.0))
    )
    assert_allclose(once, twice, rtol=1e-3)


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
    with pytest.raises(dy.InputError, match="2 models"):
        mixed.update(new, new_items=True)


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
    ours, truth = (pd.DataFrame(f.items).set_index("item") for f in (fit, whole))
    assert np.abs((ours["b"] - truth["b"]) / truth["se_b"]).max() < 0.1


def test_the_command_line_lets_them_in(tmp_path, capsys):
    old, new, _, _ = classroom_with_new_items(people=60)
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    run = str(tmp_path / "run")
    assert (
        main(
            [
                "fit",
                str(tmp_path / "old.csv"),
                "--out",
                run,
                "--quiet",
                "--no-report",
                "--bandwidth",
                "40",
            ]
        )
        == 0
    )
    assert main(["update", run, str(tmp_path / "new.csv")]) != 0
    assert "--new-items" in capsys.readouterr().err
    assert main(["update", run, str(tmp_path / "new.csv"), "--new-items"]) == 0
    told = capsys.readouterr()
    assert "4 items joined them" in told.out + told.err
