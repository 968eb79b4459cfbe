"""How a fit's time and memory grow.

Answers, people, items, answers a person, span over bandwidth; one thread, a process each.
"""

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

ROOT = Path(__file__).parents[2]  # children are started there, by `python -m benchmarks`
BASE = {"people": 2_000, "each": 50, "items": 200, "ratio": 3.0}
GRID = {
    "people": [{"people": n} for n in (500, 2_000, 8_000, 20_000, 80_000)],
    "items": [{"items": n} for n in (20, 200, 2_000, 20_000)],
    "answers a person": [{"people": 200_000 // n, "each": n} for n in (10, 50, 500, 5_000)],
    "span / bandwidth": [{"ratio": r} for r in (0.5, 3.0, 30.0, 300.0)],
}


def drawn(people: int, each: int, items: int, ratio: float) -> dict[str, np.ndarray]:
    """2PL answers at irregular times of [0, 1].

    Abilities are a level plus an Ornstein–Uhlenbeck path of bandwidth 1/ratio.
    """
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 1, (people, each)), axis=1)
    keep = np.exp(-ratio * np.diff(t, axis=1))
    path = rng.standard_normal((people, each))
    for k in range(1, each):
        path[:, k] = keep[:, k - 1] * path[:, k - 1] + np.sqrt(1 - keep[:, k - 1] ** 2) * path[:, k]
    z = np.sqrt(0.5) * (rng.standard_normal((people, 1)) + path)
    a, b, item = (
        np.exp(0.3 * rng.standard_normal(items)),
        rng.standard_normal(items),
        rng.integers(0, items, (people, each)),
    )
    y = rng.uniform(size=z.shape) < expit(a[item] * (z - b[item]))
    return {
        "id": np.repeat(np.arange(people), each),
        "item": item.ravel(),
        "resp": y.ravel() * 1.0,
        "date": t.ravel(),
    }


def one(options: str) -> None:
    """A fit in this process: prints what it took."""
    import dynaesti as dy

    warnings.simplefilter("ignore")
    table = drawn(**{**BASE, **json.loads(options)})
    dy.DynAEsti("2PL", threads=1, iterations=3).fit(
        {key: column[:500] for key, column in table.items()}
    )  # compiled code is read
    begun = time.process_time()
    fit = dy.DynAEsti("2PL", threads=1).fit(table)
    spent = time.process_time() - begun
    print(
        json.dumps(
            {
                "answers": table["id"].size,
                "cpu_seconds": spent,
                "steps": len(fit.trace),
                "priors": len(fit.kernels),
                "converged": bool(fit.converged),
                "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            }
        )
    )


def run(keep: Callable[[str, dict[str, Any]], None]) -> None:
    """Each direction."""
    for name, points in GRID.items():
        rows = []
        for options in points:
            command = [sys.executable, "-m", "benchmarks", "peers", "--grow", json.dumps(options)]
            found = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            rows.append(
                {
                    **BASE,
                    **options,
                    **(
                        json.loads(found.stdout.splitlines()[-1])
                        if found.returncode == 0
                        else {"failed": found.stderr.strip().splitlines()[-1][:160]}
                    ),
                }
            )
        keep(f"growth {name}", {"rows": rows})
