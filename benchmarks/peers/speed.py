"""Speed beside the peers.

CPU seconds of one thread, each task in a process of its own, cold (imports and compiling) and warm.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

ROOT = Path(__file__).parents[2]  # children are started there, by `python -m benchmarks`
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA", "RAYON")}
PATIENCE = 300.0  # seconds after which a task is stopped, and said to have been
# a first run of more CPU seconds than this is not repeated: shorter ones may hold a peer's
# compiling
ENOUGH = 90.0
RUNS, SECONDS = (
    3,
    3.0,
    # others are run so often, and short ones until so many CPU seconds are spent: their best
    # is noisy else
)
FINE_TICKS = (
    3000.0  # to a time scale: nearly every answer has an instant of its own, as with the others
)
KERNEL_SD, SCALE = np.sqrt(0.5), 0.3  # people: a level and a Matérn 3/2, half of the variance each
Task = Callable[[], dict[str, float]]


# --- dynamic: person against item, the true kernel given to everyone


def contest_data(answers: int) -> tuple[Any, Any, np.ndarray]:
    """Rasch answers of people with 200 each to 200 items at irregular times of [0, 1].

    A tenth is held out. With their true chances.
    """
    from dynaesti.data.responses import Responses
    from dynaesti.results.evaluation.splits import split

    rng = np.random.default_rng(answers)
    people, items = answers // 200, 200
    b, rows = rng.normal(0, 1.2, items), []
    for p in range(people):
        t = np.sort(rng.uniform(0, 1, 200))
        r = np.sqrt(3) * np.abs(t[:, None] - t) / SCALE
        z = np.linalg.cholesky(
            0.5 + 0.5 * (1 + r) * np.exp(-r) + 1e-9 * np.eye(200)
        ) @ rng.standard_normal(200)
        item = rng.integers(0, items, 200)
        chance = expit(1.7 * (z - b[item]))
        rows.append((np.full(200, p), item, (rng.uniform(size=200) < chance) * 1.0, t, chance))
    person, item, y, t, chance = (np.concatenate(part) for part in zip(*rows, strict=True))
    train, test = split(Responses.read({"id": person, "item": item, "resp": y, "date": t}), 0.1)
    return train, test, chance[test.row]


def log_loss(chances: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Expected under the true chances of the held-out answers.

    How these fell out is luck, and larger than what is between contenders.
    """
    return {
        "log_loss": float(
            -(truth * np.log(chances[:, 1]) + (1 - truth) * np.log(chances[:, 0])).mean()
        )
    }


def dynamic_ours(answers: int, learned: bool, model: str) -> Task:
    import dynaesti as dy
    from benchmarks.peers.contenders import ours

    train, test, truth = contest_data(answers)
    kernel = (
        None if learned else dy.Level(amplitude=KERNEL_SD) + dy.Matern32(SCALE, amplitude=KERNEL_SD)
    )
    return lambda: log_loss(ours(model=model, kernel=kernel, threads=1)(train, test), truth)


def dynamic_peer(answers: int, name: str, **options: Any) -> Task:
    from benchmarks.peers import contenders

    train, test, truth = contest_data(answers)
    return lambda: log_loss(getattr(contenders, name)(train, test, SCALE, **options), truth)


# --- static


