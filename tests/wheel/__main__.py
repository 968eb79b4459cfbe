"""`make wheel`: the wheel in clean environments, bare and with each extra alone.

In each the README's example in Python and the first commands run; an extra does what it promises,
and what is not installed is named. Arguments are extras ("bare" is none); without any, all of them.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import duckdb
import pandas as pd
import pyreadstat

ROOT = Path(__file__).parents[2]
README = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
assert README is not None
BARE_NAME = "bare"
SMALL = (
    "import dynaesti as dy; "
    "table = dy.simulate.responses(people=20, items=12, per_person=12, seed=1).table; "
    "fit = dy.DynAEsti('1PL', bandwidth=float('inf'), standard_errors=False).fit(table); "
)
BARE = f"""{README[1]}
print(fit.items)
assert type(fit.items) is dy.Frame
dy.write_frame(dy.Frame(table), "answers.csv")
assert len(dy.Responses.read("answers.csv")) == len(table["id"])
for name, extra in (("a.parquet", "files"), ("a.xlsx", "excel")):
    try:
        dy.write_frame(fit.items, name)
    except dy.MissingExtraError as error:
        assert f"dynaesti[{{extra}}]" in str(error)
"""
SERVICE = SMALL + (
    "import os; os.mkdir('run'); fit.save('run/fit.dyn'); "
    "from dynaesti.serve import create_app; create_app('run')"
)
FIT = "fit answers.csv --unit days --out run --quiet --no-static"
SHARDS = ["prepare answers.csv --unit days --out shards", "fit shards --out r --quiet"]
CLASS = "validate class.{}"  # usable, but without times
# what each extra promises: code, and command lines; the files of `write_files` are there
PROMISES: dict[str, tuple[str, list[str]]] = {
    BARE_NAME: (
        BARE,
        [
            *(FIT, "items run", "validate answers.csv", "ability run --now", "cohort run"),
            *("report run", CLASS.format("db"), CLASS.format("json"), CLASS.format("csv")),
        ],
    ),
    "plot": (SMALL + "fit.plot.wright().figure.savefig('wright.png')", []),
    "files": (
        SMALL + "dy.write_frame(dy.Frame(table), 'a.parquet'); dy.Responses.read('a.parquet')",
        [FIT, "items run --out items.parquet"],
    ),
    "excel": (
        SMALL + "dy.write_frame(fit.items, 'items.xlsx')",
        [f"{FIT} --excel", CLASS.format("xlsx")],
    ),
    "spss": ("", [CLASS.format("sav"), CLASS.format("dta")]),
    "databases": (
        "import psycopg, sqlalchemy",
        [CLASS.format("duckdb"), "validate sqlite:///class.db?table=answers"],
    ),
    "scale": ("", SHARDS),
    "dask": ("import dynaesti as dy; from distributed import Client; dy.DaskExecutor", []),
    "xarray": (SMALL + "assert 'posterior' in fit.to_datatree().children", []),
    "serve": (SERVICE, ["keys run --make teacher --role read"]),
    "cli": (
        "",
        [
            *(f"{FIT} --excel", "report run", CLASS.format("xlsx"), *SHARDS),
            "curve answers.csv --votes resp --figure c.png",
        ],
    ),
    "all": ("", [*SHARDS, CLASS.format("sav"), CLASS.format("duckdb")]),
}
# what a bare installation refuses, and the extra that it names
NAMED = {
    "validate class.xlsx": "excel",
    "validate class.sav": "spss",
    "validate class.duckdb": "databases",
    "validate class.parquet": "files",
    "validate postgresql://nobody@127.0.0.1/x?table=y": "databases",
    "fit answers.csv --unit days --out other --excel": "excel",
    "items run --out items.parquet": "files",
    "curve answers.csv --votes resp --figure c.png": "plot",
    "prepare answers.csv --unit days --out shards": "scale",
    "serve run": "serve",
    "reproduce polling": "cli",
}
NO_PACKAGE = 4  # exit code of a command that lacks one
ATTENTION = 1  # of `validate`, for what is usable


def write_files(place: Path) -> None:
    """One class, without times, in every format."""
    answers = pd.DataFrame({"name": ["ada", "ben", "cyd"], "Q1": [1, 0, 1], "Q2": [0, 1, 1]})
    answers.to_csv(place / "class.csv", index=False)
    answers.to_json(place / "class.json", orient="records")
    answers.to_parquet(place / "class.parquet")
    answers.to_excel(place / "class.xlsx", index=False)
    answers.to_stata(place / "class.dta", write_index=False)
    pyreadstat.write_sav(answers, str(place / "class.sav"))
    with sqlite3.connect(place / "class.db") as base:
        answers.to_sql("answers", base, index=False)
    base.close()
    with duckdb.connect(str(place / "class.duckdb")) as base:
        base.execute("CREATE TABLE class AS SELECT * FROM answers")


def check(extra: str, wheel: Path) -> None:
    """Install the wheel with an extra into an environment of its own, and use it."""
    code, commands = PROMISES[extra]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_files(place)
        venv.create(place / "env", with_pip=True)
        programs = place / "env" / ("Scripts" if sys.platform == "win32" else "bin")

        def call(*words: str, fine: tuple[int, ...] = (0,)) -> str:
            done = subprocess.run(words, cwd=place, capture_output=True, text=True)
            if done.returncode not in fine:
                shown = " ".join(Path(word).name for word in words)[:300]
                raise AssertionError(f"{shown}: exit code {done.returncode}\n{done.stderr[-2000:]}")
            return done.stderr

        wanted = str(wheel) if extra == BARE_NAME else f"{wheel}[{extra}]"
        call(str(programs / "python"), "-m", "pip", "install", "-q", wanted)
        answers = SMALL + "dy.write_frame(dy.Frame(table), 'answers.csv')"
        for text in (answers, code):
            call(str(programs / "python"), "-W", "error", "-c", text)
        dynaesti = str(programs / "dynaesti")
        for line in commands:
            fine = (0, ATTENTION) if line.startswith("validate") else (0,)
            call(dynaesti, *line.split(), fine=fine)
        for line, named in NAMED.items() if extra == BARE_NAME else ():
            told = call(dynaesti, *line.split(), fine=(NO_PACKAGE,))
            assert f"dynaesti[{named}]" in told, f"{line}: {told}"


def main(extras: list[str]) -> int:
    """Check the extras; 1 where one does not keep its promise."""
    wheel = max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    failed = []
    for extra in extras or list(PROMISES):
        try:
            check(extra, wheel)
            print(f"{extra:9} fine", flush=True)
        except AssertionError as error:
            failed.append(extra)
            print(f"{extra:9} FAILED: {error}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
