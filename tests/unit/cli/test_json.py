"""What verbs print with --json is what docs/reference/json.md says."""

import json
import re
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from dynaesti.cli.dispatch import VERBS
from support.saying import spoken
from support.service import Program

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
SCHEMAS = {
    verb: json.loads(text)
    for verb, text in re.findall(r"^## (\w+)\n.*?```json\n(.*?)```", PAGE, re.S | re.M)
}


def printed(capsys, *words):
    """The object that a command prints, checked against its schema."""
    code, out, err = spoken(capsys, *words, "--json")
    assert code in (0, 1), err
    found = json.loads(out)
    jsonschema.validate(found, SCHEMAS[words[0]], jsonschema.Draft202012Validator)
    return found


def test_every_verb_has_a_schema():
    assert set(SCHEMAS) == set(VERBS) - {"demo"}
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "words",
    [
        ("items", "RUN", "--fit"),
        ("ability", "RUN", "--id", "p000", "p001", "--grid", "3"),
        ("ability", "RUN", "--out", "a.csv"),
        ("plausible", "RUN", "--id", "p000", "--at", "5", "--draws", "2"),
        (
            "plan",
            "--people",
            "20",
            "--items",
            "5",
            "--answers",
            "4",
            "--replications",
            "2",
            "--quiet",
        ),
        ("next", "RUN", "--id", "p000", "--count", "2"),
        ("cohort", "RUN", "--grid", "3"),
        ("drift", "RUN"),
        ("change", "RUN"),
        ("predict", "RUN", "DATA"),
        ("score", "RUN", "DATA", "--at", "10"),
        ("update", "RUN", "DATA", "--out", "more"),
        ("report", "RUN", "--out", "page.html"),
        ("validate", "DATA"),
        ("prepare", "DATA", "--unit", "days", "--out", "shards", "--shards", "2"),
        ("simulate", "--people", "5", "--items", "3", "--out", "drawn"),
        ("example",),
        ("example", "polls", "--out", "polls.csv"),
        ("warmup",),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_objects_follow_their_schemas(words, run, answers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    named = {"RUN": str(run), "DATA": str(answers)}
    printed(capsys, *(named.get(word, word) for word in words))


def test_fits_of_groups_and_effects_follow_theirs(answers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = pd.read_csv(answers)
    number = table["student_id"].astype("category").cat.codes
    table.assign(kind=(number % 2).map({0: "a", 1: "b"}), age=number % 5).to_csv("a.csv")
    options = ("--groups", "kind", "--effects", "age", "--unit", "days", "--quiet", "--no-report")
    assert printed(capsys, "fit", "a.csv", *options)["people"] == 30
    printed(capsys, "effects", "run")
    printed(capsys, "cohort", "run", "--grid", "2")
    printed(capsys, "change", "run", "--by", "group")
    printed(capsys, "dif", "run", "--by", "kind")


def test_what_verbs_of_the_service_print(run, tmp_path, capsys):
    where = (str(run), "--db", f"sqlite:///{tmp_path}/answers.db")
    printed(capsys, "keys", *where, "--make", "lms", "--role", "write")
    printed(capsys, "keys", *where)
    printed(capsys, "keys", *where, "--revoke", "lms")
    assert printed(capsys, "refit", *where, "--quiet")["scorer"] == 2
    program = Program(*where)
    program.end()
    jsonschema.validate(program.told, SCHEMAS["serve"], jsonschema.Draft202012Validator)


def test_curves_and_evaluations_follow_theirs(answers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    polls = pd.DataFrame({"day": range(12), "yes": [5, 9] * 6, "n": 20, "house": ["x", "y"] * 6})
    polls.to_csv("polls.csv", index=False)
    words = ("curve", "polls.csv", "--successes", "yes", "--trials", "n", "--grid", "3")
    printed(capsys, *words, "--bandwidth", "3")
    printed(capsys, *words, "--bandwidth", "3", "--effects", "random(house)")
    printed(capsys, "evaluate", str(answers), "--bandwidth", "inf", "--unit", "days")
