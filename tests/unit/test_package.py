"""The package as a newcomer meets it: light import, public names that exist."""

import subprocess
import sys

import pytest

import dynaesti as dy


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_is_light():
    assert (
        run(
            "import sys, dynaesti; print([m for m in ('numpy', 'numba', 'scipy', 'pandas', "
            "'matplotlib', 'narwhals') if m in sys.modules])"
        )
        == "[]"
    )
    loaded = run(
        "import sys, dynaesti as dy; dy.CurvFiFE; print([m for m in ('pandas', 'polars', "
        "'matplotlib', 'scipy.stats') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_public_names_exist():
    for name in dy.__all__:
        assert getattr(dy, name) is not None
    assert set(dy.__all__) == set(dir(dy))
    with pytest.raises(AttributeError):
        _ = dy.nonsense
