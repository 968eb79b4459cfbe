"""DIF and drift by simulation: how often sound items are flagged, and others found; and the cost.

`python -m benchmarks screening` runs all parts; `--parts` chooses, `--items` sets how many sound
items each row tests at least.
"""

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np

import dynaesti as dy
from dynaesti.estimation import EP_TOLERANCE_FINAL, EStep

Table = dict[str, Any]


def draw(
    seed: int,
    people: int = 1000,
    items: int = 50,
    per_person: int = 25,
    *,
    growth: float = 0.0,
    impact: float = 0.0,
    guessing: float = 0.0,
    odd_items: int = 0,
    dif: float = 0.0,
    leak: float = 0.0,
) -> Table:
    """Answers over 100 days of people in two groups.

    Group b is better by `impact`; the first `odd_items` items, of slope 1 and difficulty 0, are
    easier by `dif` for group b, and by `leak` after day 50.
    """
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 100, (people, per_person)), axis=1)
    group = np.arange(people)[:, None] % 2
    grid = np.linspace(0, 100, 81)
    curves = dy.simulate.curves(grid, 25.0, people, rng) * np.sqrt(0.5)
    own = np.array([np.interp(t[i], grid, curves[i]) for i in range(people)])
    own += np.sqrt(0.5) * rng.standard_normal((people, 1))
    theta = own + growth * (t / 100 - 0.5) + impact * (group - 0.5)
    a = np.exp(0.3 * rng.standard_normal(items))
    b = rng.standard_normal(items)
    a[:odd_items], b[:odd_items] = 1.0, 0.0  # ordinary ones
    item = rng.integers(0, items, t.shape)
    odd = (item < odd_items) * (dif * group + leak * (t > 50))
    right = guessing + (1 - guessing) / (1 + np.exp(-a[item] * (theta + odd - b[item])))
    return {
        "id": np.repeat([f"p{i:05d}" for i in range(people)], per_person),
        "item": np.array([f"i{k:05d}" for k in item.ravel()]),
        "resp": (rng.random(t.size) < right.ravel()).astype(int),
        "date": t.ravel(),
        "group": np.repeat(np.where(group[:, 0], "b", "a"), per_person),
    }


# name: what is drawn, options of the fit, whether the fit knows the groups
SOUND: dict[str, tuple[dict[str, Any], str, bool]] = {
    "nothing moves": ({}, "2PL", False),
    "groups 1 sd apart, fit without groups": ({"impact": 1.0}, "2PL", False),
    "groups 1 sd apart, fit with groups": ({"impact": 1.0}, "2PL", True),
    "the cohort rises by 2": ({"growth": 2.0}, "2PL", False),
    "rises by 2, groups 1 sd apart": ({"growth": 2.0, "impact": 1.0}, "2PL", False),
    "3PL, groups 1 sd apart": ({"impact": 1.0, "guessing": 0.2}, "3PL", False),
    "100 answers an item": ({"people": 200}, "2PL", False),
    "25 answers an item": ({"people": 400, "items": 400}, "2PL", False),
    "repeats: 5 items, 25 answers": ({"items": 5, "people": 400, "impact": 1.0}, "2PL", False),
}


ODD: dict[str, dict[str, Any]] = {
    "DIF of 0.5": {"dif": 0.5},
    # what tells the groups' abilities and slopes apart is lost to the test
    "DIF of 0.5, groups 0.5 sd apart": {"dif": 0.5, "impact": 0.5},
    "leak of 1": {"leak": 1.0, "impact": 0.5},
}


def fitted(table: Table, model: str, with_groups: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"groups": "group"} if with_groups else {}
        return dy.DynAEsti(model, standard_errors=False, **options).fit(table)


def p_values(fit: Any, table: Table, with_groups: bool) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = None if with_groups else table
        both = dy.evaluation.dif(fit, "group", data, slopes=True, purify=False)
        one = dy.evaluation.dif(fit, "group", data, purify=False)
        drift = dy.evaluation.drift(fit, purify=False)
    return {"DIF": one["p"], "DIF, slopes too": both["p"], "drift": drift["p"]}


