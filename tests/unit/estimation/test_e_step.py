"""The E-step against closed forms and against a single curve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

import dynaesti as dy
from support.simulated import classroom


@pytest.mark.parametrize("cohort", [None, "learn"])
def test_gaussian_items_are_closed_form(cohort):
    """Evidence and curves of one person equal Gaussian-process regression about the cohort."""
    table = classroom(15, 4, 20, model="gaussian")
    fit = dy.DynAEsti("gaussian", bandwidth=0.4, cohort=cohort, standard_errors=False).fit(table)
    items = fit.items.set_index("item")
    one = table[table.id == "p003"].sort_values("date")
    a, b, sigma = (items.loc[one["item"], name].to_numpy() for name in ("a", "b", "sigma"))
    t, y = one["date"].to_numpy(), one["resp"].to_numpy()
    k = np.exp(-0.5 * ((t[:, None] - t) / 0.4) ** 2)
    cov = a[:, None] * (k + 1e-4 * np.eye(t.size)) * a + np.diag(sigma**2)
    who = fit.ids.index("p003")

    def prior(times):
        if cohort is None:
            return np.zeros(len(times))
        return fit.cohort(times)["mean"].to_numpy()

    centre = a * (prior(t) - b)
    assert_allclose(fit.person_evidence[who], multivariate_normal(centre, cov).logpdf(y), atol=1e-5)
    at = np.array([0.2, 0.5, t.max()])
    cross = np.exp(-0.5 * ((at[:, None] - t) / 0.4) ** 2) * a
    mean = prior(at) + cross @ np.linalg.solve(cov, y - centre)
    var = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(cov, cross.T))
    found = fit.ability(at, ["p003"])
    assert_allclose(found["mean"], mean, atol=2e-5)
    assert_allclose(found["sd"], np.sqrt(var), rtol=2e-5)


@pytest.mark.parametrize("cohort", [None, "learn"])
def test_one_person_with_frozen_items_is_a_curvfife_curve(cohort):
    table = classroom()
    fit = dy.DynAEsti("2PL", bandwidth=0.4, cohort=cohort, standard_errors=False).fit(table)
    items = fit.items.set_index("item")
    one = table[table.id == "p007"]
    a, b = (items.loc[one["item"], name].to_numpy() for name in ("a", "b"))
    mean = 0.0 if cohort is None else lambda t: fit.cohort(t)["mean"].to_numpy()
    curve = dy.CurvFiFE(bandwidth=0.4, refine=False, mean=mean).fit(
        one["date"], dy.ItemResponses(one["resp"], "2PL", a=a, b=b)
    )
    at = [0.1, 0.5, table["date"].max()]
    found = fit.ability(at, ["p007"])
    assert_allclose(found["mean"], curve.mean(at), atol=1e-5)
    assert_allclose(found["sd"], curve.sd(at), rtol=1e-5)
    assert_allclose(fit.curve("p007").mean(at), curve.mean(at), atol=1e-5)
    assert_allclose(fit.person_evidence[fit.ids.index("p007")], curve.log_evidence, atol=1e-5)


def test_static_abilities_are_exact_quadrature():
    table = classroom(20, 6, 12)
    fit = dy.DynAEsti("3PL", bandwidth=np.inf).fit(table)
    r = fit.responses
    u = fit.bank.blocks[0].u
    model = fit.bank.blocks[0].model
    for p in range(4):
        mine = r.person == p

        def posterior(x, k=0, mine=mine):
            chance = np.exp(model.log_likelihood(u[r.item[mine]], np.array([x])))[
                np.arange(mine.sum()), r.resp[mine].astype(int), 0
            ]
            return x**k * norm.pdf(x) * chance.prod()

        z = quad(posterior, -9, 9, epsabs=0, epsrel=1e-12, limit=200)[0]
        mean = quad(posterior, -9, 9, args=(1,), epsabs=1e-14 * z, epsrel=1e-12, limit=200)[0] / z
        assert_allclose(fit.person_evidence[p], np.log(z), atol=1e-8)
        assert_allclose(fit.ability([0.5], [r.people[p]])["mean"], mean, atol=1e-7)
