"""Ours alone on the real logs: held-out log loss, calibration, convergence and cost.

`python -m benchmarks logs --data FOLDER` predicts the answers that `peers` predicts, in the same
splits, without the other packages; `--against COMMIT` tells how far ours was at a commit, and
`--out PAGE` writes a table, in which logs that are not asked for keep their lines.
"""

import argparse
import json
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

import dynaesti as dy
from benchmarks.peers.contenders import chances_of, values_of
from benchmarks.peers.data import LOGS, SPLITS, Log, held_out
from benchmarks.peers.prediction import scored
from dynaesti.data.responses import Responses

RESULTS = ("docs/evidence/benchmarks.json", "docs/benchmarks.json")  # now, and before


def calibration_slope(chances: np.ndarray, code: np.ndarray) -> float:
    """Slope of a logistic regression of answers on the log odds of their forecasts.

    Ordered answers count at each threshold. 1 is right; below, forecasts are too sure.
    """
    above = np.clip(1 - np.cumsum(chances, axis=1)[:, :-1], 1e-9, 1 - 1e-9)
    odds = logit(above).ravel()
    sign = np.where(code[:, None] > np.arange(above.shape[1]), 1.0, -1.0).ravel()

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        u = sign * (x[0] + x[1] * odds)
        slope = -sign * expit(-u)
        return float(-log_expit(u).mean()), np.array([slope.mean(), (slope * odds).mean()])

    return float(minimize(loss, np.array([0.0, 1.0]), jac=True, method="BFGS").x[1])


def measured(log: Log, how: str, folder: Path) -> dict[str, Any]:
    """A fit with defaults to one log's training part, and its forecasts of the rest."""
    train, test = held_out(log.read(folder), how)
    fit, seconds = timed_fit(train, log)
    begun = time.process_time()
    chances = chances_of(fit, train, test)
    code = np.searchsorted(values_of(train, test), test.resp)
    scores, _ = scored(chances, code, test.person)
    return {
        "log_loss": scores["log_loss"],
        "se": scores["se"],
        "slope": calibration_slope(chances, code),
        "iterations": len(fit.trace),
        "converged": fit.converged,
        "fit_cpu": seconds,
        "predict_cpu": time.process_time() - begun,
    }


def timed_fit(train: Responses, log: Log) -> tuple[dy.Fit, float]:
    """A fit with defaults, and its CPU seconds."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti(log.model, standard_errors=False, **log.options).fit(train)
    return fit, time.process_time() - begun


def at_commit(commit: str) -> dict[str, Any]:
    """The results file of a commit."""
    for path in RESULTS:
        found = subprocess.run(
            ["git", "show", f"{commit}:{path}"], capture_output=True, text=True, check=False
        )
        if not found.returncode:
            return dict(json.loads(found.stdout))
    raise SystemExit(f"--against {commit}: no {' or '.join(RESULTS)} there")


def main(arguments: list[str]) -> None:
    """A line for each log and split."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks logs", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--logs", nargs="*", choices=[log.name for log in LOGS])
    parser.add_argument("--splits", nargs="*", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--against", metavar="COMMIT", help="whose results file to compare with")
    parser.add_argument("--out", type=Path, help="a Markdown page; its numbers in JSON beside it")
    args = parser.parse_args(arguments)
    before = {} if args.against is None else at_commit(args.against)
    numbers = None if args.out is None else args.out.with_suffix(".json")
    known = {} if numbers is None or not numbers.exists() else json.loads(numbers.read_text())
    for log in LOGS:
        if args.logs and log.name not in args.logs:
            continue
        if not (args.data / log.file).exists():
            print(f"{log.name}: {log.file} is not in {args.data}")
            continue
        for how in args.splits:
            row = measured(log, how, args.data)
            earlier = before.get(f"prediction {log.name} {how}")
            if earlier is not None:
                row["before"] = earlier["rows"]["ours"]["log_loss"]
            print(f"{log.name:<17} {how:<7} {_words(row)}", flush=True)
            known[f"{log.name} {how}"] = row
            if args.out is not None and numbers is not None:
                numbers.write_text(json.dumps(known, indent=1) + "\n")
                args.out.write_text(page(known), encoding="utf-8")


PAGE = """# Forecasts on real logs

Made by `python -m benchmarks logs --against c4567d2 --out docs/evidence/forecasts.md`; its numbers are in
`forecasts.json` beside this page. 15 % of the answers of eight logs are held out in three ways (random cells, each person's last
ones, all of some people) and predicted by a fit of the others with defaults: 2PL, or GRM for ordered answers; `direction="free"` for
UN and Senate votes. *Before* is the same forecast where everyone shared a mean that stands still, items were taken as known and smoothness as given. The
slope is that of a logistic regression of the answers on the log odds of their forecasts: 1 is right, less is too sure, more is not sure enough. CPU
seconds are of a busy machine, without standard errors.

| log | held out | log loss | ± | before | slope | iterations | CPU s |
|---|---|---|---|---|---|---|---|
"""


def page(rows: dict[str, Any]) -> str:
    """The rows as a Markdown page, in the order of logs and splits."""
    lines = []
    for name in (f"{log.name} {how}" for log in LOGS for how in SPLITS):
        if name not in rows:
            continue
        row = rows[name]
        log_name, how = name.split()
        before = f"{row['before']:.4f}" if "before" in row else ""
        lines.append(
            f"| {log_name} | {how} | {row['log_loss']:.4f} | {row['se']:.4f} | {before} "
            f"| {row['slope']:.2f} | {row['iterations']} | {row['fit_cpu']:.0f} |"
        )
    return PAGE + "\n".join(lines) + "\n"


def _words(row: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.items()
    )
