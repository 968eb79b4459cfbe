"""Priors of items, given and learned."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.estimation.m_step import maximise_items
from dynaesti.model.items.bank import AbilityScale, ItemBank, ItemBlock
from dynaesti.model.items.priors import SLOPE_CENTRE_SD, pooled_location_prior
from dynaesti.model.items.registry import item_model
from support.simulated import classroom, draw_items


@pytest.mark.parametrize("model", ["2PL", "GRM", "NRM"])
def test_turned_items_take_their_learned_priors_along(model):
    table = classroom(40, 25, 12)
    bank = (
        dy.DynAEsti(model, direction="free", priors="hierarchical", bandwidth=np.inf, iterations=60)
        .fit(table)
        .bank
    )
    assert abs(bank.blocks[0].prior_mean[0]) > 0.1
    assert bank.reflected().log_prior() == pytest.approx(bank.log_prior())
    for back, block in zip(bank.reflected().reflected().blocks, bank.blocks, strict=True):
        assert_allclose(back.u, block.u)
        assert_allclose(back.prior_mean, block.prior_mean)


def test_spreads_of_learned_priors_do_not_collapse():
    model = item_model("2PL")
    rng = np.random.default_rng(0)
    u = np.stack([rng.normal(0, 0.3, 400), rng.normal(0, 1, 400)], axis=1)
    z = np.linspace(-5, 5, 101)
    counts = (np.exp(model.log_likelihood(u, z)) * 0.2 * np.exp(-0.5 * z**2)).reshape(
        -1, z.size
    )  # five answers an item or so
    weak = model.priors(2)
    block = ItemBlock(
        model,
        2,
        np.arange(400),
        0,
        np.zeros_like(u),
        np.ones(u.shape, dtype=bool),
        np.tile([0.0, 1.0], (400, 1)),
        np.array([w.mean for w in weak]),
        np.array([w.sd for w in weak]),
    )
    bank = ItemBank((block,), AbilityScale(), "hierarchical")
    for _ in range(200):
        bank = maximise_items(bank, counts, z).bank
    assert bank.blocks[0].prior_sd.min() > 0.05
    assert np.abs(bank.blocks[0].u).max() < 5


@pytest.mark.parametrize(
    ("name", "size"), [("2PL", 2), ("3PL", 2), ("GRM", 4), ("GPCM", 4), ("golf", 4)]
)
def test_pooled_priors(name, size):
    """M-steps climb a normal prior that touches the pooled density from below."""
    model, _ = draw_items(name, False, size)
    weak, rng = model.priors(size), np.random.default_rng(2)
    u = np.array([w.mean for w in weak]) + 0.7 * rng.standard_normal((3000, len(weak)))
    free = rng.random(u.shape) < 0.9
    here = pooled_location_prior(u, free, weak)
    value, gradient, _ = here.value_gradient_curvature(u, here.slope)
    step = 1e-4
    for p in range(len(weak)):
        move = np.zeros_like(u)
        move[7, p] = step * free[7, p]
        slope = (
            pooled_location_prior(u + move, free, weak).log_density
            - pooled_location_prior(u - move, free, weak).log_density
        ) / (2 * step)
        assert slope == pytest.approx(gradient[7, p] * free[7, p], abs=1e-4)
    for _ in range(20):
        v = np.where(free, u + 0.3 * rng.standard_normal(u.shape), u)
        gain = pooled_location_prior(v, free, weak).log_density - here.log_density
        assert gain >= (here.value_gradient_curvature(v, here.slope)[0] - value).sum() - 1e-9


@pytest.mark.parametrize(("name", "size"), [("2PL", 2), ("GRM", 4), ("golf", 4)])
def test_pooled_priors_do_not_say_how_far_ability_explains_responses(name, size):
    """The same items in another unit of ability cost what the centre of log slopes does."""
    model, _ = draw_items(name, False, size)
    weak, rng = model.priors(size), np.random.default_rng(2)
    u = np.array([w.mean for w in weak]) + 0.7 * rng.standard_normal((500, len(weak)))
    every = np.ones(u.shape, dtype=bool)
    roles = [w.role for w in weak]
    slopes, places = ([r == role for r in roles] for role in ("log slope", "location"))

    def density(stretch):
        moved = u.copy()
        moved[:, slopes] += stretch
        moved[:, places] *= np.exp(-stretch)
        return pooled_location_prior(moved, every, weak).log_density

    for stretch in (-1.0, 0.5, 2.0):
        own = -0.5 * (stretch / SLOPE_CENTRE_SD) ** 2
        assert density(stretch) - density(0.0) == pytest.approx(own, abs=0.2 + 0.1 * abs(stretch))
