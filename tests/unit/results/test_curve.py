"""The Curve a user holds.

Values, draws, densities, slopes, leave-one-out, updates, files, frames, figures.
"""

import contextlib

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

import dynaesti as dy
from support.simulated import polling


@pytest.fixture(scope="module")
def curve():
    x, _, votes = polling(4)
    return dy.CurvFiFE().fit(x, dy.Bernoulli(votes))


@pytest.fixture(scope="module")
def fixed():
    x, _, votes = polling(4)
    return dy.CurvFiFE(bandwidth=0.2).fit(x, dy.Bernoulli(votes))


T = np.array([-0.1, 0.2, 0.55, 1.0, 1.3])


def test_moments_and_quantiles_agree_with_draws(curve):
    draws = curve.sample(T, 60_000, seed=1)
    assert draws.shape == (60_000, 5)
    assert_allclose(draws.mean(axis=0), curve.mean(T), atol=0.006)
    assert_allclose(draws.std(axis=0), curve.sd(T), atol=0.006)
    q = [0.025, 0.15, 0.5, 0.85, 0.975]
    assert_allclose(np.quantile(draws, q, axis=0), curve.quantile(T, q), atol=0.015)
    assert_allclose(
        np.cov(curve.latent.sample(T, 60_000, seed=2).T), curve.covariance(T), atol=0.03
    )
    assert_allclose(curve.sample(T, 3, seed=9), curve.sample(T, 3, seed=9))


def test_quantiles_pass_through_the_link_and_invert_the_mixture(curve):
    q = np.array([0.001, 0.3, 0.5, 0.999])
    latent = curve.latent.quantile(T, q)
    assert_allclose(curve.quantile(T, q), norm.cdf(latent), atol=1e-12)
    mix = curve.marginals(T)
    assert_allclose(
        [(mix.weights * norm.cdf((row - mix.means) / mix.sds)).sum(axis=0) for row in latent],
        np.tile(q[:, None], (1, 5)),
        atol=1e-10,
    )
    assert_allclose(curve.median(T), curve.quantile(T, 0.5))
    lower, upper = curve.interval(T, 0.4)
    assert_allclose([lower, upper], curve.quantile(T, [0.3, 0.7]))


def test_probit_mean_has_its_closed_form(fixed):
    latent = fixed.latent
    assert_allclose(
        fixed.mean(T), norm.cdf(latent.mean(T) / np.sqrt(1 + latent.sd(T) ** 2)), atol=1e-12
    )


def test_log_density_is_the_normal_s_with_the_link_s_jacobian(fixed):
    t, y = T[1:3], np.array([0.3, 0.6])
    x = norm.ppf(y)
    expected = (
        multivariate_normal.logpdf(x, fixed.latent.mean(t), fixed.covariance(t))
        - norm.logpdf(x).sum()
    )
    assert fixed.log_density(t, y) == pytest.approx(expected, abs=1e-6)
    total = np.trapezoid(
        [np.exp(fixed.log_density([0.5], [p])) for p in np.linspace(1e-6, 1 - 1e-6, 2001)],
        np.linspace(1e-6, 1 - 1e-6, 2001),
    )
    assert total == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(dy.InputError, match="between 0 and 1"):
        fixed.log_density([0.5], [1.5])


def test_derivatives_are_slopes_of_draws(curve):
    t = np.array([0.3, 0.7])
    e = 1e-3
    draws = curve.sample(np.concatenate([t - e, t + e]), 60_000, seed=3)
    slopes = (draws[:, 2:] - draws[:, :2]) / (2 * e)
    got = curve.derivative(t)
    assert_allclose(slopes.mean(axis=0), got.mean, atol=0.03)
    assert_allclose(slopes.std(axis=0), got.sd, rtol=0.03)
    assert_allclose((slopes > 0).mean(axis=0), got.rising, atol=0.01)
    assert_allclose(
        curve.derivative(t).mean, (curve.mean(t + e) - curve.mean(t - e)) / (2 * e), atol=2e-3
    )
    with pytest.raises(dy.InputError, match="no derivative"):
        dy.CurvFiFE(dy.Matern12(0.3)).fit([0, 1, 2], dy.Bernoulli([0, 1, 1])).derivative([1.0])


