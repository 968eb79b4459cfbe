"""Many curves in one call equal the same curves one by one, whatever the threads and the order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy

AT = np.array([-0.2, 0.3, 0.8, 1.4])


def classroom(people=12, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, people)
    who = np.repeat([f"p{k:02d}" for k in range(people)], sizes)
    start, length = rng.uniform(0, 5, people), rng.uniform(0.2, 2.0, people)
    when = np.round(
        np.repeat(start, sizes) + np.repeat(length, sizes) * rng.random(sizes.sum()), 2
    )  # ties included
    return who, when, (rng.random(sizes.sum()) < 0.6).astype(int)


@pytest.mark.parametrize(
    "kernel",
    [
        dy.RBF(0.7),
        dy.RBF(np.inf),
        dy.Matern32(0.5),
        0.5 * dy.Level() + 0.5 * dy.RBF(0.4),
        dy.Trend() + dy.RBF(0.6),
    ],
)
def test_each_equals_its_own_fit(kernel):
    who, when, votes = classroom()
    curves = dy.CurvFiFE(kernel).fit_many(who, when, dy.Bernoulli(votes))
    assert len(curves) == 12
    assert curves.converged.all()
    t = 2 + AT
    table = curves.quantile(t, [0.2, 0.5])
    for k, name in enumerate(curves.labels):
        mine = who == name
        alone = dy.CurvFiFE(kernel, refine=False).fit(when[mine], dy.Bernoulli(votes[mine]))
        assert_allclose(
            table[:, k], alone.quantile(t, [0.2, 0.5]), atol=1e-5
        )  # beyond the data, features and dense differ by 4e-6
        assert_allclose(curves[name].mean(t), alone.mean(t), atol=1e-6)
        assert curves.log_evidence[k] == pytest.approx(alone.log_evidence, abs=1e-6)
    assert_allclose(curves.mean(t)[3], curves[curves.labels[3]].mean(t), atol=1e-5)
    assert_allclose(curves.sd(t)[3], curves[curves.labels[3]].sd(t), atol=1e-5)


def test_threads_and_order_do_not_matter(monkeypatch):
    from dynaesti.core import parallel as threads

    monkeypatch.setattr(threads, "CHUNK", 60)
    who, when, votes = classroom(30, 2)
    one = dy.CurvFiFE(bandwidth=0.5).fit_many(who, when, dy.Bernoulli(votes), threads=1)
    two = dy.CurvFiFE(bandwidth=0.5).fit_many(who, when, dy.Bernoulli(votes), threads=2)
    assert np.array_equal(one.fits[0].ep.sites.precision, two.fits[0].ep.sites.precision)  # bitwise
    order = np.random.default_rng(0).permutation(who.size)
    three = dy.CurvFiFE(bandwidth=0.5).fit_many(who[order], when[order], dy.Bernoulli(votes[order]))
    assert_allclose(one.mean(AT), three.mean(AT), atol=1e-9)


@pytest.mark.slow
def test_counts_and_gaussians_of_many():
    who, when, _ = classroom(5, 3)
    rng = np.random.default_rng(0)
    values = rng.normal(100, 2, who.size)
    curves = dy.CurvFiFE(dy.RBF(0.7, amplitude=2.0), mean=100.0).fit_many(
        who, when, dy.Gaussian(values, 0.5)
    )
    alone = dy.CurvFiFE(dy.RBF(0.7, amplitude=2.0), mean=100.0).fit(
        when[who == "p01"], dy.Gaussian(values[who == "p01"], 0.5)
    )
    assert_allclose(curves["p01"].mean(AT), alone.mean(AT), atol=1e-8)
    assert curves.log_evidence[1] == pytest.approx(alone.log_evidence, abs=1e-8)
    counts = dy.CurvFiFE().fit_many(who, when, dy.Poisson(rng.poisson(40, who.size)))
    assert np.all((counts.mean(when[:3]) > 20) & (counts.mean(when[:3]) < 80))


def test_frames_and_errors():
    who, when, votes = classroom()
    curves = dy.CurvFiFE(bandwidth=0.5).fit_many(who, when, dy.Bernoulli(votes))
    frame = curves.to_frame([1.0, 2.0])
    assert len(frame) == 24
    assert "12 curves" in repr(curves)
    assert len(list(curves)) == 12
    with pytest.raises(dy.InputError, match="no curve labelled 'zoe' among 12"):
        curves["zoe"]
    assert "p03" in curves
    with pytest.raises(dy.InputError, match="no curve labelled"):
        curves[["p01", "p02"]]
    with pytest.raises(dy.InputError, match="labels are missing"):
        dy.CurvFiFE(bandwidth=1.0).fit_many(
            np.array(["a", None, "b"], dtype=object), [0.0, 1.0, 2.0], dy.Bernoulli([0, 1, 1])
        )
    with pytest.raises(dy.InputError, match="2 labels are missing"):
        dy.CurvFiFE(bandwidth=1.0).fit_many(
            [np.nan, np.nan, "b"], [0.0, 1.0, 2.0], dy.Bernoulli([0, 1, 1])
        )
    with pytest.raises(dy.InputError, match="different kinds"):
        dy.CurvFiFE(bandwidth=1.0).fit_many(
            np.array(["a", 1, "b"], dtype=object), [0.0, 1.0, 2.0], dy.Bernoulli([0, 1, 1])
        )
    with pytest.raises(dy.InputError, match="labels for"):
        dy.CurvFiFE().fit_many(who[:-1], when, dy.Bernoulli(votes))
    with pytest.raises(dy.InputError, match="picks for a single curve"):
        dy.CurvFiFE(bandwidth="cv").fit_many(who, when, dy.Bernoulli(votes))
