"""The kernels that a population mixes are few, and serve it no worse than any one of the grid."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.hyper_grid import MOST_CHEAP_FEATURES, population_grids
from dynaesti.estimation.kernel_search import SearchSettings, add_missing_priors, select_priors
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.model.kernels import RBF, Matern32, named_kernel
from support.simulated import classroom, parts

SETTINGS = SearchSettings()


@pytest.fixture(scope="module")
def population():
    _, _, bank, sites = parts(classroom(40, 6, 25, bandwidth=0.2))
    return PeopleInMemory(sites, 1), bank, population_grids(RBF(), 1.0, 0.04, 1.0)


def evidence(people, bank, priors):
    table = tabulate_items(bank, ability_grid(bank))
    found = people.runner.run(table, priors, [None] * len(priors.kernels), 1e-6)
    return priors.reweighted(found.log_evidence).log_evidence(found.log_evidence)


def test_few_kernels_serve_no_worse_than_any_single_one(population):
    people, bank, grids = population
    found = select_priors(people, bank, None, grids, SETTINGS)
    assert 1 <= len(found.kernels) <= SETTINGS.max_kernels
    assert found.weights.sum() == pytest.approx(1.0)
    mixed = evidence(people, bank, found)
    for bandwidth in (0.05, 0.1, 0.2, 0.4, 0.8):
        assert mixed > evidence(people, bank, PriorMixture.single(RBF(bandwidth))) - 0.5


def test_what_is_missing_is_added_and_nothing_else(population):
    people, bank, grids = population
    found = select_priors(people, bank, None, grids, SETTINGS)
    assert add_missing_priors(people, bank, grids, found, SETTINGS) is None
    far_off = PriorMixture.single(RBF(5.0))
    added = add_missing_priors(people, bank, grids, far_off, SETTINGS)
    assert added is not None
    assert np.isclose(added.weights.sum(), 1.0)
    assert evidence(people, bank, added) > evidence(people, bank, far_off) + 2.0


def test_smooth_curves_get_a_smooth_kernel_and_rough_ones_a_rough_one():
    smooth, rough = (
        dy.DynAEsti("2PL", standard_errors=False).fit(_answers(truth)).priors
        for truth in (RBF(0.15), Matern32(0.15))
    )
    assert _share(smooth, RBF) > 0.8
    assert _share(rough, RBF) < 0.2


def _share(priors, kind):
    """Weight of kernels whose moving summand is of a kind."""
    return float(priors.weights @ [isinstance(k.summands[-1], kind) for k in priors.kernels])


def test_features_are_tried_only_where_they_are_cheap():
    rough, middle, smooth = population_grids(named_kernel("level+smooth"), 100.0, 0.1, 300.0)
    shortest = [float(np.exp(grid.axes[0].lowest)) for grid in (rough, middle, smooth)]
    assert shortest[:2] == pytest.approx([2.0, 2.0])
    assert shortest[2] == pytest.approx(2 * 300 / MOST_CHEAP_FEATURES)


def _answers(truth, people=80, answers=120, items=30):
    """Answers of people whose abilities are drawn from a kernel."""
    rng = np.random.default_rng(4)
    times = np.linspace(0, 1, answers)
    root = np.linalg.cholesky(truth.cov(times[:, None], times) + 1e-8 * np.eye(answers))
    ability = rng.standard_normal((people, answers)) @ root.T
    item = rng.integers(items, size=(people, answers))
    chance = 1 / (1 + np.exp(-2 * (ability - np.linspace(-1, 1, items)[item])))
    return {
        "id": np.repeat(np.arange(people), answers),
        "item": item.ravel(),
        "resp": (rng.uniform(size=chance.shape) < chance).ravel() * 1,
        "date": np.tile(times, people),
    }