def test_forecasts_widen_towards_the_prior(fixed):
    sd = fixed.latent.sd(np.array([1.0, 1.1, 1.3, 3.0]))
    assert np.all(np.diff(sd) > 0)
    assert sd[-1] == pytest.approx(1.0, abs=1e-6)
    assert_allclose(fixed.latent.mean([3.0]), 0.0, atol=1e-6)


@pytest.mark.parametrize("options", [{"bandwidth": 0.3}, {"bandwidth": np.inf}, {}])
def test_leave_one_out_equals_refitting(options):
    """The free leave-one-out density against a fit without the emission, on the same list of
    priors.
    """
    x, _, votes = polling(6, 14)
    x = np.round(x, 1)  # ties: groups of several emissions
    full = dy.CurvFiFE(**options).fit(x, dy.Bernoulli(votes))
    refit = []
    for k in range(x.size):
        rest = np.delete(np.arange(x.size), k)
        parts = [dy.CurvFiFE(p.kernel).fit(x[rest], dy.Bernoulli(votes[rest])) for p in full.priors]
        logs = np.array([p.log_prior for p in full.priors])
        without = np.logaddexp.reduce(
            [part.log_evidence + lp for part, lp in zip(parts, logs, strict=True)]
        )
        whole = np.logaddexp.reduce(
            [p.log_evidence + lp for p, lp in zip(full.priors, logs, strict=True)]
        )
        refit.append(whole - without)
    assert_allclose(
        full.loo, refit, atol=0.02
    )  # grafting's own error in two evidences of a dozen votes


def test_leave_one_out_of_gaussians_is_exact():
    rng = np.random.default_rng(1)
    t, y, sd = np.repeat(np.linspace(0, 1, 8), 2), rng.normal(size=16), rng.uniform(0.2, 1, 16)
    full = dy.CurvFiFE(dy.RBF(0.4, amplitude=1.0), mean=0.0).fit(t, dy.Gaussian(y, sd))
    for k in range(16):
        rest = np.delete(np.arange(16), k)
        without = dy.CurvFiFE(dy.RBF(0.4, amplitude=1.0), mean=0.0).fit(
            t[rest], dy.Gaussian(y[rest], sd[rest])
        )
        assert full.loo[k] == pytest.approx(full.log_evidence - without.log_evidence, abs=1e-6)
        shift = full.latent.mean([t[k]]) - without.latent.mean([t[k]])
        assert full.influence()["shift"][k] == pytest.approx(
            shift[0], abs=1e-3
        )  # emissions see the curve through the nugget


def test_influence_finds_the_outlier():
    t = np.linspace(0, 1, 30)
    y = np.sin(3 * t)
    y[11] += 2
    table = (
        dy.CurvFiFE(dy.RBF(0.4, amplitude=1.0), mean=0.0).fit(t, dy.Gaussian(y, 0.2)).influence()
    )
    assert np.abs(table["shift_in_sd"]).argmax() == 11
    assert table["loo"].argmin() == 11


@pytest.mark.parametrize(
    "kernel", [None, dy.RBF(0.3), dy.Matern32(), 0.5 * dy.Level() + 0.5 * dy.RBF()]
)
def test_update_equals_the_refit(kernel):
    x, _, votes = polling(8)
    new = np.array([0.5, 0.777, 1.05, 1.2])
    start = dy.CurvFiFE(kernel).fit(x[:80], dy.Bernoulli(votes[:80]))
    step = start.update(x[80:], dy.Bernoulli(votes[80:])).update(new, dy.Bernoulli([0, 1, 1, 0]))
    every, everything = (
        np.concatenate([x, new]),
        dy.Bernoulli(np.concatenate([votes, [0, 1, 1, 0]])),
    )
    t = np.linspace(-0.1, 1.4, 30)
    for prior, updated in zip(step.priors, step.components, strict=True):
        if updated is None:
            continue
        again = dy.CurvFiFE(prior.kernel).fit(every, everything)
        assert prior.log_evidence == pytest.approx(again.log_evidence, abs=1e-6)
        assert_allclose(updated.posterior.marginals(t)[0], again.latent.mean(t), atol=1e-6)
        assert_allclose(np.sqrt(updated.posterior.marginals(t)[1]), again.latent.sd(t), rtol=1e-6)


