"""The numbers of a report."""

import numpy as np

from dynaesti.report.data import _sample


def test_many_people_are_sampled_evenly():
    counts = np.arange(50_000) % 97
    chosen = _sample(counts, 3000)
    assert chosen.size <= 3000
    assert abs(counts[chosen].mean() - counts.mean()) < 0.5
    assert np.array_equal(chosen, _sample(counts, 3000))
