"""`dynaesti next`."""

import json

import dynaesti as dy
from dynaesti.cli.dispatch import main


def said(capsys, *words):
    assert main(["next", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_best_item_of_a_person(run, capsys):
    fit = dy.load(run)
    one = str(fit.ids[0])
    found = said(capsys, str(run), "--id", one, "--count", "3")
    scorer = fit.scorer()
    best = scorer.next_item(fit.state(fit.ids[0]), count=3)
    assert [row["item"] for row in found["rows"]] == list(best["item"])
    rest = said(capsys, str(run), "--id", one, "--exclude", found["rows"][0]["item"])
    assert rest["rows"][0]["item"] == found["rows"][1]["item"]
    assert not said(capsys, str(run), "--id", one, "--stop", str(2 * found["sd"]))["rows"]


def test_what_is_wrong_is_said_in_flags(run, tmp_path, capsys):
    one = str(dy.load(run).ids[0])
    assert main(["next", str(run), "--id", one, "--at", "-5"]) == 3
    assert "--at: a time before" in capsys.readouterr().err
    assert main(["next", str(run), "--id", one, "--target", "8"]) == 3
    assert "--target" in capsys.readouterr().err
    assert main(["next", str(run), "--id", "nobody"]) == 3
    assert "never seen" in capsys.readouterr().err
    scorer = dy.load(run).scorer().save(tmp_path / "run.dynscore")
    assert main(["next", str(scorer), "--id", one]) == 4
    assert "needs the fit" in capsys.readouterr().err
