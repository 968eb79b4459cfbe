"""The kernels that a population mixes are few, and serve it no worse than any one of the grid."""

import numpy as np
import pytest

from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.hyper_grid import population_grid
from dynaesti.estimation.kernel_search import SearchSettings, add_missing_priors, select_priors
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.model.kernels import RBF
from support.simulated import classroom, parts

SETTINGS = SearchSettings()


@pytest.fixture(scope="module")
def population():
    _, _, bank, sites = parts(classroom(40, 6, 25, bandwidth=0.2))
    return PeopleInMemory(sites, 1), bank, population_grid(RBF(), 1.0, 0.04)


def evidence(people, bank, priors):
    table = tabulate_items(bank, ability_grid(bank))
    found = people.runner.run(table, priors, [None] * len(priors.kernels), 1e-6)
    return priors.reweighted(found.log_evidence).log_evidence(found.log_evidence)


def test_few_kernels_serve_no_worse_than_any_single_one(population):
    people, bank, grid = population
    found = select_priors(people, bank, None, grid, SETTINGS)
    assert 1 <= len(found.kernels) <= SETTINGS.max_kernels
    assert found.weights.sum() == pytest.approx(1.0)
    mixed = evidence(people, bank, found)
    for bandwidth in (0.05, 0.1, 0.2, 0.4, 0.8):
        assert mixed > evidence(people, bank, PriorMixture.single(RBF(bandwidth))) - 0.5


def test_what_is_missing_is_added_and_nothing_else(population):
    people, bank, grid = population
    found = select_priors(people, bank, None, grid, SETTINGS)
    assert add_missing_priors(people, bank, grid, found, SETTINGS) is None
    far_off = PriorMixture.single(RBF(5.0))
    added = add_missing_priors(people, bank, grid, far_off, SETTINGS)
    assert added is not None
    assert np.isclose(added.weights.sum(), 1.0)
    assert evidence(people, bank, added) > evidence(people, bank, far_off) + 2.0
