"""Effects: their gradient against finite differences, sites against a dense solver, the whole."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dynaesti as dy
from dynaesti.data import parse_formula
from dynaesti.errors import HealthWarning, InputError, MissingColumnError
from dynaesti.estimation.cohort_design import CohortDesign, design_cohort
from dynaesti.estimation.effects_design import add_effects
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.site_layout import build_people_sites
from dynaesti.model import plain_effects, standardised_effects, sum_effects
from dynaesti.model.kernels import RBF, Level, Matern32
from dynaesti.results.updates import fit_new_people, read_new_responses
from support.cohorts import cohort_at_weights
from support.simulated import classroom, parts

KERNELS = {
    "one curve": (RBF(0.3),),
    "constant": (Level(amplitude=1.0),),
    "mixture": (RBF(0.4), Level(amplitude=0.7) + Matern32(0.5, amplitude=0.7), Level()),
}
FORMULA = "age * time + C(lang) + practice(item) + load + random(rater)"


def answers(people=15, items=5, per_person=12, seed=0):
    """A classroom with columns of people and of answers, some at the same instant."""
    table = classroom(people, items, per_person)
    table.loc[::5, "date"] = table.loc[::5, "date"].round(1)
    rng = np.random.default_rng(seed)
    number = table["id"].astype(str).str.extract(r"(\d+)")[0].astype(int)
    table["age"] = 20 + number * 7 % 40
    table["lang"] = np.array(["de", "fr", "it"])[number % 3]
    table["load"] = rng.normal(size=len(table))
    table["rater"] = rng.integers(0, 4, len(table))
    return table


def designed(table, formula=FORMULA, with_curve=True):
    """Sites and bank of a table, and a cohort with effects at some values."""
    plain, coding, bank, _ = parts(table)
    columns = parse_formula(formula).columns
    responses = dy.Responses.read(table, covariates=columns)
    assert_array_equal(responses.resp, plain.resp)
    levels = {name: c.levels for name, c in responses.covariates.items() if c.levels}
    effects = plain_effects(parse_formula(formula), levels)
    effects = standardised_effects(effects, sum_effects(effects, responses))
    sites = build_people_sites(responses, coding, bank, effects)
    times = sites.layout.times
    ends = (times.min(), times.max())
    design = CohortDesign(None)
    if with_curve:
        design = design_cohort(sites, bank, ends, np.ones(1), [])
    cohort = add_effects(design, effects, sites, bank, ends).cohort
    coefficients = 0.3 * np.random.default_rng(3).normal(size=cohort.coefficients.size)
    return responses, sites, bank, replace(cohort, coefficients=coefficients)


@pytest.mark.parametrize("with_curve", [True, False])
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_the_gradient_is_that_of_the_evidence(kernels, with_curve):
    _, sites, bank, cohort = designed(answers(), with_curve=with_curve)
    people = PeopleInMemory(sites, 1)
    share = np.full(len(kernels), 1 / len(kernels))
    priors = PriorMixture(kernels, np.zeros(share.size), share, cohort)
    found, _ = cohort_at_weights(people, bank, priors)
    ours = found.gradient @ cohort.loadings
    held = cohort.loadings.T @ found.information @ cohort.loadings
    direction = np.random.default_rng(1).normal(size=ours.size) / np.sqrt(ours.size)
    step = 1e-3
    ends = []
    slopes = []
    for sign in (2, 1, -1, -2):
        moved = replace(cohort, coefficients=cohort.coefficients + sign * step * direction)
        one, value = cohort_at_weights(people, bank, replace(priors, cohort=moved))
        ends.append(value)
        slopes.append(one.gradient @ cohort.loadings @ direction)
    difference = (-ends[0] + 8 * ends[1] - 8 * ends[2] + ends[3]) / (12 * step)
    assert_allclose(ours @ direction, difference, rtol=1e-6, atol=1e-6)
    curvature = -(slopes[1] - slopes[2]) / (2 * step)
    assert_allclose(direction @ held @ direction, curvature, rtol=0.25)


def test_answers_of_one_instant_with_equal_columns_are_one_site():
    table = answers()
    _, sites, _, _ = designed(table, "age")
    instants = table.groupby(["id", "date"]).ngroups
    assert sites.layout.n_sites == instants
    _, split, _, _ = designed(table, "load")
    assert split.layout.n_sites == len(table)
    assert sites.effects is not None
    one = sites.select(np.array([3, 5])).effects
    assert_array_equal(one.level.toarray(), sites.effects.level.toarray()[[3, 5]])
    both = type(sites).concatenate([sites.select(np.arange(4)), sites.select(np.arange(4, 15))])
    assert_array_equal(both.effects.at_sites.toarray(), sites.effects.at_sites.toarray())


def test_columns_are_those_of_the_formula():
    table = answers()
    responses, sites, _, cohort = designed(table, FORMULA)
    effects = cohort.effects
    assert effects.names[:7] == [
        "age", "time", "lang[fr]", "lang[it]", "practice(item)", "load", "age:time",
    ]  # fmt: skip
    x = effects.rows(responses).x.toarray()
    n_fixed = len(effects.fixed)
    assert_allclose(x[:, :n_fixed].mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(x[:, :n_fixed].std(axis=0), 1.0)
    raw = x[:, :n_fixed] * effects.scale + effects.centre
    age = responses.covariates["age"].values
    assert_allclose(raw[:, 0], age)
    assert_allclose(raw[:, 6], age * responses.clock_times, atol=1e-9)
    rater = responses.covariates["rater"].values.astype(int)
    assert_array_equal(x[:, n_fixed:], np.eye(4)[rater])
    is_ability = [*"yyyyNNy", *"NNNN"]
    assert_array_equal(effects.is_ability, [letter == "y" for letter in is_ability])
    # ability at an answer's time has the columns of the person, and none of the answer
    own = sites.columns_of_ability(responses.person, responses.clock_times).toarray()
    assert_allclose(own[:, effects.is_ability], x[:, effects.is_ability], atol=1e-12)
    assert not own[:, ~effects.is_ability].any()


def fitted(table, effects, **options):
    return dy.DynAEsti("2PL", effects=effects, **options).fit(table)


def test_what_cannot_be_learned_is_left_out_and_told():
    table = answers(40, 6, 10)
    table["same"] = 3.0
    table["twice"] = 2.0 * table["age"]
    table["form"] = table["item"].astype(str).str[-1].astype(int)
    with pytest.warns(HealthWarning, match="Effects that cannot be learned"):
        fit = fitted(table, "age + same + twice + form + time")
    told = fit.cautions[0]
    assert "'same' has one value only" in told
    assert "'form' is the same in all answers to an item" in told
    assert "'twice', 'time' follows from" in told
    frame = fit.effects.set_index("term")
    assert np.isfinite(frame.loc["age", "estimate"])
    assert frame.loc[["same", "twice", "form", "time"], "estimate"].isna().all()


@pytest.fixture(scope="module")
def fit():
    return fitted(answers(40, 6, 12), "age + C(lang) + practice(item) + load + random(rater)")


class TestWhole:
    def test_a_saved_fit_is_the_same(self, fit, tmp_path):
        fit.save(tmp_path / "fit.dyn")
        again = dy.load(tmp_path / "fit.dyn")
        for name in ("estimate", "se"):
            assert_array_equal(again.effects[name], fit.effects[name])
        more = fit.responses.select_people(np.arange(3))
        assert_array_equal(again.predict(more)["p1"], fit.predict(more)["p1"])

    def test_moving_a_column_moves_the_prediction_by_its_effect(self, fit):
        one = {"id": [fit.ids[0]], "item": ["i01"], "date": [2.0]}
        one |= {"age": [30], "lang": ["de"], "load": [0.0], "rater": [1]}
        new = {**one, "id": ["somebody else"]}
        at = [float(fit.predict({**new, "load": [x]})["expected"].iloc[0]) for x in (-3.0, 0, 3.0)]
        effect = float(fit.effects.set_index("term").loc["load", "estimate"])
        assert np.sign(at[2] - at[0]) == np.sign(effect)
        assert float(fit.predict(one)["expected"].iloc[0]) > 0

    @pytest.mark.parametrize("gone", ["age", "lang", "load", "rater"])
    def test_absent_columns_are_refused_by_name(self, fit, gone):
        one = {"id": ["x"], "item": ["i01"], "date": [2.0], "resp": [1]}
        one |= {"age": [30], "lang": ["de"], "load": [0.0], "rater": [1]}
        del one[gone]
        for verb in (fit.predict, fit.update, fit.score):
            with pytest.raises(MissingColumnError, match=f"effects: no column '{gone}'"):
                verb(one)
        with pytest.raises(InputError, match="without the column"):
            fit.predict(dy.Responses.read(one))

    def test_unknown_categories_are_refused_and_unknown_raters_are_average(self, fit):
        one = {"id": ["x"], "item": ["i01"], "date": [2.0], "age": [30], "load": [0.0]}
        with pytest.raises(InputError, match=r"level of 'lang' that the fit has not seen.*'xx'"):
            fit.predict({**one, "lang": ["xx"], "rater": [1]})
        found = fit.predict({**one, "lang": ["de"], "rater": [99]})
        assert 0 < float(found["p1"].iloc[0]) < 1

    def test_an_update_is_a_fit_of_everything_with_items_held(self, fit):
        r = fit.responses
        more = {"id": [fit.ids[0]] * 2, "item": ["i01", "i02"], "date": [2.0, 2.0]}
        more |= {"age": [20, 20], "lang": ["de", "de"], "load": [0.5, -1.0], "rater": [1, 2]}
        age = float(r.covariates["age"].values[0])
        lang = r.covariates["lang"]
        more["age"] = [age] * 2
        more["lang"] = [lang.levels[int(lang.values[0])]] * 2
        grown = fit.update({**more, "resp": [1, 1]})
        assert len(grown.responses) == len(r) + 2
        again = fit_new_people(grown, read_new_responses(grown, grown.responses))
        one = grown.ability([1.0], [fit.ids[0]])
        assert_allclose(one["mean"], again.ability([1.0], [fit.ids[0]])["mean"], atol=1e-5)

    def test_practice_counts_the_answers_of_the_fit(self, fit):
        effects = fit.priors.effects
        r = fit.responses
        who = r.people.tolist()[0]
        more = {"id": [who, who], "item": ["i01", "i01"], "date": [r.offsets.max() + 9] * 2}
        more |= {"age": [20] * 2, "lang": ["de"] * 2, "load": [0.0] * 2, "rater": [1] * 2}
        new = dy.Responses.read({**more, "resp": [1, 0]}, covariates=fit.covariate_kinds)
        new = replace(new, axis=r.axis, offsets=np.full(2, r.offsets.max() + 9.0))
        rows = effects.rows(replace(new, items=r.items, item=np.full(2, 1)), r).x.toarray()
        at = [column.name for column in effects.fixed].index("practice(item)")
        count = np.expm1(rows[:, at] * effects.scale[at] + effects.centre[at])
        expected = ((r.person == 0) & (r.item == 1)).sum()
        assert_allclose(count, [expected] * 2)

    def test_a_fit_without_effects_says_so(self):
        without = dy.DynAEsti("2PL").fit(answers())
        with pytest.raises(InputError, match="no effects"):
            _ = without.effects


def test_order_of_rows_and_units_of_columns_do_not_matter():
    table = answers(30, 5, 10)
    first = fitted(table, "age + load + random(rater)")
    turned = table.sample(frac=1.0, random_state=1)
    turned["age"] = turned["age"] * 365.0 + 1000.0
    second = fitted(turned, "age + load + random(rater)")
    one, other = (fit.effects.set_index("term")["estimate"] for fit in (first, second))
    assert_allclose(other["age"] * 365.0, one["age"], rtol=1e-4, atol=1e-6)
    assert_allclose(other.drop("age"), one.drop("age"), rtol=1e-3, atol=1e-4)


def test_terms_of_one_category_are_told_and_responses_explain_nothing():
    table = dict(dy.simulate.responses(people=40, items=5, per_person=15, seed=1).table)
    table["one"] = ["x"] * len(table["id"])
    table["g"] = ["m" if int(name[1:]) % 2 else "f" for name in table["id"]]
    fit = dy.DynAEsti("2PL", effects="one + g").fit(table)
    assert "Effects that cannot be learned: 'one' has one value only." in fit.cautions
    assert list(fit.effects["term"]) == ["g[m]"]
    for formula, what in (("resp", "response"), ("id", "person"), ("C(item)", "item")):
        with pytest.raises(dy.InputError, match=f"is the column of the {what}"):
            dy.DynAEsti("2PL", effects=formula).fit(table)


def test_products_with_time_do_not_depend_on_how_a_column_is_coded():
    """0 and 1 or 1 and 0: the slope only changes its sign, and the evidence stays."""
    table = dict(dy.simulate.responses(people=60, items=6, per_person=15, seed=2).table)
    own = np.array([int(name[1:]) % 2 for name in table["id"]])
    found = []
    for x in (own, 1 - own):
        fit = dy.DynAEsti("2PL", effects="x * time").fit({**table, "x": x})
        slope = dict(zip(fit.effects["term"], fit.effects["estimate"], strict=True))["x:time"]
        found.append((slope, fit.log_evidence))
    assert abs(found[0][0] + found[1][0]) < 0.02 * abs(found[0][0])
    assert abs(found[0][1] - found[1][1]) < 0.02
