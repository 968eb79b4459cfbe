"""DIF and drift as a user asks for them: tables, columns from elsewhere, refusals, shards."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

import dynaesti as dy
from dynaesti.cli import main
from dynaesti.errors import InputError, ResponseError
from support.simulated import examinees


@pytest.fixture(scope="module")
def odd():
    """Answers in which the first item is 1.5 easier for group b, the second after half time."""
    return examinees(people=240, items=8, per_person=16, dif=1.5, leak=1.5, impact=0.6)


@pytest.fixture(scope="module")
def fit(odd):
    return dy.DynAEsti("2PL").fit(odd)


@pytest.fixture(scope="module")
def people(odd):
    return odd[["id", "group"]].drop_duplicates()


def test_dif_is_found_with_and_without_groups_in_the_fit(odd, fit, people):
    grouped = dy.DynAEsti("2PL", groups="group").fit(odd)
    for found in (dy.evaluation.dif(fit, "group", people), dy.evaluation.dif(grouped, "group")):
        assert list(found["flag"]) == [True] + [False] * 7
        assert found["effect"][0] == pytest.approx(1.5, abs=1.2)
        assert found["size"][0] == "C"
        assert (found["group"] == "b").all()
        assert (found["reference"] == "a").all()
        assert (found["lower"] < found["effect"]).all()
        assert (found["n"] <= np.asarray(fit.items["n"])).all()


def test_drift_is_found(fit):
    found = dy.evaluation.drift(fit)
    assert list(found["flag"]) == [False, True] + [False] * 6
    assert found["easier"][1] == pytest.approx(1.2, abs=0.6)  # one step from 0 falls short
    by_time = dy.evaluation.drift_map(fit, most=3)
    assert by_time["item"][0] == "i1"
    first = by_time[by_time["item"] == "i1"]["easier"].to_numpy()
    assert first[-1] - first[0] > 0.5
    assert len(by_time) == 3 * 60


def test_flagged_items_are_tested_by_likelihood_ratios():
    """Against the evidence of fits with and without the item's effect."""
    table = examinees(people=400, items=10, per_person=20, dif=1.2, seed=4)
    fit = dy.DynAEsti("2PL", effects="C(group)").fit(table)
    found = dy.evaluation.dif(fit, "group")
    assert list(found["flag"]) == [True] + [False] * 9
    table["odd"] = ((table["item"] == "i0") & (table["group"] == "b")) * 1.0
    freed = dy.DynAEsti("2PL", effects="C(group) + odd").fit(table)
    ratio = 2 * (freed.log_evidence - fit.log_evidence)
    assert chi2.isf(found["p"][0], 1) == pytest.approx(ratio, rel=0.15)
    wald = (found["effect"][0] / found["se"][0]) ** 2
    assert abs(chi2.isf(found["p"][0], 1) - ratio) < abs(wald - ratio)


def test_flagged_items_do_not_accuse_the_others():
    """With a third of the items easier for one group, the rest would seem harder for it."""
    table = examinees(people=600, items=9, per_person=27, dif=1.0, odd_items=3, seed=2)
    fit = dy.DynAEsti("2PL", groups="group").fit(table)
    crude = dy.evaluation.dif(fit, "group", purify=False)
    pure = dy.evaluation.dif(fit, "group")
    assert crude["flag"].sum() > 4
    assert list(pure["flag"]) == [True] * 3 + [False] * 6
    assert np.abs(pure["effect"][3:]).mean() < 0.5 * np.abs(crude["effect"][3:]).mean()


def test_slopes_are_tested_too():
    table = examinees(people=600, items=6, per_person=24, slope=1.2, seed=3)
    fit = dy.DynAEsti("2PL", groups="group").fit(table)
    found = dy.evaluation.dif(fit, "group", slopes=True)
    assert found["flag"][0]
    assert found["slope"][0] > 3 * found["se_slope"][0]
    assert found["flag"][1:].sum() == 0


def test_columns_of_effects_and_of_numbers(odd):
    table = odd.assign(age=[20 + int(name[1:]) % 40 for name in odd["id"]])
    fit = dy.DynAEsti("2PL", effects="age + C(group)").fit(table)
    by_group = dy.evaluation.dif(fit, "group")
    assert by_group["flag"][0]
    by_age = dy.evaluation.dif(fit, "age")
    assert "group" not in by_age.columns
    assert by_age["flag"][1:].sum() == 0
    assert np.abs(by_age["effect"]).max() < 0.1  # of a year


def test_three_groups_and_missing_ones(odd, fit, people):
    three = people.assign(group=[None, "x", "y", "z"] * 60)
    found = dy.evaluation.dif(fit, "group", three)
    assert len(found) == 8 * 3
    assert set(found["group"]) == {"y", "z", "(none)"}
    assert (found["reference"] == "x").all()
    by_item = found.groupby("item")["p"].nunique()
    assert (by_item == 1).all()


