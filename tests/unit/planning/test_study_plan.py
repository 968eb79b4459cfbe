"""What replications say together, the advice, and the verb."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import dynaesti as dy
from dynaesti.planning import Design, study_plan
from dynaesti.planning.replications import Replication, summarise
from support.saying import spoken


def drawn_from(se, unclear=False):
    """Replications whose estimates are normal about the truth, in the place of fits."""

    def replicate(design, seed, level, threads):
        own = se * np.sqrt(200 * 12 / (design.people * design.answers))
        estimate = design.effect + own * np.random.default_rng(seed).standard_normal()
        if unclear:
            estimate = own = np.nan
        return Replication(0.8, 0.95, 0.2, 0.9, estimate, own)

    return replicate


@pytest.fixture
def fits_of(monkeypatch):
    """Put normal estimates in the place of fits."""
    return lambda *given: monkeypatch.setattr(study_plan, "replicate", drawn_from(*given))


def test_power_error_and_cover_are_those_of_normal_estimates(fits_of):
    fits_of(0.2)
    one = dy.plan(rise=0.5, replications=4000).outlooks[0]
    power = ndtr(2.5 - 1.96) + ndtr(-2.5 - 1.96)
    assert one.found == pytest.approx(power, abs=3 * one.found_error)
    assert one.found_error == pytest.approx(np.sqrt(power * (1 - power) / 4000), rel=0.05)
    assert one.cover == pytest.approx(0.95, abs=0.01)
    assert (one.margin, one.unclear) == (pytest.approx(0.392, abs=1e-3), 0.0)
    nothing = dy.plan(rise=0.0, replications=4000).outlooks[0]
    assert nothing.found == pytest.approx(0.05, abs=0.01)


def test_the_monte_carlo_error_is_not_zero_where_all_are_found():
    some = Design(20, 5, 5, 3.0, None, "2PL", None, None, 1.0, None, 0.5, None, "random")
    one = summarise(some, [Replication(1.0, 1.0, 1.0, 1.0, 3.0, 0.1)] * 20, 0.95)
    assert one.found == 1.0
    assert 0.03 < one.found_error < 0.1


def test_designs_come_side_by_side_and_share_replications(fits_of):
    fits_of(0.2)
    table = dy.plan(people=[100, 200], answers=(6, 12), groups=0.4).table
    assert [[row["people"], row["answers"]] for row in table.rows()] == [
        [100, 6],
        [100, 12],
        [200, 6],
        [200, 12],
    ]
    assert table["replications"].tolist() == [25] * 4
    assert table["groups"].tolist() == [0.4] * 4
    assert "groups" not in dy.plan(replications=2).table
    assert dy.plan().table["replications"].tolist() == [50]


def test_the_advice_names_the_fewest_answers_that_suffice(fits_of):
    fits_of(0.12)
    advice = dy.plan(answers=[3, 12, 24]).advice
    assert advice.startswith("The fewest answers that do: 200 people with 12 answers each")
    assert "will find a rise of 0.5 sd in 9" in advice
    assert advice.count(". ") == 0


def test_the_advice_says_how_many_people_would_do(fits_of):
    """Errors shrink with the root of people: 0.4 must become 0.5 / 2.8."""
    fits_of(0.4)
    advice = dy.plan(replications=400).advice
    assert "for 80% plan about 1,100 people" in advice
    fits_of(0.16)
    assert "of studies" in dy.plan(people=1100, replications=400).advice


def test_the_advice_where_nothing_is_to_be_found(fits_of):
    fits_of(0.2)
    assert dy.plan(rise=0, replications=200).advice.startswith("Where there is nothing to find, ")


def test_the_advice_where_items_could_explain_it(fits_of):
    fits_of(0.2, True)
    plan = dy.plan(assignment="ordered")
    assert "assignment='shuffled'" in plan.advice
    assert plan.outlooks[0].found == 0.0
    assert plan.outlooks[0].unclear == 1.0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"level": 1.0}, "level: "),
        ({"seed": -1}, "seed: "),
        ({"replications": 0}, "replications: "),
        ({"people": []}, "people: no value is given"),
    ],
)
def test_what_cannot_be_planned_is_refused(wrong, said):
    with pytest.raises(dy.InputError, match=said):
        dy.plan(**wrong)


def test_the_verb_prints_writes_and_speaks_json(fits_of, tmp_path, capsys):
    fits_of(0.12)
    asked = ["plan", "--answers", "6", "12", "--rise", "0.5", "--replications", "20"]
    code, out, said = spoken(capsys, *asked)
    assert code == 0
    assert out.splitlines()[0].startswith("people,items,answers,rise,ability_margin")
    assert len(out.splitlines()) == 3
    assert "study 40 of 40" in said
    assert said.splitlines()[-1].startswith("The fewest answers that do")
    file = tmp_path / "plan.csv"
    assert spoken(capsys, *asked, "--quiet", "--out", file)[0] == 0
    assert pd.read_csv(file)["answers"].tolist() == [6, 12]
    code, out, _ = spoken(capsys, *asked, "--quiet", "--json")
    found = json.loads(out)
    assert (found["level"], len(found["rows"])) == (0.95, 2)
    assert found["advice"].startswith("The fewest")


def test_the_verb_names_its_flags(capsys):
    code, _, said = spoken(capsys, "plan", "--people", "5")
    assert code == 3
    assert "--people: expected a whole number of at least 10, got 5" in said
    code, _, said = spoken(capsys, "plan", "--guessing", "0.2")
    assert code == 3
    assert "--guessing: 2PL items are not guessed; plan with --model 3PL" in said
