"""Reliability with its interval, and a fit beside its items alone."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.results.explained import ItemsAlone
from support.simulated import classroom


@pytest.fixture(scope="module")
def fit():
    return dy.DynAEsti("2PL", bandwidth=np.inf).fit(classroom(60, 10, 30))


def test_items_alone_are_the_shares_of_their_answers(fit):
    found = fit.items_alone()
    resp, item = fit.responses.resp, fit.responses.item
    share = np.array([(resp[item == k].sum() + 0.5) / ((item == k).sum() + 1) for k in range(10)])
    loss = -np.mean(np.where(resp == 1, np.log(share[item]), np.log1p(-share[item])))
    assert found.alone_loss == pytest.approx(loss, rel=1e-12)
    assert found.gain == found.alone_loss - found.fit_loss
    assert found.explains


def test_measurements_have_no_items_alone():
    rng = np.random.default_rng(0)
    table = {"id": np.repeat(np.arange(12), 10), "item": np.tile(np.arange(5), 24)}
    table |= {"resp": rng.normal(size=120), "date": np.tile(np.arange(10.0), 12)}
    fit = dy.DynAEsti("Gaussian", bandwidth=np.inf).fit(table)
    assert fit.items_alone() is None
    assert "Reliability" in fit.summary()


def test_the_interval_of_reliability_covers():
    """Feldt's interval, of constant abilities of unit spread: the truth is that of all draws."""
    values, inside = [], []
    fits = [dy.DynAEsti("1PL", bandwidth=np.inf).fit(_draw(seed)) for seed in range(40)]
    values = np.array([one.reliability() for one in fits])
    truth = np.median(values)
    ends = [one.reliability_interval(0.9) for one in fits]
    inside = np.mean([low < truth < high for low, high in ends])
    assert 0.75 <= inside <= 1.0
    assert all(low < value < high for value, (low, high) in zip(values, ends, strict=True))


def _draw(seed, people=40, items=12):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=people), np.linspace(-1.5, 1.5, items)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    return {
        "id": np.repeat(np.arange(people), items),
        "item": np.tile(np.arange(items), people),
        "resp": (rng.uniform(size=chance.shape) < chance).ravel() * 1,
        "date": np.zeros(people * items),
    }


@pytest.mark.parametrize(
    ("gain", "words"),
    [(0.09, "helps"), (0.04, "may help"), (0.02, "explains nothing"), (-0.05, "explains nothing")],
)
def test_as_much_is_said_as_the_numbers_say(gain, words):
    assert words in ItemsAlone(0.6, 0.6 + gain, 0.03).verdict()
