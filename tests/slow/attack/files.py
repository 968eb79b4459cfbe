"""Saved files damaged at random, and crafted ones whose checksums are right.

Opened as they were, or refused; never a crash.

Crafted files go to a child process, since what they could do is end it.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

import dynaesti as dy
from slow.attack.inputs import base
from slow.attack.judging import WrongError
from support.oracles import in_pandas

BATCH = 40  # crafted files for one child


def damaged(rng, whole):
    """The bytes of a file with something wrong."""
    bad = bytearray(whole)
    way = rng.integers(5)
    if way == 0:
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
    elif way == 1:
        del bad[int(rng.integers(len(bad))) :]
    elif way == 2:
        a, b = np.sort(rng.integers(0, len(bad), 2))
        bad[a:b] = bytes(int(b - a))
    elif way == 3:
        a = int(rng.integers(len(bad)))
        bad[a:a] = rng.bytes(int(rng.integers(1, 50)))
    else:
        for _ in range(20):
            bad[rng.integers(len(bad))] = rng.integers(256)
    return bytes(bad)


def make_things(folder):
    """A fit, a curve and a run of shards to be damaged, and what they say."""
    table = base(2, 15, 5, 10)
    fit = dy.DynAEsti(standard_errors=False, bandwidth=20.0).fit(table)
    fit.save(folder / "fit.dyn")
    curve = dy.CurvFiFE().fit(np.arange(10.0), dy.Bernoulli([0, 1, 1, 0, 1, 1, 1, 0, 1, 1]))
    curve.save(folder / "curve.dyn")
    shards = dy.prepare(table, folder / "shards", shards=2)
    dy.DynAEsti(standard_errors=False, bandwidth=20.0).fit(shards, out=folder / "run")
    return table


def says(path):
    """Everything that a saved thing says, as one array."""
    thing = dy.load(path)
    if isinstance(thing, dy.Curve):
        return np.concatenate([thing.mean([1.0, 5.0]), thing.sd([1.0, 5.0]), [thing.log_evidence]])
    table = thing.ability([10.0, 50.0])
    return np.concatenate(
        [table["mean"], table["sd"], thing.items["a"], thing.items["b"], [thing.log_evidence]]
    )


def random_damage(rng, folder, names):
    """One file of several is damaged: the same answer or a word on it."""
    name, thing = names[rng.integers(len(names))]
    path = folder / name
    whole = path.read_bytes()
    right = says(folder / thing)
    content = damaged(rng, whole)

    def task():
        path.write_bytes(content)
        try:
            found = says(folder / thing)
        finally:
            path.write_bytes(whole)
        if found.shape != right.shape or not np.allclose(found, right, atol=1e-4):
            raise WrongError("another answer")

    return f"{name} damaged", task


# --- crafted
# --------------------------------------------------------------------------------------------------


def crafted(rng, source, target):
    """A saved file with one array or entry of its header changed, checksums right.

    Says what was changed.
    """
    with zipfile.ZipFile(source) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    names = [name for name in parts if name.endswith(".npy")]
    if rng.random() < 0.6:
        name = names[rng.integers(len(names))]
        array = np.load(io.BytesIO(parts[name]))
        changed, how = odd_array(rng, array)
        buffer = io.BytesIO()
        np.save(buffer, changed)
        parts[name] = buffer.getvalue()
        what = f"{name} {how}"
    else:
        header = json.loads(parts["header.json"])
        what = odd_header(rng, header)
        parts["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name, raw in parts.items():
            new.writestr(name, raw)
    return what


def odd_array(rng, array):
    out = array.copy()
    place = tuple(int(rng.integers(size)) for size in out.shape) if out.size else ()
    ways = ["shape", "empty", "kind", "turned"] + (["far", "negative", "value"] if out.size else [])
    way = ways[rng.integers(len(ways))]
    if way == "shape":
        return out.reshape(-1)[: max(out.size - 1, 0)], way
    if way == "empty":
        return out[:0], way
    if way == "kind":
        return out.astype([np.complex128, np.float32, np.int8, "U5"][rng.integers(4)]), way
    if way == "turned":
        return out[::-1].copy() if out.ndim else out, way
    if way == "far":
        out[place] = True if out.dtype.kind == "b" else 10**6
    elif way == "negative":
        out[place] = False if out.dtype.kind == "b" else -(10**6)
    elif out.dtype.kind == "f":
        out[place] = [np.nan, np.inf, -np.inf, 1e308][rng.integers(4)]
    return out, f"{way} at {place}"


def odd_header(rng, header):
    """Change one entry somewhere in a header."""
    node, path = header, []
    while isinstance(node, dict | list) and node:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = keys[rng.integers(len(keys))]
        path.append(key)
        if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.2:
            node[key] = [None, -1, 10**9, "x", [], {}, 1e308, True, "ftp://127.0.0.1:9/x", [[]]][
                rng.integers(10)
            ]
            break
        node = node[key]
    return f"header {path} := {node[path[-1]]!r}"


CHILD = """
import sys, warnings
sys.path[:0] = [{here!r}]
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
import dynaesti as dy
from pathlib import Path
from slow.attack.judging import HangError, in_time
from slow.attack.files import use
table = pd.read_parquet({table!r})
for name in sys.stdin.read().split():
    print("begin", name, flush=True)
    try:
        with in_time():
            use(name, table)
        print("end", name, "right", flush=True)
    except HangError:
        print("end", name, "hang", flush=True)
    except dy.DynaestiError:
        print("end", name, "clear", flush=True)
    except Exception as error:
        said = str(error)[:150].replace(chr(10), " ")
        print("end", name, "raw", type(error).__name__, said, flush=True)
