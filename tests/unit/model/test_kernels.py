"""Kernels: what may be said of them."""

import numpy as np
import pytest

import dynaesti as dy


def test_words_and_numbers_are_checked():
    for bad in (-1.0, 0.0, "magic", None, True, np.nan):
        with pytest.raises(dy.InputError):
            dy.RBF(bad)
    with pytest.raises(dy.InputError):
        dy.RBF(amplitude=-2.0)
    with pytest.raises(dy.InputError):
        -1.0 * dy.RBF()
    with pytest.raises(dy.InputError):
        dy.Periodic(0.0)
