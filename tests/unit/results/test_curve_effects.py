"""Effects and noise of a curve: against Gaussian algebra, dense solvers, files and simulation."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest, multivariate_normal

import dynaesti as dy
from dynaesti.cli import main
from dynaesti.errors import InputError, MissingColumnError
from support.simulated import house_polls


def measured(n=25, seed=1):
    """Measurements with columns, some at the same time."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.integers(0, 12, n)).astype(float)
    house = rng.integers(0, 3, n)
    y = np.sin(t / 3) + 0.5 * house + rng.normal(0, 0.5, n)
    return t, y, house, rng.normal(size=n)


KERNELS = {
    "low rank": dy.RBF(3.0, amplitude=1.0, nugget=0.0),
    "dense": dy.Matern32(3.0, amplitude=1.0),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gaussian_emissions_are_exact(kernel):
    """Curve, effects and evidence equal those of one multivariate normal."""
    t, y, house, size = measured()
    noise, block, sd = 0.3, 0.7, 0.4
    formula = "size + random(house)"
    model = dy.CurvFiFE(kernel + dy.Noise(noise), effects=formula, mean=0.0)
    curve = model.fit(t, dy.Gaussian(y, sd), {"size": size, "house": house})
    # the block's size is learned: look at one of the priors
    best = max(curve.components, key=lambda c: -np.inf if c is None else c.log_evidence)
    block = float(np.sqrt(best.kernel.summands[-1].variance))
    wide = float(np.sqrt(best.kernel.summands[-2].variance))
    x = np.column_stack([(size - size.mean()) / size.std(), house[:, None] == np.arange(3)])
    prior = np.diag([wide**2, block**2, block**2, block**2])
    nugget = best.kernel.nugget_variance
    cov = kernel.cov(t[:, None], t) + x @ prior @ x.T + (nugget + sd**2) * np.eye(t.size)
    expected = multivariate_normal.logpdf(y, np.zeros(t.size), cov, allow_singular=True)
    assert_allclose(best.log_evidence, expected, rtol=1e-6, atol=1e-4)
    at = np.array([0.5, 4.0, 20.0])
    cross = kernel.cov(at[:, None], t)
    mean, var = best.posterior.marginals(at)
    assert_allclose(
        mean, cross @ np.linalg.solve(cov, y), atol=5e-5
    )  # beyond the data, features end
    explained = np.einsum("ij,ji->i", cross, np.linalg.solve(cov, cross.T))
    assert_allclose(var, kernel.cov(at, at) - explained, atol=5e-5)
    weights, spread = best.posterior.last_weights(4)
    effects = prior @ x.T @ np.linalg.solve(cov, y)
    assert_allclose(weights * np.sqrt(np.diagonal(prior)), effects, atol=1e-5)
    left = prior - prior @ x.T @ np.linalg.solve(cov, x @ prior)
    assert_allclose(spread * np.sqrt(np.outer(*[np.diagonal(prior)] * 2)), left, atol=1e-5)


def test_solvers_agree_on_polls():
    t, emissions, columns = house_polls()
    kernel = dy.RBF(6.0) + dy.Noise(0.1)
    made = [
        dy.CurvFiFE(kernel, effects="random(house)", solver=solver).fit(t, emissions, columns)
        for solver in ("lowrank", "dense")
    ]
    at = np.linspace(0, 30, 7)
    assert_allclose(made[0].mean(at), made[1].mean(at), atol=1e-5)
    assert_allclose(made[0].sd(at), made[1].sd(at), rtol=1e-3)
    assert_allclose(made[0].log_evidence, made[1].log_evidence, atol=1e-3)
    assert_allclose(made[0].effects["estimate"], made[1].effects["estimate"], atol=1e-5)


def test_noise_keeps_emissions_of_one_time_apart():
    t = np.zeros(30)
    y = np.random.default_rng(0).normal(0, 1, 30)
    curve = dy.CurvFiFE(dy.Level(amplitude=1.0) + dy.Noise(1.0), mean=0.0).fit(
        t, dy.Gaussian(y, 1e-3)
    )
    # thirty measurements with an sd of 1, not one instant with one draw of noise
    assert_allclose(curve.sd([0.0])[0], (1 + 30) ** -0.5, rtol=1e-3)


def test_residuals_are_standard_normal_where_the_model_is_right():
    rng = np.random.default_rng(3)
    t = np.linspace(0, 10, 300)
    rate = np.exp(1 + 0.5 * np.sin(t))
    z = np.sin(t)
    cases = [
        dy.Poisson(rng.poisson(rate)),
        dy.Gaussian(z + 0.3 * rng.normal(size=300), 0.3),
        dy.StudentT(z + 0.3 * rng.standard_t(4, 300), 0.3),
        dy.Bernoulli((rng.random(300) < 1 / (1 + np.exp(-z))).astype(int)),
        dy.NegativeBinomial(rng.negative_binomial(3, 3 / (3 + rate)), size=3.0),
        dy.Ordinal((z[:, None] + rng.logistic(size=(300, 1)) > [-1, 1]).sum(axis=1), [-1.0, 1.0]),
        dy.ItemResponses((rng.random(300) < 1 / (1 + np.exp(-z))).astype(int), "2PL", a=1.0, b=0.0),
    ]
    for emissions in cases:
        curve = dy.CurvFiFE().fit(t, emissions)
        found = np.asarray(curve.residuals()["residual"])
        assert kstest(found, "norm").pvalue > 0.002, emissions.kind
        assert "likelihood allows" not in curve.summary()


def test_the_summary_names_noise_where_polls_are_too_far_apart():
    t, emissions, columns = house_polls(80, noise=0.15)
    plain = dy.CurvFiFE().fit(t, emissions)
    assert "by more than their likelihood allows" in plain.summary()
    assert "noise=True" in plain.summary()
    mended = dy.CurvFiFE(effects="random(house)", noise=True).fit(t, emissions, columns)
    assert "likelihood allows" not in mended.summary()
    assert np.asarray(mended.residuals()["residual"]).std() == pytest.approx(1.0, abs=0.2)
    assert plain.sd([15.0])[0] < mended.sd([15.0])[0]


def test_files_updates_and_audits(tmp_path):
    t, emissions, columns = house_polls()
    model = dy.CurvFiFE(dy.RBF(6.0) + dy.Noise(0.1), effects="size + random(house)", refine=False)
    half = np.arange(20)
    part = {name: values[:20] for name, values in columns.items()}
    rest = {name: values[20:] for name, values in columns.items()}
    curve = model.fit(t[:20], emissions.take(half), part)
    again = dy.load(curve.save(tmp_path / "curve.dyn"))
    at = np.linspace(0, 30, 5)
    assert_allclose(again.mean(at), curve.mean(at), rtol=1e-9)
    assert_allclose(again.effects["estimate"], curve.effects["estimate"], rtol=1e-8)
    grown = again.update(t[20:], emissions.take(np.arange(20, 40)), rest)
    assert len(grown.loo) == 40
    with pytest.raises(InputError, match="effects: they need the columns"):
        curve.update(t[20:], emissions.take(np.arange(20, 40)))
    with pytest.raises(InputError, match="has not seen"):
        curve.update([3.0], dy.Binomial([400], 800), {"size": [0.0], "house": ["Z"]})
    said = curve.audit(2000).verdict
    assert said.startswith("Safe")
    assert "not whether the model suits the data" in said


def test_update_is_a_refit():
    t, emissions, columns = house_polls()
    kernel = dy.RBF(6.0) + dy.Noise(0.1)
    first = np.arange(0, 40, 2)
    other = np.arange(1, 40, 2)

    def some(rows):
        return t[rows], emissions.take(rows), {"phone": np.asarray(columns["size"])[rows]}

    model = dy.CurvFiFE(kernel, effects="phone", refine=False)
    grown = model.fit(*some(first)).update(*some(other))
    # columns are centred over the first emissions: the level of the curve moves by that
    both = np.concatenate([first, other])
    whole = model.fit(*some(both))
    slope = grown.effects["estimate"][0]
    assert_allclose(slope, whole.effects["estimate"][0], rtol=0.02)


def test_what_cannot_be_done_says_why():
    t, emissions, columns = house_polls()
    with pytest.raises(InputError, match="practice"):
        dy.CurvFiFE(effects="practice(item)").fit(t, emissions, columns)
    with pytest.raises(MissingColumnError, match="no column 'hause'"):
        dy.CurvFiFE(effects="random(hause)").fit(t, emissions, columns)
    with pytest.raises(InputError, match="covariates: nothing needs them"):
        dy.CurvFiFE().fit(t, emissions, columns)
    with pytest.raises(InputError, match="rows for 40 emissions"):
        dy.CurvFiFE(effects="size").fit(t, emissions, {"size": [1.0]})
    with pytest.raises(InputError, match="one by one"):
        dy.CurvFiFE(noise=True).fit_many(["a"] * 40, t, emissions)
    with pytest.raises(InputError, match="neither effects nor noise"):
        _ = dy.CurvFiFE(bandwidth=5.0).fit(t, emissions).effects
    with pytest.raises(InputError, match="noise: 'yes'"):
        dy.CurvFiFE(noise="yes")


def test_command_line(tmp_path, capsys):
    t, emissions, columns = house_polls()
    table = pd.DataFrame({"day": t, "yes": emissions.successes, "n": emissions.trials, **columns})
    table.to_csv(tmp_path / "polls.csv", index=False)
    given = ["curve", str(tmp_path / "polls.csv"), "--successes", "yes", "--trials", "n"]
    assert main([*given, "--effects", "random(house)", "--noise", "--grid", "4"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("time,mean")
    assert "random(house)[A]" in said.err
    assert "sd of noise" in said.err
    figure = tmp_path / "groups.png"
    assert main([*given, "--group", "house", "--figure", str(figure)]) == 0
    assert figure.stat().st_size > 5000
    assert main([*given, "--group", "house", "--noise", "--grid", "2"]) == 0
    assert capsys.readouterr().out.count("\nA,") + capsys.readouterr().out.count("\nA,") >= 2
    assert main(given) == 0
    assert "--noise" in capsys.readouterr().err


def test_influence_is_the_change_of_what_an_emission_sees():
    """Of the curve plus the effects, as a fit without the emission says."""
    t, y, _, x = measured()
    chosen = dy.CurvFiFE(dy.RBF(3.0, amplitude=1.0, nugget=0.0), mean=0.0, effects="x")
    left_out = int(np.argmax(np.abs(x)))
    seen = []
    for rest in (np.ones(t.size, dtype=bool), np.arange(t.size) != left_out):
        curve = chosen.fit(t[rest], dy.Gaussian(y[rest], 0.5), {"x": x[rest]})
        effect = curve.effects["estimate"][0] * (x[left_out] - x[rest].mean())
        seen.append(curve.mean(t[[left_out]])[0] + effect)
    shift = chosen.fit(t, dy.Gaussian(y, 0.5), {"x": x}).influence()["shift"]
    assert abs(shift[left_out]) > 0.05
    # columns are centred over the emissions there are, and the zero of the curve is pulled to 0
    assert_allclose(shift[left_out], seen[0] - seen[1], atol=0.01)
