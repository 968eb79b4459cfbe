"""The page's headline and findings, against what the fit says."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.report.data import page_data
from dynaesti.report.summary import span_text, success_share, typographic
from support.simulated import classroom


def text_of(phrase):
    return "".join(part if isinstance(part, str) else part[0] for part in phrase)


@pytest.fixture(scope="module")
def grown():
    """A fit in which people improve, and one in which one of two groups improves more."""
    one = dy.simulate.responses(60, 12, 20, growth=1.5, seed=1).table
    two = dy.simulate.responses(160, 12, 24, groups={"old way": 0.0, "new way": 2.0}, seed=2).table
    return dy.DynAEsti("2PL").fit(one), dy.DynAEsti("2PL", groups="group").fit(two)


def test_a_rise_is_told_with_its_numbers(grown):
    data = page_data(grown[0], None)
    assert data["headline"] == "On the whole, abilities rose"
    whole, people, trust = (text_of(finding["parts"]) for finding in data["findings"])
    first, last = grown[0].time_range
    means = grown[0].cohort(grown[0].from_clock(np.array([first, last])))["mean"]
    assert f"rose by {means[1] - means[0]:.2f}" in whole
    shares = success_share(grown[0], np.asarray(means))
    assert f"from a {100 * shares[0]:.0f} % to a {100 * shares[1]:.0f} % chance" in whole
    changes = grown[0].people()["rose"]
    assert f"{(np.asarray(changes) >= 0.95).sum()} clearly rose" in people
    assert f"reliability {grown[0].reliability():.2f}" in trust


def test_the_group_that_gained_is_named(grown):
    data = page_data(grown[1], None)
    assert data["headline"] == "new way gained on old way"
    assert "which is clear" in text_of(data["findings"][0]["parts"])


def test_the_share_of_points_is_the_mean_of_predictions(grown):
    fit = grown[0]
    (block,) = fit.bank.blocks
    theta = fit.bank.ability_scale.theta((np.array([0.3]) - fit.shift) / fit.gain)
    chances = np.exp(block.model.log_likelihood(block.u, theta))[:, 1, 0]
    assert success_share(fit, np.array([0.3]))[0] == pytest.approx(chances.mean())


def test_amounts_have_no_share_of_points():
    fit = dy.DynAEsti("gaussian", iterations=20).fit(classroom(20, 5, 12, model="gaussian"))
    assert success_share(fit, np.zeros(1)) is None
    assert "average item" not in str(page_data(fit, None)["findings"])


def test_one_sitting_each_and_few_people_have_a_page():
    table = classroom(12, 6, 10)
    table["date"] = table["id"].astype("category").cat.codes.astype(float)
    data = page_data(dy.DynAEsti("2PL").fit(table), None)
    assert "one time only" in text_of(data["findings"][1]["parts"])
    assert data["changes"]["columns"] == {}
    few = page_data(dy.DynAEsti("2PL").fit(classroom(4, 6, 20)), None)
    assert few["facts"]["few"]
    assert "grey line" in text_of(few["caption"])


def test_times_are_said_with_few_digits():
    table = classroom(12, 6, 10)
    fit = dy.DynAEsti("2PL", standard_errors=False).fit(table)
    assert span_text(fit).startswith("from time 0.0")
    table["date"] = np.datetime64("2015-09-01") + (table["date"] * 100).astype("timedelta64[D]")
    fit = dy.DynAEsti("2PL", standard_errors=False).fit(table)
    assert span_text(fit).startswith("between 1 Sep 2015 and ")


def test_minus_signs():
    assert (
        typographic("-0.77 to 1.31 (-2), 2024-02-05 12-13")
        == "−0.77 to 1.31 (−2), 2024-02-05 12-13"
    )
