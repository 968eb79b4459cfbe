"""The speed of CurvFiFE, measured in one run: CPU seconds, with nothing set in the environment.

`make bench` installs what it compares with. Prints one line a measurement, with the bar it is held
to.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product

import numpy as np

import dynaesti as dy
from dynaesti.core.linalg import symmetric_root


def polling(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0, 1, n)
    share = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
    return x, (np.random.default_rng(seed).random(n) < share).astype(int)


def cpu(task: Callable[[], object], repeats: int = 5) -> float:
    """Best CPU seconds of several warm runs."""
    task()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def line(what: str, value: str, bar: str = "") -> None:
    print(f"{what:<64} {value:>14}   {bar}", flush=True)


def seconds(code: str, env: dict[str, str] | None = None, runs: int = 3) -> float:
    """Best wall seconds that a fresh process reports for itself."""
    return min(
        float(
            subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, **(env or {})},
            ).stdout
        )
        for _ in range(runs)
    )


def starting() -> None:
    clock = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    line("import dynaesti", f"{seconds(clock.format('import dynaesti')):.3f} s", "≤ 0.4 s")
    fit = "dy.CurvFiFE().fit([0, 1, 2, 3], dy.Bernoulli([0, 1, 0, 1]))"
    used = (
        "import time, dynaesti as dy; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    )
    line(
        "first use of CurvFiFE (import of its parts)",
        f"{seconds(used.format('dy.CurvFiFE')):.2f} s",
        "≤ 1 s",
    )
    line("first fit of a process, from the cache", f"{seconds(used.format(fit)):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        line(
            "first fit ever on a machine, compiling",
            f"{seconds(used.format(fit), {'NUMBA_CACHE_DIR': folder}, 1):.1f} s",
            "≤ 20 s",
        )


def single() -> None:
    x, votes = polling(0)
    line(
        "polling, n = 100, bandwidth learned",
        f"{1e3 * cpu(lambda: dy.CurvFiFE().fit(x, dy.Bernoulli(votes)), 20):.1f} ms",
        "≤ 15 ms",
    )
    curve = dy.CurvFiFE().fit(x, dy.Bernoulli(votes))
    line("audit of that curve, 20,000 draws", f"{cpu(curve.audit):.3f} s", "about 0.1 s")
    for n in (10_000, 100_000, 1_000_000):
        t, v = polling(1, n)
        took = cpu(
            lambda t=t, v=v: dy.CurvFiFE(bandwidth=0.3).fit(t, dy.Bernoulli(v)),
            3 if n < 10**6 else 1,
        )
        bar = {10_000: "≤ 0.1 s", 1_000_000: "≤ 10 s"}.get(n, "")
        line(
            f"n = {n:,} at a given bandwidth",
            f"{took:.3f} s",
            f"{bar:<10} {1e6 * took / n:.2f} µs an emission",
        )


def many() -> None:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(0)
    who, when = np.repeat(np.arange(10_000), 50), rng.random(500_000)
    votes = (rng.random(500_000) < 0.5 + 0.4 * np.sin(6 * when + who)).astype(int)
    ours = (
        cpu(
            lambda: dy.CurvFiFE(bandwidth=0.3).fit_many(who, when, dy.Bernoulli(votes), threads=1),
            2,
        )
        / 10_000
    )
    one = GaussianProcessClassifier(RBF(0.3), optimizer=None)
    theirs = (
        cpu(
            lambda: [
                one.fit(when[50 * k : 50 * k + 50, None], votes[50 * k : 50 * k + 50])
                for k in range(100)
            ]
        )
        / 100
    )
    line(
        "10,000 curves of 50 points at a given bandwidth, a curve",
        f"{1e3 * ours:.3f} ms",
        "≤ 0.2 ms",
    )
    line(
        "scikit-learn's Laplace classifier on such a curve",
        f"{1e3 * theirs:.2f} ms",
        f"{theirs / ours:.0f} times ours",
    )


def steep() -> None:
    from dynaesti.inference.observations import observe
    from dynaesti.inference.single_curve import graft_kernels

    sweeps, settled = [], []
    x = np.linspace(0, 1, 500)
    root = symmetric_root(np.exp(-0.5 * ((x[:, None] - x) / 0.2) ** 2))
    for a, b, c, seed in product((4.0, 8.0), (0.0, 1.0, 2.0), (0.33, 0.5), range(16)):
        rng = np.random.default_rng(seed)
        theta = root @ rng.normal(size=500)
        right = (rng.random(500) < c + (1 - c) / (1 + np.exp(-a * (theta - b)))).astype(int)
        answers = observe(x, dy.ItemResponses(right, "3PL", a=a, b=b, c=c), None)
        for fitted in graft_kernels(answers, [dy.RBF(h) for h in (0.1, 0.2, 0.4)]):
            sweeps.append(fitted.sweeps)
            settled.append(fitted.converged)
    sweeps, settled = np.array(sweeps), np.array(settled)
    within = np.mean(settled & (sweeps <= 100))
    line(
        f"steep guessing items, {sweeps.size} curves of 500: settled within 100 sweeps",
        f"{within:.1%}",
        "all",
    )
    line(
        "    settled within 200; median sweeps", f"{np.mean(settled):.1%}; {np.median(sweeps):.0f}"
    )


SECTIONS = {f.__name__: f for f in (starting, single, many, steep)}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks accuracy", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"some of {', '.join(SECTIONS)} (default: all)")
    for name in parser.parse_args(arguments).sections or SECTIONS:
        SECTIONS[name]()
