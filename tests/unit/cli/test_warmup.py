"""Compiling is announced once, and `dynaesti warmup` leaves a fit nothing to compile."""

import subprocess
import sys

import pytest

from dynaesti.cli.dispatch import main
from dynaesti.core.compile_notice import NOTICE, CompileNotice
from dynaesti.errors import notices_to, notify
from support.saying import spoken

FIT = """
import dynaesti as dy
from dynaesti.core import COMPILING
table = dy.simulate.responses(30, 8, 20, seed=5).table
fit = dy.DynAEsti("2PL").fit(table)
fit.summary(), fit.ability(at=[10.0]), fit.people()
print(COMPILING.functions)
"""


def compiled(notice, seconds):
    """Let a function be compiled that takes so long."""
    notice.on_start(None)
    notice.seconds += seconds
    notice.on_end(None)


def test_it_is_said_once_and_only_of_what_takes_long():
    said = []
    notice = CompileNotice()
    with notices_to(said.append):
        compiled(notice, 0.2)
        compiled(notice, 0.2)
        assert said == []
        compiled(notice, 0.2)
        compiled(notice, 0.2)
    assert said == [NOTICE]
    assert notice.functions == 4


def test_programs_hear_nothing_and_consoles_do(capsys, monkeypatch):
    monkeypatch.delattr(sys, "ps1", raising=False)
    notify("compiling")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    notify("compiling")
    assert capsys.readouterr() == ("", "compiling\n")


def test_the_command_line_announces_and_is_silent_where_asked(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)

    def compile_something(frame, path):
        notify(NOTICE)
        return path

    monkeypatch.setattr("dynaesti.tables.write_frame", compile_something)
    assert main(["example", "polls"]) == 0
    assert capsys.readouterr().err == f"note: {NOTICE}\n"
    assert main(["example", "polls", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_an_unknown_example_is_refused_and_all_are_listed(capsys):
    code, _, err = spoken(capsys, "example", "quizes")
    assert code == 3
    assert "quizzes" in err
    code, out, _ = spoken(capsys, "example")
    assert len(out.splitlines()) == 8


@pytest.mark.slow
def test_after_warmup_a_fit_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    warm = [sys.executable, "-m", "dynaesti", "warmup"]
    first = subprocess.run(warm, check=True, capture_output=True, text=True)
    assert NOTICE in first.stderr
    assert first.stdout.startswith("Compiled")
    fit = subprocess.run([sys.executable, "-c", FIT], check=True, capture_output=True, text=True)
    assert fit.stdout.strip() == "0"
    again = subprocess.run(warm, check=True, capture_output=True, text=True)
    assert again.stdout == "Everything was compiled already.\n"
    assert again.stderr == ""