def test_the_latent_view_survives_updates_and_files(curve, tmp_path):
    latent = curve.latent
    assert_allclose(
        latent.update([0.5], dy.Bernoulli([1])).mean(T),
        curve.update([0.5], dy.Bernoulli([1])).latent.mean(T),
        rtol=0,
    )
    assert_allclose(
        dy.load(latent.save(tmp_path / "latent.dyn")).mean(T), latent.mean(T), rtol=1e-12
    )


def test_leave_one_out_of_forbidding_emissions():
    """Thirty windows on one constant: leaving any out stays finite."""
    windows = [lambda y, k=k: np.where(np.abs(y) < 1 + k / 100, 0.0, -np.inf) for k in range(30)]
    curve = dy.CurvFiFE(bandwidth=np.inf).fit(np.arange(30.0), windows)
    assert np.isfinite(curve.loo).all()
    assert_allclose(curve.loo[1:], 0.0, atol=1e-6)  # only the tightest window matters


def test_nothing_mutates(curve):
    before = curve.mean(T)
    curve.update([0.5], dy.Bernoulli([1]))
    assert_allclose(curve.mean(T), before, rtol=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda t, n: dy.Bernoulli(n.integers(0, 2, t.size)),
        lambda t, n: dy.Binomial(n.integers(0, 5, t.size), 5),
        lambda t, n: dy.Poisson(n.poisson(30, t.size), 2.0),
        lambda t, n: dy.NegativeBinomial(n.poisson(30, t.size), 3.0),
        lambda t, n: dy.Gaussian(n.normal(size=t.size), 0.3),
        lambda t, n: dy.StudentT(n.normal(size=t.size), 0.3),
        lambda t, n: dy.Ordinal(n.integers(0, 3, t.size), [-1, 1]),
        lambda t, n: dy.ItemResponses(n.integers(0, 3, t.size), "GRM", a=1.2, b=[-1, 1]),
        lambda t, n: dy.Table(
            np.linspace(-3, 3, 50),
            -0.5 * (np.linspace(-3, 3, 50) - n.normal(size=(t.size, 1))) ** 2,
        ),
        lambda t, n: [lambda y, k=k: -np.abs(y - k) for k in n.normal(size=t.size)],
        lambda t, n: [
            dy.Gaussian(n.normal(size=4), 0.3),
            dy.Ordinal(n.integers(0, 3, t.size - 4), [-1, 1]),
        ],
    ],
)
def test_saved_curves_come_back(make, tmp_path):
    t = np.linspace(0, 5, 12)
    curve = dy.CurvFiFE().fit(t, make(t, np.random.default_rng(0)))
    again = dy.load(curve.save(tmp_path / "curve.dyn"))
    at = np.linspace(-1, 7, 9)
    assert_allclose(
        again.quantile(at, [0.1, 0.5, 0.9]), curve.quantile(at, [0.1, 0.5, 0.9]), rtol=1e-12
    )
    assert again.log_evidence == curve.log_evidence
    assert_allclose(
        again.loo,
        curve.loo,
        atol=2e-3 if callable(getattr(curve.observations.emissions, "_call", None)) else 1e-9,
    )
    more = (
        dy.Gaussian([0.5], 1.0)
        if curve.link.name == "identity"
        else (dy.Poisson([30]) if curve.link.name == "log" else dy.Bernoulli([1]))
    )
    assert_allclose(
        again.update([6.0], more).mean(at), curve.update([6.0], more).mean(at), rtol=1e-3
    )


def test_functions_too_sharp_for_the_file_are_told(tmp_path):
    sharp = [
        lambda y, k=k: -0.5 * ((y - k) / 1e-3) ** 2 - np.abs(y - k) / 1e-3 for k in (0.1, 0.2, 0.3)
    ]
    curve = dy.CurvFiFE(bandwidth=1.0).fit([0.0, 1.0, 2.0], sharp)
    with pytest.warns(dy.DynaestiWarning, match="3 of 3 emission functions are sharper"):
        path = curve.save(tmp_path / "sharp.dyn")
    assert_allclose(dy.load(path).mean(T), curve.mean(T), rtol=1e-12)


