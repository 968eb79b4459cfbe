"""What Python users expect: one call, options to set and clone, notebooks, ArviZ's groups."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

import dynaesti as dy
from dynaesti.estimation import ProgressLine

STATIC = {"bandwidth": np.inf, "standard_errors": False}


def test_one_call_fits_with_the_model_that_the_responses_ask_for(small):
    fit = dy.fit(small, **STATIC)
    assert fit.log_evidence == dy.DynAEsti("2PL", **STATIC).fit(small).log_evidence
    renamed = small.rename(columns={"resp": "mark"}).assign(mark=small["resp"] + 1)
    assert dy.fit(renamed, resp="mark", **STATIC).model_names() == "GRM"
    assert dy.fit(small, model="1PL", **STATIC).model_names() == "1PL"
    with pytest.raises(dy.InputError, match=r"resp: .* name a model"):
        dy.fit(small.assign(resp=small["date"]), **STATIC)
    with pytest.raises(dy.InputError, match="bandwith: no such option; those of DynAEsti are"):
        dy.fit(small, bandwith=3)


def test_shards_are_fitted_in_one_call_too(small, tmp_path):
    shards = dy.prepare(small, tmp_path / "shards", shards=2)
    fit = dy.fit(shards, out=tmp_path / "run", **STATIC)
    assert fit.model_names() == "2PL"
    assert "<table>" in fit._repr_html_()


def test_validate_finds_what_the_verb_finds(small):
    twice = pd.concat([small, small])
    found = dy.validate(twice)
    assert found.needs_attention
    assert found.report.duplicates == 300
    assert str(found).endswith("Usable; the points above need attention.")
    assert repr(found) == str(found)
    assert "<p>600 answers" in found._repr_html_()
    timeless = dy.validate(small.drop(columns="date"))
    assert timeless.timeless
    assert "only constant abilities" in str(timeless)
    assert dy.validate(twice, unit="days").unit == "days"


def test_options_are_read_set_and_cloned():
    estimator = dy.DynAEsti("GRM", bandwidth=3.0, fixed=pd.DataFrame({"item": ["a"], "a": [1.0]}))
    assert estimator.get_params()["bandwidth"] == 3.0
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params().keys() == estimator.get_params().keys()
    assert copy.kernel == estimator.kernel
    assert estimator.set_params(bandwidth=5.0, iterations=7) is estimator
    assert (estimator.kernel, estimator.iterations) == (dy.RBF(5.0), 7)
    assert copy.iterations == 200
    estimator.set_params(kernel="rbf")
    assert estimator.get_params()["bandwidth"] is None
    for wrong in ({"iterations": 0}, {"nonsense": 1}):
        with pytest.raises(dy.InputError):
            estimator.set_params(rare=9, **wrong)
    assert estimator.rare == 1
    again = dy.DynAEsti(**estimator.get_params())
    assert repr(again) == repr(estimator)
    grid = [clone(dy.DynAEsti()).set_params(**one) for one in ParameterGrid({"rare": [1, 2]})]
    assert [one.rare for one in grid] == [1, 2]
    curve = clone(dy.CurvFiFE(bandwidth=2.0)).set_params(bandwidth=4.0)
    assert curve.kernel == dy.RBF(4.0)


def test_estimators_print_what_was_chosen():
    assert repr(dy.DynAEsti()) == "DynAEsti()"
    assert repr(dy.DynAEsti("GRM", rare=5, cohort=None)) == "DynAEsti('GRM', cohort=None, rare=5)"
    assert repr(dy.DynAEsti().with_options(threads=2)).endswith("threads=2)")
    assert repr(dy.CurvFiFE(bandwidth=2.0)) == "CurvFiFE(bandwidth=2.0)"


def test_fits_and_curves_are_tables_in_notebooks(small):
    fit = dy.DynAEsti("1PL", **STATIC).fit(small)
    assert "&lt;Fit of 300 answers" in fit._repr_html_()
    assert "<td" in fit._repr_html_()
    curve = dy.CurvFiFE(bandwidth=3.0).fit([0, 1, 2, 3], dy.Bernoulli([0, 1, 1, 1]))
    assert curve._repr_html_().count("<tr>") == 10
    assert "&lt;Curves" in (
        dy.CurvFiFE(bandwidth=3.0)
        .fit_many([0, 0, 1, 1], [0, 1, 2, 3], dy.Bernoulli([0, 1, 1, 1]))
        ._repr_html_()
    )


def test_a_notebook_shows_progress_on_one_line():
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    assert ProgressLine(0.01, stream).live
    assert not ProgressLine(0.01, io.StringIO()).live


def test_a_tree_of_arrays_has_the_groups_that_arviz_knows(small):
    fit = dy.DynAEsti("2PL", bandwidth=30.0).fit(small)
    tree = fit.to_datatree(draws=400, at=[10.0, 90.0])
    assert set(tree.children) == {"posterior", "log_likelihood", "observed_data", "constant_data"}
    posterior = tree["posterior"]
    assert posterior["ability"].dims == ("chain", "draw", "person", "at")
    asked = fit.ability([10.0, 90.0])
    shape = (-1, 2)
    mean = posterior["ability"].mean(("chain", "draw")).to_numpy()
    sd = asked["sd"].to_numpy().reshape(shape)
    assert np.abs((mean - asked["mean"].to_numpy().reshape(shape)) / sd).max() < 5 / np.sqrt(400)
    # the likelihood of each response, by the formula of its item
    items = fit.items.set_index("item")
    r = fit.responses
    a, b = (items.loc[r.items[r.item], name].to_numpy() for name in ("a", "b"))
    theta = posterior["ability_at_response"][0].to_numpy()
    right = 1 / (1 + np.exp(-a * (theta - b)))
    expected = np.log(np.where(r.resp == 1, right, 1 - right))
    np.testing.assert_allclose(tree["log_likelihood"]["resp"][0], expected, rtol=1e-4, atol=1e-4)
    assert tree["observed_data"]["resp"].to_numpy().tolist() == r.resp.tolist()
    assert tree["constant_data"]["a"].to_numpy().tolist() == fit.items["a"].tolist()


def test_effects_are_in_the_likelihood_of_a_tree(small):
    rng = np.random.default_rng(1)
    frame = small.assign(load=rng.normal(size=len(small)))
    fit = dy.DynAEsti("1PL", bandwidth=np.inf, effects="load", cohort="learn").fit(frame)
    tree = fit.to_datatree(draws=500)
    mean = np.exp(tree["log_likelihood"]["resp"][0].to_numpy()).mean(0)
    order = np.argsort(fit.responses.row)
    np.testing.assert_allclose(mean[order], fit.predict(frame)["p"].to_numpy(), atol=0.08)
