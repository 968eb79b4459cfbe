"""Users' models of amounts, read off a grid of responses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln, expit, gammaln
from scipy.stats import lognorm

import dynaesti as dy
from dynaesti.model import density_on_grid

THETA = np.linspace(-3, 3, 7)
NONE = np.zeros((0, 0))


def lognormal(theta, resp, params):
    a, b, s = params
    z = (np.log(resp) - (b - a * theta)) / s
    return -0.5 * z**2 - np.log(s * resp) - 0.5 * np.log(2 * np.pi)


def gamma(theta, resp, params):
    a, b, shape = params
    rate = shape * np.exp(a * theta - b)
    return shape * np.log(rate) + (shape - 1) * np.log(resp) - rate * resp - gammaln(shape)


def share(theta, resp, params):
    a, b, precision = params
    mean = expit(a * theta - b)
    up, down = precision * mean, precision * (1 - mean)
    return (up - 1) * np.log(resp) + (down - 1) * np.log1p(-resp) - betaln(up, down)


def student(theta, resp, params):
    a, b, s = params
    z = (resp - a * theta - b) / s
    return (
        -2.5 * np.log1p(z**2 / 4) - np.log(s) + gammaln(2.5) - gammaln(2) - 0.5 * np.log(4 * np.pi)
    )


SPECS = {"a": (0.5, 0.01, 5.0), "b": (0.2, -10.0, 10.0), "s": (0.7, 0.05, 5.0)}
WIDER = {**SPECS, "s": (3.0, 0.5, 50.0)}
LOGNORMAL = dy.CustomItemModel(lognormal, SPECS, label="lognormal")


@pytest.mark.parametrize(
    ("model", "low", "high", "scale"),
    [
        (LOGNORMAL, 0.05, 30.0, "log"),
        (dy.CustomItemModel(gamma, WIDER), 0.02, 12.0, "log"),
        (dy.CustomItemModel(share, WIDER), 0.01, 0.99, "logit"),
        (dy.CustomItemModel(student, SPECS), -8.0, 9.0, "identity"),
    ],
)
def test_densities_read_off_the_grid_are_those_of_the_function(model, low, high, scale):
    made = density_on_grid(model, low, high)
    assert made.transform == scale
    y = low + (high - low) * np.random.default_rng(1).uniform(size=200) ** 2
    u = made.unconstrain({name: np.array([spec[0]]) for name, spec in model.params.items()}, 0)
    terms, constant = made.terms(y, np.zeros((y.size, 0)))
    rows = made.log_likelihood(u, THETA)[0][made.term_rows(y, 0)]
    found = np.einsum("nk,nkg->ng", terms, rows) + constant[:, None]
    start = tuple(spec[0] for spec in model.params.values())
    exact = np.array([model.log_prob(THETA, one, start) for one in y])
    visible = exact > exact.max() - 25
    assert np.abs(found - exact)[visible].max() < 5e-3
    direct = made.log_likelihood_of(np.tile(u, (y.size, 1)), THETA, y, NONE)
    assert_allclose(direct, exact, atol=1e-12)


def test_moments_and_draws_are_those_of_the_distribution():
    made = density_on_grid(LOGNORMAL, 0.005, 300.0)
    u = made.unconstrain({"a": np.array([0.5]), "b": np.array([0.2]), "s": np.array([0.7])}, 0)
    truth = lognorm(0.7, scale=np.exp(0.2 - 0.5 * THETA))
    assert_allclose(made.expected(u, THETA, NONE)[0], truth.mean(), rtol=1e-3)
    assert_allclose(made.variance(u, THETA, NONE)[0], truth.var(), rtol=1e-2)
    drawn = made.draw(np.repeat(u, 20_000, axis=0), np.zeros(20_000), np.random.default_rng(2))
    assert_allclose(np.log(drawn).mean(), 0.2, atol=0.02)
    assert_allclose(np.log(drawn).std(), 0.7, rtol=0.02)


@pytest.fixture(scope="module")
def times():
    """Response times of 40 people, whose logarithms are Gaussian, as a table."""
    table = dict(dy.simulate.responses(people=40, items=5, per_person=25, seed=1).table)
    rng = np.random.default_rng(3)
    ids = sorted(set(table["id"]))
    ability = dict(zip(ids, rng.normal(size=40), strict=True))
    item = np.array([int(name[1:]) for name in table["item"]])
    speed = np.array([ability[name] for name in table["id"]])
    log_time = 0.5 + 0.3 * item - 0.4 * speed + 0.5 * rng.normal(size=item.size)
    return {**table, "resp": np.exp(log_time)}


@pytest.fixture(scope="module")
def fits(times):
    """A fit by the user's lognormal model, and one of the logarithms by the Gaussian one."""
    static = dy.DynAEsti(LOGNORMAL, bandwidth=np.inf, priors=None)
    logs = {**times, "resp": -np.log(times["resp"])}
    return static.fit(times), static.with_options(model="gaussian").fit(logs)


