"""Links between pages lead somewhere, and the site knows every page and every public name."""

import re
from pathlib import Path

import pytest

import dynaesti as dy

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(p for p in DOCS.rglob("*.md") if not {"_build", "generated"} & set(p.parts)),
    ]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    dead = [
        target
        for target in targets
        if "://" not in target and "generated" not in target and not (page.parent / target).exists()
    ]
    assert not dead


@pytest.mark.parametrize("page", [p for p in PAGES if DOCS in p.parents and p.name != "index.md"])
def test_pages_are_in_the_contents_of_their_folder(page):
    index = (page.parent / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"```\{toctree\}\n(.*?)```", index, flags=re.S)
    names = {line for tree in trees for line in tree.splitlines() if not line.startswith(":")}
    assert page.stem in names or any(Path(page.stem).match(name) for name in names if "*" in name)


def test_public_names_are_in_the_reference():
    listed = set(
        re.findall(r"^   ([A-Za-z]\w*)$", (DOCS / "reference" / "api.rst").read_text(), re.M)
    )
    modules = {"errors", "evaluation", "examples", "simulate"}
    assert set(dy.__all__) - modules <= listed
    assert set(dy.evaluation.__all__) <= listed
