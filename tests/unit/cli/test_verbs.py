"""The command line: every verb on files, what it prints and writes, and how it fails."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.cli import options
from dynaesti.cli.dispatch import VERBS, main
from dynaesti.model import simulate
from dynaesti.model.kernels import NAMED_KERNELS
from support.saying import spoken
from support.simulated import classroom


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "answers.csv"
    table = classroom(30, 8, 25)
    table.rename(
        columns={"id": "student_id", "item": "problem_id", "resp": "correct", "date": "timestamp"}
    ).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory, answers):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["fit", str(answers), "--out", str(folder), "--quiet", "--unit", "days"]) == 0
    return folder


def test_fit_writes_everything_and_tells_in_words(run, answers, tmp_path, capsys):
    assert {path.name for path in run.iterdir()} - {".lock"} == {
        "fit.dyn",
        "static.dyn",
        "items.csv",
        "items.parquet",
        "abilities.csv",
        "abilities.parquet",
        "report.html",
    }
    assert len(pd.read_csv(run / "items.csv")) == 8
    assert set(pd.read_parquet(run / "abilities.parquet")["id"]) == {f"p{k:03d}" for k in range(30)}
    code, out, err = spoken(
        capsys,
        "fit",
        answers,
        "--out",
        tmp_path / "r",
        "--quiet",
        "--no-report",
        "--bandwidth",
        "0.4",
    )
    assert code == 0
    for part in (
        "750 answers of 30 people to 8 items (2PL)",
        "came to rest",
        "variance 1",
        "time scale",
        "nowing when",
        "Written to",
    ):
        assert part in out
    assert "id is 'student_id'" in err
    assert "the model is 2PL, by the responses" in err


def test_fit_for_machines(answers, tmp_path, capsys):
    code, out, _ = spoken(
        capsys,
        "fit",
        answers,
        "--out",
        tmp_path / "r",
        "--quiet",
        "--no-report",
        "--no-static",
        "--json",
        "--bandwidth",
        "0.4",
    )
    told = json.loads(out)
    assert code == 0
    assert told["answers"] == 750
    assert told["movement"]["bandwidth"] == pytest.approx(0.4)


def test_a_fit_is_not_written_over_unasked(run, answers, capsys):
    code, _, err = spoken(capsys, "fit", answers, "--out", run, "--quiet")
    assert code == 3
    assert "--force" in err


def test_ability_in_every_form(run, tmp_path, capsys):
    code, out, _ = spoken(capsys, "ability", run, "--id", "p001", "--at", "0.2", "1.5")
    rows = out.strip().splitlines()
    assert code == 0
    assert rows[0] == "id,time,mean,sd,lower,upper"
    assert len(rows) == 3
    fit = dy.load(run / "fit.dyn")
    assert float(rows[1].split(",")[2]) == pytest.approx(
        float(fit.ability([0.2], ["p001"])["mean"][0]), abs=1e-6
    )
    assert spoken(capsys, "ability", run, "--grid", "5", "--out", tmp_path / "a.parquet")[0] == 0
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 150
    told = json.loads(spoken(capsys, "ability", run, "--now", "--id", "p002", "--json")[1])
    assert len(told["rows"]) == 1
    code, _, err = spoken(capsys, "ability", run, "--id", "p0012")
    assert code == 3
    assert "did you mean" in err


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


def test_evaluate_against_baselines(answers, capsys):
    for split in (
        ["--split", "last"],
        ["--split", "people"],
        ["--split", "rolling", "--folds", "2"],
    ):
        code, out, _ = spoken(capsys, "evaluate", answers, "--bandwidth", "0.4", *split, "--json")
        rows = {row["forecast"]: row for row in json.loads(out)["rows"]}
        assert code == 0
        assert list(rows) == ["constant", "item + person", "Elo", "static IRT", "dynamic IRT"]
        assert all(0.2 < row["log_loss"] < 1.2 for row in rows.values())


def test_validate_says_it_by_its_exit_code(answers, tmp_path, capsys):
    code, out, _ = spoken(capsys, "validate", answers)
    assert code == 0
    assert "nothing special" in out
    table = pd.read_csv(answers)
    pd.concat([table, table.iloc[:5]]).to_csv(tmp_path / "twice.csv", index=False)
    code, out, _ = spoken(capsys, "validate", tmp_path / "twice.csv")
    assert code == 1
    assert "5 answers repeat another one exactly" in out
    assert spoken(capsys, "validate", tmp_path / "twice.csv", "--drop-duplicates")[0] == 0
    (tmp_path / "bad.csv").write_text("id,item,resp,date\na,1,banana,1\n")
    code, out, err = spoken(capsys, "validate", tmp_path / "bad.csv")
    assert code == 3
    assert "'banana' in bad.csv, line 2" in err
    assert "Traceback" not in err
    told = json.loads(spoken(capsys, "validate", answers, "--json")[1])
    assert told["columns"]["id"] == "student_id"


def test_simulate_can_be_fitted(tmp_path, capsys):
    for model in ("2PL", "GRM", "poisson", "beta"):
        folder = tmp_path / model
        assert (
            spoken(
                capsys,
                "simulate",
                "--model",
                model,
                "--people",
                "20",
                "--items",
                "6",
                "--answers-per-person",
                "15",
                "--out",
                folder,
            )[0]
            == 0
        )
        assert len(pd.read_csv(folder / "answers.csv")) == 300
        assert len(pd.read_csv(folder / "true_items.csv")) == 6
    assert spoken(capsys, "validate", tmp_path / "2PL" / "answers.csv")[0] in (0, 1)
    assert spoken(capsys, "simulate", "--level", "2", "--out", tmp_path / "x")[0] == 3


def test_simulated_abilities_have_unit_variance():
    drawn = simulate.responses(3000, 3, 2, seed=1)
    assert np.var(drawn.abilities["ability"]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("day,yes\n" + "".join(f"{t},{t % 2}\n" for t in range(20)), ["--votes", "yes"]),
        (
            "day,k,n\n" + "".join(f"{t},{t},30\n" for t in range(20)),
            ["--successes", "k", "--trials", "n"],
        ),
        ("day,hits\n" + "".join(f"{t},{5 + t % 4}\n" for t in range(20)), ["--counts", "hits"]),
        (
            "day,x\n" + "".join(f"{t},{np.sin(t / 4)}\n" for t in range(20)),
            ["--values", "x", "--sd", "0.1"],
        ),
    ],
)
def test_curves_from_files(tmp_path, capsys, columns, options):
    path = tmp_path / "a.csv"
    path.write_text(columns)
    code, out, _ = spoken(
        capsys, "curve", path, *options, "--grid", "7", "--figure", tmp_path / "a.png"
    )
    assert code == 0
    assert len(out.strip().splitlines()) == 8
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_curve_wants_what_it_needs(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("day,k\n1,2\n2,3\n")
    code, _, err = spoken(capsys, "curve", tmp_path / "a.csv", "--successes", "k")
    assert code == 3
    assert "--trials" in err


def test_errors_are_one_paragraph_and_debug_shows_the_rest(tmp_path, capsys):
    code, _, err = spoken(capsys, "fit", tmp_path / "absent.csv", "--out", tmp_path / "r")
    assert code == 4
    assert err.strip().count("\n") == 0
    with pytest.raises(dy.ResponseError):
        main(["fit", str(tmp_path / "absent.csv"), "--out", str(tmp_path / "r"), "--debug"])
    assert spoken(capsys, "items", tmp_path / "nothing.dyn")[0] == 4
    with pytest.raises(SystemExit) as caught:
        main(["fti", "x"])
    assert caught.value.code == 2


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb, capsys):
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f"dynaesti {verb}" in out.split("example:")[1]
    assert "--json" in out


def test_help_is_quick():
    spent = []
    for _ in range(3):
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "dynaesti", "--help"], check=True, capture_output=True
        )
        after = os.times()
        spent.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    assert min(spent) < 0.3


def test_an_interrupted_fit_says_how_to_go_on(tmp_path):
    """Ctrl-C leaves a checkpoint; the same command ends with what an undisturbed one gives."""
    table = classroom(150, 20, 60)
    table.to_csv(tmp_path / "a.csv", index=False)
    words = [
        sys.executable,
        "-c",
        "from dynaesti.cli import fit; import sys; fit.EVERY = 0.0; "
        "from dynaesti.cli.dispatch import main; sys.exit(main(sys.argv[1:]))",
        "fit",
        str(tmp_path / "a.csv"),
        "--model",
        "3PL",
        "--no-report",
        "--no-static",
        "--threads",
        "1",
    ]
    first = subprocess.Popen(
        [*words, "--out", str(tmp_path / "r")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while (
        not (tmp_path / "r" / "fit.ckpt").exists()
        and first.poll() is None
        and time.monotonic() < end
    ):
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "the same command goes on" in err
    assert "Traceback" not in err
    again = subprocess.run(
        [*words, "--out", str(tmp_path / "r")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "going on from" in again.stderr
    subprocess.run(
        [*words, "--out", str(tmp_path / "whole")], capture_output=True, timeout=120, check=True
    )
    a, b = (pd.read_csv(tmp_path / name / "items.csv") for name in ("r", "whole"))
    np.testing.assert_allclose(a["b"], b["b"], atol=1e-6)
    assert not (tmp_path / "r" / "fit.ckpt").exists()


def test_choices_on_the_command_line_are_those_of_the_library():
    assert set(options.KERNELS) == set(NAMED_KERNELS)


@pytest.mark.parametrize("model", ["1PL", "4PL", "PCM", "GPCM", "RSM", "NRM", "gaussian", "beta"])
def test_every_model_is_held_against_constant_abilities(tmp_path, capsys, model):
    drawn = "PCM" if model in ("RSM", "NRM") else model
    assert (
        main(
            [
                "simulate",
                "--model",
                drawn,
                "--people",
                "40",
                "--items",
                "8",
                "--answers-per-person",
                "30",
                "--level",
                "0.3",
                "--out",
                str(tmp_path / "s"),
            ]
        )
        == 0
    )
    code, out, err = spoken(
        capsys,
        "fit",
        tmp_path / "s" / "answers.csv",
        "--model",
        model,
        "--out",
        tmp_path / "r",
        "--quiet",
    )
    assert code == 0
    assert "no comparison" not in err
    assert "nowing when" in out


def test_times_are_written_in_full_and_unix_time_is_known_again(tmp_path, capsys):
    table = classroom(12, 5, 20)
    table["date"] = 1.7e9 + 1e6 * table["date"] + 0.125
    table.to_csv(tmp_path / "unix.csv", index=False)
    code, _, err = spoken(
        capsys,
        "fit",
        tmp_path / "unix.csv",
        "--out",
        tmp_path / "r",
        "--quiet",
        "--no-report",
        "--no-static",
        "--bandwidth",
        "5",
    )
    assert code == 0
    assert "Unix time in seconds" in err
    shown = pd.to_datetime(pd.read_csv(tmp_path / "r" / "abilities.csv")["time"], format="ISO8601")
    assert shown.nunique() == table["date"].nunique()
    assert spoken(capsys, "predict", tmp_path / "r", tmp_path / "unix.csv")[0] == 0
    code, out, _ = spoken(
        capsys,
        "ability",
        tmp_path / "r",
        "--id",
        "p001",
        "--at",
        "2030-01-01",
        "2030-01-01T02:00:00+02:00",
    )
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == ["2030-01-01T00:00:00"] * 2
    assert spoken(capsys, "ability", tmp_path / "r", "--at", "1500-01-01")[0] == 3
    assert spoken(capsys, "validate", tmp_path / "unix.csv", "--unit", "unix-ms")[0] == 3


def test_update_knows_what_it_has(run, answers, tmp_path, capsys):
    _, _, err = spoken(capsys, "update", run, answers, "--out", tmp_path / "twice")
    assert "750 of 750 answers are in the run already" in err
    code, _, err = spoken(
        capsys, "update", run, answers, "--out", tmp_path / "none", "--drop-duplicates"
    )
    assert code == 3
    assert "nothing is left to add" in err
    strange = tmp_path / "strange.csv"
    strange.write_text("student_id,problem_id,timestamp\nx1,i00,1.1\n")
    assert "none of the 1 people is known" in spoken(capsys, "predict", run, strange)[2]


def test_answers_in_words_are_coded(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(
        "id,item,resp,date\na,1,never,1\na,2,often,2\nb,1,often,1\nb,2,never,3\n"
    )
    assert spoken(capsys, "validate", tmp_path / "a.csv")[0] == 3
    _, out, err = spoken(
        capsys, "validate", tmp_path / "a.csv", "--code", "never=0", "--code", "often=2"
    )
    assert "Responses: 0 (2), 2 (2)." in out
    assert "'never' counts as 0" in err
    with pytest.raises(SystemExit):
        main(["validate", str(tmp_path / "a.csv"), "--code", "never"])


def test_wrong_options_are_refused_before_the_work(run, answers, tmp_path, capsys):
    for words in (["ability", run, "--out", "x.txt"], ["evaluate", answers, "--out", "e.xlsx"]):
        with pytest.raises(SystemExit):
            main([str(word) for word in words])
    assert spoken(capsys, "ability", run, "--grid", "-1")[0] == 3
    assert spoken(capsys, "evaluate", answers, "--split", "rolling", "--folds", "500")[0] == 3
    assert spoken(capsys, "simulate", "--out", answers)[0] == 4
    (tmp_path / "c.csv").write_text("day,y\n1,1\n2,0\n3,1\n")
    for more in (
        ["--grid", "0"],
        ["--at", "foo"],
        ["--figure", str(tmp_path / "x.foo")],
        ["--trials", "y"],
    ):
        assert spoken(capsys, "curve", tmp_path / "c.csv", "--votes", "y", *more)[0] == 3


def test_messages_speak_of_flags():
    from dynaesti.cli.messages import as_flags

    assert (
        as_flags("use bandwidth=inf or direction='free'; rare=10")
        == "use --bandwidth inf or --direction free; --rare 10"
    )
    assert as_flags("did you mean id='student'?") == "did you mean --id student?"
    assert as_flags("write over it with force=True (--force)") == "write over it with --force"
    assert as_flags("a plain sentence, model and all") == "a plain sentence, model and all"
