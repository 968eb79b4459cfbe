"""What a fit with a cohort tells: groups, changes, filtered abilities, and all that comes after."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import in_pandas
from support.saying import spoken

pd = pytest.importorskip("pandas")

GROUPS = {"control": 0.0, "treated": 1.0}


@pytest.fixture(scope="module")
def drawn():
    return dy.simulate.responses(
        people=90, items=12, per_person=14, growth=2.0, groups=GROUPS, seed=2
    )


@pytest.fixture(scope="module")
def table(drawn):
    return pd.DataFrame(drawn.table)


@pytest.fixture(scope="module")
def fit(table):
    return dy.DynAEsti("2PL", groups="group").fit(table)


@pytest.fixture(scope="module")
def plain(table):
    return dy.DynAEsti("2PL").fit(table)


def test_the_cohort_as_a_frame(plain, fit):
    one = plain.cohort([10.0, 90.0])
    assert list(one.columns) == ["time", "mean", "sd", "lower", "upper"]
    assert (one["lower"] < one["mean"]).all()
    assert (one["mean"] < one["upper"]).all()
    assert len(plain.cohort()) == 50
    each = fit.cohort([10.0, 90.0])
    assert each["group"].tolist() == ["control", "control", "treated", "treated"]
    # people, on average, are where their cohort is
    people = plain.ability([10.0, 50.0, 90.0]).groupby("time")["mean"].mean()
    assert_allclose(people, plain.cohort([10.0, 50.0, 90.0])["mean"], atol=0.1)


def test_a_newcomer_is_a_member_of_the_cohort(plain):
    asked = {"id": ["new"] * 2, "item": ["i00"] * 2, "date": [2.0, 98.0]}
    with pytest.warns(dy.HealthWarning, match="the fit knows none"):
        chances = plain.predict(asked)["p1"].to_numpy()
    assert chances[1] > chances[0] + 0.1
    mix = plain.marginals(np.array([-1, -1]), plain.to_clock([2.0, 98.0]))
    cohort = plain.cohort([2.0, 98.0])
    assert_allclose((mix.weights * mix.means).sum(axis=0), cohort["mean"])
    assert_allclose(mix.sds[0] ** 2, plain.gain**2 + cohort["sd"] ** 2)


def test_changes_agree_with_draws_of_whole_curves(fit):
    frame = fit.changes(10.0, 90.0)
    assert list(frame.columns) == [
        "id",
        "group",
        "change",
        "sd",
        "lower",
        "upper",
        "rose",
        "cohort",
        "own",
    ]
    assert_allclose(frame["change"], frame["cohort"] + frame["own"])
    for who in (0, 41):
        row = frame.iloc[who]
        draws = fit.plausible(row["id"], [10.0, 90.0], size=4000)
        apart = draws[:, 1] - draws[:, 0]
        assert row["change"] == pytest.approx(apart.mean(), abs=0.05)
        assert row["sd"] == pytest.approx(apart.std(), rel=0.06)
        assert row["rose"] == pytest.approx((apart > 0).mean(), abs=0.03)
        single = fit.change(row["id"], 10.0, 90.0)
        assert (single.mean, single.sd) == pytest.approx((row["change"], row["sd"]))
        assert single.cohort + single.own == pytest.approx(single.mean)
    fell = fit.changes(90.0, 10.0)
    assert_allclose(fell["change"], -frame["change"], atol=1e-9)
    assert_allclose(fell["sd"], frame["sd"], rtol=1e-6)
    ordered = fit.changes(10.0, 90.0, sort=True)
    assert (np.diff(ordered["change"]) <= 0).all()
    assert set(ordered["id"]) == set(frame["id"])
    few = fit.changes(10.0, 90.0, ids=["p03", "p01"])
    assert few["id"].tolist() == ["p01", "p03"]


@pytest.mark.parametrize("bandwidth", [None, np.inf, 20.0])
def test_changes_are_those_of_the_joint_posterior(table, bandwidth):
    """Against the covariance of a single curve, for constant and moving abilities."""
    kernel = {} if bandwidth is None else {"bandwidth": bandwidth}
    fit = dy.DynAEsti("2PL", cohort=None, standard_errors=False, **kernel).fit(table)
    frame = fit.changes(20.0, 70.0, ids=["p05"]).iloc[0]
    curve = fit.curve("p05")
    weights, _, components = curve.weighted_components()
    at = fit.to_clock([20.0, 70.0])
    means = np.array([np.diff(c.posterior.marginals(at)[0])[0] for c in components])
    covs = [c.posterior.covariance(at) for c in components]
    variances = np.array([c[0, 0] + c[1, 1] - 2 * c[0, 1] for c in covs])
    mean = weights @ means
    assert frame["change"] == pytest.approx(mean, abs=1e-5)
    sd = np.sqrt(weights @ (variances + (means - mean) ** 2))
    assert frame["sd"] == pytest.approx(sd, abs=1e-4)


def test_groups_that_grow_apart_are_told_so(fit, plain):
    frame = fit.compare_groups(0.0, 100.0)
    assert frame["what"].tolist() == ["level at 0", "level at 100", "growth"]
    level0, level1, growth = frame["difference"]
    assert growth == pytest.approx(level1 - level0)
    assert growth == pytest.approx(-1.0, abs=3 * frame["se"].iloc[2])
    assert (frame["lower"] < frame["difference"]).all()
    ends = fit.cohort([0.0, 100.0]).set_index(["group", "time"])["mean"]
    assert level1 == pytest.approx(ends["control", 100.0] - ends["treated", 100.0])
    with pytest.raises(dy.InputError, match="has no groups"):
        plain.compare_groups(0.0, 100.0)


def test_groups_as_the_data_have_them(table):
    frame = table.assign(kind=table["group"])
    with pytest.raises(dy.ResponseError, match=r"change their group.*at the start"):
        dy.DynAEsti("2PL", groups="item").fit(frame)
    with pytest.raises(dy.ResponseError, match="no column 'grp'"):
        dy.DynAEsti("2PL", groups="grp").fit(frame)
    with pytest.raises(dy.InputError, match="cohort=None leaves out"):
        dy.DynAEsti(groups="kind", cohort=None)
    with pytest.raises(dy.InputError, match="without the column"):
        dy.DynAEsti("2PL", groups="kind").fit(dy.Responses.read(table))
    some = frame.assign(kind=frame["kind"].where(frame["id"] > "p20", None))
    fit = dy.DynAEsti("2PL", groups="kind", bandwidth=30.0, iterations=5).fit(some)
    assert fit.responses.groups == ("control", "treated", "(no group)")
    assert any("have none" in note for note in fit.responses.notes)
    # a blank beside a label is no change
    gaps = frame.assign(kind=frame["kind"].where(frame.index % 3 > 0, None))
    assert dy.Responses.read(gaps, group="kind").groups == ("control", "treated")


def test_filtered_abilities_are_what_was_known_then(fit):
    frame = fit.ability(ids=["p07", "p40"], filtered=True).set_index(["id", "time"])
    for (who, time), row in list(frame.iterrows())[::5]:
        assert row["mean"] == pytest.approx(fit.curve(who, until=time).mean([time])[0], abs=1e-5)
    last = frame.loc["p07"].index[-1]
    whole = fit.ability([last], ["p07"])
    assert frame.loc["p07", last]["mean"] == pytest.approx(whole["mean"][0], abs=1e-5)
    # before any answer: one of the group
    first = frame.loc["p07"].index[0]
    early = fit.ability([first - 1e-6], ["p07"], filtered=True)
    group = table_group(fit, "p07")
    cohort = fit.cohort([first - 1e-6]).set_index("group")["mean"]
    assert early["mean"][0] == pytest.approx(cohort[group])


def table_group(fit, who):
    """The label of a person's group."""
    number = fit.responses.group[fit.ids.index(who)]
    return fit.responses.groups[number]


