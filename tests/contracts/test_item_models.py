"""Every item model: derivatives, parameters there and back, M-steps."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynaesti.estimation.e_step import EStep
from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.m_step import update_block
from dynaesti.estimation.population import (
    PriorMixture,
    estimate_mixing_weights,
    log_prior_of_weights,
)
from dynaesti.model.items.bank import ItemBlock
from dynaesti.model.items.base import ItemModel, central_gradient
from dynaesti.model.items.registry import MODELS
from dynaesti.model.kernels import RBF
from support.simulated import classroom, draw_items, parts

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
    assert_allclose(
        model.log_likelihood_gradient(u, THETA), slopes, rtol=1e-6, atol=1e-8 * np.abs(slopes).max()
    )


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
        model.value_gradient_curvature(u, THETA, counts),
        ItemModel.value_gradient_curvature(model, u, THETA, counts),
        strict=True,
    ):
        assert_allclose(quick, plain, rtol=1e-10, atol=1e-10 * np.abs(plain).max())


@pytest.mark.parametrize(("name", "signed", "size"), CASES)
def test_parameters_come_back_and_chances_add_up(name, signed, size):
    model, u = draw_items(name, signed, size)
    assert_allclose(model.unconstrain(model.constrain(u), size), u, atol=1e-12)
    assert len(model.priors(size)) == u.shape[1]
    if model.categorical:
        assert_allclose(np.exp(model.log_likelihood(u, THETA)).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("name", "signed", "size"), CASES)
def test_a_change_of_scale_leaves_the_chances(name, signed, size):
    """Parameters told on the scale 2θ + 0.5 mean the same items there."""
    model, u = draw_items(name, signed, size)
    if model.has_unit_slope:
        pytest.skip("a slope of 1 is another on another scale, which the model cannot say")
    moved = model.unconstrain(model.constrain(u, 2.0, 0.5), size)
    assert_allclose(
        model.log_likelihood(moved, 2 * THETA + 0.5),
        model.log_likelihood(u, THETA),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize(("name", "signed", "size"), [c for c in CASES if c[2] in (2, 3)])
def test_the_m_step_finds_the_maximum(name, signed, size):
    """Counts that come from known parameters give these back, and the gradient vanishes."""
    model, truth = draw_items(name, signed, size)
    z = np.linspace(-5, 5, 101)
    weight = 1e4 * np.exp(-0.5 * z**2)
    if model.categorical:
        counts = np.exp(model.log_likelihood(truth, z)) * weight
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
    if model.shares_thresholds:
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
        counts = np.exp(model.log_likelihood(truth, z)) * weight
    flat = counts.reshape(-1, z.size)
    for _ in range(30):
        block, _ = update_block(block, flat, z)
    if model.categorical:
        assert_allclose(
            np.exp(model.log_likelihood(block.u, z)),
            np.exp(model.log_likelihood(truth, z)),
            atol=2e-4,
        )
    elif name != "gaussian":  # constant responses leave no noise to estimate
        gradient = np.einsum("iprg,irg->ip", model.log_likelihood_gradient(block.u, z), counts)
        assert np.abs(gradient).max() < 1e-2 * np.abs(counts).sum()


def evidence(bank, answers, kernels, z):
    """An E-step with the population's shares at rest: (E-step, rows, what the shares maximise)."""
    rows, flat, starts = tabulate_items(bank, z), np.zeros(len(kernels)), [None] * len(kernels)
    priors = PriorMixture(tuple(kernels), flat, np.exp(flat))
    logs = EStep(answers, 1).run(rows, priors, starts, 1e-10).log_evidence
    share = estimate_mixing_weights(logs, flat)
    total = np.logaddexp.reduce(np.log(share)[:, None] + logs, axis=0).sum() + log_prior_of_weights(
        share, flat
    )
    found = EStep(answers, 1).run(rows, replace(priors, weights=share), starts, 1e-10)
    return found, rows, total


@pytest.mark.parametrize("model", ["2PL", "3PL", "GRM", "GPCM", "poisson", "gaussian", "beta"])
def test_the_gradient_of_the_m_step_is_that_of_the_evidence(model):
    """Expected counts under the tilted distributions × slopes = finite differences of the (EP)
    evidence, mixture of priors included.
    """
    kind = {"3PL": "2PL", "GPCM": "GRM"}.get(model, model)
    table = classroom(12, 4, 15, model=kind)
    table.loc[::5, "date"] = table.loc[::5, "date"].round(1)  # some answers share an instant
    _, _, bank, answers = parts(table, model)
    kernels = [RBF(0.3), RBF(1.0)]
    z = ability_grid(bank)
    expected, rows, _ = evidence(bank, answers, kernels, z)
    executor = EStep(answers, 1)
    priors = PriorMixture(tuple(kernels), np.zeros(2), np.ones(2))
    counts = executor.counts(priors, expected, rows)
    ours = np.concatenate(
        [
            np.einsum(
                "rpg,rg->rp", b.log_likelihood_gradient(b_theta), counts[b.first_row : b.end_row]
            )
            .reshape(len(b.items), b.depth, -1)
            .sum(axis=1)
            .ravel()
            for b in bank.blocks
            for b_theta in [bank.ability_scale.theta(z)]
        ]
    )
    x = bank.to_vector()
    rng = np.random.default_rng(1)
    for _ in range(3):
        d = rng.normal(size=x.size)
        step = 1e-4
        ahead, behind = (
            evidence(bank.from_vector(x + s * step * d), answers, kernels, z)[2] for s in (1, -1)
        )
        assert_allclose((ahead - behind) / (2 * step), ours @ d, rtol=2e-5, atol=2e-4)
