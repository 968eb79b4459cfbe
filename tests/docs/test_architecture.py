"""The architecture page says what the tree and the contract say; public names are documented."""

import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import dynaesti as dy
from support import oracles
from support.sizes import sizes

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in (ROOT / "src" / "dynaesti").rglob("*.py")
    if not path.name.startswith("__")
)
PAGE = (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")


def test_the_layers_on_the_page_are_those_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    assert len(layers) <= 10
    shown = PAGE.split("## The layers")[1].split("```text\n")[1].split("\n```")[0]
    assert shown.splitlines() == layers


def test_every_path_on_the_page_exists():
    """In code spans: files and folders below src/dynaesti or the root."""
    paths = set(re.findall(r"`((?:[\w.]+/)+[\w.]*|\w+\.(?:py|toml))`", PAGE))
    assert len(paths) > 40
    future = {"model/effects", "estimation/effects"}
    missing = [
        path
        for path in sorted(paths - future)
        if not any((base / path).exists() for base in (ROOT, ROOT / "src" / "dynaesti"))
        and not (ROOT / "src" / "dynaesti" / "estimation" / path).exists()
    ]
    assert not missing


def test_every_folder_is_on_the_page():
    folders = {path.parent.name for path in (ROOT / "src" / "dynaesti").glob("*/__init__.py")}
    assert folders == set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))


def test_the_plain_algorithms_on_the_page_are_the_tests_oracles():
    for oracle in (oracles.papers_grafting, oracles.plain_em):
        assert inspect.getsource(oracle).strip() in PAGE


def test_both_algorithms_fit_on_a_screen():
    for file, name in (("inference/grafting.py", "graft"), ("estimation/em.py", "run_em")):
        _, functions = sizes(ROOT / "src" / "dynaesti" / file)
        assert next(f.lines for f in functions if f.name == name) <= 45


@pytest.mark.parametrize("name", dy.__all__)
def test_public_names_say_their_parameters_and_show_an_example(name):
    thing = getattr(dy, name)
    text = inspect.getdoc(thing) or ""
    assert text
    if not inspect.ismodule(thing):
        assert "\nParameters\n----------\n" in text
        assert ">>> " in text


def documented(thing):
    """Names under the heading Parameters of a docstring."""
    text = inspect.getdoc(thing) or ""
    part = re.search(r"(?:^|\n)Parameters\n-+\n(.*?)(?=\n\S[^\n]*\n---|\Z)", text, re.DOTALL)
    heads = re.findall(r"^([*\w][\w*, ]*?)(?: :.*)?$", part[1], re.MULTILINE) if part else []
    return {name.strip(" *") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("module", MODULES)
def test_documented_parameters_exist(module):
    found = import_module(module)
    for _, thing in inspect.getmembers(found, lambda x: getattr(x, "__module__", "") == module):
        members = [thing]
        if inspect.isclass(thing):
            members += [
                part
                for part in vars(thing).values()
                if inspect.isfunction(part) and part.__module__ == module
            ]
        for member in members:
            try:
                known = set(inspect.signature(member).parameters)
            except (TypeError, ValueError):
                continue
            assert documented(member) - {"None"} <= known, member
