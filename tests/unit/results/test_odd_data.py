"""What a new user's odd data do to tests of items, curves with effects and diagnostics."""

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.cli import main
from dynaesti.errors import InputError

E = dy.evaluation


@pytest.fixture(scope="module")
def table():
    drawn = pd.DataFrame(dy.simulate.responses(120, 6, 12, seed=5).table)
    return drawn.assign(g=np.array(list("ABC"))[drawn["id"].str[1:].astype(int) % 3])


@pytest.fixture(scope="module")
def fit(table):
    return dy.DynAEsti("2PL").fit(table)


def test_groups_that_did_not_meet_an_item_are_not_compared(table):
    for absent, lost in (("C", [False, True]), ("A", [True, True])):
        some = table[~((table["item"] == "i0") & (table["g"] == absent))]
        found = E.dif(dy.DynAEsti("2PL").fit(some), "g", some)
        assert np.isnan(found["effect"][:2]).tolist() == lost
        assert np.isfinite(found["p"]).all()
        assert np.isfinite(found["effect"][2:]).all()


def test_blanks_are_no_reference_and_no_disagreement(table, fit):
    person = table["id"].str[1:].astype(int)
    missing = E.dif(fit, "g", table.assign(g=table["g"].where(person % 5 > 0)))
    assert list(missing["group"][:3]) == ["B", "C", "(none)"]
    here_and_there = table.assign(g=table["g"].where(np.arange(len(table)) % 7 > 0))
    assert list(E.dif(fit, "g", here_and_there)["group"][:2]) == ["B", "C"]
    with pytest.raises(InputError, match="has 120 groups"):
        E.dif(fit, "id", table)


def test_drawn_measurements_are_in_their_own_unit(table):
    rng = np.random.default_rng(0)
    measured = table.assign(resp=10 + 3 * table["resp"] + rng.normal(size=len(table)))
    found = E.predictive_check(dy.DynAEsti("gaussian").fit(measured), draws=10)
    assert found["mean"][0] == pytest.approx(found["observed"][0], abs=0.2)


def test_drawn_answers_see_effects(table):
    rng = np.random.default_rng(1)
    x = (table.groupby("id").cumcount() >= 8).astype(float)
    ability = rng.normal(size=120)[table["id"].str[1:].astype(int)]
    resp = (rng.random(len(table)) < 1 / (1 + np.exp(-ability - 2.5 * x))).astype(int)
    fit = dy.DynAEsti("2PL", effects="x").fit(table.assign(x=x, resp=resp))
    found = E.predictive_check(fit, draws=20).set_index("statistic")
    assert 0.01 < found.loc["last third of answers", "p"] < 0.99


def test_sparse_data_and_wrong_arguments_are_told(fit):
    assert len(E.q3(fit, least=10**6)) == 0
    for call, words in (
        (lambda: E.q3(fit, level=7), "level"),
        (lambda: E.quantile_residuals(fit, seed=-1), "seed"),
        (lambda: E.imv_ordered([], [], []), "a row for each answer"),
        (lambda: E.imv_ordered([[0.5, 0.5]], [[0.5, 0.5]], [5]), "from 0 to 1"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_curves_say_what_they_cannot_learn():
    emissions = dy.Gaussian([1.0, 2.0, 3.0], 0.1)
    for options, columns, words in (
        ({"noise": True, "solver": "statespace"}, None, "knows neither effects nor noise"),
        ({"effects": "x"}, {"x": [1, 1, 1]}, "x has one value only"),
        ({"effects": "random(h)"}, {"h": ["a", "a", "a"]}, "has one value only"),
        ({"effects": "x"}, {"x": [1.0, np.nan, 2.0]}, "Every emission needs a value"),
    ):
        with pytest.raises(InputError, match=words):
            dy.CurvFiFE(bandwidth=2.0, **options).fit([0, 1, 2], emissions, columns)


def test_freed_items_live_in_files_and_in_live_answers(table, tmp_path):
    dated = table.assign(date=pd.Timestamp("2024-01-01") + pd.to_timedelta(table["date"], unit="D"))
    made = dy.DynAEsti("2PL", free={"i3": pd.Timestamp("2024-02-20"), "i0": "g"}).fit(dated)
    fit = dy.load(made.save(tmp_path / "fit.dyn"))
    assert "i3 [from 2024-02-20]" in fit.items["item"].tolist()
    person = fit.live("p000")
    after = person.add("2024-05-01", "i3", 1).add("2024-05-02", "i0", 1, g="A")
    at = ["2024-05-03"]
    assert after.ability(at)["mean"][0] > person.ability(at)["mean"][0]
    with pytest.raises(InputError, match="is split by 'g'"):
        person.add("2024-05-02", "i0", 1)
    with pytest.raises(InputError, match="does not split it"):
        dy.DynAEsti("2PL", free={"i3": 5000.0}).fit(table)


def test_answers_to_freed_items_are_known_again(table, tmp_path, capsys):
    file, run = str(tmp_path / "answers.csv"), str(tmp_path / "run")
    table.to_csv(file, index=False)
    flags = ["--out", run, "--quiet", "--no-report", "--no-static"]
    assert main(["fit", file, "--free", "i0=g", "--free", "i1=50", *flags]) == 0
    assert main(["update", run, file]) == 0
    told = capsys.readouterr()
    assert "Added 0 answers" in told.out
    assert "are in the fit already" in told.err
    assert main(["fit", file, "--free", "i0=g", "--free", "i0=50", *flags, "--force"]) == 3
    assert "split twice" in capsys.readouterr().err