def test_what_comes_after_a_fit_knows_the_cohort(fit, tmp_path):
    at = [-20.0, 50.0, 130.0]
    again = dy.load(fit.save(tmp_path / "fit.dyn"))
    assert_allclose(again.ability(at)["mean"], fit.ability(at)["mean"])
    assert_allclose(again.cohort(at)["sd"], fit.cohort(at)["sd"])
    assert_allclose(again.compare_groups(0, 100)["se"], fit.compare_groups(0, 100)["se"])
    more = {"id": ["p07"], "item": ["i03"], "resp": [1], "date": [103.0]}
    grown = fit.update(more)
    live = fit.live("p07").add(103.0, "i03", 1)
    for column in ("mean", "sd"):
        assert_allclose(live.ability(at)[column], grown.ability(at, ["p07"])[column], atol=1e-4)
    curve = fit.curve("p07")
    opened = dy.load(curve.save(tmp_path / "curve.dyn"))
    assert_allclose(opened.mean(at), curve.mean(at))
    assert_allclose(curve.mean(at), fit.ability(at, ["p07"])["mean"], atol=1e-6)
    told = fit.uncertain("p07", at, draws=8)
    assert (told["sd"] > 0.8 * fit.ability(at, ["p07"])["sd"]).all()


def test_newcomers_are_scored_in_their_group(fit, table):
    mine = table[table["id"] == "p10"].assign(id="new")
    scored = fit.score(mine)
    assert_allclose(scored["mean"], fit.ability(ids=["p10"])["mean"], atol=1e-5)
    with pytest.warns(dy.HealthWarning, match="taken as average"):
        elsewhere = fit.score(mine.drop(columns="group"))
    assert np.abs(elsewhere["mean"] - scored["mean"]).max() < 0.5
    asked = {"id": ["x", "y"], "item": ["i00"] * 2, "date": [99.0] * 2, "group": list(GROUPS)}
    with pytest.warns(dy.HealthWarning, match="the fit knows none of 2 people"):
        chances = fit.predict(asked)["p1"]
    assert chances[1] > chances[0] + 0.01
    with pytest.warns(dy.HealthWarning, match="taken as average"):
        grown = fit.update(mine.head(6).assign(group="a third one"))
    assert grown.responses.group[grown.ids.index("new")] == -1
    assert np.isfinite(grown.ability([50.0], ["new"])["mean"]).all()


