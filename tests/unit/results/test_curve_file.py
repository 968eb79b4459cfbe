"""Curves saved and loaded; files that are no curves."""

import contextlib
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.inference.solvers import basis

T = np.array([-0.1, 0.2, 0.55, 1.0, 1.3])


@pytest.mark.parametrize(
    "make",
    [
        lambda t, n: dy.Bernoulli(n.integers(0, 2, t.size)),
        lambda t, n: dy.Binomial(n.integers(0, 5, t.size), 5),
        lambda t, n: dy.Poisson(n.poisson(30, t.size), 2.0),
        lambda t, n: dy.NegativeBinomial(n.poisson(30, t.size), 3.0),
        lambda t, n: dy.Gaussian(n.normal(size=t.size), 0.3),
        lambda t, n: dy.StudentT(n.normal(size=t.size), 0.3),
        lambda t, n: dy.Ordinal(n.integers(0, 3, t.size), [-1, 1]),
        lambda t, n: dy.ItemResponses(n.integers(0, 3, t.size), "GRM", a=1.2, b=[-1, 1]),
        lambda t, n: dy.Table(
            np.linspace(-3, 3, 50),
            -0.5 * (np.linspace(-3, 3, 50) - n.normal(size=(t.size, 1))) ** 2,
        ),
        lambda t, n: [lambda y, k=k: -np.abs(y - k) for k in n.normal(size=t.size)],
        lambda t, n: [
            dy.Gaussian(n.normal(size=4), 0.3),
            dy.Ordinal(n.integers(0, 3, t.size - 4), [-1, 1]),
        ],
    ],
)
def test_saved_curves_come_back(make, tmp_path):
    t = np.linspace(0, 5, 12)
    curve = dy.CurvFiFE().fit(t, make(t, np.random.default_rng(0)))
    again = dy.load(curve.save(tmp_path / "curve.dyn"))
    at = np.linspace(-1, 7, 9)
    assert_allclose(
        again.quantile(at, [0.1, 0.5, 0.9]), curve.quantile(at, [0.1, 0.5, 0.9]), rtol=1e-12
    )
    assert again.log_evidence == curve.log_evidence
    assert_allclose(
        again.loo,
        curve.loo,
        atol=2e-3 if callable(getattr(curve.observations.emissions, "_call", None)) else 1e-9,
    )
    more = (
        dy.Gaussian([0.5], 1.0)
        if curve.link.name == "identity"
        else (dy.Poisson([30]) if curve.link.name == "log" else dy.Bernoulli([1]))
    )
    assert_allclose(
        again.update([6.0], more).mean(at), curve.update([6.0], more).mean(at), rtol=1e-3
    )


def test_functions_too_sharp_for_the_file_are_told(tmp_path):
    sharp = [
        lambda y, k=k: -0.5 * ((y - k) / 1e-3) ** 2 - np.abs(y - k) / 1e-3 for k in (0.1, 0.2, 0.3)
    ]
    curve = dy.CurvFiFE(bandwidth=1.0).fit([0.0, 1.0, 2.0], sharp)
    with pytest.warns(dy.DynaestiWarning, match="3 of 3 emission functions are sharper"):
        path = curve.save(tmp_path / "sharp.dyn")
    assert_allclose(dy.load(path).mean(T), curve.mean(T), rtol=1e-12)


def test_functions_of_the_user_are_asked_for_again(tmp_path):
    from scipy.special import ndtr, ndtri

    t = np.arange(6.0)
    odd = dy.CurvFiFE(link=(ndtr, ndtri), mean=lambda t: 0.1 * t).fit(
        t, dy.Bernoulli([0, 0, 1, 0, 1, 1])
    )
    path = odd.save(tmp_path / "odd.dyn")
    with pytest.raises(dy.InputError, match="pass it again"):
        dy.load(path, link=(ndtr, ndtri))
    with pytest.raises(dy.InputError, match="pass them again"):
        dy.load(path, mean=lambda t: 0.1 * t)
    again = dy.load(path, link=(ndtr, ndtri), mean=lambda t: 0.1 * t)
    assert_allclose(again.mean(t), odd.mean(t), rtol=1e-12)


def test_bad_files_are_refused_in_words(curve, tmp_path):
    path = curve.save(tmp_path / "c.dyn")
    whole = path.read_bytes()
    cases = {
        "truncated": whole[: len(whole) // 2],
        "empty": b"",
        "foreign": b"PK\x03\x04nonsense",
        "text": b"hello",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dy.StorageError, match="damaged"):
            dy.load(tmp_path / name)
    with pytest.raises(dy.StorageError, match="no such file"):
        dy.load(tmp_path / "missing.dyn")
    from dynaesti.core import archive as storage

    storage.save_archive(tmp_path / "part.dyn", "curve", {"priors": []}, {})
    with pytest.raises(dy.StorageError, match="missing or malformed"):
        dy.load(tmp_path / "part.dyn")
    import zipfile

    with zipfile.ZipFile(tmp_path / "hostile.dyn", "w") as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 1, "kind": "curve"}')
        with archive.open("offsets.npy", "w") as entry:
            np.lib.format.write_array(entry, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(dy.StorageError, match="damaged"):
        dy.load(tmp_path / "hostile.dyn")
    with zipfile.ZipFile(tmp_path / "newer.dyn", "w") as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 99, "kind": "curve"}')
    with pytest.raises(dy.StorageError, match="newer dynaesti"):
        dy.load(tmp_path / "newer.dyn")
    rng = np.random.default_rng(0)
    for _ in range(150):  # one flipped byte: opened as it was, or refused in words
        spoiled = bytearray(whole)
        spoiled[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        (tmp_path / "spoiled.dyn").write_bytes(bytes(spoiled))
        with contextlib.suppress(dy.StorageError):
            dy.load(tmp_path / "spoiled.dyn")
    with pytest.raises(dy.StorageError, match="a folder"):
        dy.load(tmp_path)
    with pytest.raises(dy.StorageError, match="could not be written"):
        curve.save(tmp_path / "no" / "such" / "folder.dyn")


@pytest.mark.parametrize("older", [False, True])
def test_features_of_another_processor_say_the_same(older, tmp_path, monkeypatch):
    """Eigenvectors are known up to their signs, which differ between processors."""
    t = np.linspace(0, 5, 25)
    rng = np.random.default_rng(3)
    curve = dy.CurvFiFE(kernel=dy.RBF()).fit(t, dy.Bernoulli(rng.integers(0, 2, t.size)))
    assert any(c is not None and c.skewness is not None for c in curve.components)
    path = curve.save(tmp_path / "curve.dyn")
    if older:  # files that hold the correction itself
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name.replace("skewness", "widening"), content)
    points = basis._rbf_points

    def turned(length):
        z, whiten = points(length)
        return z, whiten * np.where(np.arange(whiten.shape[1]) % 3, 1.0, -1.0)

    monkeypatch.setattr(basis, "_cached_points", turned)
    monkeypatch.setattr(basis, "_rbf_points", turned)
    again = dy.load(path)
    at = np.linspace(-1, 7, 9)
    assert_allclose(
        again.quantile(at, [0.1, 0.5, 0.9]), curve.quantile(at, [0.1, 0.5, 0.9]), rtol=1e-8
    )
