"""The package as a newcomer meets it: light import, README that runs, public names that exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.model import simulate

ROOT = Path(__file__).parents[2]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_is_light():
    assert (
        run(
            "import sys, dynaesti; print([m for m in ('numpy', 'numba', 'scipy', 'pandas', "
            "'matplotlib', 'narwhals') if m in sys.modules])"
        )
        == "[]"
    )
    loaded = run(
        "import sys, dynaesti as dy; dy.CurvFiFE; print([m for m in ('pandas', 'polars', "
        "'matplotlib', 'scipy.stats') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_public_names_exist():
    for name in dy.__all__:
        assert getattr(dy, name) is not None
    assert set(dy.__all__) == set(dir(dy))
    with pytest.raises(AttributeError):
        _ = dy.nonsense


PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


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
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_examples_in_python_run(page, desk):
    scope: dict[str, object] = {}
    for block in re.findall(
        r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S
    ):
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


def test_demo_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "polling.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "70 % band" in done.stdout
    assert (tmp_path / "demo" / "polling.png").stat().st_size > 20_000


def test_the_learning_demo_runs(tmp_path):
    script = str(ROOT / "examples" / "learning.py")
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "rose with probability" in done.stdout
    assert (tmp_path / "demo" / "abilities.png").stat().st_size > 20_000
    again = dy.load(tmp_path / "demo" / "learning.dyn")
    assert isinstance(again, dy.Fit)
    assert len(again.ids) == 150
