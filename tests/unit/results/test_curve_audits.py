"""Audits of everyone's curve, beside those of single curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import in_pandas

STEEP = {f"i{k}": {"a": 8.0, "b": 1.5, "c": 0.5} for k in range(4)}  # two humps: guessed, or known


@pytest.fixture(scope="module")
def steep_fit():
    """People who answer steep items with guessing: five have a posterior with two humps."""
    rows = [
        {"id": f"p{p}", "item": f"i{k}", "resp": int(p < 5 or k % 2), "date": 10.0 * k}
        for p in range(10)
        for k in range(4)
    ]
    model = dy.DynAEsti("3PL", fixed=STEEP, population=(0.0, 1.0), bandwidth=100.0)
    return model.fit({name: [row[name] for row in rows] for name in rows[0]})


@pytest.mark.filterwarnings("ignore::dynaesti.errors.DynaestiWarning")
def test_unsafe_curves_are_found_and_counted(steep_fit):
    with pytest.warns(dy.errors.HealthWarning, match="of 10 curves is unlike the Gaussian"):
        found = dy.evaluation.audit(steep_fit)
    unsafe = found["verdict"] != "safe"
    assert unsafe.any()
    assert unsafe.tolist() == sorted(unsafe.tolist(), reverse=True)  # the worst first
    assert set(found["n"]) == {4}
    for row in found[unsafe].rows():
        single = steep_fit.curve(row["id"]).audit()
        assert row["verdict"] == str(single.outcome)
        assert_allclose((row["mean_error"], row["sd_error"]), single.off, rtol=1e-12)


def test_safe_curves_need_no_word(recwarn):
    table = dy.simulate.responses(people=15, items=6, per_person=20, seed=3).table
    fit = dy.DynAEsti("2PL", bandwidth=30.0, standard_errors=False).fit(table)
    recwarn.clear()
    found = dy.evaluation.audit(fit, draws=2000)
    assert (found["verdict"] == "safe").all()
    assert not [one for one in recwarn if "unlike" in str(one.message)]
    again = dy.evaluation.audit(fit, ["p03", "p01"], draws=2000)
    assert sorted(again["id"]) == ["p01", "p03"]
    whole = in_pandas(found).set_index("id")["mean_error"]
    assert_allclose(again["mean_error"], whole[again["id"]])


def test_wrong_questions_are_refused():
    table = dy.simulate.responses(people=6, items=4, per_person=6, seed=3).table
    fit = dy.DynAEsti("1PL", bandwidth=np.inf, standard_errors=False).fit(table)
    with pytest.raises(dy.errors.InputError, match="ids"):
        dy.evaluation.audit(fit, "nobody")
    with pytest.raises(dy.errors.InputError, match="draws"):
        dy.evaluation.audit(fit, draws=10)


@pytest.mark.filterwarnings("ignore::dynaesti.errors.DynaestiWarning")
def test_shards_are_audited_alike(tmp_path):
    table = dy.simulate.responses(people=8, items=4, per_person=8, seed=5).table
    model = dy.DynAEsti("2PL", bandwidth=30.0, cohort=None, standard_errors=False)
    memory = in_pandas(dy.evaluation.audit(model.fit(table), draws=400)).set_index("id")
    shards = dy.prepare(table, str(tmp_path / "shards"), shards=3)
    found = in_pandas(dy.evaluation.audit(model.fit(shards), draws=400)).set_index("id")
    assert_allclose(found["mean_error"][memory.index], memory["mean_error"], atol=1e-4)
