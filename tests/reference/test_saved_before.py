"""Files saved before the modules were renamed still open, and say the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy

SAVED = Path(__file__).parent / "saved"
AT = [10.0, 50.0, 120.0]


@pytest.fixture(scope="module")
def says():
    return json.loads((SAVED / "says.json").read_text())


def test_curves_saved_before(says):
    curve = dy.load(SAVED / "curve.dyn")
    assert_allclose(curve.mean(AT), says["curve.mean"], rtol=1e-9)
    assert_allclose(curve.sd(AT), says["curve.sd"], rtol=1e-9)
    assert_allclose(curve.loo, says["curve.loo"], rtol=1e-9)


def test_fits_saved_before(says):
    fit = dy.load(SAVED / "fit.dyn")
    ability = fit.ability(AT)
    assert_allclose(np.asarray(ability["mean"]), says["fit.mean"], rtol=1e-9)
    assert_allclose(np.asarray(ability["sd"]), says["fit.sd"], rtol=1e-9)
    assert_allclose(np.asarray(fit.items["a"]), says["fit.a"], rtol=1e-12)
