"""Constant abilities by quadrature, against dense integration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from dynaesti.estimation.static_abilities import StaticAbilityIntegrator
from dynaesti.inference.moments.table import likelihood_table
from dynaesti.inference.sites import Moments, SiteFactors
from support.oracles import dense_static_abilities, guessing_rows

pytestmark = pytest.mark.nojit
GRID = np.linspace(-8, 8, 321)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    a, b, c = (
        np.exp(rng.normal(0, 0.5, 30)),
        rng.normal(0, 1.5, 30),
        np.where(np.arange(30) < 10, 0.25, 0.0),
    )
    counts = np.array([0, 1, 2, 5, 20, 60, 200, 3000])
    item = rng.integers(0, 30, counts.sum())
    theta = np.repeat(rng.normal(0, 1.5, counts.size), counts)
    right = rng.uniform(size=item.size) < c[item] + (1 - c[item]) * expit(
        a[item] * (theta - b[item])
    )
    start = np.concatenate([[0], np.cumsum(counts)])
    return (a, b, c), start, 2 * item + right, np.ones(item.size)


@pytest.mark.parametrize("warm", [False, True])
def test_moments_and_counts_are_those_of_dense_integration(people, warm):
    items, *members = people
    people = np.arange(members[0].size - 1)
    whole = StaticAbilityIntegrator(
        likelihood_table(GRID[0], GRID[1] - GRID[0], guessing_rows(GRID, *items)),
        1.3,
        SiteFactors(np.arange(members[0].size - 1), *members),
    )
    log_z, mean, var = np.zeros((3, people.size))
    truth = list(dense_static_abilities(items, *members, 1.3))
    exact = np.array([[z, p @ x, p @ x**2 - (p @ x) ** 2] for z, x, p in truth]).T
    start = (exact[1] + 0.3 * np.sqrt(exact[2]), 1.2 * exact[2]) if warm else None
    done = whole.integrate(people, start, log_z, Moments(mean, var))
    assert done[:-1].all()
    assert not done[-1]  # three thousand answers are too narrow for this grid
    people = people[:-1]
    assert_allclose([log_z[:-1], mean[:-1], var[:-1]], exact[:, :-1], rtol=1e-7, atol=1e-7)
    tables, weight = {}, np.linspace(0.5, 1.0, members[0].size)
    whole.count(people, mean, var, weight, tables)
    assert len(tables) > 1
    for power in range(4):
        found = sum(table @ GRID[::stride] ** power for stride, table in tables.items())
        wanted = np.zeros(60)
        for i in people:
            np.add.at(
                wanted,
                members[1][members[0][i] : members[0][i + 1]],
                weight[i] * (truth[i][2] @ truth[i][1] ** power),
            )
        assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_scores_are_expectations_of_slopes(people):
    items, *members = people
    people = np.arange(members[0].size - 2)
    whole = StaticAbilityIntegrator(
        likelihood_table(GRID[0], GRID[1] - GRID[0], guessing_rows(GRID, *items)),
        1.0,
        SiteFactors(np.arange(members[0].size - 1), *members),
    )
    log_z, mean, var = np.zeros((3, people.size + 1))
    assert whole.integrate(people, None, log_z, Moments(mean, var)).all()
    slopes = np.stack(
        [np.sin(GRID + np.arange(60)[:, None]), np.cos(GRID + np.arange(60)[:, None])], axis=1
    )
    out = np.zeros((members[1].size, 2))
    whole.score(
        people,
        mean,
        var,
        np.ones(people.size),
        {s: np.ascontiguousarray(slopes[:, :, ::s]) for s in (8, 4, 2, 1)},
        out,
    )
    for i, (_, x, p) in zip(people, dense_static_abilities(items, *members, 1.0), strict=False):
        for j in range(members[0][i], members[0][i + 1]):
            assert_allclose(
                out[j], [p @ np.sin(x + members[1][j]), p @ np.cos(x + members[1][j])], atol=1e-7
            )


def test_what_is_impossible_everywhere_is_left_to_others():
    rows = np.full((1, GRID.size), -np.inf)
    whole = StaticAbilityIntegrator(
        likelihood_table(GRID[0], GRID[1] - GRID[0], np.zeros((1, GRID.size)))._replace(
            log_lik=rows
        ),
        1.0,
        SiteFactors(np.arange(1), np.array([0, 1]), np.array([0]), np.ones(1)),
    )
    posterior = Moments(np.zeros(1), np.zeros(1))
    assert not whole.integrate(np.arange(1), None, np.zeros(1), posterior).any()
