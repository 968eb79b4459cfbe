"""Items in blocks, and changes of the ability scale."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.simulated import classroom, parts


@pytest.mark.parametrize("model", ["2PL", "1PL", "3PL", "GRM"])
def test_abilities_counted_anew_leave_every_chance_as_it_was(model):
    bank = parts(classroom(60, 12, 6, model="GRM" if model == "GRM" else "2PL"), model)[2]
    z = np.linspace(-2, 2, 7)
    for location, log_scale in ((0.3, 0.0), (0.0, 0.2), (-0.4, -0.3)):
        assert_allclose(
            bank.rescaled(location, log_scale).log_likelihood(z),
            bank.log_likelihood(location + np.exp(log_scale) * z),
            rtol=1e-10,
            atol=1e-12,
        )
