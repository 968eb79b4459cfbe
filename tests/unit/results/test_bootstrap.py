"""The parametric bootstrap beside analytic errors, and as a test of fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.results.evaluation.bootstrap import drawn_as_fit

pd = pytest.importorskip("pandas")
STATIC = {"bandwidth": np.inf}


@pytest.fixture(scope="module")
def fit():
    table = dy.simulate.responses(people=250, items=6, per_person=6, seed=1).table
    return dy.DynAEsti("2PL", **STATIC).fit(pd.DataFrame(table))


@pytest.fixture(scope="module")
def found(fit):
    return dy.evaluation.bootstrap(fit, 60, seed=2)


def test_errors_agree_with_those_of_the_fit(found):
    """Within what 60 draws tell (9 %), and what weak priors take from slopes."""
    assert found.unconverged == 0
    apart = np.log(found.items["bootstrap_se"] / found.items["se"])
    by_name = apart.groupby(found.items["parameter"]).mean()
    assert abs(by_name["intercept"]) < 0.15
    assert abs(by_name["b"]) < 0.25
    assert abs(by_name["a"]) < 0.3
    assert (found.items["lower"] < found.items["upper"]).all()
    slopes = found.items[found.items["parameter"] == "a"]
    assert (slopes["lower"] > 0).all()


def test_a_seed_decides_whatever_the_threads(fit):
    first = dy.evaluation.bootstrap(fit, 10, seed=7, threads=1)
    second = dy.evaluation.bootstrap(fit, 10, seed=7, threads=2)
    other = dy.evaluation.bootstrap(fit, 10, seed=8)
    assert_allclose(first.draws, second.draws, rtol=0, atol=0)
    assert np.abs(first.draws - other.draws).max() > 0.01


def test_a_right_model_is_not_rejected_and_a_wrong_one_is():
    rng = np.random.default_rng(3)
    slope = np.array([0.3, 0.3, 0.3, 0.3, 2.5, 2.5, 2.5, 2.5])
    ability = rng.normal(size=400)
    chance = 1 / (1 + np.exp(-slope * ability[:, None]))
    answers = (rng.uniform(size=chance.shape) < chance).astype(int)
    table = {
        "id": np.repeat(np.arange(400), 8),
        "item": np.tile([f"q{k}" for k in range(8)], 400),
        "resp": answers.ravel(),
        "date": np.zeros(3200),
    }
    p = {}
    for model in ("1PL", "2PL"):
        made = dy.DynAEsti(model, **STATIC).fit(table)
        statistics = dy.evaluation.bootstrap(made, 25, seed=1).fit
        p[model] = dict(zip(statistics["statistic"], statistics["p"], strict=True))
    assert p["1PL"]["misfit of items"] == 0.0
    assert 0.02 < p["2PL"]["misfit of items"] <= 1.0
    assert 0.02 < p["2PL"]["log evidence per answer"] < 0.98


def test_draws_have_the_moments_of_the_population():
    """Curves move by the kernel, groups by their cohort; the truth is the kernel itself."""
    table = dy.simulate.responses(people=150, items=4, per_person=8, seed=2).table
    bank = {f"i{k}": {"a": 4.0, "b": 0.0, "sigma": 0.05} for k in range(4)}
    kernel = dy.Level(0.6) + dy.Matern32(30.0, 0.8)
    numbers = {**table, "resp": np.random.default_rng(1).normal(size=len(table["id"]))}
    made = dy.DynAEsti("gaussian", fixed=bank, population=(0.5, 1.5), kernel=kernel).fit(numbers)
    r = made.responses
    drawn = np.array([drawn_as_fit(made, np.random.default_rng(k)).resp / 4.0 for k in range(40)])
    assert drawn.mean() == pytest.approx(0.5, abs=0.05)
    assert drawn.std() == pytest.approx(1.5, rel=0.05)
    same = np.diff(r.person) == 0
    gap = np.diff(r.offsets)[same]
    product = ((drawn[:, 1:] - 0.5) * (drawn[:, :-1] - 0.5))[:, same].mean(axis=0)
    near, far = gap < 5, gap > 25
    for some in (near, far):
        truth = 2.25 * kernel.cov(np.zeros(int(some.sum())), gap[some]).mean()
        assert product[some].mean() == pytest.approx(truth, rel=0.12)


@pytest.mark.parametrize("model", ["GRM", "poisson"])
def test_other_models_and_cohorts_are_refitted(model):
    drawn = dy.simulate.responses(people=60, items=4, per_person=8, growth=1.0, seed=4).table
    table = {**drawn, "resp": np.asarray(drawn["resp"]) + (np.arange(len(drawn["id"])) % 2)}
    table["older"] = [int(name[1:]) % 2 for name in table["id"]]
    made = dy.DynAEsti(model, effects="older").fit(table)
    found = dy.evaluation.bootstrap(made, 10)
    assert found.replications + found.unconverged == 10
    assert np.isfinite(np.asarray(found.items["bootstrap_se"])).all()


def test_progress_and_bounds_are_told(fit, capsys, tmp_path):
    seen = []
    dy.evaluation.bootstrap(fit, 10, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(k + 1, 10) for k in range(10)]
    dy.evaluation.bootstrap(fit, 10, progress=True)
    assert "refit 10 of 10" in capsys.readouterr().err
    with pytest.raises(dy.InputError, match="replications: expected"):
        dy.evaluation.bootstrap(fit, 3)
    with pytest.raises(dy.InputError, match="level"):
        dy.evaluation.bootstrap(fit, 10, level=95)
    table = dy.simulate.responses(people=10, items=3, per_person=6, seed=1).table
    shards = dy.prepare(table, tmp_path / "shards", shards=2)
    sharded = dy.DynAEsti("1PL", **STATIC).fit(shards, out=tmp_path / "run")
    with pytest.raises(dy.InputError, match="a fit of shards is too large"):
        dy.evaluation.bootstrap(sharded)


def test_covariances_hold_the_standard_errors(fit):
    frame = fit.item_covariance(["i1", "i3"])
    assert frame["item"].tolist() == ["i1"] * 9 + ["i3"] * 9
    own = frame[(frame["parameter"] == "b") & (frame["other"] == "b")]
    items = fit.items.set_index("item")
    assert_allclose(np.sqrt(own["covariance"]), items.loc[["i1", "i3"], "se_b"])
    # by hand: intercept = −a b
    a, b = items.loc["i1", "a"], items.loc["i1", "b"]
    one = frame[frame["item"] == "i1"].pivot_table("covariance", "parameter", "other")
    by_hand = b**2 * one.loc["a", "a"] + a**2 * one.loc["b", "b"] + 2 * a * b * one.loc["a", "b"]
    assert items.loc["i1", "se_intercept"] ** 2 == pytest.approx(by_hand, rel=1e-5)
    bare = dy.DynAEsti("1PL", standard_errors=False, **STATIC).fit(fit.responses)
    with pytest.raises(dy.InputError, match="standard_errors=True"):
        bare.item_covariance()
