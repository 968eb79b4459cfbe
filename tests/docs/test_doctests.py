"""Examples in docstrings run and give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples():
    for path in sorted((SRC / "dynaesti").rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SRC).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where examples may write
    found = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert found.attempted > 0
    assert found.failed == 0
