"""One person of a fit with effects: their curve, live answers, items' uncertainty."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.errors import InputError
from support.simulated import people_with_columns

FORMULA = "age * time + C(lang) + practice(item) + random(rater)"
AT = [0.0, 20.0, 50.0, 99.0]


def answers():
    drawn = people_with_columns()
    drawn.loc[::5, "date"] = drawn.loc[::5, "date"].round(-1)
    return drawn


@pytest.fixture(scope="module", params=["cohort", "none", "person's clock", "rbf"])
def fit(request):
    options = {
        "cohort": {},
        "none": {"cohort": None},
        "person's clock": {"clock": "person"},
        "rbf": {"bandwidth": 40.0},
    }[request.param]
    return dy.DynAEsti("2PL", effects=FORMULA, **options).fit(answers())


def test_a_persons_curve_is_their_ability(fit):
    for person in ("p03", "p17"):
        told = fit.ability(AT, [person])
        curve = fit.curve(person)
        assert_allclose(curve.mean(AT), told["mean"], atol=2e-4)
        # the band of the curve is that given the cohort and the effects
        assert (curve.sd(AT) < np.asarray(told["sd"]) + 1e-6).all()
        assert (curve.sd(AT) > 0.8 * np.asarray(told["sd"])).all()
    assert fit.plausible("p03", AT, 5).shape == (5, 4)


def test_a_saved_curve_keeps_its_mean(fit, tmp_path):
    curve = fit.curve("p03")
    again = dy.load(curve.save(tmp_path / "p03.dyn"))
    assert_allclose(again.mean(AT), curve.mean(AT), rtol=1e-8)


def test_items_uncertainty_widens_the_band(fit):
    found = fit.uncertain("p03", AT, draws=20)
    curve = fit.curve("p03")
    assert_allclose(found["mean"], curve.mean(AT), atol=0.4)
    assert np.mean(np.asarray(found["sd"]) - curve.sd(AT)) > -0.02


def test_live_answers_are_those_of_an_update(fit):
    mine = {"age": 41, "lang": "it"}
    last = 130.0
    new = pd.DataFrame(
        {
            "id": "p03",
            "date": [last, last, last + 4, last + 4],
            "item": ["i2", "i3", "i2", "i4"],
            "resp": [1, 0, 1, 1],
            "rater": ["0", "3", "1", "1"],
            **mine,
        }
    )
    updated = fit.update(new)
    person = fit.live("p03")
    r = fit.responses
    who = r.people.tolist().index("p03")
    start = r.axis.restore(r.origin[[who]])[0] if r.clock == "person" else 0.0
    for row in new.itertuples():
        person = person.add(row.date - start, row.item, row.resp, rater=row.rater, **mine)
    at = np.array([20.0, 99.0, 130.0]) - start
    told, theirs = person.ability(at), updated.ability(at, ["p03"])
    for name in ("mean", "sd"):
        assert_allclose(told[name], theirs[name], atol=1e-4)


def test_live_answers_need_their_columns(fit):
    person = fit.live("p03")
    late = 500.0
    with pytest.raises(InputError, match="need the column 'rater'"):
        person.add(late, "i2", 1, age=3, lang="de")
    with pytest.raises(InputError, match="age: expected a number, got 'x'"):
        person.add(late, "i2", 1, age="x", lang="de", rater=1)
    with pytest.raises(InputError, match="no effect of the fit needs the column 'foo'"):
        person.add(late, "i2", 1, age=3, lang="de", rater=1, foo=2)
    with pytest.raises(InputError, match="level of 'lang'"):
        person.add(late, "i2", 1, age=3, lang="zz", rater=1)
    with pytest.raises(InputError, match="how much practice"):
        person.add(0.5, "i2", 1, age=3, lang="de", rater=1)
