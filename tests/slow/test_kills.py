"""Fits that are interrupted or killed, and go on to the same answer."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.core.folder import Folder
from support.simulated import classroom, shuffled_classroom


def test_an_interrupted_fit_says_how_to_go_on(tmp_path):
    """Ctrl-C leaves a checkpoint; the same command ends with what an undisturbed one gives."""
    table = classroom(150, 20, 60)
    table.to_csv(tmp_path / "a.csv", index=False)
    words = [
        sys.executable,
        "-c",
        "from dynaesti.cli import fit; import sys; fit.CHECKPOINT_SECONDS = 0.0; "
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


ITERATIONS = 40
KILLED = """
import sys
import dynaesti as dy
dy.DynAEsti("2PL", iterations=40, threads=1).fit(sys.argv[1], out=sys.argv[2])
"""


def test_a_killed_fit_goes_on_to_the_same_answer(tmp_path):
    table = shuffled_classroom(150)
    shards = dy.prepare(table, tmp_path / "shards", shards=4)
    undisturbed = dy.DynAEsti("2PL", iterations=40, threads=1).fit(shards, out=tmp_path / "calm")
    rng = np.random.default_rng(0)
    kills = 0
    while not (tmp_path / "run" / "fit.dyn").exists() or (tmp_path / "run" / "fit.ckpt").exists():
        run = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "shards"), str(tmp_path / "run")],
            start_new_session=True,
        )
        if kills < 4:
            begun = time.monotonic()
            while (
                run.poll() is None
                and not (tmp_path / "run" / "sites").exists()
                and time.monotonic() - begun < 30
            ):
                time.sleep(0.02)
            time.sleep(rng.uniform(0.0, 0.5))
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                kills += 1
        assert run.wait() in (0, -signal.SIGKILL)
    assert kills >= 1
    found = dy.load(tmp_path / "run")
    assert_allclose(found.bank.blocks[0].u, undisturbed.bank.blocks[0].u, atol=1e-9)
    assert found.log_evidence == pytest.approx(undisturbed.log_evidence, abs=1e-6)
    assert {path.name.split(".")[1] for path in (tmp_path / "run" / "sites").iterdir()} == {
        str(found.versions[0])
    }


def test_a_full_disk_is_told_and_loses_nothing(tmp_path, monkeypatch):
    shards = dy.prepare(shuffled_classroom(60), tmp_path / "shards", shards=2)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    undisturbed = estimator.fit(shards, out=tmp_path / "calm")
    writing, left = Folder.writing, [9]

    def full(self, name):
        left[0] -= name.startswith("sites")
        if left[0] < 0:
            raise dy.StorageError(
                f"{name}: could not be written (No space left on device); nothing was changed"
            )
        return writing(self, name)

    monkeypatch.setattr(Folder, "writing", full)
    with pytest.raises(dy.StorageError, match="No space left"):
        estimator.fit(shards, out=tmp_path / "run")
    monkeypatch.undo()
    assert (tmp_path / "run" / "fit.ckpt").exists()
    found = estimator.fit(shards, out=tmp_path / "run")
    assert_allclose(found.bank.blocks[0].u, undisturbed.bank.blocks[0].u, atol=1e-9)
    with pytest.raises(dy.InputError, match="holds a fit already"):
        estimator.fit(shards, out=tmp_path / "run")
