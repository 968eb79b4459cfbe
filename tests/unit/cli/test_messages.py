"""Messages name options in the language of whoever reads them."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.cli.dispatch import main, parser
from dynaesti.errors import ResponseError
from support.saying import spoken


def test_messages_speak_of_flags_on_the_command_line_alone():
    from dynaesti.cli.messages import flag
    from dynaesti.errors import option, spell_options

    def spelled():
        return [
            option("bandwidth", np.inf),
            option("direction", "free"),
            option("rare", 10),
            option("id", "who is it"),
            option("time_format"),
            option("force", True),
            option("code", {"never": 0}),
            option("unreadable", "drop", python="Responses.read(…, unreadable='drop')"),
            option("distinct", True, python="Responses.read(…).distinct()"),
            option("standard_errors", True),
        ]

    python = [
        "bandwidth=inf",
        "direction='free'",
        "rare=10",
        "id='who is it'",
        "time_format",
        "force=True",
        "code={'never': 0}",
        "Responses.read(…, unreadable='drop')",
        "Responses.read(…).distinct()",
        "standard_errors=True",
    ]
    assert spelled() == python
    with spell_options(flag):
        assert spelled() == [
            "--bandwidth inf",
            "--direction free",
            "--rare 10",
            "--id 'who is it'",
            "--time-format",
            "--force",
            "--code never=0",
            "--drop-unreadable",
            "--drop-duplicates",
            "standard_errors=True",  # which the command line does not have
        ]
    assert spelled() == python


def test_an_error_names_the_same_option_in_both_languages(tmp_path, capsys):
    table = tmp_path / "a.csv"
    table.write_text("id,item,resp,time\na,q,x,1\na,r,1,2\nb,q,0,3\n")
    with pytest.raises(ResponseError, match=r"unreadable='drop'\), or .*code=") as refused:
        dy.Responses.read(table)
    code, _, words = spoken(capsys, "validate", table)
    assert code == 3
    assert "--" not in str(refused.value)
    assert words.strip() == (
        f"dynaesti validate: {refused.value}".replace(
            "Responses.read(…, unreadable='drop')", "--drop-unreadable"
        )
        .replace("code={'x': nan}", "--code x=nan")
        .replace("code={'x': 0}", "--code x=0")
    )


def test_the_library_knows_no_flags_and_the_command_line_has_those_it_names():
    from dynaesti.cli import messages

    source = Path(dy.__file__).parent
    for file in source.rglob("*.py"):
        if source / "cli" not in file.parents:
            assert not re.search(r"--[a-z]", file.read_text(encoding="utf-8")), file
    verbs = parser()._subparsers._group_actions[0].choices.values()
    flags = {flag for verb in verbs for action in verb._actions for flag in action.option_strings}
    assert {messages.flag(name) for name in messages.SAME_NAME} <= flags
    assert set(messages.OTHER_NAME.values()) <= flags


def test_misspelt_flags_and_other_files_are_named(tmp_path, capsys):
    table = tmp_path / "a.csv"
    table.write_text("id,item,resp,time\na,q,1,05.02.\n")
    with pytest.raises(SystemExit):
        main(["validate", str(table), "--tiem", "time"])
    assert "did you mean --time?" in capsys.readouterr().err
    _, _, words = spoken(capsys, "validate", table, "--time-format", "%d.%m.")
    assert "has no year" in words
    workbook = tmp_path / "a.xlsx"
    with zipfile.ZipFile(workbook, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    _, _, words = spoken(capsys, "items", workbook)
    assert words.strip().endswith("a.xlsx: not a file saved by dynaesti")
