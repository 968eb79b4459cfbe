"""DIF and drift by simulation: sound items are flagged as often as promised, odd ones found."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import examinees

SEEDS = range(12)


def p_values(table, groups):
    """P values of DIF, of DIF with slopes, and of drift."""
    options = {"groups": "group"} if groups else {}
    fit = dy.DynAEsti("2PL", standard_errors=False, **options).fit(table)
    data = None if groups else table
    return {
        "dif": dy.evaluation.dif(fit, "group", data)["p"],
        "slopes": dy.evaluation.dif(fit, "group", data, slopes=True)["p"],
        "drift": dy.evaluation.drift(fit)["p"],
    }


@pytest.mark.parametrize(("impact", "groups"), [(0.0, False), (1.0, False), (1.0, True)])
def test_sound_items_are_called_odd_in_one_of_twenty(impact, groups):
    found = {}
    for seed in SEEDS:
        table = examinees(600, 30, 20, impact=impact, seed=seed)
        for kind, p in p_values(table, groups).items():
            found.setdefault(kind, []).append(p)
    for p in found.values():
        rate = (np.concatenate(p) < 0.05).mean()
        assert pytest.approx(rate, abs=3.3 * np.sqrt(0.05 * 0.95 / (30 * len(SEEDS)))) == 0.05


def test_odd_items_are_found():
    """0.5 easier for one half with 500 answers a side; 1 easier from half time, 500 answers."""
    by_group, by_time = [], []
    for seed in SEEDS:
        table = examinees(1000, 20, 20, dif=0.5, seed=seed)
        fit = dy.DynAEsti("2PL", groups="group", standard_errors=False).fit(table)
        by_group.append(dy.evaluation.dif(fit, "group")["p"][0] < 0.05)
        table = examinees(500, 20, 20, leak=1.0, seed=seed)
        fit = dy.DynAEsti("2PL", standard_errors=False).fit(table)
        by_time.append(dy.evaluation.drift(fit)["p"][1] < 0.05)
    assert np.mean(by_group) >= 0.9
    assert np.mean(by_time) >= 0.9
