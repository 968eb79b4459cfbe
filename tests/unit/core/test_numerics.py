"""Small numerical functions."""

import numpy as np
import pytest

from dynaesti.core import inserted


@pytest.mark.parametrize("index", [0, 2, 5])
def test_inserted_is_as_numpys_insert(index):
    values = np.arange(5.0)
    table = np.arange(15.0).reshape(5, 3)
    row = np.array([7.0, 8.0, 9.0])
    np.testing.assert_array_equal(inserted(values, index, 9.0), np.insert(values, index, 9.0))
    np.testing.assert_array_equal(inserted(table, index, row), np.insert(table, index, row, axis=0))