def static_data(model: str, people: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """(answers (people, items), difficulties)."""
    rng = np.random.default_rng(0)
    a, theta = np.exp(0.3 * rng.standard_normal(items)), rng.standard_normal(people)[:, None]
    u = rng.uniform(size=(people, items))
    if model == "GRM":
        b = np.sort(rng.normal(0, 1.2, (items, 3)), axis=1) + np.array([-0.3, 0.0, 0.3])
        return (u[..., None] < expit(a[:, None] * (theta[..., None] - b))).sum(axis=-1), b
    b = rng.standard_normal(items)
    c = 0.2 if model == "3PL" else 0.0
    return (u < c + (1 - c) * expit(a * (theta - b))).astype(int), b


def off(found: Any, b: np.ndarray) -> dict[str, float]:
    return {"rmse_of_b": float(np.sqrt(np.nanmean((np.asarray(found, float) - b) ** 2)))}


def static_ours(model: str, people: int, items: int) -> Task:
    import dynaesti as dy

    y, b = static_data(model, people, items)
    names = ["b"] if b.ndim == 1 else [f"b{k + 1}" for k in range(b.shape[1])]

    def run() -> dict[str, float]:
        responses = dy.Responses.from_matrices(y * 1.0, np.zeros((1, items)))
        table = dy.DynAEsti(model, bandwidth=np.inf, threads=1).fit(responses).items
        return off(
            np.stack([np.asarray(table[name]) for name in names], axis=1).reshape(b.shape), b
        )

    return run


def static_girth(model: str, people: int, items: int) -> Task:
    import girth

    y, b = static_data(model, people, items)
    task = {"2PL": girth.twopl_mml, "3PL": girth.threepl_mml, "GRM": girth.grm_mml}[model]
    return lambda: off(task(np.ascontiguousarray(y.T))["Difficulty"], b)


def static_mirt(model: str, people: int, items: int) -> Task:
    import mirt

    y, b = static_data(model, people, items)

    def run() -> dict[str, float]:
        found = mirt.fit_mirt(y, model=model).model.parameters
        return off(found["difficulty" if "difficulty" in found else "thresholds"], b)

    return run


def static_py_irt(model: str, people: int, items: int) -> Task:
    import pandas as pd
    import torch
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    y, b = static_data(model, people, items)
    frame = pd.DataFrame(y, columns=[f"i{k}" for k in range(items)])
    frame.insert(0, "who", [f"p{k}" for k in range(people)])

    def run() -> dict[str, float]:
        data = Dataset.from_pandas(
            frame, subject_column="who", item_columns=list(frame.columns[1:])
        )
        config = IrtConfig(model_type=model.lower(), epochs=500, priors="hierarchical")
        trainer = IrtModelTrainer(data_path=None, config=config, dataset=data, verbose=False)
        trainer.train(device="cpu")
        found = trainer.last_params
        at = [int(found["item_ids"][k][1:]) for k in range(items)]
        place = np.empty(items)
        place[at] = np.asarray(found["diff"]).reshape(items, -1)[:, 0]
        return off(place, b)

    return run


# --- curves


def curve_data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The paper's polls: (times, votes, true share)."""
    x = np.linspace(0, 1, n)
    share = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
    return x, (np.random.default_rng(0).random(n) < share).astype(int), share


def rmise(found: np.ndarray, share: np.ndarray) -> dict[str, float]:
    return {"rmise": float(np.sqrt(np.mean((np.asarray(found) - share) ** 2)))}


def curve_ours(n: int) -> Task:
    import dynaesti as dy

    x, votes, share = curve_data(n)
    return lambda: rmise(dy.CurvFiFE().fit(x, dy.Bernoulli(votes)).mean(x), share)


def curve_sklearn(n: int) -> Task:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    x, votes, share = curve_data(n)

    def run() -> dict[str, float]:
        model = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(0.3)).fit(x[:, None], votes)
        return rmise(model.predict_proba(x[:, None])[:, 1], share)

    return run


def curve_gpytorch(n: int) -> Task:
    import gpytorch
    import torch

    torch.set_num_threads(1)
    x, votes, share = curve_data(n)
    inputs, labels = torch.tensor(x[:, None]), torch.tensor(votes, dtype=torch.float64)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            places = torch.linspace(0, 1, 32, dtype=torch.float64)[:, None]
            posterior = gpytorch.variational.CholeskyVariationalDistribution(32)
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self, places, posterior, learn_inducing_locations=False
                )
            )
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, t: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(t), self.covar_module(t)
            )

    def run() -> dict[str, float]:
        torch.manual_seed(0)
        model, likelihood = Model().double(), gpytorch.likelihoods.BernoulliLikelihood()
        model.covar_module.base_kernel.lengthscale = 0.3
        bound = gpytorch.mlls.VariationalELBO(likelihood, model, n)
        steps = torch.optim.Adam(model.parameters(), lr=0.05)
        model.train()
        for _ in range(300):
            steps.zero_grad()
            loss = -bound(model(inputs), labels)
            loss.backward()
            steps.step()
        model.eval()
        with torch.no_grad():
            return rmise(likelihood(model(inputs)).mean.numpy(), share)

    return run


