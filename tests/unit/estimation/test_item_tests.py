"""Score tests of items: scores against finite differences, products against sums over answers."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, norm

from dynaesti.core import Array
from dynaesti.estimation.e_step import EStep, EStepPosterior, kernel_weights
from dynaesti.estimation.expected_scores import response_scores
from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.item_tests import (
    EfficientScores,
    ItemTestSums,
    ScreenedColumns,
    combined_p,
    efficient_scores,
    item_test_sums,
    joint_tests,
    single_tests,
)
from dynaesti.estimation.population import PriorMixture
from dynaesti.inference import likelihood_table
from dynaesti.model.kernels import RBF, Level, Matern32
from support.simulated import classroom, parts

NONE = np.zeros(0, dtype=np.int64)
KERNELS = {
    "one curve": (RBF(0.3),),
    "constant": (Level(amplitude=1.0),),
    "mixture": (RBF(0.4), Level(amplitude=0.7) + Matern32(0.5, amplitude=0.7)),
}


def prior(kernels):
    share = np.full(len(kernels), 1 / len(kernels))
    return PriorMixture(kernels, np.zeros(share.size), share)


def classroom_parts(model="2PL"):
    """Sites and bank of a small class, some answers at the same instant."""
    table = classroom(15, 4, 12)
    table.loc[::4, "date"] = table.loc[::4, "date"].round(1)
    _, _, bank, sites = parts(table, model)
    return sites, bank


def evidence(sites, table, priors):
    """Log evidence of everyone, at given weights of the kernels."""
    found = EStep(sites, 1).run(table, priors, [None] * len(priors.kernels), 1e-9)
    logs = np.log(priors.weights)[:, None] + found.log_evidence
    return np.logaddexp.reduce(logs, axis=0).sum(), found


def moved_evidence(sites, bank, grid, priors, moved, shift):
    """Log evidence with the likelihood of some responses at an ability that is shifted."""
    own = bank.log_likelihood(grid)
    rows = np.concatenate([own, bank.log_likelihood(grid + shift)])
    table = likelihood_table(float(grid[0]), float(grid[1] - grid[0]), rows)
    layout = sites.layout
    factor_row = layout.factor_row + np.where(moved[layout.factor_response], own.shape[0], 0)
    return evidence(replace(sites, layout=replace(layout, factor_row=factor_row)), table, priors)[0]


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("model", ["2PL", "GRM"])
def test_scores_by_ability_are_gradients_of_the_evidence(kernels, model):
    sites, bank = classroom_parts(model)
    priors = prior(kernels)
    grid = ability_grid(bank)
    table = tabulate_items(bank, grid)
    _, found = evidence(sites, table, priors)
    posterior = EStepPosterior(found.ep, kernel_weights(priors.weights, found.ep))
    scores = response_scores(EStep(sites, 1), bank, table, priors, posterior)
    moved = (scores.item == 1) & (scores.person % 2 == 0)
    step = 1e-3
    ends = [moved_evidence(sites, bank, grid, priors, moved, s * step) for s in (1, -1)]
    ours = scores.scores[moved, scores.by_ability].sum()
    # the gradient of the rows is taken on the grid
    assert_allclose(ours, (ends[0] - ends[1]) / (2 * step), rtol=2e-3, atol=2e-3)


def test_expected_products_are_sums_over_categories():
    """Of a response, given all others: by quadrature with many nodes."""
    sites, bank = classroom_parts("GRM")
    priors = prior((RBF(0.3),))
    grid = ability_grid(bank)
    table = tabulate_items(bank, grid)
    _, found = evidence(sites, table, priors)
    posterior = EStepPosterior(found.ep, kernel_weights(priors.weights, found.ep))
    scores = response_scores(EStep(sites, 1), bank, table, priors, posterior)
    # a response alone at its instant: the others are its cavity
    alone = np.flatnonzero(np.diff(sites.layout.factor_start) == 1)[3]
    m = sites.layout.factor_response[sites.layout.factor_start[alone]]
    mean, var = (values[alone] for values in found.ep[0].cavity)
    z = np.linspace(mean - 8 * var**0.5, mean + 8 * var**0.5, 4001)
    weight = norm.pdf(z, mean, var**0.5) * (z[1] - z[0])
    block = bank.blocks[0]
    rows = block.first_row + block.depth * scores.item[m] + np.arange(block.depth)
    lik = np.exp(bank.log_likelihood(z)[rows])
    rise = (bank.log_likelihood(z + 1e-4)[rows] - bank.log_likelihood(z - 1e-4)[rows]) / 2e-4
    chance = (weight * lik).sum(axis=1)
    score = (weight * lik * rise).sum(axis=1) / chance
    k = scores.by_ability
    ours = scores.excess[m, k, k] + scores.scores[m, k] ** 2
    assert_allclose(ours, (chance * score**2).sum(), rtol=0.02)


def sums_of(scores: Array, products: Array) -> ItemTestSums:
    """Sums of one item: a tested effect, a parameter, and three that all items share."""
    return ItemTestSums(
        np.ones((1, 1), dtype=np.int64),
        scores[None, :2],
        products[None, :2, :2],
        scores[2:],
        products[2:, 2:],
        products[None, :2, 2:],
    )


def test_projection_is_a_schur_complement():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 9))
    scores, products = rng.normal(size=5), root @ root.T
    found = efficient_scores(sums_of(scores, products), 1, np.zeros((0, 0)), NONE)
    rest = np.linalg.solve(products[1:, 1:], products[1:, 0])
    assert_allclose(found.scores[0, 0], scores[0] - rest @ scores[1:], rtol=1e-5)
    assert_allclose(found.information[0, 0, 0], products[0, 0] - rest @ products[1:, 0], rtol=1e-5)


def test_what_nothing_is_left_of_is_not_tested():
    root = np.random.default_rng(0).normal(size=(4, 9))
    root = np.concatenate([root[:1], root])  # the effect and the parameter are one
    found = efficient_scores(sums_of(np.ones(5), root @ root.T), 1, np.zeros((0, 0)), NONE)
    assert joint_tests(found).df[0] == 0
    assert np.isnan(joint_tests(found).p[0])
    assert np.isnan(single_tests(found).p[0, 0])


def test_joint_and_single_tests_are_those_of_normals():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 6))
    information = (root @ root.T)[None]
    score = np.array([[1.3, -2.0]])
    found = EfficientScores(score, information, information)
    joint = joint_tests(found)
    effects = np.linalg.solve(information[0], score[0])
    assert_allclose(joint.effects[0], effects)
    assert_allclose(joint.p[0], chi2.sf(score[0] @ effects, 2))
    assert_allclose(joint.covariance[0], np.linalg.inv(information[0]))
    single = single_tests(found)
    sd = np.sqrt(np.diagonal(information[0]))
    assert_allclose(single.p[0], 2 * norm.sf(np.abs(score[0]) / sd))
    assert_allclose(single.se[0], 1 / sd)


def test_combined_p_values():
    assert_allclose(combined_p(np.array([[0.03, np.nan], [0.2, 0.2]])), [0.03, 0.2])
    assert np.isnan(combined_p(np.array([[np.nan, np.nan]]))).all()
    # of one small and many large ones: about the number of tests times the smallest
    many = np.concatenate([[1e-6], np.full(9, 0.5)])[None]
    assert_allclose(combined_p(many), 1e-5, rtol=0.01)


def test_sums_add_up_over_people():
    """The sums of all are those of two halves; products are outer products of people's sums."""
    sites, bank = classroom_parts()
    priors = prior((RBF(0.3),))
    table = tabulate_items(bank, ability_grid(bank))

    def sums(people):
        some = sites.select(people)
        _, found = evidence(some, table, priors)
        posterior = EStepPosterior(found.ep, kernel_weights(priors.weights, found.ep))
        scores = response_scores(EStep(some, 1), bank, table, priors, posterior)
        x = np.sin(people[scores.person] + scores.item)[:, None]
        zero = np.zeros(x.size, dtype=np.int64)
        columns = ScreenedColumns(x, x, True, zero, 1)
        return scores, x, item_test_sums(scores, columns, NONE)

    scores, x, whole = sums(np.arange(15))
    halves = sums(np.arange(7))[2] + sums(np.arange(7, 15))[2]
    for name in ItemTestSums.__dataclass_fields__:
        assert_allclose(getattr(halves, name), getattr(whole, name), rtol=1e-7, atol=1e-9)
    item = 2
    mine = scores.item == item
    k = scores.by_ability
    by_person = np.bincount(scores.person[mine], x[mine, 0] * scores.scores[mine, k], 15)
    expected = (by_person**2).sum() + (x[mine, 0] ** 2 * scores.excess[mine, k, k]).sum()
    assert_allclose(whole.products[item, 0, 0], expected)
    assert_allclose(whole.scores[item, 0], by_person.sum())
