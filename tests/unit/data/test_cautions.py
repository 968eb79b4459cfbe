"""What answers cannot tell is told."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dynaesti as dy
from support.saying import told


def cohort(people=100, items=10, each=20, seed=0, slope=None, rise=0.0, chosen=None):
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), each)
    t = rng.uniform(0, 100, person.size)
    item = rng.integers(0, items, person.size) if chosen is None else chosen(person, t, rng)
    a, b = np.ones(items) if slope is None else slope, rng.normal(size=items)
    theta = rng.normal(size=people)[person] + rise * (t / 100 - 0.5)
    right = rng.uniform(size=person.size) < expit(a[item] * (theta - b[item]))
    return pd.DataFrame({"id": person, "item": item, "resp": right * 1.0, "date": t})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            lambda: cohort(chosen=lambda p, t, rng: rng.integers(0, 5, p.size) + 5 * (p >= 50)),
            "groups without a link",
        ),
        (
            lambda: cohort(people=200, slope=np.where(np.arange(10) % 2, 1.5, -1.5)),
            "5 items of 10 run against the rest",
        ),
        (
            lambda: cohort(people=200, slope=np.where(np.arange(10) > 1, 1.5, -1.5)),
            "2 items of 10 run against the rest",
        ),
        (
            lambda: cohort().assign(resp=lambda t: np.where(t["item"] == 3, 1.0, t["resp"])),
            "1 item got one answer only",
        ),
        (lambda: pd.concat([cohort(20)] * 5), "repeat another one exactly"),
        (
            lambda: cohort(
                items=20,
                rise=3.0,
                chosen=lambda p, t, rng: (
                    np.minimum(t // 10, 9).astype(int) * 2 + rng.integers(0, 2, p.size)
                ),
            ),
            "at a time of its own",
        ),
    ],
)
def test_what_cannot_be_told_is_told(table, words):
    said, fit = told(lambda: dy.DynAEsti(standard_errors=False).fit(table()))
    assert words in said
    assert words in fit.summary()
    from dynaesti.report.data import page_data
    from dynaesti.report.words import points_of_attention

    assert any(words in text for text in points_of_attention(fit))
    assert any(words in text for text in page_data(fit, None)["cautions"])


def test_answers_without_weight_link_nothing():
    table = cohort(chosen=lambda p, t, rng: rng.integers(0, 5, p.size) + 5 * (p >= 50)).assign(
        w=1.0
    )
    table.loc[0, ["item", "w"]] = [9, 0.0]
    assert (
        "groups without a link"
        in told(
            lambda: dy.DynAEsti(standard_errors=False).fit(table.astype({"item": int}), weight="w")
        )[0]
    )


def test_ordinary_answers_raise_no_caution():
    assert told(lambda: dy.DynAEsti().fit(cohort(150, 12, 30, seed=4)))[0] == ""


@pytest.mark.slow
def test_free_directions_say_that_up_is_arbitrary_unless_it_was_said():
    table = cohort(people=200, slope=np.where(np.arange(10) % 2, 1.5, -1.5))
    assert (
        "orient="
        in told(lambda: dy.DynAEsti(direction="free", standard_errors=False).fit(table))[0]
    )
    assert (
        told(
            lambda: dy.DynAEsti(direction="free", orient={"item": 1}, standard_errors=False).fit(
                table
            )
        )[0]
        == ""
    )


def test_guessing_that_nobody_shows_is_told():
    assert "guessing" in told(lambda: dy.DynAEsti("3PL").fit(cohort()))[0]


@pytest.mark.parametrize(
    ("grades", "code", "share"),
    [([0, 1], 9, 0.1), ([0, 1], -99, 0.1), ([1, 2, 3, 4, 5], 8, 0.05), ([0, 1], -1, 0.05)],
)
def test_numbers_that_stand_for_no_answer_are_told_and_left_out(grades, code, share):
    rng = np.random.default_rng(1)
    resp = np.where(rng.random(600) < share, code, rng.choice(grades, 600))
    table = {"id": np.arange(600) // 10, "item": np.arange(600) % 10, "resp": resp}
    found = dy.validate(table)
    caution = next(str(one) for one in found.report.cautions if "no answer" in str(one))
    assert f"responses of {code} lie far from the others ({grades[0]} to {grades[-1]})" in caution
    assert f"code={{'{code}': nan}}" in caution
    for column in (resp, np.where(np.arange(600) == 3, np.nan, resp)):
        read = dy.Responses.read({**table, "resp": column}, code={code: np.nan}, timeless=True)
        assert set(read.resp.tolist()) == set(map(float, grades))


@pytest.mark.parametrize(
    "values", [[0, 1], [-1, 0, 1], [3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 9]]
)
def test_grades_are_no_codes(values):
    resp = np.random.default_rng(2).permutation(np.repeat(values, 60))
    table = {"id": np.arange(resp.size) // 10, "item": np.arange(resp.size) % 10, "resp": resp}
    assert not any("no answer" in str(one) for one in dy.validate(table).report.cautions)
