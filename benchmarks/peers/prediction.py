"""Held-out answers of real logs, predicted by everyone.

Log loss, Brier, AUC, calibration, IMV, with standard errors by person.
"""

import contextlib
import io
import multiprocessing
import resource
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.contenders import Forecast, everyone, values_of
from benchmarks.peers.data import LOGS, Jobs, Log, held_out, thinned
from dynaesti.core import person_error
from dynaesti.data.responses import Responses
from dynaesti.results.evaluation.scores import EDGE, binary_scores

BINS = 15
OWN_PATIENCE = 7200.0


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    """Mean distance of predicted and observed means over bins of equal size."""
    order = np.array_split(np.argsort(p, kind="stable"), BINS)
    return float(
        sum(abs(p[part].mean() - y[part].mean()) * part.size for part in order if part.size)
        / p.size
    )


def scored(
    chances: np.ndarray, code: np.ndarray, person: np.ndarray
) -> tuple[dict[str, float], np.ndarray]:
    """A forecast's scores, and its loss at each answer."""
    given = np.maximum(chances[np.arange(code.size), code], EDGE)
    loss, seen = -np.log(given), code.astype(float)
    told = {"log_loss": float(loss.mean()), "se": person_error(loss, person)}
    if chances.shape[1] == 2:
        scores = binary_scores(chances[:, 1], seen)
        told |= {
            "brier": scores.brier,
            "auc": scores.auc,
            "imv": scores.imv,
            "calibration": calibration_error(chances[:, 1], seen),
        }
    else:
        told |= {
            "brier": float(((chances**2).sum(axis=1) - 2 * given + 1).mean()),
            "calibration": calibration_error(chances @ np.arange(chances.shape[1]), seen),
        }
    return told, loss


def in_child(
    forecast: Forecast, train: Responses, test: Responses, patience: float
) -> tuple[np.ndarray, float]:
    """A forecast made in a process of its own, and the CPU seconds it took.

    One that takes more than `patience` of them is stopped.
    """
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)

    def work() -> None:
        begun = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(begun + patience),) * 2)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                theirs.send((forecast(train, test), time.process_time() - begun, ""))
        except Exception as error:
            theirs.send((np.zeros(0), 0.0, f"{type(error).__name__}: {str(error)[:120]}"))

    child = fork.Process(target=work)
    child.start()
    theirs.close()  # so that the end of the child is heard of
    try:
        found, spent, complaint = ours.recv()
    except EOFError:
        raise RuntimeError(f"stopped after {patience:g} CPU s") from None
    finally:
        child.join()
    if complaint:
        raise RuntimeError(complaint)
    return found, spent


def contest(
    log: Log, how: str, folder: Path, most: int, patience: float, limit: int | None
) -> dict[str, Any]:
    """All contenders on one split of one log.

    How far each is behind ours is a paired difference, its error by person.
    """
    if not (folder / log.file).exists():
        return {"skipped": f"{log.file} is not in {folder.name}"}
    responses = log.read(folder)
    responses = responses if limit is None else thinned(responses, limit)
    train, test = held_out(responses, how)
    code = np.searchsorted(values_of(train, test), test.resp)
    rows: dict[str, dict[str, Any]] = {}
    losses: dict[str, np.ndarray] = {}
    for name, forecast in everyone(log, folder, len(responses), most).items():
        try:
            chances, spent = in_child(
                forecast, train, test, OWN_PATIENCE if name.startswith("ours") else patience
            )
        except RuntimeError as error:  # a peer that cannot: told, not hidden
            rows[name] = {"failed": str(error)}
            continue
        rows[name], losses[name] = scored(chances, code, test.person)
        rows[name]["cpu_seconds"] = spent
    for name, loss in losses.items():
        apart = loss - losses["ours"]
        rows[name] |= {
            "behind_ours": float(apart.mean()),
            "behind_se": person_error(apart, test.person),
        }
    return {"train": len(train), "test": len(test), "people": int(test.people.size), "rows": rows}


def jobs(
    folder: Path,
    names: list[str] | None,
    most: int,
    limit: int | None,
    patience: float,
    splits: list[str],
) -> Jobs:
    """Every log and split."""
    return {
        f"prediction {log.name} {how}": partial(contest, log, how, folder, most, patience, limit)
        for log in LOGS
        if not names or log.name in names
        for how in splits
    }
