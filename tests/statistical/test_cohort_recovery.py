"""The cohort by simulation: found where there is one, absent where there is none, bands that cover.

`python -m benchmarks cohort` has more replications, other models and the tests of groups in full.
"""

import warnings

import numpy as np
import pytest

import dynaesti as dy

DAYS = np.array([5.0, 25.0, 50.0, 75.0, 95.0])


def fitted(table, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dy.DynAEsti("2PL", **options).fit(table)


@pytest.mark.parametrize("clock", ["calendar", "person"])
def test_a_class_that_learns_is_seen_to_learn(clock):
    """300 people × 20 answers, a common rise of 3, half of them 1 more: five seeds together."""
    off, inside, late = [], [], []
    for seed in range(5):
        drawn = dy.simulate.responses(
            people=300,
            items=60,
            per_person=20,
            growth=3.0,
            groups={"control": 0.0, "treated": 1.0},
            seed=seed,
        )
        fit = fitted(drawn.table, clock=clock)
        starts = np.zeros(1)
        if clock == "person":
            starts = np.minimum.reduceat(drawn.table["date"], fit.responses.person_start[:-1])
        truth = 3.5 * ((DAYS + starts.mean()) / 100 - 0.5)
        off.append(fit.cohort(DAYS)["mean"] - truth)
        bands = fit.ability(level=0.9)
        order = np.lexsort((drawn.abilities["date"], drawn.abilities["id"]))
        ability = drawn.abilities["ability"][order]
        covered = ((bands["lower"] <= ability) & (ability <= bands["upper"])).to_numpy()
        days = np.asarray(drawn.abilities["date"])[order]
        inside.append(covered.mean())
        late.append(covered[(days < 10) | (days > 90)].mean())
    assert np.abs(np.mean(off, axis=0)).max() < 0.12
    assert 0.87 < np.mean(inside) < 0.93
    assert 0.86 < np.mean(late) < 0.93


def test_where_nothing_rises_nothing_is_found():
    """1,000 people × 15 answers: the root mean square of the cohort."""
    found = []
    for seed in range(4):
        table = dy.simulate.responses(people=1000, items=60, per_person=15, seed=seed).table
        fit = fitted(table, standard_errors=False)
        found.append(np.sqrt(np.mean(fit.cohort()["mean"] ** 2)))
    assert np.mean(found) < 0.05


def test_a_bend_is_found_where_there_is_one():
    """A cohort that rises and falls again: its curvature is learned."""
    rng = np.random.default_rng(3)
    drawn = dy.simulate.responses(people=300, items=40, per_person=20, seed=9)
    table = dict(drawn.table)
    ability = drawn.abilities["ability"] + 1.5 * np.sin(np.pi * table["date"] / 100)
    item = {name: k for k, name in enumerate(drawn.items["item"].tolist())}
    number = np.array([item[name] for name in table["item"].tolist()])
    logits = drawn.items["a"][number] * (ability - drawn.items["b"][number])
    table["resp"] = (rng.uniform(size=logits.size) < 1 / (1 + np.exp(-logits))).astype(float)
    fit = fitted(table)
    mean = fit.cohort([2.0, 50.0, 98.0])["mean"].to_numpy()
    assert mean[1] - mean[0] == pytest.approx(1.4, abs=0.3)
    assert mean[1] - mean[2] == pytest.approx(1.4, abs=0.3)


def test_differences_of_groups_have_honest_intervals():
    """Growth 0.8 apart, 100 + 100 people: forty replications."""
    covered, estimates = [], []
    for seed in range(40):
        table = dy.simulate.responses(
            people=200,
            items=30,
            per_person=20,
            growth=1.0,
            groups={"a": 0.0, "b": 0.8},
            seed=100 + seed,
        ).table
        frame = fitted(table, groups="group", bandwidth=30.0).compare_groups(0.0, 100.0)
        (growth,) = frame[frame["what"] == "growth"].rows()
        estimates.append(-growth["difference"])
        covered.append(growth["lower"] <= -0.8 <= growth["upper"])
    assert np.mean(covered) >= 0.87
    assert np.mean(estimates) == pytest.approx(0.8, abs=0.15)