@pytest.mark.slow
def test_shards_are_as_memory(table, fit, tmp_path):
    with pytest.raises(dy.ResponseError, match="change their group"):
        dy.prepare(table, tmp_path / "no", group="item")
    shards = dy.prepare(table, tmp_path / "shards", shards=3, group="group")
    with pytest.raises(dy.InputError, match="prepared without the column"):
        dy.DynAEsti("2PL", groups="id").fit(shards, out=tmp_path / "bad")
    sharded = dy.DynAEsti("2PL", groups="group").fit(shards, out=tmp_path / "run")
    at = [5.0, 95.0]
    for column in ("mean", "sd"):
        assert_allclose(sharded.cohort(at)[column], fit.cohort(at)[column], atol=1e-6)
    assert_allclose(
        sharded.compare_groups(0, 100)["se"], fit.compare_groups(0, 100)["se"], rtol=1e-6
    )
    ours = in_pandas(sharded.changes(5.0, 95.0)).sort_values("id")["change"]
    assert_allclose(ours, fit.changes(5.0, 95.0)["change"], atol=1e-6)
    opened = dy.load(tmp_path / "run")
    assert_allclose(opened.cohort(at)["mean"], fit.cohort(at)["mean"], atol=1e-6)
    both = [one.ability(at, ["p04"], filtered=True)["mean"] for one in (opened, fit)]
    assert_allclose(*both, atol=1e-5)
    # without asking for groups the same shards are one population
    plain = dy.DynAEsti("2PL").fit(shards, out=tmp_path / "plain")
    assert "group" not in plain.cohort(at)


@pytest.mark.slow
def test_people_of_no_known_group_are_one_at_a_refit(table, tmp_path):
    shards = dy.prepare(table, tmp_path / "shards", shards=2, group="group")
    options = {"groups": "group", "bandwidth": 40.0, "standard_errors": False}
    fit = dy.DynAEsti("2PL", **options).fit(shards, out=tmp_path / "run")
    more = table[table["id"] < "p05"].assign(id=lambda t: "x" + t["id"], group="another")
    with pytest.warns(dy.HealthWarning, match="taken as average"):
        grown = fit.update(more)
    again = dy.refit_items(grown)
    assert again.cohort([50.0])["group"].tolist() == ["control", "treated", "(no group)"]
    assert np.isfinite(again.ability([50.0], ["xp01"])["mean"]).all()


