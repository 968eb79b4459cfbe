"""Items that become easier or harder: the evidence, what is known of them at a time, the use."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import dynaesti as dy
from dynaesti.estimation.item_drift import ItemDrift, drift_log_evidence
from dynaesti.estimation.periods import Periods


def some_drift(seed=0):
    """Three items with entries in some periods; the last one has none."""
    rng = np.random.default_rng(seed)
    n = np.array([5, 1, 0])
    period = np.concatenate([np.sort(rng.permutation(20)[:k]) for k in n])
    return ItemDrift(
        Periods(0.0, 40.0, 20),
        0.6,
        7.0,
        np.concatenate([[0], np.cumsum(n)]),
        period,
        rng.normal(size=n.sum()),
        rng.uniform(0.2, 1.0, n.sum()),
        rng.normal(size=3),
        np.array([0.8, 0.3, 0.5]),
    )


def joint(drift, item):
    """Times, mean and covariance of what was seen of an item; level and drift written out."""
    own = slice(drift.start[item], drift.start[item + 1])
    t = drift.periods.middles[drift.period[own]]
    cov = drift.variance * np.exp(-np.abs(t[:, None] - t) / drift.timescale)
    cov += drift.level_variance[item] + np.diag(drift.noise[own])
    return t, np.full(t.size, drift.level[item]), cov, drift.seen[own]


def test_the_filtered_evidence_is_the_dense_one():
    drift = some_drift()
    dense = sum(
        multivariate_normal(m, c).logpdf(y) for _, m, c, y in (joint(drift, i) for i in (0, 1))
    )
    assert drift_log_evidence(drift) == pytest.approx(dense, abs=1e-10)


def test_what_is_known_at_a_time_is_the_conditional_of_the_joint_normal():
    """Against precision matrices of (level, drift now, drift then, what was seen)."""
    drift = some_drift()
    now = 13.3
    t, m, cov, y = joint(drift, 0)
    across = drift.variance * np.exp(-np.abs(now - t) / drift.timescale) + drift.level_variance[0]
    whole = np.block(
        [
            [np.array([[drift.variance + drift.level_variance[0]]]), across[None]],
            [across[:, None], cov],
        ]
    )
    precision = np.linalg.inv(whole)
    mean = drift.level[0] - precision[0, 1:] @ (y - m) / precision[0, 0]
    # without drift, the level alone would be known as well as this
    known = 1.0 / (1.0 / drift.level_variance[0] + (1.0 / drift.noise[:5]).sum())
    found = drift.at(np.array([2, 0, 0]), np.array([3.0, now, now]))
    assert_allclose(found.mean, [0.0, mean, mean], rtol=1e-9)
    assert_allclose(found.variance[1:], 1 / precision[0, 0] - known, rtol=1e-8)
    assert found.variance[0] == 0.0


def test_reflection_and_new_items():
    drift = some_drift()
    item, times = np.array([0, 1]), np.array([2.0, 30.0])
    mirrored = drift.reflected().at(item, times)
    assert_allclose(mirrored.mean, -drift.at(item, times).mean)
    grown = drift.append(5)
    assert grown.n_items == 5
    assert_allclose(grown.at(item, times).mean, drift.at(item, times).mean)
    assert_allclose(grown.at(np.array([4]), times[:1]).variance, 0.0)


def drifting(seed, sd, people=250, per_person=30, items=20, timescale=30.0):
    """Answers over 100 days to items whose difficulties wander."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 100, (people, per_person)), axis=1)
    grid = np.linspace(0, 100, 201)
    step = np.exp(-(grid[1] - grid[0]) / timescale)
    walk = rng.normal(size=(items, grid.size))
    for k in range(1, grid.size):
        walk[:, k] = step * walk[:, k - 1] + np.sqrt(1 - step**2) * walk[:, k]
    item = rng.integers(0, items, t.shape)
    easier = sd * walk[item, np.searchsorted(grid, t) - 1]
    b = rng.normal(size=items)
    theta = rng.normal(size=(people, 1))
    right = 1 / (1 + np.exp(-1.2 * (theta + easier - b[item])))
    return {
        "id": np.repeat(np.arange(people), per_person),
        "item": item.ravel(),
        "resp": (rng.random(t.size) < right.ravel()) * 1,
        "date": t.ravel(),
    }


@pytest.fixture(scope="module")
def drifting_parts():
    table = drifting(3, 0.7)
    is_late = np.arange(len(table["id"])) % 30 >= 24  # each one's last answers
    return tuple({name: x[rows] for name, x in table.items()} for rows in (~is_late, is_late))


@pytest.fixture(scope="module")
def drifting_fit(drifting_parts):
    return dy.DynAEsti("2PL", standard_errors=False).fit(drifting_parts[0])


def log_loss(fit, test):
    return -np.log(np.asarray(fit.predict(test)["p"])).mean()


def test_drift_is_learned_and_predicted_with(drifting_parts, drifting_fit):
    fit, (_, test) = drifting_fit, drifting_parts
    assert fit.item_drift is not None
    assert 0.25 < fit.item_drift.variance < 1.0  # 0.49
    assert 10 < fit.item_drift.timescale < 90  # 30
    assert log_loss(fit, test) < log_loss(replace(fit, item_drift=None), test) - 0.003
    assert "predictions follow them" in fit.summary()


def test_sound_items_have_none():
    for seed in range(4):
        fit = dy.DynAEsti("2PL", standard_errors=False).fit(drifting(seed, 0.0, 120))
        assert fit.item_drift is None


def test_saved_fits_and_scorers_predict_alike(drifting_parts, drifting_fit, tmp_path):
    fit, (_, test) = drifting_fit, drifting_parts
    path = tmp_path / "fit.dynfit"
    fit.save(path)
    again = dy.load(path)
    assert_allclose(again.predict(test)["p"], fit.predict(test)["p"], rtol=1e-12)
    scorer = fit.scorer()
    person = fit.ids[0]
    state = fit.state(person)
    at = float(fit.responses.offsets.max()) + 3.0
    items = fit.item_labels.tolist()
    rows = {"id": [person] * len(items), "item": items, "date": [at] * len(items)}
    live = scorer.predict(state, items, at)["p1"]
    assert_allclose(live, fit.predict(rows)["p1"], atol=0.02)  # a state is an approximation
    plain = replace(fit, item_drift=None).predict(rows)["p1"]
    assert np.abs(np.asarray(plain) - np.asarray(live)).max() > 0.05


def test_shards_learn_what_memory_learns(drifting_parts, drifting_fit, tmp_path):
    train, test = drifting_parts
    shards = dy.prepare(train, tmp_path / "shards", shards=4)
    sharded = dy.DynAEsti("2PL", standard_errors=False).fit(shards)
    assert len(shards) > 1
    ours, theirs = drifting_fit.item_drift, sharded.item_drift
    assert_allclose(theirs.seen, ours.seen, atol=1e-4)
    assert theirs.variance == pytest.approx(ours.variance, rel=1e-2)
    assert_allclose(sharded.predict(test)["p"], drifting_fit.predict(test)["p"], atol=1e-3)


def test_a_damaged_file_is_refused(drifting_fit, tmp_path):
    bad = replace(drifting_fit.item_drift, noise=-drifting_fit.item_drift.noise)
    path = tmp_path / "bad.dynfit"
    replace(drifting_fit, item_drift=bad).save(path)
    with pytest.raises(dy.errors.StorageError, match="drift is malformed"):
        dy.load(path)