# --- who runs what

SIZES = (4_000, 40_000)
STATIC = (("2PL", 50_000, 100), ("2PL", 5_000, 40), ("3PL", 5_000, 40), ("GRM", 5_000, 40))
CURVES = (100, 1_000)


def tasks() -> dict[str, dict[str, tuple[Callable[..., Task], tuple[Any, ...]]]]:
    """Contest → contender → (maker, arguments).

    A maker imports and lays out data; what it returns is timed.
    """
    out: dict[str, dict[str, tuple[Callable[..., Task], tuple[Any, ...]]]] = {}
    for n in SIZES:
        out[f"dynamic, {n:,} answers"] = {
            "ours, same kernel": (dynamic_ours, (n, False, "1PL")),
            "ours, kernel learned": (dynamic_ours, (n, True, "1PL")),
            "ours, 2PL, kernel learned": (dynamic_ours, (n, True, "2PL")),
            "kickscore": (dynamic_peer, (n, "kickscore")),
            "TrueSkillThroughTime": (partial(dynamic_peer, ticks=FINE_TICKS), (n, "through_time")),
            "TrueSkillThroughTime, 33 ticks": (dynamic_peer, (n, "through_time")),
        }
    for model, people, items in STATIC:
        made = {"ours": static_ours, "girth": static_girth, "mirt (Python)": static_mirt}
        made |= {} if model == "GRM" else {"py-irt": static_py_irt}
        out[f"static {model}, {people:,} × {items}"] = {
            name: (maker, (model, people, items)) for name, maker in made.items()
        }
    for n in CURVES:
        made = {"ours": curve_ours, "scikit-learn": curve_sklearn, "GPyTorch": curve_gpytorch}
        out[f"curve of {n:,} votes"] = {name: (maker, (n,)) for name, maker in made.items()}
    return out


def one(contest: str, name: str) -> None:
    """A task in this process: prints what it found and what it took."""
    warnings.simplefilter("ignore")
    maker, arguments = tasks()[contest][name]
    task = maker(*arguments)
    imported = time.process_time()
    told = task()
    first = time.process_time() - imported
    runs = [first]
    while runs[0] < ENOUGH and (len(runs) < RUNS or sum(runs[1:]) < SECONDS):
        begun = time.process_time()
        told = task()
        runs.append(time.process_time() - begun)
    print(json.dumps({**told, "cold": imported + first, "warm": min(runs), "runs": len(runs)}))


def run(keep: Callable[[str, dict[str, Any]], None], only: str = "") -> None:
    """Every contest whose name has `only` in it; a contender that cannot is told, not hidden."""
    for contest, contenders in tasks().items():
        if only not in contest:
            continue
        rows = {}
        for name in contenders:
            try:
                found = subprocess.run(
                    [
                        "taskset",
                        "-c",
                        "0",
                        sys.executable,
                        "-m",
                        "benchmarks",
                        "peers",
                        "--one",
                        contest,
                        name,
                    ],
                    capture_output=True,
                    text=True,
                    cwd=ROOT,
                    env={**os.environ, **ONE_THREAD},
                    timeout=PATIENCE,
                )
            except subprocess.TimeoutExpired:
                rows[name] = {"failed": f"not done after {PATIENCE:g} s"}
                continue
            rows[name] = (
                json.loads(found.stdout.splitlines()[-1])
                if found.returncode == 0
                else {"failed": (found.stderr.strip().splitlines() or ["no message"])[-1][:160]}
            )
        keep(f"speed {contest}", rows)