def test_a_reflected_scale_reflects_the_cohort(table):
    backwards = table.assign(resp=1 - table["resp"])
    options = {"direction": "free", "bandwidth": 40.0, "iterations": 30}
    up = dy.DynAEsti("2PL", orient={"item": "i00"}, **options).fit(table)
    down = dy.DynAEsti("2PL", orient={"item": "i00"}, **options).fit(backwards)
    ends = [np.diff(fit.cohort([0.0, 100.0])["mean"])[0] for fit in (up, down)]
    assert ends[0] == pytest.approx(-ends[1], abs=0.02)
    at = [20.0, 80.0]
    assert_allclose(up.ability(at)["mean"], -down.ability(at)["mean"], atol=0.02)


@pytest.mark.slow
def test_verbs_of_the_cohort(table, tmp_path, capsys):
    answers = tmp_path / "answers.csv"
    table.to_csv(answers, index=False)
    run = tmp_path / "run"
    code, out, _ = spoken(
        capsys, "fit", answers, "--groups", "group", "--no-static", "--no-report", "--out", run
    )
    assert code == 0
    assert "treated rose by" in out
    code, out, _ = spoken(capsys, "cohort", run, "--at", "0", "100")
    assert code == 0
    assert out.splitlines()[0] == "group,time,mean,sd,lower,upper"
    assert len(out.splitlines()) == 5
    code, out, _ = spoken(capsys, "change", run, "--from", "10", "--to", "90")
    lines = out.splitlines()
    assert lines[0].startswith("id,group,change,sd")
    changes = [float(line.split(",")[2]) for line in lines[1:]]
    assert changes == sorted(changes, reverse=True)
    code, out, _ = spoken(capsys, "change", run, "--by", "group")
    assert code == 0
    assert "growth" in out
    code, _, err = spoken(capsys, "change", run, "--by", "group", "--id", "p01")
    assert code == 3
    assert "--id" in err
    code, _, err = spoken(capsys, "fit", answers, "--groups", "item", "--out", tmp_path / "r2")
    assert code == 3
    assert "--groups: 90 people of 90 change their group" in err
    none = ("--cohort", "none", "--no-static", "--no-report", "--out", tmp_path / "r3")
    assert spoken(capsys, "fit", answers, *none)[0] == 0
    code, _, err = spoken(capsys, "cohort", tmp_path / "r3")
    assert code == 3
    assert "--cohort learn" in err


def test_growth_is_the_estimate_without_the_prior_on_the_trend(plain):
    """Closed form: where the evidence is a quadratic, one Newton step undoes the prior."""
    cohort = plain.priors.cohort
    held = np.linalg.inv(cohort.covariance)
    pull = np.random.default_rng(0).standard_normal(len(held))
    along = cohort.trend / (cohort.trend @ cohort.trend)
    shrunk = replace(
        cohort,
        trend_precision=30.0,
        coefficients=np.linalg.solve(held + 30.0 * np.outer(along, along), pull),
    )
    assert_allclose(shrunk.unshrunk.coefficients, np.linalg.solve(held, pull), rtol=1e-8)
    assert shrunk.unshrunk.trend_precision == 0.0


def test_growth_of_the_cohort_and_of_groups(plain, fit):
    growth = plain.growth(0, 100, level=0.9)
    assert list(growth.columns) == ["growth", "se", "lower", "upper", "probability"]
    ends = plain.cohort([0.0, 100.0])["mean"]
    assert growth["growth"][0] == pytest.approx(ends[1] - ends[0], rel=0.02)  # clear: not shrunk
    assert growth["upper"][0] - growth["lower"][0] == pytest.approx(2 * 1.6448536 * growth["se"][0])
    both = fit.growth(0, 100)
    assert both["group"].tolist() == ["control", "treated"]
    apart = fit.compare_groups(0, 100)
    between = apart["difference"][apart["what"].tolist().index("growth")]
    assert both["growth"][0] - both["growth"][1] == pytest.approx(between, abs=0.02)


def test_growth_needs_standard_errors(table):
    quick = dy.DynAEsti("2PL", standard_errors=False, iterations=3).fit(table)
    with pytest.raises(dy.InputError, match="growth: standard errors were not computed"):
        quick.growth(0, 100)
