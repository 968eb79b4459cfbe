"""Plausible values of people are independent draws."""

import numpy as np
import pytest

import dynaesti as dy


def test_plausible_values_of_people_are_independent(drawn):
    fit = dy.DynAEsti(standard_errors=False).fit(drawn.table)
    draws = np.array([fit.plausible(label, [50.0], 300, seed=5)[:, 0] for label in fit.ids[:60]])
    apart = np.corrcoef(draws)[np.triu_indices(60, 1)]
    assert np.abs(apart).mean() < 0.08  # 1/√300 and a little
    sds = fit.ability([50.0], fit.ids[:60])["sd"].to_numpy()
    assert draws.mean(axis=0).std() == pytest.approx(
        np.sqrt((sds**2).sum()) / 60, rel=0.2
    )  # of a cohort's mean
    assert np.array_equal(
        fit.plausible(fit.ids[3], [50.0], 5, seed=1), fit.plausible(fit.ids[3], [50.0], 5, seed=1)
    )
