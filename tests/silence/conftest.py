"""Answers that the tests of silence share."""

import pandas as pd
import pytest

from dynaesti.simulate import answers


@pytest.fixture(scope="session")
def drawn():
    return answers(people=200, items=20, per_person=20, seed=3)


@pytest.fixture(scope="session")
def small():
    return pd.DataFrame(answers(people=20, items=6, per_person=15, seed=1).table)
