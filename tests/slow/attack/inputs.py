"""Bad and odd input of the Python interface and the command line, drawn at random, each with a
judge that knows what is right.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.model.simulate import responses
from slow.attack.judging import WrongError
from support.oracles import in_pandas

ODD = [
    None,
    "",
    " ",
    "abc",
    "1.0",
    "1,5",
    "1.000",
    "NaN",
    "inf",
    -1,
    0,
    2,
    0.5,
    1e308,
    -1e308,
    2**53 + 1,
    2**63,
    2**70,
    np.nan,
    np.inf,
    True,
    b"x",
    "9999-12-31",
    "0001-01-01",
    "2024-02-30",
    "=1+1",
    "\x1b[31m",
    "\u0000",
    "\udc80",
    "José",
    "Jose\u0301",
    "a" * 5000,
    [1],
    {"a": 1},
    date(2024, 1, 1),
    datetime(9999, 12, 31, tzinfo=UTC),
    Decimal("1.5"),
    np.float32(0.3),
    np.datetime64("NaT"),
    1 + 2j,
    object(),
]
OPTIONS = {
    "iterations": [0, -1, 1.5, "x", None, True, 1, 3],
    "tolerance": [0, -1, "x", None, np.inf, 1e-3],
    "rare": [0, 1.5, "x", 5, 10**9],
    "threads": [0, -1, 1.5, 1, 64],
    "clock": ["x", "person", None, 3],
    "scale": ["x", "items", None],
    "direction": ["x", "free", None],
    "priors": ["x", None, "hierarchical", 3],
    "kernel": ["x", "rbf", 3, dy.Level(), dy.Periodic(10.0)],
    "orient": [{}, {"item": "zz"}, 3],
    "bandwidth": [0, -1, "x", np.inf, np.nan, 1e-300, 1e300, 5.0, "cv"],
    "model": ["x", "2PL", "3PL", "GRM", "poisson", "beta", "gaussian", 3, None],
    "fixed": [
        {"zz": {"a": 1}},
        {"i0": {"q": 1}},
        {"i0": {"a": -1}},
        {"i0": {"a": 1.0, "b": 500.0}},
        {"i0": 3},
        5,
        {"i0": {"a": 1e300}},
    ],
    "population": [(0, 1), (0, 0), (0, -1), "x", (1,), (np.nan, 1)],
    "unit": ["days", 3, "unix", "unix-ns"],
    "progress": [3, "x"],
    "checkpoint": [5, ""],
    "every": ["x", -1],
    "standard_errors": [False, 3],
    "executor": [3, "x"],
}
NAMES = ("id", "item", "resp", "date")


def base(seed=1, people=12, items=5, each=10):
    return pd.DataFrame(responses(people=people, items=items, per_person=each, seed=seed).table)


def check_fit(fit, least=0, known=()):
    """What holds of every fit of answers with categories.

    Finite numbers, a probability below 1, nobody lost.
    """
    table = in_pandas(fit.ability())
    if (
        not np.isfinite(table[["mean", "sd", "lower", "upper"]].to_numpy(float)).all()
        or (table["sd"] <= 0).any()
    ):
        raise WrongError("abilities are not finite")
    discrete = all(block.model.categorical for block in fit.bank.blocks)
    if not np.isfinite(fit.log_evidence) or (discrete and fit.log_evidence > 0.5):
        raise WrongError(f"log evidence {fit.log_evidence}")
    if len(fit.responses) < least:
        raise WrongError(f"{len(fit.responses)} answers are left of at least {least}")
    lost = set(map(str, known)) - {str(label) for label in fit.ids}
    if lost:
        raise WrongError(f"people are lost: {sorted(lost)[:3]}")


# --- tables
# --------------------------------------------------------------------------------------------------


def framed(table, rng):
    """The table as some kind of frame or columns."""
    kinds = [
        lambda t: t,
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda t: {name: t[name].tolist() for name in t},
        lambda t: t.to_dict("records"),
        lambda t: t.astype(object),
    ]
    return kinds[rng.integers(len(kinds))](table)


def mutated(rng):
    """Some cells are odd: refused in words, or left out and all other rows kept."""
    table = base(int(rng.integers(5))).astype(object)
    column = NAMES[rng.integers(4)]
    rows = rng.choice(len(table), int(rng.integers(1, 4)), replace=False)
    cells = table[column].tolist()
    for row in rows:
        cells[row] = ODD[rng.integers(len(ODD))]
    table[column] = pd.Series(cells, dtype=object)
    drop = "drop" if rng.random() < 0.5 else "refuse"
    kind = int(rng.integers(3))

    def task():
        data = [table, table.to_dict("records"), {name: table[name].tolist() for name in table}][
            kind
        ]
        found = dy.Responses.read(data, unreadable=drop)
        innocent = set(table.drop(index=rows)["id"].astype(str))
        if len(found) < len(table) - rows.size or len(found) > len(table):
            raise WrongError(f"{len(found)} of {len(table)} rows are left, {rows.size} were odd")
        people = {str(label) for label in found.people.tolist()}
        if not innocent <= people or len(people) > len(innocent) + rows.size:
            raise WrongError(f"{len(people)} people of {len(innocent)}")
        check_fit(
            dy.DynAEsti(standard_errors=False, iterations=3).fit(found), len(table) - rows.size
        )

    return (
        f"cells of {column} are "
        f"{[cells[r] if len(repr(cells[r])) < 40 else '…' for r in rows]!r}, {drop}, kind {kind}",
        task,
    )


def same_answer(rng):
    """Changes that must not change anything: kinds of frames, orders, ids, dates."""
    table = base(int(rng.integers(3)))
    right = fitted(table).groupby("id")["mean"].mean()
    number = {label: k for k, label in enumerate(sorted(table["id"].unique()))}
    ways = {
        "rows shuffled": lambda t: t.sample(frac=1, random_state=3),
        "columns turned round": lambda t: t[list(reversed(t.columns))],
        "long ids and a blank row": lambda t: with_blank(
            t.assign(id=[10**18 + number[i] for i in t["id"]])
        ),
        "unsigned ids": lambda t: t.assign(
            id=np.array([2**63 + number[i] for i in t["id"]], dtype=np.uint64)
        ),
        "ids as floats": lambda t: t.assign(id=[float(number[i]) for i in t["id"]]),
        "categories": lambda t: t.astype({"id": "category", "item": "category"}),
        "text": lambda t: t.astype(str),
        "a row without a response": lambda t: pd.concat([t, t.head(1).assign(resp=np.nan)]),
        "dates": lambda t: t.assign(
            date=pd.Timestamp("2024-01-01") + pd.to_timedelta(t["date"], unit="D")
        ),
        "dates as text": lambda t: t.assign(
            date=(pd.Timestamp("2024-01-01") + pd.to_timedelta(t["date"], unit="D")).astype(str)
        ),
        "unix milliseconds": lambda t: t.assign(date=1.7e12 + t["date"] * 86_400_000),
        "booleans": lambda t: t.assign(resp=t["resp"] > 0),
        "words": lambda t: t.assign(resp=np.where(t["resp"] > 0, "yes", "no")),
    }
    name = list(ways)[rng.integers(len(ways))]

    def task():
        found = in_pandas(fitted(framed(ways[name](table), rng))).groupby("id")["mean"].mean()
        if (
            found.size != right.size
            or np.abs(np.sort(found.to_numpy()) - np.sort(right.to_numpy())).max() > 1e-4
        ):
            raise WrongError("another answer")

    return name, task


def with_blank(table):
    out = table.astype(object)
    out.loc[len(out) + 1] = [None] * out.shape[1]
    return out.astype({"id": "Int64"})


def fitted(data):
    fit = dy.DynAEsti(standard_errors=False, bandwidth=20.0).fit(
        dy.Responses.read(data, unreadable="drop")
    )
    return pd.DataFrame(
        {
            "id": [str(label) for label in fit.ids for _ in range(3)],
            "mean": fit.marginals(
                np.repeat(np.arange(len(fit.ids)), 3), np.tile([10.0, 50.0, 90.0], len(fit.ids))
            ).means[0],
        }
    )


# --- options and questions
# --------------------------------------------------------------------------------------


def options(rng):
    """Odd options: refused in words, or a fit that holds."""
    table = base(int(rng.integers(3)))
    names = rng.choice(list(OPTIONS), int(rng.integers(1, 3)), replace=False)
    chosen = {str(name): OPTIONS[name][rng.integers(len(OPTIONS[name]))] for name in names}
    model = chosen.get("model", "2PL")
    if model in ("gaussian", "beta", "poisson"):
        table = table.assign(
            resp=np.random.default_rng(0).uniform(0.1, 0.9, len(table))
            if model != "poisson"
            else table["resp"]
        )

    def task():
        check_fit(dy.DynAEsti(**{"iterations": 5, **chosen}).fit(table))

    return f"options {chosen!r}", task


@cache
def asked_fit():
    return dy.DynAEsti(standard_errors=False, bandwidth=20.0).fit(base())


def questions(rng):
    """Odd questions to a fit."""
    fit = asked_fit()
    odd = ODD[rng.integers(len(ODD))]
    cell = pd.Series([odd], dtype=object)
    asked = {
        "ability at": lambda: fit.ability(odd),
        "ability ids": lambda: fit.ability([5.0], ids=odd),
        "level": lambda: fit.ability([5.0], level=odd),
        "quantiles": lambda: fit.ability([5.0], quantiles=odd),
        "above": lambda: fit.probability_above(odd, [5.0]),
        "curve": lambda: fit.curve(odd),
        "change": lambda: fit.change(fit.ids[0], odd, 5.0),
        "plausible": lambda: fit.plausible(fit.ids[0], [5.0], odd),
        "seed": lambda: fit.plausible(fit.ids[0], [5.0], 3, odd),
        "next": lambda: fit.next_item(fit.ids[0], odd),
        "predict": lambda: fit.predict(odd),
        "update": lambda: fit.update(odd),
        "score": lambda: fit.score(odd),
        "load": lambda: dy.load(odd),
        "save": lambda: fit.save(odd) if not isinstance(odd, str) else None,
        "live": lambda: fit.live(fit.ids[0]).add(120.0, "i0", odd),
        "live time": lambda: fit.live(fit.ids[0]).add(odd, "i0", 1),
        "information": lambda: fit.information_at(odd),
        "predict one": lambda: fit.predict(
            pd.DataFrame({"id": cell, "item": ["i0"], "date": [5.0]})
        ),
        "update one": lambda: fit.update(
            pd.DataFrame({"id": ["new"], "item": ["i0"], "resp": cell, "date": [5.0]})
        ),
    }
    name = list(asked)[rng.integers(len(asked))]

    def task():
        found = asked[name]()
        if isinstance(found, pd.DataFrame | dy.Frame):
            found = in_pandas(found)
            numbers = found.select_dtypes("number").to_numpy(float)
            if name not in ("predict", "predict one") and np.isnan(numbers).any():
                raise WrongError("NaN in the answer")

    return f"{name} {str(odd)[:40]!r}", task


# --- curves
# --------------------------------------------------------------------------------------------------


def curves(rng):
    """Odd observations and priors of single curves.

    Constants are held against exact integration.
    """
    n = int(rng.integers(1, 15))
    times = np.sort(rng.uniform(0, 10.0 ** rng.integers(-3, 4), n))
    scale = 10.0 ** rng.integers(-6, 7)
    families = {
        "bernoulli": lambda: dy.Bernoulli(rng.integers(0, 2, n)),
        "binomial": lambda: dy.Binomial(rng.integers(0, 5, n), 10 ** int(rng.integers(1, 7))),
        "poisson": lambda: dy.Poisson(
            rng.poisson(3, n) * int(rng.choice([0, 1, 1000])), exposure=scale
        ),
        "negative binomial": lambda: dy.NegativeBinomial(rng.poisson(3, n), scale**3),
        "gaussian": lambda: dy.Gaussian(rng.normal(size=n) * scale, scale * 0.1),
        "student": lambda: dy.StudentT(rng.normal(size=n) * scale, scale),
        "odd": lambda: dy.Bernoulli([ODD[rng.integers(len(ODD))]] * n),
        "far": lambda: [lambda y, c=float(scale): -0.5 * (y - c) ** 2] * n,
        "items": lambda: dy.ItemResponses(rng.integers(0, 2, n), "2PL", a=1.0, b=scale),
    }
    name = list(families)[rng.integers(len(families))]
    made = {"mean": float(rng.choice([0, 10, -30]))} if rng.random() < 0.3 else {}
    made |= {"bandwidth": [np.inf, 1.0, 1e-3, 1e6][rng.integers(4)]} if rng.random() < 0.5 else {}

    def task():
        emissions = families[name]()
        curve = dy.CurvFiFE(**made).fit(times, emissions)
        values = [curve.median(times), *curve.interval(times), [curve.log_evidence]]
        if not all(np.isfinite(value).all() for value in values):
            raise WrongError("not finite")
        discrete = name not in ("gaussian", "student", "far")
        if discrete and curve.log_evidence > 0.1:
            raise WrongError(f"log evidence {curve.log_evidence}")
        if name == "far" and made.get("bandwidth") == np.inf:
            exact = (made.get("mean", 0.0) + n * scale) / (n + 1)
            if abs(curve.mean(times[:1])[0] - exact) > 1e-4 * max(1.0, abs(exact)):
                raise WrongError(f"{curve.mean(times[:1])[0]} for {exact}")

    return f"curve of {n} {name}, scale {scale:g}, {made}", task


# --- the command line
# -----------------------------------------------------------------------------------------------


def text_damage(rng, rows):
    """Lines of a CSV file, some damaged: (bytes, how many lines at the most)."""
    lines = list(rows)
    hit = rng.choice(len(lines), int(rng.integers(1, 4)), replace=False)
    kind = rng.choice(
        [
            "quote",
            "short",
            "long",
            "bytes",
            "empty",
            "null",
            "words",
            "date",
            "quotes within",
            "carriage",
        ]
    )
    for k in hit:
        cells = lines[k].split(b",")
        lines[k] = {
            "quote": b'"' + lines[k],
            "short": b",".join(cells[:2]),
            "long": lines[k] + b",1,2,3",
            "bytes": b"\xff\xfe" + lines[k],
            "empty": b",,,",
            "null": lines[k].replace(b"p", b"\x00p"),
            "words": b",".join([*cells[:2], b"maybe", cells[3]]),
            "date": b",".join([*cells[:3], b"9999-99-99"]),
            "quotes within": lines[k].replace(b"p", b'p"', 1),
            "carriage": lines[k] + b"\r",
        }[kind]
    ends = rng.choice([b"\n", b"\r\n"])
    mark = rng.choice([b"", b"\xef\xbb\xbf"])
    return mark + b"id,item,resp,date" + ends + ends.join(lines) + ends, hit.size, str(kind)


def command(rng, folder):
    """A command over a damaged file: never a fault, and no innocent row lost."""
    rows = [f"p{k % 9},i{k % 4},{(k * 7919 >> 3) % 2},{k}".encode() for k in range(400)]
    content, hit, kind = text_damage(rng, rows)
    file = folder / f"d{rng.integers(1 << 40)}.csv"
    drop = rng.random() < 0.6

    def task():
        file.write_bytes(content)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["validate", str(file), "--json", *(["--drop-unreadable"] if drop else [])])
        file.unlink()
        if code not in (0, 1, 3):
            raise RuntimeError(f"exit code {code}: {err.getvalue()[-200:]}")
        if code in (0, 1):
            told = json.loads(out.getvalue())
            if told["rows"] < 400 - hit or told["people"] > 9 + hit:
                raise WrongError(
                    f"{told['rows']} rows of {told['people']} people are left of 400 of 9, {hit} "
                    f"were damaged"
                )
        elif drop and kind not in ("bytes",):
            raise WrongError(f"refused with --drop-unreadable: {err.getvalue()[:200]}")

    return f"validate with {hit} lines damaged by {kind}, drop {drop}", task


def verbs(rng, folder):
    """Verbs with odd words."""
    run, data = folder / "run", folder / "a.csv"
    words = {
        "ability": ["--at", "x"],
        "items": ["--sort", "zz"],
        "predict": [str(folder / "none.csv")],
        "score": [str(data), "--at", "9999-12-31"],
        "report": ["--out", str(folder / "x.pdf")],
    }
    odd = ["", "-1", "x" * 300, "\udcff", "0", "1e400", "nan", "--", "é", "1" * 50]
    verb = list(words)[rng.integers(len(words))]
    word = odd[rng.integers(len(odd))]
    more = [words[verb], ["--level", word], ["--grid", word], ["--out", word], [word]][
        rng.integers(5)
    ]

    def task():
        out, err = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = main([verb, str(run), *more])
        except SystemExit as stop:
            code = int(stop.code or 0)
        if code not in (0, 1, 2, 3, 4):
            raise RuntimeError(f"exit code {code}: {err.getvalue()[-300:]}")

    return f"{verb} {[word[:20] for word in more]}", task


PYTHON = (mutated, mutated, same_answer, options, options, questions, questions, curves)
COMMANDS = (command, command, command, verbs)


def draw(rng, number, folder=None):
    """So many trials: (name, task).

    Of the command line where there is a folder with a run and data.
    """
    makers = PYTHON if folder is None else COMMANDS
    for k in range(number):
        maker = makers[k % len(makers)]
        yield maker(rng) if folder is None else maker(rng, folder)