"""


def use(name, table):
    """Do with a fit or a curve whatever can be done."""
    thing = dy.load(name)
    if isinstance(thing, dy.Curve):
        numbers = np.concatenate([thing.mean([1.0, 20.0]), thing.sd([1.0, 20.0]), thing.loo])
        thing.update([11.0], dy.Bernoulli([1])).mean([5.0])
        thing.audit(draws=300)
        return
    thing.summary()
    more = table.head(8).assign(date=table["date"].head(8) + 200)
    numbers = in_pandas(thing.ability([10.0, 300.0]))[["mean", "sd"]].to_numpy(float)
    columns = (
        thing.score(more, at=[10.0])["mean"],
        thing.update(more).ability([10.0])["mean"],
        thing.predict(more)["expected"],
    )
    for found in columns:
        numbers = np.concatenate([numbers.ravel(), found.to_numpy().astype(float)])
    numbers = np.concatenate(
        [
            numbers,
            thing.live(thing.ids[0])
            .add(250.0, thing.item_labels.tolist()[0], 1)
            .ability([10.0])["mean"],
        ]
    )
    if not np.isfinite(numbers).all():
        raise ValueError("numbers that are not finite came out")


def crafted_files(rng, folder, number, tally):
    """So many crafted files, used in child processes.

    A child that dies is a crash of the file it was at.
    """
    table = base(2, 15, 5, 10)
    table.to_parquet(folder / "table.parquet")
    made = {}
    for k in range(number):
        source = folder / ("fit.dyn" if rng.random() < 0.7 else "curve.dyn")
        target = folder / f"crafted{k}.dyn"
        made[str(target)] = f"{source.name}: {crafted(rng, source, target)}"
    todo = list(made)
    code = CHILD.format(here=str(Path(__file__).parents[2]), table=str(folder / "table.parquet"))
    while todo:
        some, todo = todo[:BATCH], todo[BATCH:]
        run = subprocess.run(
            [sys.executable, "-c", code], input=" ".join(some), capture_output=True, text=True
        )
        ended = {}
        for line in run.stdout.splitlines():
            words = line.split(maxsplit=3)
            if words[0] == "end":
                ended[words[1]] = words[2:]
        begun = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("begin")]
        for name, (outcome, *rest) in ended.items():
            tally.note(outcome, f"{made[name]} {' '.join(rest)}")
        if run.returncode:
            fallen = next((name for name in begun if name not in ended), None)
            tally.note("crash", f"{made.get(fallen)} (exit {run.returncode}) {run.stderr[-200:]}")
            todo = [name for name in some if name not in ended and name != fallen] + todo
    for name in made:
        Path(name).unlink()


def read(folder):
    """The answers that a run in a folder holds, and its abilities."""
    fit = dy.load(folder)
    rows = fit.shards.rows if isinstance(fit, dy.ShardedFit) else len(fit.responses)
    table = in_pandas(fit.ability([10.0, 90.0])).astype({"id": str}).sort_values(["id", "time"])
    return rows, table["mean"].to_numpy(float)
