"""The numbers of a report."""

import numpy as np

import dynaesti as dy
from dynaesti.report.data import _sample, page_data
from support.simulated import classroom


def test_many_people_are_sampled_evenly():
    counts = np.arange(50_000) % 97
    chosen = _sample(counts, 3000)
    assert chosen.size <= 3000
    assert abs(counts[chosen].mean() - counts.mean()) < 0.5
    assert np.array_equal(chosen, _sample(counts, 3000))


def test_the_cohort_is_the_quantiles_of_those_present():
    table = classroom(30, 6, 12)
    fit = dy.DynAEsti(bandwidth=0.4, standard_errors=False).fit(table)
    cohort = page_data(fit, None)["quantiles"]
    spans = table.groupby("id")["date"].agg(["min", "max"])
    for k in (5, len(cohort["t"]) // 2):
        at = float(np.linspace(table["date"].min(), table["date"].max(), len(cohort["t"]))[k])
        present = spans.index[(spans["min"] <= at) & (at <= spans["max"])].tolist()
        means = fit.ability([at], present)["mean"]
        assert cohort["n"][k] == len(present)
        found = [cohort[name][k] for name in ("low", "mid", "high")]
        np.testing.assert_allclose(found, np.quantile(means, (0.1, 0.5, 0.9)), atol=2e-3)
