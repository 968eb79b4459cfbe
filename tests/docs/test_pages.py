"""Every block of code in the README and the pages of docs runs."""

import re
import shlex
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from dynaesti.cli.dispatch import main
from dynaesti.model import simulate

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *sorted(
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if not {"_build", "generated"} & set(path.parts)
    ),
]
# a block that is shown, or a cell of a page that is executed while the site is built
PYTHON = r"```(?:python|\{code-cell\}(?: \w+)?)\n(?::tags:.*\n)?(.*?)```"


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    drawn = pd.DataFrame(simulate.responses(20, 6, 25, seed=3).table).replace(
        {"id": {"p07": "ada"}}
    )
    drawn.to_csv("answers.csv", index=False)
    pd.DataFrame(
        {"id": ["p01", "new"], "item": ["i1", "i2"], "resp": [1, 0], "date": [101.0, 102.0]}
    ).to_csv("more.csv", index=False)
    pd.DataFrame({"day": range(12), "yes": range(12), "n": 20}).to_csv("polls.csv", index=False)
    yield tmp_path
    plt.close("all")


@pytest.mark.parametrize("page", PAGES)
def test_examples_in_python_run(page, desk):
    scope: dict[str, object] = {}
    for block in re.findall(PYTHON, (ROOT / page).read_text(encoding="utf-8"), flags=re.S):
        exec(compile(block, page, "exec"), scope)


@pytest.mark.parametrize("page", PAGES)
def test_examples_on_the_command_line_run(page, desk):
    for block in re.findall(
        r"```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S
    ):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["dynaesti"]:
                assert main(words[1:]) in (0, 1), line
