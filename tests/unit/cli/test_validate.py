"""`dynaesti validate`: what is said of a file, and by which exit code."""

import json

import pandas as pd
import pytest

from dynaesti.cli.dispatch import main
from support.saying import spoken


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


def test_what_is_found_is_told_once(tmp_path, capsys):
    lines = [f"p{k},0,1,1,1{k}.02.2025" for k in range(5)]
    (tmp_path / "Klasse.csv").write_text(
        "\n".join(["Name;Q1;Q2;Q3;Datum", *lines]).replace(",", ";")
    )
    _, out, err = spoken(capsys, "validate", tmp_path / "Klasse.csv")
    assert not err
    assert out.count("id is 'Name'") == 1
    assert "item is" not in out  # items are columns here
    assert "Times run from 2025-02-10 to 2025-02-14 (days)." in out
    assert "\nKlasse.csv: columns are separated by ';'." in out


def test_a_verb_that_is_mistyped_is_told(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["validat", "answers.csv"])
    assert caught.value.code == 2
    assert "did you mean `dynaesti validate`?" in capsys.readouterr().err


def test_answers_in_words_are_coded(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(
        "id,item,resp,date\na,1,never,1\na,2,often,2\nb,1,often,1\nb,2,never,3\n"
    )
    assert spoken(capsys, "validate", tmp_path / "a.csv")[0] == 3
    _, out, err = spoken(
        capsys, "validate", tmp_path / "a.csv", "--code", "never=0", "--code", "often=2"
    )
    assert "Responses: 0 (2), 2 (2)." in out
    assert "'never' counts as 0" in out
    assert not err  # nothing is told twice
    with pytest.raises(SystemExit):
        main(["validate", str(tmp_path / "a.csv"), "--code", "never"])
