"""The cohort: its basis, its gradient and information, what identifies it, and the whole fit."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.estimation.cohort_design import design_cohort
from dynaesti.estimation.cohort_step import newton_step
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.model.cohort import smooth_basis
from dynaesti.model.kernels import RBF, Level, Matern32
from support.cohorts import cohort_at_weights
from support.simulated import classroom, parts

pd = pytest.importorskip("pandas")

KERNELS = {
    "one curve": (RBF(0.3),),
    "constant": (Level(amplitude=1.0),),
    "mixture": (RBF(0.4), Level(amplitude=0.7) + Matern32(0.5, amplitude=0.7), Level()),
}


def growing(people=60, items=8, per_person=12, rise=2.0, seed=0, model="2PL"):
    """A classroom whose people all rise, with a group for each person."""
    return dy.simulate.responses(
        people=people,
        items=items,
        per_person=per_person,
        model=model,
        span=1.0,
        bandwidth=0.5,
        growth=rise,
        seed=seed,
    )


def some_people(model, groups=1):
    """Sites of a few people, some with several answers at an instant; their bank; a cohort."""
    table = classroom(15, 5, 12, model={"3PL": "2PL"}.get(model, model))
    table.loc[::5, "date"] = table.loc[::5, "date"].round(1)  # some answers share an instant
    _, _, bank, sites = parts(table, model)
    sites = replace(sites, group=np.arange(sites.n_people) % groups)
    labels = [f"g{k}" for k in range(groups)] if groups > 1 else []
    times = sites.layout.times
    ends = (times.min(), times.max())
    shares = np.full(groups, 1 / groups)
    cohort = design_cohort(sites, bank, ends, shares, labels).cohort
    rng = np.random.default_rng(3)
    coefficients = 0.3 * rng.normal(size=cohort.coefficients.size)
    return sites, bank, replace(cohort, coefficients=coefficients)


# --- the basis -----------------------------------------------------------------------------------


def test_the_basis_is_orthonormal_and_ordered_by_roughness():
    times = np.random.default_rng(0).beta(2, 4, 4000) * 70 + 3
    basis = smooth_basis(times, times.min(), times.max())
    columns = basis.columns(times)
    assert_allclose(columns.T @ columns / times.size, np.eye(columns.shape[1]), atol=1e-3)
    assert_allclose(columns[:, 0], 1.0)
    assert_allclose(np.diff(np.diff(basis.columns(np.linspace(5, 60, 9))[:, 1])), 0.0, atol=1e-12)
    assert (np.diff(basis.roughness[1:]) > 0).all()
    # roughness is the integral of the squared second derivative, with the span as the unit
    x = np.linspace(times.min(), times.max(), 20001)
    step = x[1] - x[0]
    second = np.diff(basis.columns(x), 2, axis=0) / step**2
    assert_allclose(
        (second**2).sum(axis=0)[2:] * step * basis.span**3, basis.roughness[2:], rtol=5e-3
    )


def test_slopes_fade_beyond_the_data():
    basis = smooth_basis(np.linspace(0, 10, 200), 0.0, 10.0)
    line = basis.columns(np.array([8.0, 10.0, 12.0, 20.0, 200.0, 2000.0]))[:, 1]
    steps = np.diff(line)
    assert 0 < steps[1] < steps[0]
    assert line[-1] - line[-2] < 1e-6
    assert_allclose(basis.columns(np.array([-3.0]))[:, 1], -basis.columns(np.array([13.0]))[:, 1])


@pytest.mark.parametrize("times", [[1.0, 1.0], [1.0, 2.0], [1.0, 2.0, 2.0, 3.0]])
def test_few_distinct_times_have_few_functions(times):
    basis = smooth_basis(np.array(times), min(times), max(times))
    distinct = len(set(times))
    if distinct == 1:
        assert basis is None
    else:
        assert basis.n_columns == distinct


# --- gradient, information, steps ----------------------------------------------------------------


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize(("model", "groups"), [("2PL", 1), ("3PL", 3), ("GRM", 3), ("poisson", 1)])
def test_the_gradient_is_that_of_the_evidence(model, kernels, groups):
    """Against finite differences: merged answers, mixtures and constant abilities included."""
    sites, bank, cohort = some_people(model, groups)
    people = PeopleInMemory(sites, 1)
    share = np.full(len(kernels), 1 / len(kernels))
    priors = PriorMixture(kernels, np.zeros(share.size), share, cohort)
    found, _ = cohort_at_weights(people, bank, priors)
    ours = found.gradient @ cohort.loadings
    rng = np.random.default_rng(1)
    for _ in range(2):
        direction = rng.normal(size=ours.size) / np.sqrt(ours.size)
        step = 1e-3
        ends = [
            cohort_at_weights(people, bank, replace(priors, cohort=moved))[1]
            for moved in (
                replace(cohort, coefficients=cohort.coefficients + sign * step * direction)
                for sign in (2, 1, -1, -2)
            )
        ]
        difference = (-ends[0] + 8 * ends[1] - 8 * ends[2] + ends[3]) / (12 * step)
        assert_allclose(ours @ direction, difference, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_the_information_is_near_the_curvature_of_the_evidence(kernels):
    """It leaves out that precisions of sites change, so it is near, not equal."""
    sites, bank, cohort = some_people("2PL")
    people = PeopleInMemory(sites, 1)
    share = np.full(len(kernels), 1 / len(kernels))
    priors = PriorMixture(kernels, np.zeros(share.size), share, cohort)
    found, middle = cohort_at_weights(people, bank, priors)
    held = cohort.loadings.T @ found.information @ cohort.loadings
    for k in (0, 2):
        step = 0.05 * np.eye(cohort.coefficients.size)[k]
        ends = [
            cohort_at_weights(
                people,
                bank,
                replace(priors, cohort=replace(cohort, coefficients=cohort.coefficients + move)),
            )[1]
            for move in (step, -step)
        ]
        assert_allclose(held[k, k], (2 * middle - sum(ends)) / 0.05**2, rtol=0.1)


def test_newton_steps_reach_the_maximum_of_evidence_and_prior():
    sites, bank, cohort = some_people("2PL")
    people = PeopleInMemory(sites, 1)
    priors = PriorMixture.single(RBF(0.4), cohort)
    for _ in range(12):
        found, _ = cohort_at_weights(people, bank, priors)
        step = newton_step(priors.cohort, found.gradient, found.information, np.zeros(2))
        priors = replace(priors, cohort=step.cohort)
    found, _ = cohort_at_weights(people, bank, priors)
    score = found.gradient @ cohort.loadings
    pull = priors.cohort.precision @ priors.cohort.coefficients
    assert_allclose(score, pull, atol=1e-5)


# --- what can be told apart ----------------------------------------------------------------------


def test_a_cohort_that_items_can_imitate_is_left_out_in_words():
    table = growing().table
    frame = pd.DataFrame(table)
    frame["item"] = frame["item"] + (frame["date"] * 8).astype(int).astype(str)  # each at one time
    with pytest.warns(dy.HealthWarning, match=r"cannot be seen.*at one time only"):
        fit = dy.DynAEsti("1PL", bandwidth=0.5, iterations=5).fit(frame)
    with pytest.raises(dy.InputError, match=r"has no cohort.*at one time only"):
        fit.cohort()


@pytest.mark.slow
def test_known_items_tell_the_cohort_even_at_one_time_each():
    drawn = growing(people=150)
    frame = pd.DataFrame(drawn.table)
    part = (frame["date"] * 4).astype(int).clip(0, 3).astype(str)
    items = pd.DataFrame(drawn.items)[["item", "a", "b"]]
    known = pd.concat([items.assign(item=items["item"] + k) for k in "0123"])
    frame["item"] = frame["item"] + part
    bank = known[known["item"].isin(frame["item"])]
    fit = dy.DynAEsti("2PL", fixed=bank, bandwidth=0.5).fit(frame)
    ends = fit.cohort([0.05, 0.95])["mean"].to_numpy()
    assert ends[1] - ends[0] == pytest.approx(1.8, abs=0.5)


@pytest.mark.slow
def test_who_learns_a_cohort_by_default():
    table = growing(people=9).table
    assert dy.DynAEsti(bandwidth=0.5).fit(table).priors.cohort is None  # too few to tell
    assert dy.DynAEsti(bandwidth=0.5, cohort="learn").fit(table).priors.cohort is not None
    many = growing(people=40).table
    assert dy.DynAEsti(bandwidth=0.5).fit(many).priors.cohort is not None
    assert dy.DynAEsti(bandwidth=0.5, cohort=None).fit(many).priors.cohort is None
    assert dy.DynAEsti(bandwidth=np.inf).fit(many).priors.cohort is None
    assert dy.DynAEsti(bandwidth=np.inf, cohort="learn").fit(many).priors.cohort is not None


def test_one_date_for_each_person_is_carried_by_the_cohort():
    """Language models by release date: one sitting each."""
    rng = np.random.default_rng(5)
    release = np.sort(rng.uniform(0, 10, 120))
    ability = rng.normal(size=120) + 0.4 * (release - 5)
    difficulty = rng.normal(size=15)
    right = rng.uniform(size=(120, 15)) < 1 / (1 + np.exp(difficulty - ability[:, None]))
    table = dy.Responses.from_matrices(right.astype(float), np.repeat(release[:, None], 15, axis=1))
    fit = dy.DynAEsti("1PL").fit(table)
    ends = fit.cohort([1.0, 9.0])
    # in units of the spread about the cohort
    assert np.diff(ends["mean"])[0] == pytest.approx(3.2, abs=0.8)
    future = fit.cohort([10.0, 12.0, 20.0])
    assert (np.diff(future["mean"]) > 0).all()
    assert (np.diff(future["sd"]) > 0).all()
