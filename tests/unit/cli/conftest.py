"""A file of answers and a run made from it, for all verbs."""

import pytest

from dynaesti.cli.dispatch import main
from support.simulated import classroom


@pytest.fixture(scope="session")
def answers(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "answers.csv"
    table = classroom(30, 8, 25)
    table.rename(
        columns={"id": "student_id", "item": "problem_id", "resp": "correct", "date": "timestamp"}
    ).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def run(tmp_path_factory, answers):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["fit", str(answers), "--out", str(folder), "--quiet", "--unit", "days"]) == 0
    return folder
