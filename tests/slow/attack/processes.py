"""Commands killed in mid-work and called again, and two commands at once.

Nothing may be lost, doubled or left half.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from slow.attack.files import read
from slow.attack.inputs import base

DYNAESTI = [sys.executable, "-m", "dynaesti"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
MOST = 120  # seconds for a whole command


def run(*words):
    """A command to its end: (exit code, what it said)."""
    done = subprocess.run(
        [*DYNAESTI, *map(str, words)], capture_output=True, text=True, timeout=MOST
    )
    return done.returncode, done.stdout + done.stderr


class Stage:
    """Runs of both kinds with updates to be made, and what they should come to."""

    def __init__(self, folder):
        self.folder = folder
        table = base(4, 60, 8, 40)
        table.to_csv(folder / "a.csv", index=False)
        for k in (1, 2):
            table.sample(200, random_state=k).assign(
                date=lambda t, k=k: t["date"] + 100 * k
            ).to_csv(folder / f"u{k}.csv", index=False)
        assert (
            run(
                "fit",
                folder / "a.csv",
                "--out",
                folder / "run",
                "--quiet",
                "--no-report",
                "--no-static",
            )[0]
            == 0
        )
        assert (
            run("prepare", folder / "a.csv", "--out", folder / "shards", "--shards", 4, "--quiet")[
                0
            ]
            == 0
        )
        assert run("fit", folder / "shards", "--out", folder / "srun", "--quiet")[0] == 0
        self.rows = len(table)

    def fresh(self, *names):
        """Copies of things, side by side in a new folder."""
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for name in ("shards", *names):
            shutil.copytree(self.folder / name, work / name)
        return work


KILLS = {  # name: (things copied, the command's words, the run it makes or changes)
    "update": (("run",), ("update", "{w}/run", "{f}/u1.csv"), "run"),
    "update --drop-duplicates": (
        ("run",),
        ("update", "{w}/run", "{f}/u1.csv", "--drop-duplicates"),
        "run",
    ),
    "update of shards": (("srun",), ("update", "{w}/srun", "{f}/u1.csv", "--quiet"), "srun"),
    "update --refit-items": (
        ("srun",),
        ("update", "{w}/srun", "{f}/u1.csv", "--refit-items", "--quiet"),
        "srun",
    ),
    "fit": (
        (),
        ("fit", "{f}/a.csv", "--out", "{w}/new", "--quiet", "--no-report", "--no-static"),
        "new",
    ),
    "fit of shards": ((), ("fit", "{w}/shards", "--out", "{w}/new", "--quiet"), "new"),
    "prepare --force": (
        (),
        ("prepare", "{f}/a.csv", "--out", "{w}/shards", "--shards", "4", "--force", "--quiet"),
        None,
    ),
}


def kills(rng, stage, number, tally):
    """Each command killed at a random time, some twice, then called to its end.

    The answer is that of a run left alone.
    """
    right, lasted = {}, {}
    names = list(KILLS)
    for k in range(number):
        name = names[k % len(names)]
        things, words, made = KILLS[name]
        filled = lambda work, words=words: [word.format(w=work, f=stage.folder) for word in words]  # noqa: E731
        if name not in right:
            work = stage.fresh(*things)
            began = time.monotonic()
            code, said = run(*filled(work))
            lasted[name] = time.monotonic() - began
            assert code == 0, said
            right[name] = read(work / made) if made else shards_of(work)
        work = stage.fresh(*things)
        for _ in range(int(rng.integers(1, 3))):
            job = subprocess.Popen(
                [*DYNAESTI, *filled(work)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(float(rng.uniform(0.3, 1.1)) * lasted[name])
            job.send_signal(signal.SIGKILL)
            job.wait()
        code, said = run(
            *filled(work),
            *(["--force"] if name == "fit" and (work / "new" / "fit.dyn").exists() else []),
        )
        if name == "fit of shards" and code == 3 and "holds a fit already" in said:
            code = 0  # it had ended
        if code:
            tally.note("lost", f"{name}: the same command again ends with {code}: {said[-200:]}")
            continue
        found = read(work / made) if made else shards_of(work)
        left = [path.name for path in work.rglob("*.part")]
        if found[0] != right[name][0]:
            tally.note("lost", f"{name}: {found[0]} answers instead of {right[name][0]}")
        elif found[1].shape != right[name][1].shape or not np.allclose(
            found[1], right[name][1], atol=2e-3
        ):
            tally.note(
                "wrong",
                f"{name}: abilities differ by {np.abs(found[1] - right[name][1]).max():.2g}",
            )
        elif left and name == "prepare --force":
            tally.note("lost", f"{name}: left behind {left[:3]}")
        else:
            tally.note("right")


def shards_of(work):
    import dynaesti as dy

    shards = dy.Shards.open(str(work / "shards"))
    return shards.rows, np.concatenate(
        [np.sort(shards.responses(k).offsets) for k in range(len(shards))]
    )


# name: (things copied, first words, second words, run, answers that are in when both, one, or
# none of them say so)
PAIRS = {
    "two updates": (
        ("run",),
        ("update", "{w}/run", "{f}/u1.csv"),
        ("update", "{w}/run", "{f}/u2.csv"),
        "run",
    ),
    "two updates of shards": (
        ("srun",),
        ("update", "{w}/srun", "{f}/u1.csv", "--quiet"),
        ("update", "{w}/srun", "{f}/u2.csv", "--quiet"),
        "srun",
    ),
    "update and refresh": (
        ("srun",),
        ("update", "{w}/srun", "{f}/u1.csv", "--quiet"),
        ("update", "{w}/srun", "{f}/u2.csv", "--refit-items", "--quiet"),
        "srun",
    ),
    "the same update twice": (
        ("run",),
        ("update", "{w}/run", "{f}/u1.csv"),
        ("update", "{w}/run", "{f}/u1.csv"),
        "run",
    ),
    "two fits": (
        (),
        ("fit", "{f}/a.csv", "--out", "{w}/new", "--quiet", "--no-report", "--no-static"),
        (
            "fit",
            "{f}/a.csv",
            "--out",
            "{w}/new",
            "--quiet",
            "--no-report",
            "--no-static",
            "--model",
            "1PL",
        ),
        "new",
    ),
    "two prepares": (
        (),
        ("prepare", "{f}/a.csv", "--out", "{w}/s2", "--quiet"),
        ("prepare", "{f}/u1.csv", "--out", "{w}/s2", "--quiet"),
        None,
    ),
}
ADDED = 200  # answers in an update


def pairs(rng, stage, number, tally):
    """Two commands at once: what they say they did is what is there."""
    import dynaesti as dy

    names = list(PAIRS)
    for k in range(number):
        name = names[k % len(names)]
        things, *both, made = PAIRS[name]
        work = stage.fresh(*things)
        jobs = []
        for words in both:
            jobs.append(
                subprocess.Popen(
                    [*DYNAESTI, *(word.format(w=work, f=stage.folder) for word in words)],
                    text=True,
                    **QUIET,
                )
            )
            time.sleep(float(rng.uniform(0.0, 0.5)))
        said = [job.communicate(timeout=MOST)[1] for job in jobs]
        codes = [job.returncode for job in jobs]
        done = sum(code == 0 for code in codes)
        if any(code not in (0, 3, 4) for code in codes):
            tally.note("raw", f"{name}: exit codes {codes}: {' '.join(said)[-300:]}")
            continue
        if made is None:
            rows = dy.Shards.open(str(work / "s2")).rows
            fine = done == 1 and rows == (stage.rows if codes[0] == 0 else ADDED)
        elif name == "two fits":
            model = dy.load(work / "new").bank.blocks[0].model.name
            fine = done == 1 and model == ("2PL" if codes[0] == 0 else "1PL")
        else:
            rows = read(work / made)[0]
            fine = rows == stage.rows + ADDED * (1 if "same" in name else done)
        tally.note(
            "right" if fine else "lost",
            f"{name}: exit codes {codes}, {rows if made != 'new' else model}",
        )