def test_functions_of_the_user_are_asked_for_again(tmp_path):
    from scipy.special import ndtr, ndtri

    t = np.arange(6.0)
    odd = dy.CurvFiFE(link=(ndtr, ndtri), mean=lambda t: 0.1 * t).fit(
        t, dy.Bernoulli([0, 0, 1, 0, 1, 1])
    )
    path = odd.save(tmp_path / "odd.dyn")
    with pytest.raises(dy.InputError, match="pass it again"):
        dy.load(path, link=(ndtr, ndtri))
    with pytest.raises(dy.InputError, match="pass them again"):
        dy.load(path, mean=lambda t: 0.1 * t)
    again = dy.load(path, link=(ndtr, ndtri), mean=lambda t: 0.1 * t)
    assert_allclose(again.mean(t), odd.mean(t), rtol=1e-12)


def test_bad_files_are_refused_in_words(curve, tmp_path):
    path = curve.save(tmp_path / "c.dyn")
    whole = path.read_bytes()
    cases = {
        "truncated": whole[: len(whole) // 2],
        "empty": b"",
        "foreign": b"PK\x03\x04nonsense",
        "text": b"hello",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dy.StorageError, match="damaged"):
            dy.load(tmp_path / name)
    with pytest.raises(dy.StorageError, match="no such file"):
        dy.load(tmp_path / "missing.dyn")
    from dynaesti.core import archive as storage

    storage.save_archive(tmp_path / "part.dyn", "curve", {"priors": []}, {})
    with pytest.raises(dy.StorageError, match="missing or malformed"):
        dy.load(tmp_path / "part.dyn")
    import zipfile

    with zipfile.ZipFile(tmp_path / "hostile.dyn", "w") as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 1, "kind": "curve"}')
        with archive.open("offsets.npy", "w") as entry:
            np.lib.format.write_array(entry, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(dy.StorageError, match="damaged"):
        dy.load(tmp_path / "hostile.dyn")
    with zipfile.ZipFile(tmp_path / "newer.dyn", "w") as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 99, "kind": "curve"}')
    with pytest.raises(dy.StorageError, match="newer dynaesti"):
        dy.load(tmp_path / "newer.dyn")
    rng = np.random.default_rng(0)
    for _ in range(150):  # one flipped byte: opened as it was, or refused in words
        spoiled = bytearray(whole)
        spoiled[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        (tmp_path / "spoiled.dyn").write_bytes(bytes(spoiled))
        with contextlib.suppress(dy.StorageError):
            dy.load(tmp_path / "spoiled.dyn")
    with pytest.raises(dy.StorageError, match="a folder"):
        dy.load(tmp_path)
    with pytest.raises(dy.StorageError, match="could not be written"):
        curve.save(tmp_path / "no" / "such" / "folder.dyn")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_as_the_kind_that_came_in(kind, tmp_path):
    library = pytest.importorskip(kind)
    series = {
        "pandas": lambda v: library.Series(v),
        "polars": lambda v: library.Series(v),
        "pyarrow": lambda v: library.array(v),
    }[kind]
    curve = dy.CurvFiFE().fit(series([0.0, 1.0, 2.0, 3.0]), dy.Bernoulli(series([0, 1, 0, 1])))
    for frame in (
        curve.to_frame(),
        curve.bandwidths,
        curve.influence(),
        curve.exact([1.0], draws=400),
    ):
        assert type(frame).__module__.split(".")[0] == kind
    other = curve.to_frame([1.0, 2.0], kind="polars")
    assert list(other.columns) == ["time", "mean", "sd", "lower", "median", "upper"]
    with pytest.raises(dy.InputError, match="none of pandas"):
        curve.to_frame(kind="excel")


def test_plot_draws_what_plot_data_says(curve):
    axes = curve.plot(level=0.9)
    data = curve.plot_data(level=0.9)
    assert_allclose(axes.lines[0].get_ydata(), data["median"])
    assert_allclose(axes.lines[1].get_ydata(), data["emission"])
    assert "90" in axes.get_legend().get_texts()[0].get_text()
    assert curve.latent.plot_data()["emission"] is None


def test_evidence_of_the_average_is_the_average_of_evidences(curve):
    masses = np.exp([p.log_prior for p in curve.priors])
    assert masses.sum() == pytest.approx(1.0, abs=0.05)
    assert curve.log_evidence == pytest.approx(
        np.log(masses @ np.exp([p.log_evidence for p in curve.priors]))
    )
    assert sum(p.weight for p in curve.priors) == pytest.approx(1.0)
