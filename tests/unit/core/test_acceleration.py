"""Anderson acceleration: linear fixed points in as many steps as they have directions."""

import numpy as np
from numpy.testing import assert_allclose

from dynaesti.core import AndersonAcceleration, anderson_step


def slow_map(seed=0, size=4):
    """x → A x + b with eigenvalues up to 0.99, and its fixed point."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    a = basis @ np.diag(np.linspace(0.2, 0.99, size)) @ basis.T
    b = rng.normal(size=size)
    return (lambda x: a @ x + b), np.linalg.solve(np.eye(size) - a, b)


def test_normal_equations_reach_a_linear_fixed_point():
    step, fixed = slow_map()
    x, accelerator = np.zeros(4), AndersonAcceleration()
    assert not accelerator.is_extrapolated
    for _ in range(10):
        x = accelerator.propose(x, step(x) - x, np.full(4, 1e-3))
    assert accelerator.is_extrapolated
    assert_allclose(x, fixed, rtol=1e-5)


def test_jumps_are_bounded_in_standard_errors():
    step, _ = slow_map()
    x, accelerator = np.zeros(4), AndersonAcceleration()
    for _ in range(4):
        residual = step(x) - x
        moved = accelerator.propose(x, residual, np.ones(4))
        assert np.abs(moved - x - residual).max() <= 3.0 + 1e-12
        x = moved


def test_damped_steps_by_singular_values_reach_it_too():
    step, fixed = slow_map(1)
    x, history = np.zeros(4), []
    for _ in range(14):
        history = [*history[-6:], (x, step(x) - x)]
        x = (
            anderson_step(history, np.ones(4), 0.5)
            if len(history) > 2
            else x + 0.5 * history[-1][1]
        )
    assert_allclose(x, fixed, rtol=1e-6)
