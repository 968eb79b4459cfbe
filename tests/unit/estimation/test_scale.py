"""The scale of abilities, freed by what is fixed."""

import numpy as np
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.estimation.grid import ability_grid
from dynaesti.estimation.people import EStepRequest, PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.model.kernels import RBF
from support.simulated import classroom, parts


def test_the_scale_is_freed_only_by_what_is_fixed():
    table = classroom(40, 6, 20)
    slope = dy.DynAEsti(bandwidth=0.4, fixed={"i03": {"a": 1.0}}).fit(table)
    assert slope.bank.ability_scale.free_scale
    assert not slope.bank.ability_scale.free_location
    assert_allclose(slope.items.set_index("item").loc["i03", "a"], 1.0)
    guess = dy.DynAEsti("3PL", bandwidth=0.4, fixed={"i03": {"c": 0.2}}).fit(table)
    assert guess.scale.name == "abilities"
    assert_allclose(guess.items.set_index("item").loc["i03", "c"], 0.2)


def test_the_gradient_by_zero_and_unit_is_that_of_the_evidence():
    """Against finite differences of the log evidence, abilities moved and stretched as a whole."""
    _, _, bank, sites = parts(classroom(20, 5, 12, seed=4))
    people = PeopleInMemory(sites, 1)
    grid, priors = ability_grid(bank), PriorMixture.single(RBF(0.4))
    request = EStepRequest(1e-10)

    def evidence(location, log_scale):
        moved = bank.rescaled(location, log_scale)
        return people.e_step(moved, grid, priors, request).log_evidence.sum()

    ours = people.e_step(bank, grid, priors, request).scale[0]
    step = 1e-3
    by_zero = (evidence(step, 0.0) - evidence(-step, 0.0)) / (2 * step)
    by_unit = (evidence(0.0, step) - evidence(0.0, -step)) / (2 * step)
    np.testing.assert_allclose(ours, [by_zero, by_unit], rtol=2e-3, atol=2e-3)
