"""Items with few responses: what is known of them, integrated, beside brute force."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.estimation.item_nodes import FINEST, coarser, item_nodes
from dynaesti.estimation.item_prior_mixture import learn_item_prior, posterior_weights
from dynaesti.estimation.m_step import update_block
from dynaesti.model import MODELS, AbilityScale, ItemBank, ItemBlock

GRID = np.linspace(-6, 6, 121)
PRIOR_MEAN = np.array([0.2, -0.3])
PRIOR_SD = np.array([0.5, 1.5])


def thin_bank(u):
    """2PL items at u, under a normal prior."""
    n = len(u)
    block = ItemBlock(
        MODELS["2PL"](),
        2,
        np.arange(n),
        0,
        u,
        np.ones((n, 2), dtype=bool),
        np.tile([0.0, 1.0], (n, 1)),
        PRIOR_MEAN,
        PRIOR_SD,
    )
    return ItemBank((block,), AbilityScale(), "sparse")


def counts_of(abilities, responses):
    """Counts of one item whose answers came from people of known ability."""
    out = np.zeros((2, GRID.size))
    for z, y in zip(abilities, responses, strict=True):
        out[y, np.abs(GRID - z).argmin()] += 1
    return out


def brute_force(bank, counts, at):
    """P(y = 1) at an ability, over a dense grid of both parameters."""
    model = bank.blocks[0].model
    axes = [m + s * np.linspace(-6, 6, 161) for m, s in zip(PRIOR_MEAN, PRIOR_SD, strict=True)]
    u = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log_lik = np.einsum("nrg,rg->n", model.log_likelihood(u, GRID), counts)
    log_post = log_lik - 0.5 * (((u - PRIOR_MEAN) / PRIOR_SD) ** 2).sum(axis=1)
    w = np.exp(log_post - log_post.max())
    p = np.exp(model.log_likelihood(u, np.array([at])))[:, 1, 0]
    return float(w @ p / w.sum())


@pytest.mark.parametrize("responses", [(1, 1, 1, 1), (1, 0, 1, 1), (0, 0, 0, 1), (0, 1, 0, 0)])
def test_averages_over_points_match_brute_force(responses):
    """A few answers leave a skewed posterior; its points average to the same probabilities."""
    counts = counts_of([-1.0, 0.0, 0.5, 1.5], responses)
    bank = thin_bank(np.array([[0.2, -0.3]]))
    for _ in range(5):  # to the maximum
        block, _ = update_block(bank.blocks[0], counts, GRID)
        bank = replace(bank, blocks=(block,))
    (nodes,) = item_nodes(bank, counts, GRID)
    assert_allclose(nodes.weights.sum(axis=0), 1.0, rtol=1e-6)
    model = bank.blocks[0].model
    for at in (-2.0, 0.0, 1.0, 3.0):
        p = [np.exp(model.log_likelihood(u, np.array([at])))[0, 1, 0] for u in nodes.u]
        assert_allclose(nodes.weights[:, 0] @ p, brute_force(bank, counts, at), atol=0.01)


def points_about(truth, rng):
    """Weighted points of items whose parameters were measured with an error of 0.4."""
    u = truth + 0.4 * rng.standard_normal((64, *truth.shape)) * 1.6
    log_weights = -0.5 * (((u - truth) / 0.4) ** 2).sum(axis=2)
    return u, log_weights + 0.5 * (((u - truth) / 0.64) ** 2).sum(axis=2)


def learned(truth, rng):
    """The prior learned from all items, and the means of their posteriors."""
    u, log_weights = points_about(truth, rng)
    block = thin_bank(truth).blocks[0]
    prior = learn_item_prior(block, np.arange(len(truth)), u, log_weights)
    weights = posterior_weights(prior, u, log_weights, block.free).sum(axis=0)
    return prior, np.einsum("ki,kip->ip", weights, u)


def test_the_priors_spread_is_learned_from_the_points():
    """EM over points: the spread of the points' parents comes back."""
    rng = np.random.default_rng(0)
    truth = np.array([1.0, 0.5]) + np.array([0.3, 2.0]) * rng.standard_normal((2000, 2))
    prior, mean = learned(truth, rng)
    assert_allclose(prior.shares.sum(), 1.0)
    assert_allclose(mean.mean(axis=0), truth.mean(axis=0), atol=0.05)
    assert_allclose(mean[:, 1].std(), truth[:, 1].std(), rtol=0.05)
    centre = prior.shares @ prior.means
    assert_allclose(centre, truth.mean(axis=0), atol=0.1)
    away = prior.means - centre
    whole = np.einsum("c,cpq->pq", prior.shares, prior.covariances)
    whole += np.einsum("c,cp,cq->pq", prior.shares, away, away)
    assert_allclose(np.sqrt(whole[1, 1]), truth[:, 1].std(), rtol=0.05)