def test_lognormal_times_are_gaussian_logarithms(fits, times):
    own, gaussian = fits
    assert own.converged
    jacobian = np.log(times["resp"]).sum()
    assert own.log_evidence == pytest.approx(gaussian.log_evidence - jacobian, abs=0.02)
    assert_allclose(own.items["a"], gaussian.items["a"], atol=2e-3)
    assert_allclose(own.items["b"], -np.asarray(gaussian.items["intercept"]), atol=2e-3)
    assert_allclose(own.items["s"], gaussian.items["sigma"], atol=2e-3)
    assert_allclose(own.items["se_a"], gaussian.items["se_a"], rtol=0.05)
    assert_allclose(own.items["se_b"], gaussian.items["se_intercept"], rtol=0.05)
    ours, theirs = own.ability([50.0]), gaussian.ability([50.0])
    assert_allclose(ours["mean"], theirs["mean"], atol=0.01)
    assert_allclose(ours["sd"], theirs["sd"], rtol=0.01)
    assert set(own.items["flag"]) <= {"", "misfits"}  # longer times are no wrong keys


def test_they_are_predicted_saved_and_grow(fits, tmp_path):
    own, gaussian = fits
    asked = {"id": ["p00", "new"], "item": ["i0", "i2"], "date": [120.0, 5.0], "resp": [1.5, 2.0]}
    found = own.predict(asked)
    logs = {**asked, "resp": -np.log(asked["resp"])}
    theirs = gaussian.predict(logs)
    assert_allclose(found["p"], np.asarray(theirs["p"]) / asked["resp"], rtol=0.02)
    again = dy.load(own.save(tmp_path / "own.dyn"), models={"lognormal": LOGNORMAL})
    assert_allclose(again.predict(asked)["expected"], found["expected"])
    grown = again.update(asked)
    assert_allclose(
        grown.ability([50.0], ["p00"])["mean"],
        gaussian.update(logs).ability([50.0], ["p00"])["mean"],
        atol=0.01,
    )
    live = own.curve("p00").mean([50.0])
    assert_allclose(live, own.ability([50.0], ["p00"])["mean"], atol=2e-3)
    scorer = own.scorer()
    state = scorer.add(scorer.start(), 1.0, "i0", 1.5)
    assert np.isfinite(scorer.ability(state).mean)
    with pytest.raises(dy.ResponseError, match=r"not numbers from .* about which the fit has"):
        own.update({**asked, "resp": [1e9, 1.0]})


def test_shards_give_the_same(times, fits, tmp_path):
    shards = dy.prepare(times, tmp_path / "shards", shards=3)
    static = dy.DynAEsti(LOGNORMAL, bandwidth=np.inf, priors=None)
    fit = static.fit(shards, out=tmp_path / "run")
    assert fit.log_evidence == pytest.approx(fits[0].log_evidence, abs=1e-3)
    assert_allclose(fit.items["b"], fits[0].items["b"], atol=1e-4)
    again = dy.load(tmp_path / "run", models={"lognormal": LOGNORMAL})
    assert_allclose(again.items["s"], fit.items["s"])


def test_few_values_have_rows_of_their_own(times, fits):
    """Rounded to under 400 values, the other path gives nearly the same."""
    rounded = {**times, "resp": np.exp(np.round(np.log(times["resp"]) / 0.02) * 0.02)}
    fit = dy.DynAEsti(LOGNORMAL, bandwidth=np.inf, priors=None).fit(rounded)
    assert fit.coding.models[0].has_value_rows
    assert_allclose(fit.items["b"], fits[0].items["b"], atol=0.01)
    assert_allclose(fit.items["s"], fits[0].items["s"], atol=0.01)


def test_items_of_other_models_stand_beside_them(times):
    binary = dy.simulate.responses(people=40, items=3, per_person=12, seed=4).table
    both = {
        "id": [*times["id"], *binary["id"]],
        "item": [*times["item"], *(f"q{name}" for name in binary["item"])],
        "resp": [*times["resp"], *binary["resp"]],
        "date": [*times["date"], *binary["date"]],
    }
    models = {name: LOGNORMAL if name[0] == "i" else "2PL" for name in set(both["item"])}
    fit = dy.DynAEsti(models, bandwidth=np.inf).fit(both)
    assert fit.converged
    assert fit.model_names() == "2PL, own density"
    assert_allclose(np.asarray(fit.items["s"])[:5].astype(float), 0.5, atol=0.1)


def jumping(theta, resp, params):
    return -0.5 * (resp - params[0] * theta) ** 2 + 3.0 * (np.floor(40 * resp) % 2)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (jumping, "too rough in resp"),
        (lambda theta, resp, params: 5.0 - (theta - params[0]) ** 2, "adds up to more than 1"),
        (lambda theta, resp, params: np.full(theta.shape, np.nan), "one number below infinity"),
    ],
)
def test_what_is_no_density_is_refused(times, function, words):
    model = dy.CustomItemModel(function, {"a": (0.5, 0.0, 2.0)})
    with pytest.raises(dy.InputError, match=words):
        dy.DynAEsti(model, bandwidth=np.inf).fit(times)