def false_alarms(least: int) -> dict[str, dict[str, float]]:
    """Share of sound items with p < 0.05."""
    out: dict[str, dict[str, float]] = {}
    for name, (data, model, with_groups) in SOUND.items():
        found: dict[str, list[Any]] = {}
        seed = 0
        while sum(len(p) for p in found.get("DIF", [])) < least:
            table = draw(seed, **data)
            fit = fitted(table, model, with_groups)
            for kind, p in p_values(fit, table, with_groups).items():
                found.setdefault(kind, []).append(np.asarray(p))
            seed += 1
        rates = {kind: float((np.concatenate(p) < 0.05).mean()) for kind, p in found.items()}
        out[name] = rates
        print(f"{name:40}", *(f"{kind} {rate:.4f}" for kind, rate in rates.items()), flush=True)
    return out


def power(replications: int) -> dict[str, float]:
    """How often an odd item is found (p < 0.05, and flagged among all), with 500 answers a side."""
    out: dict[str, float] = {}
    for kind, odd in ODD.items():
        hits, flags, effects, false = [], [], [], []
        for seed in range(replications):
            # DIF: 1,000 answers an item, 500 of each group; leak: 500 answers an item
            per_person = 40 if "dif" in odd else 20
            table = draw(seed, 1000, 40, per_person, odd_items=2, **odd)
            fit = fitted(table, "2PL", "dif" in odd)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "dif" in odd:
                    found = dy.evaluation.dif(fit, "group")
                else:
                    found = dy.evaluation.drift(fit)
            p = np.asarray(found["p"])
            hits += list(p[:2] < 0.05)
            flags += list(np.asarray(found["flag"])[:2])
            false.append(np.asarray(found["flag"])[2:].mean())
            effects += list(np.asarray(found["effect" if "dif" in odd else "easier"])[:2])
        out[kind] = float(np.mean(hits))
        print(
            f"{kind}: p < 0.05 {np.mean(hits):.3f}, flagged {np.mean(flags):.3f}, mean effect "
            f"{np.mean(effects):.3f}, sound items flagged {np.mean(false):.4f}",
            flush=True,
        )
    return out


def cost(items: int = 10_000) -> float:
    """CPU time of screening against that of one E-step from scratch, in one run."""
    table = draw(0, people=20_000, items=items, per_person=25)
    fit = fitted(table, "2PL", True)
    runner = EStep(fit.sites)
    ratios = []
    for _ in range(3):
        steps = []
        for tolerance in (1e-4, EP_TOLERANCE_FINAL):
            begin = time.process_time()
            nothing = [None] * len(fit.kernels)
            posterior = runner.run(fit.likelihood_table, fit.priors, nothing, tolerance)
            runner.counts(fit.priors, posterior, fit.likelihood_table)
            steps.append(time.process_time() - begin)
        times = []
        for test in (lambda: dy.evaluation.dif(fit, "group"), lambda: dy.evaluation.drift(fit)):
            begin = time.process_time()
            test()
            times.append(time.process_time() - begin)
        ratios.append(max(times) / steps[1])
        print(
            f"{items:,} items, {len(fit.responses):,} answers: E-step from nothing {steps[0]:.2f} "
            f"CPU s (tolerance 1e-4), {steps[1]:.2f} (as the last of a fit), "
            f"dif {times[0]:.2f}, drift {times[1]:.2f}",
            flush=True,
        )
    return min(ratios)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks screening")
    parser.add_argument("--parts", nargs="+", default=["alarms", "power", "cost"])
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument("--out")
    args = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    if "alarms" in args.parts:
        found["false alarms at 5 %"] = false_alarms(args.items)
    if "power" in args.parts:
        found["power at 5 %"] = power(args.replications)
    if "cost" in args.parts:
        found["cost in E-steps"] = cost()
    if args.out:
        with open(args.out, "w") as file:
            json.dump(found, file, indent=1)
