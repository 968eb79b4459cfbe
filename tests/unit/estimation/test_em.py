"""EM: order, labels and threads do not matter; few people leave items sensible."""

from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.estimation.em import EMSettings, EMState, is_small_step, run_em
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.model.kernels import RBF
from support.oracles import plain_em
from support.simulated import classroom, parts


@pytest.mark.slow
def test_order_labels_and_threads_do_not_matter(monkeypatch):
    from dynaesti.core import parallel as threads

    monkeypatch.setattr(threads, "CHUNK", 200)
    table = classroom(40, 6, 20)
    one = dy.DynAEsti(threads=1, iterations=12).fit(table)
    two = dy.DynAEsti(threads=3, iterations=12).fit(table)
    assert np.array_equal(one.bank.to_vector(), two.bank.to_vector())
    assert np.array_equal(one.ability([0.5])["mean"], two.ability([0.5])["mean"])
    shuffled = table.sample(frac=1, random_state=0)
    shuffled["id"] = shuffled["id"].map(lambda label: crc32(label.encode()))
    shuffled["item"] = shuffled["item"].map(lambda label: "z" + label[::-1])
    three = dy.DynAEsti(threads=2, iterations=12).fit(shuffled)
    mine, theirs = (
        one.items.set_index("item"),
        three.items.assign(item=lambda f: f["item"].str[1:].str[::-1]).set_index("item"),
    )
    assert_allclose(theirs.loc[mine.index, "b"], mine["b"], atol=1e-6)


@pytest.mark.parametrize("people", [1, 2, 4])
def test_few_people_leave_the_items_sensible(people):
    table = classroom(people, 8, 25)
    fit = dy.DynAEsti(bandwidth=0.4).fit(table)
    assert fit.converged
    assert fit.items["a"].between(0.3, 3).all()


def test_accelerated_em_ends_where_plain_em_is_heading():
    """The same maximum as by hundreds of plain steps, which rise at every one of them."""
    _, _, bank, sites = parts(classroom(30, 4, 15))
    priors = PriorMixture.single(RBF(0.4))
    slow, objectives = plain_em(PeopleInMemory(sites, 1), bank, priors, 150)
    assert (np.diff(objectives) > -1e-6).all()
    settings = EMSettings(tolerance=1e-4)
    start = EMState("everyone", bank, bank, priors)
    fast = run_em(PeopleInMemory(sites, 1), start, settings)
    assert fast.converged
    assert len(fast.trace) < 40
    assert fast.trace[-1].objective > objectives[-1] - 1e-3
    assert_allclose(fast.bank.to_vector(), slow.to_vector(), atol=0.02)


def test_a_state_in_the_midst_goes_on_to_the_same_bits():
    _, _, bank, sites = parts(classroom(20, 4, 12))
    start = EMState("everyone", bank, bank, PriorMixture.single(RBF(0.4)))
    states = []
    whole = run_em(PeopleInMemory(sites, 1), start, EMSettings(), on_state=states.append)
    again = PeopleInMemory(sites, 1)
    again.restore(states[2].people, list(states[2].priors.kernels))
    resumed = run_em(again, states[2], EMSettings())
    assert np.array_equal(resumed.bank.to_vector(), whole.bank.to_vector())


@pytest.mark.parametrize(
    ("change", "gain", "learned", "small"),
    [
        (0.005, 1e-3, False, True),
        (0.02, 1e-3, False, False),  # a step too long
        (0.005, 0.5, False, False),  # still gaining
        (0.05, 1e-3, True, True),  # where priors are learned, valleys are flat
        (0.5, -1.0, True, True),  # past the top
        (0.5, 1.0, True, False),
    ],
)
def test_what_counts_as_a_small_step(change, gain, learned, small):
    bank = SimpleNamespace(learns_hyperpriors=learned, free_count=8)
    step = SimpleNamespace(
        expected=SimpleNamespace(bank=bank), objective=-100.0 + gain, change=change
    )
    assert is_small_step(step, -100.0, EMSettings(), 1000) is small


def test_many_answers_an_item_converge_as_fast_as_few():
    """EP's errors add up over the answers to an item, so its tolerance must fall with them."""
    fit = dy.DynAEsti("GRM", standard_errors=False).fit(classroom(120, 3, 150, model="GRM"))
    assert fit.converged
    assert len(fit.trace) <= 30


def test_the_mean_of_a_few_people_on_easy_items_is_the_one_that_is_stated():
    """Items that are all easy do not make everybody able: 0 is the mean of the people."""
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=6), rng.normal(-2, 0.4, 20)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    table = {
        "id": np.repeat(np.arange(6), 20),
        "item": np.tile(np.arange(20), 6),
        "resp": (rng.uniform(size=chance.shape) < chance).ravel() * 1,
        "date": np.tile(np.linspace(0, 100, 20), 6),
    }
    fit = dy.DynAEsti("2PL").fit(table)
    assert abs(float(np.mean(fit.ability([50.0])["mean"]))) < 0.05
