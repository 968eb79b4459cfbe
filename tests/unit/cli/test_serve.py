"""`dynaesti serve`: its options, the demonstration, and the client of the docs."""

import json
import re
from pathlib import Path

import httpx
import numpy as np
import pytest

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.cli.live_demo import DAYS, LiveClass, SimulatedClass, make_run
from support.service import Program, service, wait_for

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--demo"),
        (["RUN", "--demo"], "--demo"),
        (["RUN", "--workers", "2"], "--workers: a SQLite file has one writer"),
        (["RUN", "--host", "0.0.0.0"], "no keys were made"),
        (["RUN", "--db", "mysql://x/y"], "--db: expected an address"),
        (["RUN", "--db", "sqlite:///:memory:"], "--db: name a file"),
        (["RUN", "--port", "99999"], "--port"),
        (["RUN", "--max-body", "0"], "--max-body"),
        (["RUN", "--rate", "-1"], "--rate"),
    ],
)
def test_what_cannot_be_served_is_said_in_flags(words, told, run, tmp_path, capsys):
    if "--db" not in words and "RUN" in words:
        words = [*words, "--db", f"sqlite:///{tmp_path}/a.db"]
    words = [str(run) if word == "RUN" else word for word in words]
    assert main(["serve", *words]) in (3, 4)
    assert told in capsys.readouterr().err


def test_it_ends_orderly(run, tmp_path):
    program = Program(run, "--db", f"sqlite:///{tmp_path}/a.db")
    program.process.terminate()
    _, said = program.process.communicate(timeout=30)
    assert program.process.returncode == 0
    assert "all acknowledged answers are kept" in said
    assert not (tmp_path / "a.db-wal").exists()


def test_the_client_of_the_docs(tmp_path, capsys):
    table = dy.simulate.responses(people=20, items=8, per_person=12, seed=1).table
    renamed = {**table, "item": [f"i0{name[1:]}" for name in table["item"]]}
    run = dy.DynAEsti("2PL").fit(renamed).scorer().save(tmp_path / "run.dynscore")
    page = (DOCS / "how-to" / "serve.md").read_text("utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", page, flags=re.S)
    with service(run) as client:
        here = str(client.base_url).rstrip("/")
        for new in ("1", "0"):
            exec(compile(code.replace("http://127.0.0.1:8000", here), "docs", "exec"), {})
            assert capsys.readouterr().out.split()[0] == new


def test_a_simulated_class_goes_on_where_its_fit_ended(tmp_path, monkeypatch):
    one = SimulatedClass(12, 3)
    fit = dy.load(make_run(one, tmp_path / "class.dyn"))
    assert fit.responses.people.size == 12
    monkeypatch.setattr("dynaesti.cli.live_demo.HOURS_A_SECOND", 1e6)
    with service(tmp_path / "class.dyn") as client:
        live = LiveClass(one, str(client.base_url).rstrip("/"))
        answers = list(one.day(int(DAYS)))
        assert answers == sorted(answers)
        for answer in answers[:5]:
            live._post({**one.shown(answer), "key": f"live {live.posted}"})
        assert live.posted == 5
        who = one.shown(answers[4])["id"]
        found = client.get(f"/people/{who}").json()
        assert found["moved"][0]["key"].startswith("live")
        assert found["time"] == one.shown(answers[4])["time"]


def test_abilities_of_the_class_are_the_answers_truth():
    one = SimulatedClass(30, 1)
    first = one._ability(0, 10.0)
    assert one._ability(0, 10.0) == pytest.approx(first)  # at once it is the same
    later = np.array([one._ability(k, 50.0) for k in range(30)])
    assert 0.4 < later.std() < 1.6


def test_the_address_is_told_to_machines(run, tmp_path):
    program = Program(run, "--db", f"sqlite:///{tmp_path}/a.db")
    try:
        assert program.url == f"http://127.0.0.1:{program.port}"
        with httpx.Client(base_url=program.url) as client:
            assert json.loads(wait_for(client).text)["database"] == "sqlite"
    finally:
        program.end()
