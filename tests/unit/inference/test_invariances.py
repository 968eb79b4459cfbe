"""Invariances, by hypothesis: what must not matter does not."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import dynaesti as dy

settings.register_profile("dynaesti", deadline=None, max_examples=15, derandomize=True)
settings.load_profile("dynaesti")

AT = np.linspace(-0.1, 1.2, 7)


@st.composite
def polls(draw):
    n = draw(st.integers(4, 30))
    times = draw(
        st.lists(st.integers(0, 200), min_size=n, max_size=n).filter(lambda v: len(set(v)) > 2)
    )
    t = np.array(times) / 200
    return (t - t.min()) / np.ptp(t), np.array(
        draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    )


@given(polls(), st.randoms(use_true_random=False))
def test_order_of_emissions(data, random):
    t, votes = data
    order = list(range(t.size))
    random.shuffle(order)
    one, two = (
        dy.CurvFiFE().fit(t, dy.Bernoulli(votes)),
        dy.CurvFiFE().fit(t[order], dy.Bernoulli(votes[order])),
    )
    assert_allclose(one.mean(AT), two.mean(AT), atol=1e-9)
    assert_allclose(one.loo[order], two.loo, atol=1e-8)


@given(polls(), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_shift_and_scale_of_time(data, shift, scale):
    t, votes = data
    one, two = (
        dy.CurvFiFE().fit(t, dy.Bernoulli(votes)),
        dy.CurvFiFE().fit(shift + scale * t, dy.Bernoulli(votes)),
    )
    if (
        one.observations.instants.size == two.observations.instants.size
    ):  # rounding may merge neighbours
        assert_allclose(two.mean(shift + scale * AT), one.mean(AT), atol=1e-5)
        assert abs(one.log_evidence - two.log_evidence) < 1e-5


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=4, max_size=12))
def test_a_binomial_is_its_bernoullis(pairs):
    pairs = [(yes, no) for yes, no in pairs if yes + no] or [(1, 0)]
    t = np.linspace(0, 1, len(pairs)) if len(pairs) > 1 else np.zeros(1)
    options = {"bandwidth": 0.4}
    yes, no = np.array(pairs).T
    one = dy.CurvFiFE(**options).fit(t, dy.Binomial(yes, yes + no))
    votes = np.concatenate([np.repeat([1, 0], pair) for pair in pairs])
    two = dy.CurvFiFE(**options).fit(np.repeat(t, yes + no), dy.Bernoulli(votes))
    assert_allclose(one.mean(AT), two.mean(AT), atol=1e-6)
    assert_allclose(one.sd(AT), two.sd(AT), atol=1e-6)


@given(polls(), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
def test_a_flat_emission_inside_the_span_says_nothing(data, where):
    t, votes = data
    flat = [lambda y: np.zeros_like(y)] * len(where)
    one = dy.CurvFiFE(bandwidth=0.3).fit(t, dy.Bernoulli(votes))
    two = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(
        np.concatenate([t, where]), [dy.Bernoulli(votes), *flat]
    )
    assert_allclose(one.mean(AT), two.mean(AT), atol=1e-6)
    assert abs(one.log_evidence - two.log_evidence) < 1e-6
    assert_allclose(two.loo[t.size :], 0.0, atol=1e-6)


@given(polls())
def test_swapping_yes_and_no_mirrors_the_curve(data):
    t, votes = data
    one, two = (
        dy.CurvFiFE().fit(t, dy.Bernoulli(votes)),
        dy.CurvFiFE().fit(t, dy.Bernoulli(1 - votes)),
    )
    assert_allclose(one.mean(AT), 1 - two.mean(AT), atol=1e-7)


@given(st.integers(0, 2**31), st.floats(-50, 50), st.floats(0.01, 100))
def test_units_of_gaussian_values(seed, shift, scale):
    rng = np.random.default_rng(seed)
    t, y = np.linspace(0, 1, 15), rng.normal(size=15)
    one, two = (
        dy.CurvFiFE().fit(t, dy.Gaussian(y, 0.4)),
        dy.CurvFiFE().fit(t, dy.Gaussian(shift + scale * y, 0.4 * scale)),
    )
    assert_allclose(two.mean(AT), shift + scale * one.mean(AT), atol=2e-4 * scale)
