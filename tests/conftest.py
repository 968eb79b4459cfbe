"""Fixtures for all tests, and the marker of each folder."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.model.simulate import responses
from dynaesti.report.page import write_report
from dynaesti.results.evaluation.static_comparison import compare_with_static
from support.simulated import EVIL, classroom_of_odd_names

mpl.use("Agg")

TESTS = Path(__file__).parent
MARKED = ("statistical", "slow", "browser")  # folders whose tests carry the folder's name


def pytest_collection_modifyitems(items):
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKED:
            item.add_marker(folder)


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


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """A report in which names look like markup, and its fit."""
    estimator = dy.DynAEsti("2PL")
    fit = estimator.fit(classroom_of_odd_names())
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(
        fit, path, static_comparison=compare_with_static(estimator, fit), title=f"Class {EVIL}"
    ), fit
