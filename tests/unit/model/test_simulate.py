"""Data drawn from the model."""

import numpy as np
import pytest

from dynaesti.model import simulate


def test_simulated_abilities_have_unit_variance():
    drawn = simulate.responses(3000, 3, 2, seed=1)
    assert np.var(drawn.abilities["ability"]) == pytest.approx(1.0, abs=0.05)
