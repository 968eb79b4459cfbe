"""Item models: formulas, derivatives, parameters there and back."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import beta, norm, poisson

import dynaesti as dy
from dynaesti.errors import InputError
from dynaesti.model.items.bank import AbilityScale, ItemBank, ItemBlock
from dynaesti.model.items.base import ItemModel, central_gradient
from dynaesti.model.items.custom import CustomItemModel
from dynaesti.model.items.priors import pooled_location_prior
from dynaesti.model.items.registry import MODELS, item_model
from support.simulated import draw_items

THETA = np.linspace(-4, 4, 9)
CASES = [
    (name, signed, size)
    for name, cls in MODELS.items()
    for signed in (False, True)
    for size in ((2,) if cls.binary else (3, 5))
]


@pytest.mark.nojit
@pytest.mark.parametrize(("name", "signed", "size"), CASES)
def test_slopes_are_the_rows_derivatives(name, signed, size):
    model, u = draw_items(name, signed, size)
    slopes = central_gradient(model, u, THETA)
    assert_allclose(model.slopes(u, THETA), slopes, rtol=1e-6, atol=1e-8 * np.abs(slopes).max())


@pytest.mark.nojit
@pytest.mark.parametrize(("name", "size"), [("2PL", 2), ("GRM", 2), ("GRM", 3), ("GRM", 5)])
@pytest.mark.parametrize("signed", [False, True])
def test_compiled_items_climb_as_formulas_do(name, size, signed):
    """Value, gradient and curvature of 2PL and graded items in one compiled loop, against the
    general formulas.
    """
    model, u = draw_items(name, signed, size, items=7)
    counts = np.random.default_rng(1).gamma(0.5, 2.0, (7, size, THETA.size))
    counts[2, :, 3:5] = 0.0
    counts[3, 1, 4] = -0.01  # weights of interpolation may be negative
    u[4, :2] = 9.0 if name == "2PL" else 3.0  # far out
    for quick, plain in zip(
        model.evaluated(u, THETA, counts), ItemModel.evaluated(model, u, THETA, counts), strict=True
    ):
        assert_allclose(quick, plain, rtol=1e-10, atol=1e-10 * np.abs(plain).max())


@pytest.mark.parametrize(("name", "signed", "size"), CASES)
def test_parameters_come_back_and_chances_add_up(name, signed, size):
    model, u = draw_items(name, signed, size)
    assert_allclose(model.unconstrain(model.describe(u), size), u, atol=1e-12)
    assert len(model.priors(size)) == u.shape[1]
    if model.categorical:
        assert_allclose(np.exp(model.rows(u, THETA)).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("name", "signed", "size"), CASES)
def test_a_change_of_scale_leaves_the_chances(name, signed, size):
    """Parameters told on the scale 2θ + 0.5 mean the same items there."""
    model, u = draw_items(name, signed, size)
    if model.has_unit_slope:
        return  # their slope on another scale is not 1, which they cannot say
    moved = model.unconstrain(model.describe(u, 2.0, 0.5), size)
    assert_allclose(model.rows(moved, 2 * THETA + 0.5), model.rows(u, THETA), rtol=1e-9, atol=1e-9)


def test_formulas_by_hand():
    a, b, c = 1.3, 0.4, 0.2
    three = item_model("3PL")
    u = three.unconstrain({"a": np.array([a]), "b": np.array([b]), "c": np.array([c])}, 2)
    assert_allclose(
        np.exp(three.rows(u, THETA))[0, 1], c + (1 - c) * expit(a * (THETA - b)), rtol=1e-12
    )
    grm = item_model("GRM")
    u = grm.unconstrain({"a": np.array([a]), "b1": np.array([-1.0]), "b2": np.array([0.5])}, 3)
    up = expit(a * (THETA - np.array([[-1.0], [0.5]])))
    assert_allclose(np.exp(grm.rows(u, THETA))[0], [1 - up[0], up[0] - up[1], up[1]], rtol=1e-10)
    gpcm = item_model("GPCM")
    u = gpcm.unconstrain({"a": np.array([a]), "b1": np.array([-1.0]), "b2": np.array([0.5])}, 3)
    odds = np.exp(np.array([0 * THETA, a * (THETA + 1), a * (THETA + 1) + a * (THETA - 0.5)]))
    assert_allclose(np.exp(gpcm.rows(u, THETA))[0], odds / odds.sum(axis=0), rtol=1e-10)


def test_the_golf_model_is_built_outward_from_par():
    """ω_s = sgn(s) Σ a_v (θ − b_v): two steps up from par, one down."""
    golf = MODELS["golf"](pivot=1)
    u = np.log(np.array([[0.5, 0.7, 1.1, 1, 1, 1]]))
    u[0, 3:] = -1.0, 0.3, 0.9
    low = -0.5 * (THETA + 1.0)
    one = 0.7 * (THETA - 0.3)
    two = one + 1.1 * (THETA - 0.9)
    odds = np.exp(np.array([low, 0 * THETA, one, two]))
    assert_allclose(np.exp(golf.rows(u, THETA))[0], odds / odds.sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "beta"])
def test_amounts_are_sums_of_terms(name):
    model, u = draw_items(name, False, 0)
    y = {"poisson": 3.0, "gaussian": 0.7, "beta": 0.3}[name]
    terms, constant = model.terms(np.array([y]), np.zeros((1, 0)))
    ours = np.einsum("r,irg->ig", terms[0], model.rows(u, THETA)) + constant[0]
    told = model.describe(u)
    t = told["a"][:, None] * (THETA - told["b"][:, None])
    scale = np.exp(u[:, -1:])
    truth = {
        "poisson": lambda: poisson.logpmf(y, np.exp(t)),
        "gaussian": lambda: norm.logpdf(y, t, scale),
        "beta": lambda: beta.logpdf(y, scale * expit(t), scale * expit(-t)),
    }[name]()
    assert_allclose(ours, truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "signed", "size"), [c for c in CASES if c[2] in (0, 2, 3)])
def test_the_m_step_finds_the_maximum(name, signed, size):
    """Counts that come from known parameters give these back, and the gradient vanishes."""
    model, truth = draw_items(name, signed, size)
    if isinstance(model, CustomItemModel):
        return
    z = np.linspace(-5, 5, 101)
    weight = 1e4 * np.exp(-0.5 * z**2)
    if model.categorical:
        counts = np.exp(model.rows(truth, z)) * weight
    else:
        y = np.random.default_rng(1).uniform(0.1, 0.9, 50).round(2)
        counts = (
            model.terms(y, np.zeros((y.size, 0)))[0].sum(axis=0)[None, :, None]
            * weight
            * np.ones((3, 1, 1))
            * 1e-2
        )
    free = np.ones(truth.shape, dtype=bool)
    block = ItemBlock(
        model,
        size,
        np.arange(3),
        0,
        truth + 0.3,
        free,
        np.zeros((3, size)),
        np.zeros(truth.shape[1]),
        np.full(truth.shape[1], np.inf),
    )
    if model.shared:
        block = ItemBlock(
            model,
            size,
            np.arange(3),
            0,
            np.zeros(truth.shape),
            free,
            np.zeros((3, size)),
            np.zeros(truth.shape[1]),
            np.full(truth.shape[1], np.inf),
        )
        truth = truth.mean(axis=1, keepdims=True) + (
            truth - truth.mean(axis=1, keepdims=True)
        ).mean(axis=0)
        counts = np.exp(model.rows(truth, z)) * weight
    flat = counts.reshape(-1, z.size)
    for _ in range(30):
        block, _ = block.improved(flat, z)
    if model.categorical:
        assert_allclose(np.exp(model.rows(block.u, z)), np.exp(model.rows(truth, z)), atol=2e-4)
    elif name != "gaussian":  # constant responses leave no noise to estimate
        gradient = np.einsum("iprg,irg->ip", model.slopes(block.u, z), counts)
        assert np.abs(gradient).max() < 1e-2 * np.abs(counts).sum()


def test_spreads_of_learned_priors_do_not_collapse():
    model = item_model("2PL")
    rng = np.random.default_rng(0)
    u = np.stack([rng.normal(0, 0.3, 400), rng.normal(0, 1, 400)], axis=1)
    z = np.linspace(-5, 5, 101)
    counts = (np.exp(model.rows(u, z)) * 0.2 * np.exp(-0.5 * z**2)).reshape(
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
        bank = bank.improved(counts, z).bank
    assert bank.blocks[0].prior_sd.min() > 0.05
    assert np.abs(bank.blocks[0].u).max() < 5


@pytest.mark.parametrize(
    ("name", "size"), [("2PL", 2), ("3PL", 2), ("GRM", 4), ("GPCM", 4), ("golf", 4)]
)
def test_pooled_priors(name, size):
    """M-steps climb a normal prior that touches the pooled density from below.

    And the pooled density leaves the unit of ability alone.
    """
    model, _ = draw_items(name, False, size)
    weak, rng = model.priors(size), np.random.default_rng(2)
    u = np.array([w.mean for w in weak]) + 0.7 * rng.standard_normal((3000, len(weak)))
    free = rng.random(u.shape) < 0.9
    here = pooled_location_prior(u, free, weak)
    value, gradient, _ = here.evaluated(u, here.slope)
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
        assert gain >= (here.evaluated(v, here.slope)[0] - value).sum() - 1e-9

    places = [k for k, w in enumerate(weak) if w.unit == "place"]
    every = np.ones_like(free)

    def along(
        stretch,
        # the same items for abilities told in another unit; what depends on it in other ways is
        # left out
    ):
        moved = u.copy()
        moved[:, places] *= np.exp(-stretch)
        return (
            pooled_location_prior(moved, every, weak).log_density - len(places) * len(u) * stretch
        )  # the slopes' lean, all longer by the stretch

    assert abs(along(0.01) - along(-0.01)) / 0.02 < 0.05 * len(places) * len(u)


def test_flat_items_have_far_thresholds():
    """Slopes of a tenth put thresholds at 40 and more.

    Items come to rest there, at an evidence like the truth's.
    """
    rng = np.random.default_rng(3)
    people, items, each = 1000, 5, 100
    a, place = rng.uniform(0.1, 0.2, items), np.array([-6.0, -1.0, 2.0])
    person, item = (
        np.repeat(np.arange(people), each),
        np.tile(np.arange(items), people * each // items),
    )
    theta = rng.standard_normal(people)[person]
    above = expit((a[item] * theta)[:, None] - place)
    resp = (rng.random(person.size)[:, None] < above).sum(axis=1) * 1.0
    table = {"id": person, "item": item, "resp": resp, "date": np.zeros(person.size)}
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(table)
    assert fit.converged
    assert fit.items["b1"].min() < -35
    fixed = {
        k: {"a": a[k], **{f"b{j + 1}": place[j] / a[k] for j in range(3)}} for k in range(items)
    }
    assert (
        fit.log_evidence
        > dy.DynAEsti("GRM", bandwidth=np.inf, fixed=fixed).fit(table).log_evidence - 3.0
    )  # priors want steeper ones


def test_an_own_model_is_checked():
    with pytest.raises(InputError, match="start, lower, upper"):
        CustomItemModel(lambda theta, resp, params: theta, {"a": (1.0, 2.0, 3.0)})
    with pytest.raises(InputError, match="no item model '5PL'"):
        item_model("5PL")
