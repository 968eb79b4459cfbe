"""The scale of abilities, freed by what is fixed."""

from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom


def test_the_scale_is_freed_only_by_what_is_fixed():
    table = classroom(40, 6, 20)
    slope = dy.DynAEsti(bandwidth=0.4, fixed={"i03": {"a": 1.0}}).fit(table)
    assert slope.bank.ability_scale.free_scale
    assert not slope.bank.ability_scale.free_location
    assert_allclose(slope.items.set_index("item").loc["i03", "a"], 1.0)
    guess = dy.DynAEsti("3PL", bandwidth=0.4, fixed={"i03": {"c": 0.2}}).fit(table)
    assert guess.scale.name == "abilities"
    assert_allclose(guess.items.set_index("item").loc["i03", "c"], 0.2)
