"""`make wheel`: the wheel in clean environments, bare and with each extra alone.

In each the README's example in Python and the first commands run; an extra does what it promises,
and what is not installed is named. Arguments are extras ("" is none); without any, all of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
assert README is not None
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
FIT = "fit answers.csv --unit days --out run --quiet --no-static"
# what each extra promises: code, and command lines; the file answers.csv is there
PROMISES: dict[str, tuple[str, list[str]]] = {
    "": (
        BARE,
        [FIT, "items run", "validate answers.csv", "ability run --now", "cohort run", "report run"],
    ),
    "plot": (SMALL + "fit.plot.wright().figure.savefig('wright.png')", []),
    "files": (
        SMALL + "dy.write_frame(dy.Frame(table), 'a.parquet'); dy.Responses.read('a.parquet')",
        [FIT, "items run --out items.parquet"],
    ),
    "excel": (SMALL + "dy.write_frame(fit.items, 'items.xlsx')", [f"{FIT} --excel"]),
    "scale": ("", ["prepare answers.csv --unit days --out shards", "fit shards --out r --quiet"]),
    "dask": ("import dynaesti as dy; from distributed import Client; dy.DaskExecutor", []),
    "xarray": (SMALL + "assert 'posterior' in fit.to_datatree().children", []),
    "cli": ("", [f"{FIT} --excel", "report run", "curve answers.csv --votes resp --figure c.png"]),
    "all": ("", ["prepare answers.csv --unit days --out shards", "fit shards --out r --quiet"]),
}


def check(extra: str, wheel: Path) -> None:
    """Install the wheel with an extra into an environment of its own, and use it."""
    code, commands = PROMISES[extra]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        programs = place / "env" / ("Scripts" if sys.platform == "win32" else "bin")

        def call(*words: str) -> None:
            subprocess.run(words, cwd=place, check=True, stdout=subprocess.DEVNULL)

        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        call(str(programs / "python"), "-m", "pip", "install", "-q", wanted)
        answers = SMALL + "dy.write_frame(dy.Frame(table), 'answers.csv')"
        for text in (answers, code):
            call(str(programs / "python"), "-W", "error", "-c", text)
        for line in commands:
            call(str(programs / "dynaesti"), *line.split())


def main(extras: list[str]) -> int:
    """Check the extras; 1 where one does not keep its promise."""
    wheel = max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    failed = []
    for extra in extras or list(PROMISES):
        try:
            check(extra, wheel)
            print(f"{extra or 'bare':8} fine", flush=True)
        except subprocess.CalledProcessError as error:
            failed.append(extra or "bare")
            print(f"{failed[-1]:8} FAILED: {error}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
