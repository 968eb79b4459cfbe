"""Saved files from elsewhere: checked in full before anything computes with them."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy


@pytest.fixture(scope="module")
def saved(small, tmp_path_factory):
    """A saved fit."""
    path = tmp_path_factory.mktemp("saved") / "fit.dyn"
    return dy.DynAEsti(standard_errors=False).fit(small).save(path)


def rewritten(path, out, arrays=None, header=None):
    """A saved file with some arrays or header entries replaced, its checksums right."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "header.json" and header is not None:
                told = json.loads(raw)
                header(told)
                raw = json.dumps(told).encode()
            if arrays and name[:-4] in arrays:
                buffer = io.BytesIO()
                np.save(buffer, arrays[name[:-4]](np.load(io.BytesIO(raw))))
                raw = buffer.getvalue()
            new.writestr(name, raw)
    return out


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(
    ("arrays", "header"),
    [
        ({"coding.table": lambda a: changed(a, (0, 1), 10**6)}, None),
        ({"coding.table": lambda a: changed(a, (0, 1), -5)}, None),
        (None, lambda h: h["blocks"][0].update(first_row=10**9)),
        (None, lambda h: h["blocks"][0].update(size=10**6)),
        ({"responses.item": lambda a: changed(a, 0, 10**6)}, None),
        ({"responses.person": lambda a: changed(a, -1, 10**6)}, None),
        ({"responses.person": lambda a: a[::-1].copy()}, None),
        ({"responses.offsets": lambda a: changed(a, 3, np.nan)}, None),
        ({"responses.offsets": lambda a: a[::-1].copy()}, None),
        ({"block0.u": lambda a: a.astype(complex)}, None),
        ({"block0.u": lambda a: changed(a, (0, 0), np.nan)}, None),
        ({"block0.items": lambda a: a[::-1] * 0}, None),
        ({"weights": lambda a: a[:, :-1]}, None),
        ({"prior0.precision": lambda a: a[:-1]}, None),
        ({"prior0.cav_var": lambda a: -a}, None),
        (None, lambda h: h.update(people=h["people"][:-1])),
        (None, lambda h: h.update(people=[{}] * len(h["people"]))),
        (None, lambda h: h["options"].update(farthest=1e9)),
        (None, lambda h: h["kernels"][0][0].update(weight=-1.0)),
        (None, lambda h: h["metric"].update(location="far")),
        (None, lambda h: h.pop("trace")),
    ],
)
def test_crafted_fits_are_refused_before_anything_computes_with_them(
    saved, small, tmp_path, arrays, header
):
    assert len(dy.load(rewritten(saved, tmp_path / "same.dyn")).responses) == len(small)
    with pytest.raises(dy.StorageError):
        dy.load(rewritten(saved, tmp_path / "crafted.dyn", arrays, header))


def test_bombs_are_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "header.dyn", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "header.json",
            '{"format": "dynaesti", "version": 1, "kind": "fit", "x": ['
            + "[]," * 20_000_000
            + "[]]}",
        )
    with zipfile.ZipFile(tmp_path / "arrays.dyn", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 1, "kind": "fit"}')
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(20_000_000))
        archive.writestr("a.npy", buffer.getvalue())
    for name in ("header.dyn", "arrays.dyn"):
        with pytest.raises(dy.StorageError, match="unpack"):
            dy.load(tmp_path / name)


def test_a_turned_bit_in_a_shard_is_seen(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(
        dy.prepare(small, tmp_path / "shards", shards=1), out=tmp_path / "run"
    )
    file = tmp_path / "shards" / "shard-00000.parquet"
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        bad = bytearray(whole)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        file.write_bytes(bytes(bad))
        with pytest.raises(dy.StorageError, match="damaged"):
            dy.load(tmp_path / "run").ability([5.0])
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(dy.StorageError, match="damaged"):
        dy.load(tmp_path / "run").ability([5.0])
    file.write_bytes(whole)
    assert len(dy.load(tmp_path / "run").ability([5.0])) == 20
    assert len(fit.ability([5.0])) == 20


def test_damaged_sites_are_left_out(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(
        dy.prepare(small, tmp_path / "shards", shards=1), out=tmp_path / "run"
    )
    right = fit.ability([5.0])["mean"].to_numpy()
    site = next((tmp_path / "run" / "sites").iterdir())
    for content in (b"", b"PK nonsense", site.read_bytes()[:100]):
        site.write_bytes(content)
        np.testing.assert_allclose(
            dy.load(tmp_path / "run").ability([5.0])["mean"], right, atol=1e-5
        )


def test_a_run_from_elsewhere_calls_nobody(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(
        dy.prepare(small, tmp_path / "shards", shards=2), out=tmp_path / "run"
    )
    path = Path(fit.run.path("fit.dyn"))
    whole = path.read_bytes()
    for change in (
        lambda h: h.update(folder="ftp://127.0.0.1:9/shards"),
        lambda h: h["shards"]["parts"][0].update(file="reference::file:///x"),
        lambda h: h["shards"]["parts"][0].update(file="memory://elsewhere/x"),
    ):
        (tmp_path / "old.dyn").write_bytes(whole)
        rewritten(tmp_path / "old.dyn", path, header=change)
        with pytest.raises(dy.StorageError, match="connect=True"):
            dy.load(tmp_path / "run")
    manifest = tmp_path / "shards" / "shards.json"
    manifest.write_text(
        manifest.read_text().replace("shard-00000", "http://127.0.0.1:9/shard-00000")
    )
    with pytest.raises(dy.StorageError, match="elsewhere"):
        dy.Shards.open(str(tmp_path / "shards"))


def test_empty_shards_answer(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(
        dy.prepare(small, tmp_path / "shards", shards=60), out=tmp_path / "run"
    )
    assert (
        len(
            fit.predict(
                pd.DataFrame({"id": ["yy", "zz"], "item": ["i0", "i1"], "date": [1.0, 2.0]})
            )
        )
        == 2
    )
    empty = next(k for k, part in enumerate(fit.shards.parts) if not part.people)
    with pytest.raises(dy.InputError, match="nobody"):
        fit.shard(empty)


@pytest.mark.slow
def test_checkpoints_know_anchors_and_functions(small, tmp_path):
    from dynaesti.estimation.checkpoint import in_full

    one = pd.DataFrame({"item": [f"i{k}" for k in range(100)], "a": 1.0, "b": np.arange(100.0)})
    other = one.assign(b=np.where(np.arange(100) == 50, 0.1, one["b"]))
    prints = [
        dy.DynAEsti(fixed=table)._fingerprint_options()["fixed"]
        for table in (one, one.copy(), other)
    ]
    assert prints[0] == prints[1] != prints[2]

    def model(shift):
        return dy.CustomItemModel(
            lambda th, r, p: -np.logaddexp(0, -(th - p[0] - shift) * (1 if r else -1)),
            {"b": (0.0, -5.0, 5.0)},
        )

    assert in_full(model(0.0)) == in_full(model(0.0)) != in_full(model(1.0))
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]]; import dynaesti as dy, numpy as np; from "
        "dynaesti.estimation.checkpoint import in_full\n"
        "print(in_full(dy.CustomItemModel(lambda th, r, p: -np.logaddexp(0, -(th - p[0])), {'b': "
        "(0.0, -5.0, 5.0)})))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code, "."], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(runs) == 1
