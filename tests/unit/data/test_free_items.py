"""Freed items: split by a column or at a time, in fits, predictions, updates, files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.cli import main
from dynaesti.errors import InputError
from support.simulated import examinees

FREE = {"i0": "group", "i1": 50.0}
PARTS = ["i0 [a]", "i0 [b]", "i1 [from 50.0]", "i1 [until 50.0]"]


@pytest.fixture(scope="module")
def table():
    return examinees(240, 8, 16, dif=1.5, leak=1.5, impact=0.6)


@pytest.fixture(scope="module")
def fit(table):
    return dy.DynAEsti("2PL", free=FREE).fit(table)


def test_parts_have_parameters_of_their_own(table, fit):
    items = fit.items.set_index("item")
    assert items.index[:4].tolist() == PARTS
    assert items.loc["i0 [a]", "b"] - items.loc["i0 [b]", "b"] == pytest.approx(1.5, abs=0.7)
    gain = items.loc["i1 [until 50.0]", "b"] - items.loc["i1 [from 50.0]", "b"]
    assert gain == pytest.approx(1.5, abs=0.7)
    assert len(items) == 10
    assert items["n"].sum() == len(table)
    plain = dy.DynAEsti("2PL").fit(table)
    assert fit.log_evidence > plain.log_evidence + 10


def test_no_dif_or_drift_is_left(table, fit):
    found = dy.evaluation.drift(fit)
    assert not found["flag"].any()
    others = dy.evaluation.dif(fit, "group")
    assert np.isnan(others["p"][:2]).all()  # one group each
    assert not others["flag"].any()


def test_further_data_are_split_alike(table, fit, tmp_path):
    some = table[table["item"].isin(["i0", "i1"])].head(30)
    found = fit.predict(some)
    assert set(found["item"]) <= set(PARTS)
    again = dy.load(fit.save(tmp_path / "fit.dyn"))
    assert_allclose(again.predict(some)["p1"], found["p1"])
    grown = again.update(some.assign(date=some["date"] + 200))
    assert len(grown.responses) == len(table) + 30
    with pytest.raises(InputError, match="group"):
        fit.predict(some.drop(columns="group"))
    with pytest.raises(InputError, match=r"i0 \[c\]"):
        fit.predict(some.assign(group="c"))


def test_dates_and_refusals(table):
    dated = table.assign(date=np.datetime64("2024-01-01") + table["date"].astype("m8[D]"))
    items = dy.DynAEsti("1PL", free={"i1": "2024-02-20"}).fit(dated).items["item"].tolist()
    assert items[1:3] == ["i1 [from 2024-02-20]", "i1 [until 2024-02-20]"]
    with pytest.raises(InputError, match="free: expected a mapping"):
        dy.DynAEsti(free=["i0"])
    with pytest.raises(InputError, match="no column 'gender'"):
        dy.DynAEsti(free={"i0": "gender"}).fit(table)
    with pytest.raises(InputError, match="as numbers"):
        dy.DynAEsti(free={"i0": "age"}, effects="log(age)").fit(table.assign(age=3))


def test_unknown_items_are_refused(table):
    with pytest.raises(InputError, match="free: 'i99' was never seen"):
        dy.DynAEsti(free={"i99": "group"}).fit(table)


def test_command_line(table, tmp_path, capsys):
    table.to_csv(tmp_path / "answers.csv", index=False)
    run = str(tmp_path / "run")
    flags = ["--out", run, "--free", "i0=group", "--free", "i1=50", "--quiet", "--no-report"]
    assert main(["fit", str(tmp_path / "answers.csv"), *flags, "--no-static"]) == 0
    capsys.readouterr()
    assert main(["items", run]) == 0
    assert "i0 [a]" in capsys.readouterr().out


def test_models_of_items_hold_for_their_parts():
    table = dy.simulate.responses(people=40, items=5, per_person=15, seed=1).table
    models = {f"i{k}": "GRM" if k == 3 else "2PL" for k in range(5)}
    fit = dy.DynAEsti(models, free={"i3": 50.0}).fit(table)
    found = dict(zip(fit.items["item"], fit.items["model"], strict=True))
    assert found["i3 [from 50.0]"] == found["i3 [until 50.0]"] == "GRM"
    assert found["i1"] == "2PL"
