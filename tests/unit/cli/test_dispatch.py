"""The command line as a whole: errors, help, wrong options."""

import os
import subprocess
import sys

import pytest

from dynaesti.cli.dispatch import VERBS, main
from support.saying import spoken


def test_errors_are_one_paragraph_and_debug_shows_the_rest(tmp_path, capsys):
    code, _, err = spoken(capsys, "fit", tmp_path / "absent.csv", "--out", tmp_path / "r")
    assert code == 4
    assert err.strip().count("\n") == 0
    code, _, err = spoken(
        capsys, "fit", tmp_path / "absent.csv", "--out", tmp_path / "r", "--debug"
    )
    assert code == 4
    assert "Traceback" in err
    assert spoken(capsys, "items", tmp_path / "nothing.dyn")[0] == 4
    with pytest.raises(SystemExit) as caught:
        main(["fti", "x"])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["simulate", "--people", "0"], "--people: "),
        (["simulate", "--answers-per-person", "5:2"], "--answers-per-person: "),
        (["demo", "--people", "0"], "--people: "),
        (["fit", "FILE", "--threads", "0"], "--threads: "),
        (["fit", "FILE", "--bandwidth", "-3"], "--bandwidth: "),
        (["fit", "FILE", "--id", "nobody"], "--id: no column 'nobody'"),
    ],
)
def test_errors_name_the_flag(command, words, tmp_path, capsys):
    table = tmp_path / "a.csv"
    table.write_text("id,item,resp,date\n" + "a,x,1,1\na,y,0,2\nb,x,0,1\nb,y,1,2\n")
    given = [table if word == "FILE" else word for word in command]
    code, _, err = spoken(capsys, *given, "--out", tmp_path / "r")
    assert code == 3
    assert words in err


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


def test_wrong_options_are_refused_before_the_work(run, answers, tmp_path, capsys):
    for words in (["ability", run, "--out", "x.txt"], ["evaluate", answers, "--out", "e.pdf"]):
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


@pytest.mark.parametrize(
    ("package", "code", "told"),
    [
        ("uvicorn", 4, "it needs uvicorn: pip install 'dynaesti[serve]'"),
        ("duckdb.functional", 4, "it needs duckdb: pip install 'dynaesti[scale]'"),
        ("dynaesti.nothing", 5, "a fault of the program itself (ModuleNotFoundError"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    package, code, told, capsys, monkeypatch
):
    def fail(args):
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr("dynaesti.cli.validate.run", fail)
    assert main(["validate", "a.csv"]) == code
    assert told in capsys.readouterr().err


def test_every_package_of_an_extra_is_known():
    """An extra of pyproject.toml brings what `EXTRAS` says."""
    import tomllib
    from pathlib import Path

    from dynaesti.cli.dispatch import EXTRAS

    file = Path(__file__).parents[3] / "pyproject.toml"
    extras = tomllib.loads(file.read_text())["project"]["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        brought = " ".join(extras[extra]).lower().replace("-", "_")
        assert any(package in brought for package in packages.split()), extra
