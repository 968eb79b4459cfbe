"""Ours beside the peers, in one run on one machine.

Prediction on real logs, next answers of new learners, truth of the posterior, speed, growth.

    python -m benchmarks peers --data ../shared/data --out docs/evidence/benchmarks.json [--parts prediction next truth speed growth]

Results are kept as they come, so that parts may be run one by one; the page beside them is written
at the end.
"""

import argparse
import json
import multiprocessing
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
PEERS = (
    "dynaesti",
    "numpy",
    "scipy",
    "numba",
    "kickscore",
    "trueskillthroughtime",
    "girth",
    "mirt",
    "py-irt",
    "pyBKT",
    "scikit-learn",
    "gpytorch",
    "numpyro",
)
PARTS = ("prediction", "next", "truth", "speed", "growth")


def versions() -> dict[str, str]:
    out = {"python": platform.python_version()}
    for name in PEERS:
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "not installed"
    return out


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder of the real logs"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/evidence/benchmarks.json"))
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--logs", nargs="*", help="only these logs")
    parser.add_argument(
        "--splits",
        nargs="*",
        default=["cells", "future", "people"],
        help="only these ways of holding out",
    )
    parser.add_argument(
        "--contests", default="", help="only speed contests with this in their name"
    )
    parser.add_argument(
        "--most", type=int, default=100_000, help="answers up to which slow packages take part"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=120.0,
        help="CPU seconds after which a peer's forecast is stopped (default: 120)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count(),
        help="forecasts and simulations at a time; speed is measured alone",
    )
    parser.add_argument(
        "--sets", type=int, default=1000, help="data sets of the calibration by simulation"
    )
    parser.add_argument(
        "--limit", type=int, help="thin every log to so many answers: a look, not a result"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--grow", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    args = parsed(arguments)
    from benchmarks.peers import growth, missing, next_answers, page, prediction, speed, truth
    from benchmarks.peers.data import Jobs

    if args.one:
        speed.one(*args.one)
        return
    if args.grow:
        growth.one(args.grow)
        return
    told = json.loads(args.out.read_text()) if args.out.exists() else {}
    sittings = told.get("run", {}).get("sittings", 0) + 1
    told["run"] = {
        "sittings": sittings,
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "versions": versions(),
        "most": args.most,
        "patience": args.patience,
    }
    work: Jobs = {}
    if "prediction" in args.parts:
        work |= prediction.jobs(
            args.data, args.logs, args.most, args.limit, args.patience, args.splits
        )
        work |= missing.jobs(args.data, args.logs)
    if "next" in args.parts:
        work |= next_answers.jobs(args.data, args.logs)
    if "truth" in args.parts:
        work |= truth.jobs(args.sets)

    def keep(key: str, value: dict) -> None:
        told[key] = value
        order = [*work, *(name for name in told if name not in work)]
        args.out.write_text(
            json.dumps({name: told[name] for name in order if name in told}, indent=1) + "\n"
        )
        print(key, json.dumps(value), flush=True)

    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        waiting = {pool.submit(job): name for name, job in work.items()}
        for done in as_completed(waiting):
            keep(waiting[done], done.result())
    if "speed" in args.parts:
        speed.run(keep, args.contests)
    if "growth" in args.parts:
        growth.run(keep)
    args.out.with_suffix(".md").write_text(page.page(json.loads(args.out.read_text())))
