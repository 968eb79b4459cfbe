"""A small fit, its scorer and its runs, for all tests of the service."""

import pytest

import dynaesti as dy
from dynaesti.model.simulate import responses


@pytest.fixture(scope="session")
def fit():
    table = responses(people=25, items=8, per_person=12, span=50.0, seed=5).table
    return dy.DynAEsti("2PL").fit(table)


@pytest.fixture(scope="session")
def scorer(fit):
    return fit.scorer()


@pytest.fixture
def small_run(scorer, tmp_path):
    """A scorer without people."""
    return scorer.save(tmp_path / "run.dynscore")


@pytest.fixture
def whole_run(fit, tmp_path):
    """A fit with its people."""
    return fit.save(tmp_path / "run.dyn")
