"""Plans by real fits: nothing is found where there is nothing, and power is that of the errors."""

import numpy as np
from scipy.special import ndtr

import dynaesti as dy

STUDY = {"people": 100, "items": 15, "answers": 10, "slope": 1.5}


def test_where_nothing_rises_hardly_anything_is_found():
    """Binomial(20, 0.05) exceeds 4 once in four hundred times."""
    one = dy.plan(**STUDY, rise=0.0, replications=20, seed=3).outlooks[0]
    assert one.found * 20 <= 4
    assert abs(one.estimate) < 3 * one.se / np.sqrt(20)


def test_power_is_that_of_the_normal_approximation():
    one = dy.plan(**STUDY, rise=0.9, replications=16, seed=4).outlooks[0]
    power = ndtr(0.9 / one.se - 1.96)
    assert abs(one.found - power) < 3 * one.found_error
    assert abs(one.estimate - 0.9) < 3.5 * one.se / 4
    assert 0.9 < one.ability_cover < 0.98
