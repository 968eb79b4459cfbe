"""Verbs that take a run and further answers."""

import io

import pandas as pd

import dynaesti as dy
from dynaesti.cli.dispatch import main
from support.saying import spoken
from support.simulated import classroom_with_new_items


def test_items_predict_score_and_update(run, tmp_path, capsys):
    code, out, _ = spoken(capsys, "items", run, "--sort=-b", "--fit")
    table = pd.read_csv(io.StringIO(out))
    assert code == 0
    assert table["b"].is_monotonic_decreasing
    assert table["infit"].between(0.5, 1.5).all()
    more = tmp_path / "more.csv"
    more.write_text("student_id,problem_id,correct,timestamp\np001,i00,1,1.1\nnew,i01,0,1.1\n")
    code, out, _ = spoken(capsys, "predict", run, more)
    assert code == 0
    assert out.startswith("id,item,time,expected,resp,p,p0,p1")
    code, out, _ = spoken(capsys, "score", run, more, "--at", "1.1")
    assert [line.split(",")[0] for line in out.strip().splitlines()[1:]] == ["new", "p001"]
    code, out, _ = spoken(capsys, "update", run, more, "--out", tmp_path / "grown")
    assert code == 0
    assert "2 answers of 2 people (1 new)" in out
    grown, old = dy.load(tmp_path / "grown" / "fit.dyn"), dy.load(run / "fit.dyn")
    assert len(grown.responses) == len(old.responses) + 2
    assert spoken(capsys, "report", tmp_path / "grown")[0] == 0
    assert (tmp_path / "grown" / "report.html").stat().st_size > 1e5


def test_update_knows_what_it_has(run, answers, tmp_path, capsys):
    code, out, err = spoken(capsys, "update", run, answers, "--out", tmp_path / "none")
    assert code == 0
    assert "750 of 750 answers are in the fit already" in err
    assert "--again adds them" in err
    assert "Added 0 answers" in out
    _, out, _ = spoken(capsys, "update", run, answers, "--out", tmp_path / "twice", "--again")
    assert "Added 750 answers" in out
    strange = tmp_path / "strange.csv"
    strange.write_text("student_id,problem_id,timestamp\nx1,i00,1.1\n")
    assert "the fit knows none of 1 person" in spoken(capsys, "predict", run, strange)[2]


def test_the_command_line_lets_them_in(tmp_path, capsys):
    old, new, _, _ = classroom_with_new_items(people=60)
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    run = str(tmp_path / "run")
    assert (
        main(
            [
                "fit",
                str(tmp_path / "old.csv"),
                "--out",
                run,
                "--quiet",
                "--no-report",
                "--bandwidth",
                "40",
            ]
        )
        == 0
    )
    assert main(["update", run, str(tmp_path / "new.csv")]) != 0
    assert "--new-items" in capsys.readouterr().err
    assert main(["update", run, str(tmp_path / "new.csv"), "--new-items"]) == 0
    told = capsys.readouterr()
    assert "4 items joined them" in told.out + told.err
