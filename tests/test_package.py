"""The package as a newcomer meets it: light import, README that runs, public names that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dynaesti as dy

ROOT = Path(__file__).parent.parent


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_is_light():
    assert (
        run("import sys, dynaesti; print([m for m in ('numpy', 'numba', 'scipy', 'pandas', 'matplotlib', 'narwhals') if m in sys.modules])")
        == "[]"
    )
    loaded = run(
        "import sys, dynaesti as dy; dy.CurvFiFE; print([m for m in ('pandas', 'polars', 'matplotlib', 'scipy.stats') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_public_names_exist():
    for name in dy.__all__:
        assert getattr(dy, name) is not None
    assert set(dy.__all__) == set(dir(dy))
    with pytest.raises(AttributeError):
        _ = dy.nonsense


def test_readme_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 4
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)


def test_demo_runs(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "polling.py")], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "70 % band" in done.stdout
    assert (tmp_path / "demo" / "polling.png").stat().st_size > 20_000


def test_the_learning_demo_runs(tmp_path):
    script = str(ROOT / "examples" / "learning.py")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "rose with probability" in done.stdout
    assert (tmp_path / "demo" / "abilities.png").stat().st_size > 20_000
    again = dy.load(tmp_path / "demo" / "learning.dyn")
    assert isinstance(again, dy.Fit)
    assert len(again.ids) == 150
