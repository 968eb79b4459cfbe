"""A cohort's curves for single moments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.model import curves_of_cohort
from support.simulated import classroom


def test_single_moments_are_those_of_the_cohort():
    """Within the data, and beyond both ends, for groups and their average."""
    table = classroom(40, 8, 40)
    table["class"] = ["even" if int(p[1:]) % 2 else "odd" for p in table["id"]]
    fit = dy.DynAEsti("2PL", groups="class", iterations=6).fit(table)
    cohort = fit.priors.cohort
    curves = curves_of_cohort(cohort)
    times = np.linspace(-1.0, 2.5, 41)
    for group in (0, 1, -1):
        found = np.array([curves.at(t, group) for t in times.tolist()])
        groups = np.full(times.size, group)
        assert_allclose(found[:, 0], cohort.mean(times, groups), atol=1e-12)
        variance = cohort.variance(times, groups)
        assert_allclose(found[:, 1:].sum(axis=1), variance, rtol=1e-9)
        assert_allclose(found[:, 2], cohort.drift_variance(times, groups), rtol=1e-9, atol=1e-15)
    assert pytest.approx(0.0) == found[20, 2]
