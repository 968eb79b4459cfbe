"""The prior mixture of a population."""

import numpy as np

from dynaesti.estimation.population import select_priors_greedily


def test_representatives_serve_few_as_well_as_many():
    """Neighbours share the heavy end of the list.

    A far prior that a fifth of the curves need is taken all the same.
    """
    rng = np.random.default_rng(0)
    at = np.array([0.0, 0.1, 0.2, 0.3, 3.0, 3.1])
    wants = np.where(np.arange(200) < 160, 0.15, 3.05)
    logs = -4.0 * (at[:, None] - wants) ** 2 + 0.01 * rng.standard_normal((6, 200))
    chosen = select_priors_greedily(logs, np.zeros(6), 2, 0.5)
    assert chosen[0] < 4 <= chosen[1]
    assert (
        select_priors_greedily(logs, np.zeros(6), 6, 0.5).size <= 3
    )  # near ones add next to nothing
    assert select_priors_greedily(logs[:1], np.zeros(1), 4, 0.5).tolist() == [0]
