"""Which solver is chosen."""

import pytest

import dynaesti as dy
from dynaesti.inference.solvers.choice import choose_solver


def test_the_fit_picks_a_solver_by_cost():
    assert choose_solver(dy.RBF(1.0), 10**6, 10.0) == "lowrank"
    assert choose_solver(dy.Matern32(1.0), 10**6, 10.0) == "statespace"
    assert choose_solver(dy.Matern32(1.0), 5, 10.0) == "dense"
    assert choose_solver(dy.RBF(0.1), 100, 10.0) == "dense"  # as many features as instants
    with pytest.raises(dy.InputError, match="too short"):
        choose_solver(dy.RBF(1e-9), 10**6, 10.0)
    with pytest.raises(dy.InputError, match="no low-rank form"):
        choose_solver(dy.Matern32(1.0), 5, 10.0, "lowrank")
