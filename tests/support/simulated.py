"""Answers drawn from the model, for the tests."""

import numpy as np
import pandas as pd
from scipy.special import expit

from dynaesti.model.simulate import curves


def classroom(people=60, items=12, answers=30, seed=0, model="2PL", bandwidth=0.4, truth=False):
    """A long table of answers by people whose abilities move; the truth behind it on request."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, 101)
    ability = curves(grid, bandwidth, people, seed=rng)
    a, b = np.exp(rng.normal(0, 0.3, items)), rng.normal(0, 1, items)
    rows = []
    for p in range(people):
        t = np.sort(rng.uniform(0, 1, answers))
        item = rng.integers(0, items, answers)
        theta = np.interp(t, grid, ability[p])
        u = a[item] * (theta - b[item])
        if model == "2PL":
            y = rng.uniform(size=answers) < expit(u)
        elif model == "GRM":
            y = (rng.logistic(size=answers) < u + 1).astype(int) + (
                rng.logistic(size=answers) < u - 1
            )
        elif model == "poisson":
            y = rng.poisson(np.exp(0.5 * u))
        elif model == "gaussian":
            y = u + rng.normal(0, 0.7, answers)
        else:
            y = np.clip(rng.beta(6 * expit(u), 6 * expit(-u)), 1e-3, 1 - 1e-3)
        rows.append(
            pd.DataFrame(
                {
                    "id": f"p{p:03d}",
                    "item": [f"i{k:02d}" for k in item],
                    "resp": np.asarray(y) * 1.0,
                    "date": t,
                }
            )
        )
    table = pd.concat(rows, ignore_index=True)
    return (table, {"a": a, "b": b, "ability": ability, "grid": grid}) if truth else table