def test_items_of_two_kinds_are_not_drawn_to_a_middle_where_none_is():
    """Half of the items are easy, half hard; one normal prior would draw them together."""
    rng = np.random.default_rng(1)
    truth = 0.1 * rng.standard_normal((600, 2))
    truth[:, 1] += np.where(np.arange(600) % 2, 2.5, -2.5)
    prior, mean = learned(truth, rng)
    error = np.sqrt(np.mean((mean - truth)[:, 1] ** 2))
    assert error < 0.15  # 0.1 of the kind's own spread; the measurement alone has 0.4
    middle, kind = (
        np.exp(prior.log_densities(np.array([[[0.0, at]]]), np.ones((1, 2), dtype=bool))).sum()
        for at in (0.0, 2.5)
    )
    assert middle < 0.05 * kind


def test_few_items_keep_the_prior_of_the_fit():
    rng = np.random.default_rng(2)
    prior, _ = learned(rng.standard_normal((3, 2)), rng)
    assert_allclose(prior.means, [PRIOR_MEAN])
    assert_allclose(prior.covariances, [np.diag(PRIOR_SD**2)])


def test_coarser_grids_keep_sums_over_smooth_functions():
    grid = np.linspace(-8, 8, 1282)
    counts = np.exp(-0.5 * ((grid - np.array([[0.3], [-1.0]])) / 0.2) ** 2)
    fewer, wide = coarser(counts, grid)
    assert wide.size <= FINEST
    for smooth in (np.ones_like, np.tanh, lambda x: -np.logaddexp(0, -3 * x)):
        assert_allclose(fewer @ smooth(wide), counts @ smooth(grid), rtol=2e-3)


@pytest.fixture(scope="module")
def sparse_table():
    """Items with five answers each."""
    return dy.simulate.responses(people=40, items=120, per_person=15, seed=2).table


@pytest.fixture(scope="module")
def sparse_fit(sparse_table):
    return dy.DynAEsti("2PL", bandwidth=40.0, cohort=None).fit(sparse_table)


QUESTION = {"id": ["p01", "p02"], "item": ["i003", "i007"], "date": [50.0, 90.0]}


def test_thin_items_are_predicted_less_surely(sparse_fit, sparse_table):
    assert sparse_fit.item_nodes is not None
    found = sparse_fit.predict(sparse_table)["p1"].to_numpy()
    sure = replace(sparse_fit, item_nodes=None).predict(sparse_table)["p1"].to_numpy()
    assert np.abs(found - 0.5).mean() < np.abs(sure - 0.5).mean()


def test_many_responses_need_no_points():
    table = dy.simulate.responses(people=60, items=5, per_person=40, seed=2).table
    assert dy.DynAEsti("2PL", bandwidth=40.0, cohort=None).fit(table).item_nodes is None


def test_saved_fits_predict_alike(sparse_fit, tmp_path):
    sparse_fit.save(tmp_path / "thin.dyn")
    again = dy.load(tmp_path / "thin.dyn")
    assert again.predict(QUESTION)["p1"].tolist() == sparse_fit.predict(QUESTION)["p1"].tolist()


def test_shards_predict_alike(sparse_fit, sparse_table, tmp_path):
    shards = dy.prepare(sparse_table, str(tmp_path / "shards"), shards=3)
    fit = dy.DynAEsti("2PL", bandwidth=40.0, cohort=None).fit(shards)
    assert_allclose(fit.predict(QUESTION)["p1"], sparse_fit.predict(QUESTION)["p1"], atol=1e-5)
    opened = dy.load(fit.run.root)
    assert opened.predict(QUESTION)["p1"].tolist() == fit.predict(QUESTION)["p1"].tolist()


def test_the_reflected_scale_predicts_alike(sparse_table):
    from dynaesti.results.orientation import reflected

    fit = dy.DynAEsti("2PL", bandwidth=40.0, cohort=None, direction="free").fit(sparse_table)
    assert fit.item_nodes is not None
    assert_allclose(reflected(fit).predict(QUESTION)["p1"], fit.predict(QUESTION)["p1"], rtol=1e-9)


def test_new_items_join_with_their_estimates(sparse_fit):
    ids = [f"p{k:02d}" for k in range(12)]
    more = {
        "id": ids,
        "item": ["new"] * 12,
        "resp": [k % 2 for k in range(12)],
        "date": [99.0] * 12,
    }
    grown = sparse_fit.update(more, new_items=True)
    found = grown.predict({"id": ["p20"], "item": ["new"], "date": [100.0]})["p1"]
    assert 0.2 < float(found[0]) < 0.8
    assert_allclose(
        grown.predict({k: v[:1] for k, v in QUESTION.items()} | {"id": ["p30"]})["p1"],
        sparse_fit.predict({k: v[:1] for k, v in QUESTION.items()} | {"id": ["p30"]})["p1"],
        rtol=1e-6,
    )
