"""Plausible values: of one person, of many, with the items' uncertainty, from shards."""

import numpy as np
import pytest

import dynaesti as dy


def test_plausible_values_of_people_are_independent(drawn):
    fit = dy.DynAEsti(standard_errors=False).fit(drawn.table)
    draws = np.array([fit.plausible(label, [50.0], 300, seed=5)[:, 0] for label in fit.ids[:60]])
    apart = np.corrcoef(draws)[np.triu_indices(60, 1)]
    assert np.abs(apart).mean() < 0.08  # 1/√300 and a little
    sds = fit.ability([50.0], fit.ids[:60])["sd"].to_numpy()
    assert draws.mean(axis=0).std() == pytest.approx(
        np.sqrt((sds**2).sum()) / 60, rel=0.2
    )  # of a cohort's mean
    assert np.array_equal(
        fit.plausible(fit.ids[3], [50.0], 5, seed=1), fit.plausible(fit.ids[3], [50.0], 5, seed=1)
    )


def values_of(frame, size):
    return np.stack([np.asarray(frame[f"pv{m + 1}"]) for m in range(size)])


@pytest.fixture(scope="module")
def class_fit():
    table = dy.simulate.responses(people=20, items=6, per_person=20, seed=1).table
    return table, dy.DynAEsti("2PL").fit(table)


def test_values_of_many_are_those_of_each(class_fit):
    _, fit = class_fit
    frame = fit.plausible_values([20.0, 80.0], ["p03", "p11"], size=7, seed=3)
    assert list(frame["id"]) == ["p03", "p03", "p11", "p11"]
    np.testing.assert_array_equal(
        values_of(frame, 7)[:, 2:], fit.plausible("p11", [20.0, 80.0], 7, seed=3)
    )


def test_values_have_the_posterior_that_the_curve_has(class_fit):
    _, fit = class_fit
    draws = values_of(fit.plausible_values([50.0], ["p05"], size=4000), 4000)[:, 0]
    told = fit.ability([50.0], ["p05"])
    assert draws.mean() == pytest.approx(told["mean"][0], abs=0.05 * told["sd"][0])
    assert draws.std() == pytest.approx(told["sd"][0], rel=0.05)


def test_values_with_the_items_uncertainty_are_those_of_uncertain(class_fit):
    _, fit = class_fit
    frame = fit.plausible_values([50.0], ["p05"], size=300, item_uncertainty=True)
    draws = values_of(frame, 300)[:, 0]
    told = fit.uncertain("p05", [50.0], draws=100)
    assert draws.mean() == pytest.approx(told["mean"][0], abs=0.2 * told["sd"][0])
    assert draws.std() == pytest.approx(told["sd"][0], rel=0.15)


def test_shards_draw_the_same_values(class_fit, tmp_path):
    table, fit = class_fit
    shards = dy.prepare(table, str(tmp_path / "shards"), shards=3)
    apart = dy.DynAEsti("2PL").fit(shards, out=str(tmp_path / "run"))
    ids = ["p11", "p03", "p07"]
    for options in ({}, {"item_uncertainty": True}):
        one, other = (
            f.plausible_values([20.0, 80.0], ids, size=3, **options) for f in (fit, apart)
        )
        assert list(one["id"]) == list(other["id"])
        np.testing.assert_allclose(values_of(one, 3), values_of(other, 3), atol=1e-4)
    everyone = apart.plausible_values([50.0], size=2)
    assert sorted(everyone["id"]) == sorted(fit.ids)


def test_what_cannot_be_drawn_is_said(class_fit):
    table, fit = class_fit
    with pytest.raises(dy.errors.InputError, match="'nobody' was never seen"):
        fit.plausible_values([1.0], ["nobody"])
    with pytest.raises(dy.errors.InputError, match="size"):
        fit.plausible_values([1.0], size=0)
    bare = dy.DynAEsti("2PL", standard_errors=False).fit(table)
    with pytest.raises(dy.errors.InputError, match="standard_errors=True"):
        bare.plausible_values([1.0], item_uncertainty=True)


def test_without_a_seed_people_still_share_a_cohort():
    """What is unknown of the mean moves all people of a draw alike."""
    drawn = dy.simulate.responses(people=60, items=6, per_person=4, growth=1.0, seed=2).table
    fit = dy.DynAEsti("2PL").fit(drawn)
    ends = [0.0, 100.0]
    draws = [values_of(fit.plausible_values(ends, size=200, seed=seed), 200) for seed in (None, 0)]
    rise = [np.diff(one.reshape(200, -1, 2), axis=2)[:, :, 0].mean(axis=1).std() for one in draws]
    assert rise[0] == pytest.approx(rise[1], rel=0.25)
