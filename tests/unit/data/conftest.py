"""A small table of answers."""

import pytest

from support.simulated import classroom


@pytest.fixture(scope="session")
def table():
    return classroom(12, 5, 10)
