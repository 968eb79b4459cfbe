"""What DynAEsti must show.

Recovery, coverage, the speed of updates, in one thread.
"""

import argparse
import time
from dataclasses import replace

import numpy as np
from scipy.special import expit

import dynaesti as dy
from dynaesti.model.kernels import DEFAULT_KERNEL
from dynaesti.model.simulate import curves
from dynaesti.studies.synthetic import recovery
from dynaesti.studies.synthetic_data import paper


def cpu(start: float) -> float:
    return time.process_time() - start


def told(rows: list[dict[str, float]]) -> str:
    return ", ".join(f"{key} {np.mean([row[key] for row in rows]):.4f}" for key in rows[0])


def synthetic() -> None:
    """The paper's synthetic experiment, five seeds, with its kernel and with the default one."""
    for kernel in ("rbf", DEFAULT_KERNEL):
        synthetic_with(kernel)


def synthetic_with(kernel: str) -> None:
    by_scale: dict[str, list[dict[str, float]]] = {"items": [], "abilities": []}
    times = []
    for seed in range(5):
        truth = paper(500, 500, seed=seed)
        begin = time.process_time()
        fit = dy.DynAEsti("3PL", kernel=kernel, scale="items", threads=1).fit(
            dy.Responses.from_matrices(truth.responses, truth.times)
        )
        times.append(cpu(begin))
        for scale, rows in by_scale.items():
            rows.append(recovery(replace(fit, options={**fit.options, "scale": scale}), truth))
    for scale, rows in by_scale.items():
        print(f"synthetic, {kernel}, scale {scale!r}: {told(rows)}")
    print(f"synthetic, {kernel}: CPU {', '.join(f'{t:.1f}' for t in times)} s")


def static() -> None:
    """The same without change, five seeds."""
    by_scale: dict[str, list[dict[str, float]]] = {"abilities": [], "items": []}
    for seed in range(5):
        truth = paper(500, 500, static=True, seed=seed)
        fit = dy.DynAEsti("3PL", bandwidth=np.inf, threads=1).fit(
            dy.Responses.from_matrices(truth.responses, truth.times)
        )
        for scale, rows in by_scale.items():
            found = recovery(replace(fit, options={**fit.options, "scale": scale}), truth)
            rows.append({key: found[key] for key in ("irf", "ability", "70 %", "95 %")})
    for scale, rows in by_scale.items():
        print(f"static synthetic, scale {scale!r}: {told(rows)}")


def drawn(
    model: str, people: int, items: int, answers: int, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Answers to items drawn from the weak priors by people with moving abilities.

    And the truth.
    """
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, 101)
    ability = curves(grid, 0.4, people, seed=rng)
    t = np.sort(rng.uniform(0, 1, (people, answers)), axis=1)
    item = np.array([rng.permutation(np.arange(answers) % items) for _ in range(people)])
    theta = np.array([np.interp(t[p], grid, ability[p]) for p in range(people)])
    a, c = np.exp(rng.normal(0, 0.5, items)), expit(rng.normal(-2, 0.8, items))
    b = rng.normal(0, 2.0 if model == "GPCM" else 1.0, (items, 2))
    u = rng.uniform(size=theta.shape)
    if model == "GPCM":
        steps = a[item][..., None] * (theta[..., None] - b[item])
        odds = np.exp(np.concatenate([np.zeros((*theta.shape, 1)), steps.cumsum(axis=-1)], axis=-1))
        y = (u[..., None] > (odds / odds.sum(axis=-1, keepdims=True)).cumsum(axis=-1)).sum(axis=-1)
    else:
        p = expit(a[item] * (theta - b[item, 0]))
        y = u < (p if model == "2PL" else c[item] + (1 - c[item]) * p)
    table = {
        "id": np.repeat(np.arange(people), answers),
        "item": item.ravel(),
        "resp": y.ravel() * 1.0,
        "date": t.ravel(),
    }
    real = {"log a": np.log(a), "b1" if model == "GPCM" else "b": b[:, 0]}
    return table, real | (
        {"b2": b[:, 1]}
        if model == "GPCM"
        else {"logit c": np.log(c / (1 - c))}
        if model == "3PL"
        else {}
    )


def intervals(replications: int = 200) -> None:
    """Cover of the items' 95 % intervals."""
    for model, people in (("2PL", 400), ("GPCM", 400), ("3PL", 400)):
        inside: dict[str, list[float]] = {}
        for seed in range(replications):
            table, real = drawn(model, people, 16, 24, seed)
            fit = dy.DynAEsti(model, bandwidth=0.4).fit(table)
            for block, cov in zip(fit.bank.blocks, fit.covariance, strict=True):
                names = block.model.parameter_names(block.size)
                if model == "GPCM" and block.size < 3:
                    # a category that nobody chose leaves another item than
                    # the one that was drawn
                    continue
                for name, truth in real.items():
                    k = names.index({"log a": "log_a", "logit c": "guess"}.get(name, name))
                    away = (block.u[:, k] - truth[block.items]) / np.sqrt(cov[:, k, k])
                    inside.setdefault(name, []).extend((np.abs(away) < 1.96).tolist())
        print(
            f"95 % intervals, {model}, {people * 24 // 16} answers an item, {replications} "
            f"replications: "
            + ", ".join(f"{name} {np.mean(hits):.3f}" for name, hits in inside.items())
        )


def update() -> None:
    """A new answer of a person with 500."""
    truth = paper(100, 500, seed=0)
    responses = dy.Responses.from_matrices(truth.responses, truth.times)
    fit = dy.DynAEsti("3PL", threads=1).fit(responses)
    spent = []
    for person in range(30):
        live = fit.live(person)
        begin = time.process_time()
        live.add(1.01, 7, 1.0)
        spent.append(cpu(begin))
    print(f"update, 500 answers, {len(fit.kernels)} priors: {1e3 * np.median(spent):.2f} ms")


SECTIONS = {f.__name__: f for f in (synthetic, static, update, intervals)}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks recovery", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"some of {', '.join(SECTIONS)} (default: all)")
    for name in parser.parse_args(arguments).sections or SECTIONS:
        SECTIONS[name]()
