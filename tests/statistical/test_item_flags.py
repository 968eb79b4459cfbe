"""Wrong keys are found, and sound items are left alone."""

import numpy as np
import pytest

import dynaesti as dy

pytestmark = pytest.mark.filterwarnings("ignore::dynaesti.HealthWarning")


def drawn(seed, people, items, answers, wrong):
    """Answers of constant abilities; the first item has slope −1.2 where a key is wrong."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.6, 2.0, items), rng.normal(size=items)
    if wrong:
        a[0], b[0] = -1.2, np.clip(b[0], -1, 1)
    item = np.concatenate([rng.permutation(items)[:answers] for _ in range(people)])
    who = np.repeat(np.arange(people), answers)
    chance = 1 / (1 + np.exp(-a[item] * (rng.normal(size=people)[who] - b[item])))
    resp = (rng.random(chance.size) < chance) * 1
    return {"id": who, "item": item, "resp": resp, "date": np.zeros(who.size)}


@pytest.mark.parametrize(
    ("people", "items", "answers"), [(100, 20, 20), (200, 30, 15), (1000, 12, 10)]
)
def test_wrong_keys_are_found_and_sound_items_left_alone(people, items, answers):
    found, flagged, sound = [], 0, 0
    for seed in range(20):
        for wrong in (True, False):
            table = drawn(seed, people, items, answers, wrong)
            fit = dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False).fit(table)
            flags = dict(zip(fit.item_labels.tolist(), fit.items["flag"], strict=True))
            if wrong:
                found.append(flags.pop(0) == "wrong key?")
            flagged += sum(bool(flag) for flag in flags.values())
            sound += len(flags)
    assert np.mean(found) >= 0.95
    assert flagged / sound <= 0.01


def test_a_question_that_is_answered_by_chance_is_useless():
    """A class over a term: 26 pupils, 12 sittings of 12 questions, one of them a toss of a coin."""
    found, flagged, sound = [], 0, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        people, sittings, items = 26, 12, 12
        who = np.repeat(np.arange(people), sittings * items)
        day = np.tile(np.repeat(np.arange(sittings) * 7.0, items), people)
        item = np.tile(np.arange(items), people * sittings)
        ability = rng.normal(size=people)[who] + 1.5 * day / day.max() - 0.7
        slope = rng.uniform(0.6, 2.0, items)
        slope[4] = 0.0
        chance = 1 / (1 + np.exp(-slope[item] * (ability - np.linspace(-1.5, 1.5, items)[item])))
        resp = (rng.random(chance.size) < chance) * 1
        fit = dy.DynAEsti("2PL", standard_errors=False).fit(
            {"id": who, "item": item, "resp": resp, "date": day}
        )
        flags = dict(zip(fit.item_labels.tolist(), fit.items["flag"], strict=True))
        found.append(flags.pop(4) == "useless")
        flagged += sum(bool(flag) for flag in flags.values())
        sound += len(flags)
    assert np.mean(found) >= 0.8
    assert flagged / sound <= 0.01
