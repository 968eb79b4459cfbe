"""The example programs run."""

import subprocess
import sys
from pathlib import Path

import dynaesti as dy

ROOT = Path(__file__).parents[2]


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