def test_what_cannot_be_tested_says_why(odd, fit, people):
    with pytest.raises(InputError, match=r"by: the fit does not have the column 'gender'"):
        dy.evaluation.dif(fit, "gender")
    with pytest.raises(ResponseError, match="have several values"):
        dy.evaluation.dif(fit, "item", odd)
    with pytest.raises(InputError, match="one value only"):
        dy.evaluation.dif(fit, "group", people.assign(group="a"))
    with pytest.raises(InputError, match="none of the 240 people"):
        dy.evaluation.dif(fit, "group", people.assign(id="somebody"))
    with pytest.raises(InputError, match=r"by: no column 'gender'"):
        dy.evaluation.dif(fit, "gender", people)
    with pytest.raises(InputError, match="executor"):
        dy.evaluation.drift(fit, executor=dy.DaskExecutor)
    once = odd.drop_duplicates(["id", "item", "resp"]).assign(date=1.0)
    static = dy.DynAEsti("2PL", bandwidth=np.inf).fit(once)
    with pytest.raises(InputError, match="drift: all answers are at one time"):
        dy.evaluation.drift(static)


def test_dates_are_those_of_the_items_own_answers(odd):
    early = odd["item"].isin(["i6", "i7"])
    table = odd[~early | (odd["date"] < 50.0)]
    found = dy.evaluation.drift(dy.DynAEsti("2PL").fit(table))
    first = found["first"].to_numpy()
    last = found["last"].to_numpy()
    assert (last[6:] <= 52).all()
    assert (last[:6] > 95).all()
    assert np.isfinite(first).all()


def test_shards_give_what_memory_gives(odd, tmp_path):
    shards = dy.prepare(odd, tmp_path / "shards", shards=3, group="group")
    sharded = dy.DynAEsti("2PL", groups="group").fit(shards)
    memory = dy.DynAEsti("2PL", groups="group").fit(odd)
    tests = (
        lambda f: dy.evaluation.dif(f, "group", slopes=True, purify=False),
        lambda f: dy.evaluation.drift(f, purify=False),
    )
    for test in tests:
        ours, theirs = test(sharded), test(memory)
        for name in ours.columns:
            if ours[name].dtype.kind == "f":
                assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)
            else:
                assert list(ours[name]) == list(theirs[name])
    with pytest.raises(InputError, match="fits of shards are tested by their groups"):
        dy.evaluation.dif(sharded, "gender")


@pytest.mark.parametrize("model", ["GRM", "poisson", "gaussian"])
def test_all_kinds_of_items(model):
    table = examinees(people=150, items=5, per_person=15, seed=5)
    rng = np.random.default_rng(0)
    table["resp"] = {
        "GRM": table["resp"] + rng.integers(0, 3, len(table)),
        "poisson": rng.poisson(1.0 + 2.0 * table["resp"]),
        "gaussian": table["resp"] + rng.normal(size=len(table)),
    }[model]
    fit = dy.DynAEsti(model).fit(table)
    for found in (dy.evaluation.dif(fit, "group", table), dy.evaluation.drift(fit)):
        assert np.isfinite(found["p"]).all()
        assert found["flag"].sum() <= 1


def test_figures_are_drawn(fit, people):
    import matplotlib.pyplot as plt

    drawn = fit.plot.dif("group", people)
    assert next(label.get_text() for label in drawn.get_yticklabels()) == "i0"
    assert "b" in drawn.get_xlabel()
    by_time = fit.plot.drift(most=4)
    assert len(by_time.get_yticklabels()) == 4
    plt.close("all")


def test_command_line(odd, people, tmp_path, capsys):
    odd.to_csv(tmp_path / "answers.csv", index=False)
    people.to_csv(tmp_path / "people.csv", index=False)
    run = str(tmp_path / "run")
    flags = ["--out", run, "--quiet", "--no-static", "--no-report"]
    assert main(["fit", str(tmp_path / "answers.csv"), *flags]) == 0
    capsys.readouterr()
    figure, out = tmp_path / "dif.png", tmp_path / "dif.csv"
    by = ["--by", "group", "--data", str(tmp_path / "people.csv")]
    assert main(["dif", run, *by, "--figure", str(figure), "--out", str(out)]) == 0
    assert figure.stat().st_size > 5000
    assert pd.read_csv(out)["item"][0] == "i0"
    capsys.readouterr()
    assert main(["drift", run]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("i1,")
    assert main(["dif", run, "--by", "group"]) == 3
    said = capsys.readouterr().err
    assert "--data answers.csv" in said
    assert "--groups group" in said
