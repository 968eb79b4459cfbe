"""Shared truths: the paper's polling problem, curves drawn from the prior, and textbook
Gaussian-process algebra.
"""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from dynaesti.model.simulate import responses

mpl.use("Agg")


def polling(seed: int, n: int = 100):
    """(days in [0, 1], true share, votes) of the paper's polling problem."""
    x = np.linspace(0, 1, n)
    truth = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
    return x, truth, (np.random.default_rng(seed).random(n) < truth).astype(float)


def rbf(s, t, h):
    return np.exp(-0.5 * ((np.asarray(s)[:, None] - np.asarray(t)) / h) ** 2)


def draw_curve(rng, x, h):
    """One curve from a unit RBF prior."""
    if np.isinf(h):
        return np.full(x.size, rng.normal())
    values, vectors = np.linalg.eigh(rbf(x, x, h))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ rng.normal(size=x.size)


@pytest.fixture
def rng():
    return np.random.default_rng(20190711)


@pytest.fixture(scope="session")
def drawn():
    """Answers of 200 people to 20 items, with the truth behind them."""
    return responses(people=200, items=20, per_person=20, seed=3)


@pytest.fixture(scope="session")
def small():
    """300 answers of 20 people to 6 items."""
    return pd.DataFrame(responses(people=20, items=6, per_person=15, seed=1).table)
