"""Groups that are small, sparse, apart or alike: what is told of them, and what is not."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import in_pandas

pd = pytest.importorskip("pandas")


def people(n, seed=0, per_person=16, items=12, level=None, forms=None, times=None):
    """Right answers of n people over 100 days; `level` and `forms` are by group.

    The first people are "small" (5 of them) or alternate between "a" and "b".
    """
    rng = np.random.default_rng(seed)
    group = np.where(np.arange(n) < 5, "small", "big") if level is None else None
    if level is not None:
        group = np.array(list(level))[np.arange(n) % len(level)]
    shift = np.array([(level or {}).get(g, 0.0) for g in group])
    person = np.repeat(np.arange(n), per_person)
    date = rng.uniform(0, 100, person.size) if times is None else rng.choice(times, person.size)
    item = rng.integers(0, items, person.size)
    difficulty = rng.normal(size=items)
    ability = (rng.normal(size=n) + shift)[person] + 0.02 * (date - 50)
    right = rng.uniform(size=person.size) < 1 / (1 + np.exp(difficulty[item] - ability))
    frame = pd.DataFrame(
        {
            "id": [f"p{k:04d}" for k in person],
            "item": [f"i{k}" for k in item],
            "resp": right.astype(int),
            "date": date,
            "group": group[person],
        }
    )
    if forms is not None:
        frame["item"] += [forms(g, d) for g, d in zip(frame["group"], frame["date"], strict=True)]
    return frame


def fitted(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dy.HealthWarning)
        return dy.DynAEsti("1PL", groups="group", bandwidth=60.0, **options).fit(frame)


def test_a_small_group_among_many_is_learned():
    """Of 2,500 people five are a group: they are in every sample, whatever they are called."""
    frame = people(2500)
    found = []
    for name in ("aaa", "zzz"):
        fit = fitted(frame.assign(group=frame["group"].replace("small", name)))
        assert fit.converged
        row = in_pandas(fit.compare_groups(0, 100)).iloc[1]
        sign = 1.0 if row["group"] == name else -1.0
        found.append((sign * row["difference"], row["se"]))
    assert_allclose(found[0], found[1], rtol=1e-2, atol=1e-2)
    assert 0.3 < found[0][1] < 3.0


def test_few_dates_of_a_group_leave_level_and_growth_free():
    frame = people(120, level={"a": 0.0, "b": 1.5})
    sparse = frame["group"] == "b"
    frame.loc[sparse, "date"] = 10.0 + 40.0 * (frame.loc[sparse, "date"] // 34)
    table = fitted(frame).compare_groups(10, 90)
    assert table["difference"].iloc[0] == pytest.approx(-1.5, abs=3 * table["se"].iloc[0])
    assert table["se"].max() < 1.0


def test_groups_without_a_common_item_are_not_compared():
    """Their levels cannot be told from how hard their items are."""
    fit = fitted(people(80, level={"a": 0.0, "b": 1.0}, forms=lambda g, _: g))
    assert any("by one group, only" in caution for caution in fit.cautions)
    table = fit.compare_groups(0, 100)
    assert table["difference"].iloc[:2].isna().all()
    assert table["se"].iloc[:2].isna().all()
    assert np.isfinite(table["se"].iloc[2])  # growth is told by each group's own items


def test_groups_are_compared_where_the_common_curve_is_not_seen():
    """A form before and another after: treated and control meet the same items."""
    frame = people(
        120, level={"a": 0.0, "b": 2.0}, times=[0.0, 100.0], forms=lambda _, d: str(int(d > 50))
    )
    fit = fitted(frame)
    assert any("Groups are compared all the same" in caution for caution in fit.cautions)
    assert " rose by" not in fit.summary()  # relative to a curve that is not seen
    assert "than" in fit.summary()
    table = fit.compare_groups(0, 100)
    assert_allclose(table["difference"], [-2.0, -2.0, 0.0], atol=0.9)
    assert np.isfinite(table["se"]).all()


def test_one_group_is_said_to_be_one(capsys):
    frame = people(40, level={"only": 0.0})
    with pytest.raises(dy.InputError, match="one group only, 'only'"):
        fitted(frame).compare_groups(0, 100)
    many = people(120, level={f"g{k}": 0.0 for k in range(60)})
    with pytest.raises(dy.InputError, match="60 groups, and at most 50"):
        fitted(many)


def test_without_standard_errors_there_is_no_band():
    fit = fitted(people(40, level={"a": 0.0, "b": 0.0}), standard_errors=False)
    assert in_pandas(fit.cohort([50]))["sd"].isna().all()
    with pytest.raises(dy.InputError, match="standard errors were not computed"):
        fit.compare_groups(0, 100)


def test_beyond_the_data_both_ends_are_one_path():
    fit = fitted(people(60, level={"a": 0.0, "b": 0.0}))
    day = fit.changes(200, 201)["sd"].max()
    assert day < 0.2
    assert day < fit.changes(100, 200)["sd"].min()
    assert fit.compare_groups(200, 201)["se"].to_numpy()[2] < 0.3
    assert_allclose(fit.changes(150, 100)["sd"], fit.changes(100, 150)["sd"], rtol=1e-6)
    with pytest.raises(dy.InputError, match="needs two times"):
        fit.changes(50, 50)
    with pytest.raises(dy.InputError, match="nobody is asked for"):
        fit.changes(0, 50, ids=[])
    assert len(fit.ability([], filtered=True)) == 0


def test_a_drift_is_the_integral_of_a_process_that_forgets():
    """Variance and covariance against a simulation of the slope."""
    fit = fitted(people(60, level={"a": 0.0, "b": 0.0}))
    cohort = fit.priors.cohort
    end = cohort.basis.knots[-1]
    length = 0.5 * cohort.basis.span
    slope = (cohort.basis.end_slopes(np.array([end])) * cohort.curves[[0]]).sum()
    spread = 0.5 * slope**2 + 0.25 * (cohort.sizes**2).sum() / cohort.basis.span**2
    rng = np.random.default_rng(0)
    step = length / 200
    x = np.zeros(20_000)
    total = np.zeros(20_000)
    kept = []
    for k in range(400):
        x += -x * step / length + np.sqrt(2 * spread * step / length) * rng.normal(size=x.size)
        total += x * step
        if k + 1 in (100, 400):
            kept.append(total.copy())
    t = end + np.array([100, 400]) * step
    group = np.zeros(1, dtype=int)
    assert cohort.drift_variance(t[1:], group)[0] == pytest.approx(kept[1].var(), rel=0.05)
    across = np.cov(kept)[0, 1]
    assert cohort.drift_covariance(t[:1], t[1:], group)[0] == pytest.approx(across, rel=0.06)
