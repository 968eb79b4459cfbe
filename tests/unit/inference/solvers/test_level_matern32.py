"""The default prior, written out by hand."""

import numpy as np
import pytest

import dynaesti as dy


@pytest.mark.parametrize(
    "kernel", [dy.Matern32(0.2, amplitude=1.3), 0.4 * dy.Level() + 0.6 * dy.Matern32(0.05)]
)
def test_the_default_prior_by_hand_equals_the_general_chain(kernel):
    """Ragged curves of 1 to 300 sites, some of negative precision.

    Improper ones are flagged alike.
    """
    from dynaesti.inference.solvers.level_matern32 import level_matern32_form, level_matern32_solver
    from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.inference.solvers.state_space import batched_state_space

    rng = np.random.default_rng(3)
    starts = np.concatenate([[0], np.cumsum([1, 2, 40, 300, 25])])
    times = np.concatenate([np.sort(rng.uniform(0, 1, n)) for n in np.diff(starts)])
    precision, shift = rng.normal(0.3, 0.3, times.size), rng.normal(size=times.size)
    precision[starts[4] :] = -3.0  # no proper posterior
    found = []
    for solver in (
        level_matern32_solver(level_matern32_form(kernel), times, starts),
        batched_state_space(kernel, times, starts),
    ):
        mean, var, partition, proper = (
            np.zeros(times.size),
            np.ones(times.size),
            np.zeros(5),
            np.zeros(5, dtype=bool),
        )
        sites, posterior = NaturalGaussian(precision, shift), Moments(mean, var)
        solver.marginals(np.arange(5), sites, posterior, partition, proper)
        found.append((mean[: starts[4]], var[: starts[4]], partition[:4], proper))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
    assert found[0][3].tolist() == [True] * 4 + [False]
