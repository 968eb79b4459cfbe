"""Families against scipy.stats; links and their tails; item models; tables; what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, ndtr

import dynaesti as dy
from dynaesti.model.emissions.mixed import as_emissions, emission_blocks
from dynaesti.model.links import BUILT_IN, CustomLink
from support.oracles import log_prob_at

pytestmark = pytest.mark.nojit
X = np.linspace(-3, 3, 7)


def test_families_meet_scipy():
    p, rate = ndtr(X), np.exp(X)
    assert_allclose(log_prob_at(dy.Bernoulli([1, 0]), "probit"), [np.log(p), np.log1p(-p)])
    assert_allclose(
        log_prob_at(dy.Binomial([3, 0], [7, 2]), "probit"),
        [stats.binom.logpmf(3, 7, p), stats.binom.logpmf(0, 2, p)],
    )
    assert_allclose(
        log_prob_at(dy.Poisson([3, 0], [2.0, 0.5]), "log"),
        [stats.poisson.logpmf(3, 2 * rate), stats.poisson.logpmf(0, rate / 2)],
    )
    size, mu = 4.0, 1.5 * rate
    assert_allclose(
        log_prob_at(dy.NegativeBinomial([5], size, 1.5), "log"),
        [stats.nbinom.logpmf(5, size, size / (size + mu))],
    )
    assert_allclose(log_prob_at(dy.Gaussian([1.0], 0.3)), [stats.norm.logpdf(1.0, X, 0.3)])
    assert_allclose(log_prob_at(dy.StudentT([1.0], 0.3, 5)), [stats.t.logpdf(1.0, 5, X, 0.3)])
    cuts = np.array([-1.0, 0.5])
    above = expit(X[:, None] - cuts)
    assert_allclose(
        np.exp(log_prob_at(dy.Ordinal([0, 1, 2], cuts))),
        [1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]],
    )


def test_item_models_meet_their_definitions():
    s = expit(1.7 * (X - 0.4))
    assert_allclose(np.exp(log_prob_at(dy.ItemResponses([1, 0], "2PL", a=1.7, b=0.4))), [s, 1 - s])
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses([1, 0], "3PL", a=1.7, b=0.4, c=0.2))),
        [0.2 + 0.8 * s, 0.8 * (1 - s)],
    )
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses([1, 0], "4PL", a=1.7, b=0.4, c=0.2, d=0.9))),
        [0.2 + 0.7 * s, 0.8 - 0.7 * s],
    )
    b = np.array([-1.0, 0.0, 1.5])
    above = np.column_stack([np.ones(7), expit(1.3 * (X[:, None] - b)), np.zeros(7)])
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses(range(4), "GRM", a=1.3, b=b))),
        -np.diff(above, axis=1).T,
    )
    odds = np.exp(np.column_stack([np.zeros(7), np.cumsum(1.3 * (X[:, None] - b), axis=1)]))
    assert_allclose(
        np.exp(log_prob_at(dy.ItemResponses(range(4), "GPCM", a=1.3, b=b))),
        (odds / odds.sum(axis=1, keepdims=True)).T,
    )


@pytest.mark.parametrize(
    "family",
    [
        dy.ItemResponses([0, 1, 2], "GRM", a=2.0, b=[-1.0, 1.0]),
        dy.ItemResponses([0, 1, 2], "GPCM", a=2.0, b=[-1.0, 1.0]),
        dy.ItemResponses([0, 1], "3PL", a=2.0, b=0.0, c=0.0),
        dy.Ordinal([0, 1, 2], [-1.0, 1.0]),
    ],
)
def test_categories_sum_to_one_even_far_out(family):
    far = np.array([-300.0, -40.0, 0.3, 40.0, 300.0])
    values = log_prob_at(family, x=far)
    assert np.all(np.isfinite(values))
    assert_allclose(np.exp(values).sum(axis=0), 1.0)


def test_links_keep_their_digits_in_the_tails():
    x = np.array([-30.0, -9.0, 0.0, 9.0, 30.0])
    assert_allclose(BUILT_IN["probit"].log_complement(x), stats.norm.logsf(x))
    assert_allclose(BUILT_IN["logit"].log_value(x), -np.logaddexp(0, -x))
    for link in BUILT_IN.values():
        small = np.linspace(-3, 3, 13)
        assert_allclose(link.latent(link.value(small)), small, atol=1e-12)
        assert_allclose(
            link.slope(small),
            (link.value(small + 1e-6) - link.value(small - 1e-6)) / 2e-6,
            rtol=1e-6,
        )


def test_a_custom_pair_may_rise_or_fall():
    t, y = np.arange(8.0), np.array([0, 0, 1, 0, 1, 1, 1, 1])
    up = dy.CurvFiFE(link=(ndtr, stats.norm.ppf)).fit(t, dy.Bernoulli(y))
    down = dy.CurvFiFE(link=(lambda x: ndtr(-x), lambda p: -stats.norm.ppf(p))).fit(
        t, dy.Bernoulli(y)
    )
    assert down.link.sign == -1
    assert_allclose(up.quantile(t, [0.1, 0.9]), down.quantile(t, [0.1, 0.9]), atol=1e-5)
    assert_allclose(up.derivative(t).rising, down.derivative(t).rising, atol=1e-4)
    with pytest.raises(dy.InputError, match="not strictly monotone"):
        CustomLink(np.cos, np.arccos)
    with pytest.raises(dy.InputError, match="does not undo"):
        CustomLink(np.exp, np.exp)


def test_functions_and_tables_meet_the_family():
    t, votes = np.linspace(0, 1, 30), (np.random.default_rng(0).random(30) < 0.6).astype(int)
    family = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(t, dy.Bernoulli(votes))
    functions = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(
        t, [lambda y, v=v: np.log(y if v else 1 - y) for v in votes]
    )
    grid = np.linspace(0, 1, 401)
    with np.errstate(divide="ignore"):
        rows = np.where(
            votes[:, None] == 1,
            np.log(np.maximum(grid, 1e-12)),
            np.log(np.maximum(1 - grid, 1e-12)),
        )
    table = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(t, dy.Table(grid, rows))
    assert_allclose(functions.mean(t), family.mean(t), atol=1e-8)
    assert_allclose(table.mean(t), family.mean(t), atol=1e-4)
    with np.errstate(
        divide="ignore"
    ):  # the natural table of a probability, -inf at its ends, is as good
        natural = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(
            t, dy.Table(grid, np.where(votes[:, None] == 1, np.log(grid), np.log(1 - grid)))
        )
    assert_allclose(natural.mean(t), family.mean(t), atol=1e-4)
    latent = dy.Table(
        np.linspace(-8, 8, 801),
        log_prob_at(dy.Bernoulli(votes), "probit", np.linspace(-8, 8, 801)),
        latent=True,
    )
    assert_allclose(
        dy.CurvFiFE(bandwidth=0.3, link="probit").fit(t, latent).mean(t), family.mean(t), atol=1e-7
    )


def test_kinds_may_be_mixed_in_one_fit():
    t = np.linspace(0, 1, 20)
    parts = [
        dy.Ordinal(np.tile([0, 1], 5), [0.0]),
        lambda y: -0.5 * (y - 1) ** 2,
        dy.Gaussian(np.ones(9), 0.4),
    ]
    curve = dy.CurvFiFE(dy.RBF(0.3, amplitude=1.0), mean=0.0).fit(t, parts)
    by_hand = (
        [lambda y, g=g: -np.logaddexp(0, -y if g else y) for g in np.tile([0, 1], 5)]
        + [lambda y: -0.5 * (y - 1) ** 2]
        + [lambda y: -0.5 * ((y - 1) / 0.4) ** 2 - np.log(0.4 * np.sqrt(2 * np.pi))] * 9
    )
    other = dy.CurvFiFE(dy.RBF(0.3, amplitude=1.0), mean=0.0).fit(t, by_hand)
    assert_allclose(curve.mean(t), other.mean(t), atol=1e-7)
    assert curve.log_evidence == pytest.approx(other.log_evidence, abs=1e-6)
    assert_allclose(curve.loo, other.loo, atol=1e-5)
    assert [part.kind for part, _ in emission_blocks(as_emissions(parts))] == [
        "ordinal",
        "functions",
        "gaussian",
    ]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dy.Bernoulli([0, 2]), "1 of 2 values are neither 0 nor 1"),
        (lambda: dy.Bernoulli([0, np.nan]), "not finite"),
        (lambda: dy.Bernoulli(["yes", "no"]), "expected numbers, got 'yes' at position 0"),
        (lambda: dy.Bernoulli([[0, 1]]), "one dimension"),
        (lambda: dy.Binomial([5], [3]), "larger than their trials"),
        (lambda: dy.Binomial([5, 1], [3, 3, 3]), "3 values for 2 observations"),
        (lambda: dy.Poisson([1.5]), "whole numbers"),
        (lambda: dy.Poisson([1], exposure=0.0), "not positive"),
        (lambda: dy.Gaussian([1.0], sd=-1.0), "not positive"),
        (lambda: dy.Ordinal([3], [0.0, 1.0]), "above the highest grade 2"),
        (lambda: dy.Ordinal([1], [1.0, 0.0]), "not strictly rising"),
        (lambda: dy.ItemResponses([1], "5PL"), "no item model '5PL'"),
        (lambda: dy.ItemResponses([1], "3PL", a=1, b=0), "takes a, b, c"),
        (lambda: dy.ItemResponses([1], "3PL", a=1, b=0, c=1.2), "outside 0 ≤ c < d ≤ 1"),
        (
            lambda: dy.ItemResponses([4], "GRM", a=1, b=[0, 1]),
            "above the item's highest category 2",
        ),
        (lambda: dy.Table([0, 1, 2, 3], [[0, 0, np.nan, 0]]), "NaN or \\+inf"),
        (lambda: dy.Table([0, 1, 2, 3], [[-np.inf] * 4]), "-inf everywhere"),
        (lambda: dy.Table([0, 2, 1, 3], [[0] * 4]), "strictly rising"),
        (lambda: dy.Table([0, 1, 2, 3], [[0] * 3]), "one row an emission"),
    ],
)
def test_bad_families_are_refused_in_words(make, says):
    with pytest.raises(dy.InputError, match=says):
        make()
