"""Effects by simulation: intervals that cover, practice that is found, sizes of blocks."""

import warnings

import numpy as np
import pytest

import dynaesti as dy

TRUTH = {"age": 0.4, "treat": 0.5, "practice(item)": 0.4, "load": 0.3}
REPLICATIONS = 200


def drawn(seed, people=150, items=15, per_person=20, rater_sd=0.0):
    """Answers of people with columns of their own (age, treat) and of answers (load, rater)."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), per_person)
    item = rng.integers(0, items, person.size)
    date = np.sort(rng.uniform(0, 100, (people, per_person)), axis=1).ravel()
    age, treat = rng.normal(size=people), rng.integers(0, 2, people)
    load = rng.normal(size=person.size)
    rater = rng.integers(0, 12, person.size)
    before = np.zeros(person.size)
    seen = {}
    for k, key in enumerate(zip(person.tolist(), item.tolist(), strict=True)):
        before[k] = seen.get(key, 0)
        seen[key] = before[k] + 1
    z = rng.normal(size=people)[person] + 0.4 * age[person] + 0.5 * treat[person]
    z += 0.4 * np.log1p(before) + 0.3 * load + rng.normal(0, 1, 12)[rater] * rater_sd
    chance = 1 / (1 + np.exp(rng.normal(size=items)[item] - z))
    return {
        "id": person,
        "item": item,
        "date": date,
        "resp": (rng.uniform(size=person.size) < chance).astype(int),
        "age": age[person],
        "treat": treat[person],
        "load": load,
        "rater": rater,
    }


@pytest.mark.parametrize("model", ["1PL", "2PL"])
def test_intervals_cover(model):
    """95 % intervals of effects of people and of answers, 200 replications."""
    truth = np.array(list(TRUTH.values()))
    inside, off = [], []
    for seed in range(REPLICATIONS):
        fit = dy.DynAEsti(model, effects=" + ".join(TRUTH), bandwidth=np.inf).fit(
            drawn(seed, people=300)
        )
        found = fit.effects
        assert list(found["term"]) == list(TRUTH)
        lower, upper = np.asarray(found["lower"]), np.asarray(found["upper"])
        inside.append((lower < truth) & (truth < upper))
        off.append((np.asarray(found["estimate"]) - truth) / np.asarray(found["se"]))
    each = np.mean(inside, axis=0)
    assert 0.93 <= each.mean() <= 0.97
    assert (each > 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / REPLICATIONS)).all()
    assert np.abs(np.mean(off, axis=0)).max() < 0.3


def test_the_size_of_a_block_is_found_or_found_to_be_none():
    found = {}
    for size in (0.0, 0.5):
        sizes = []
        for seed in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = dy.DynAEsti("1PL", effects="random(rater)", bandwidth=np.inf).fit(
                    drawn(seed, rater_sd=size)
                )
            sizes.append(float(np.asarray(fit.effects["estimate"])[0]))
        found[size] = np.array(sizes)
    assert np.median(found[0.0]) < 0.08
    assert 0.35 < found[0.5].mean() < 0.6
