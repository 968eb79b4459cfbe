"""Words that the glossary retired are not used as identifiers."""

import io
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
NONE = "–"

# Names of other libraries.
FOREIGN = {
    "mark_area",
    "mark_bar",
    "mark_line",
    "mark_point",
    "mark_rule",
    "tickMinStep",
    "create_engine",
}

# Retired words that the source still has, to be renamed. Words may go from here; none may come.
STILL_PRESENT: set[str] = set()


@cache
def glossary():
    """The words in use and the retired ones, each as a tuple of its parts."""
    used, retired = set(), set()
    for line in (
        (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8").splitlines()
    ):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or set(cells[0]) <= set("-: "):
            continue
        if cells == ["word", "meaning", "not"]:
            continue
        used.update(in_parts(word) for word in cells[0].split(","))
        if cells[-1] != NONE:
            retired.update(in_parts(word) for word in cells[-1].split(","))
    return used, retired


def in_parts(word):
    """A word of the glossary as an identifier would have it: E-step is (e, step)."""
    return tuple(re.findall(r"\w+", word.lower()))


def parts_of(identifier):
    """An identifier split at underscores and at the humps of camel case, in lower case."""
    humps = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", identifier)
    return tuple(hump.lower() for hump in humps)


def occurs(word, parts):
    """Where a word's parts follow each other among those of an identifier."""
    return [k for k in range(len(parts) - len(word) + 1) if parts[k : k + len(word)] == word]


@cache
def found():
    """Retired words in the source: {word: how often each identifier has it}."""
    used, retired = glossary()
    longer = [word for word in used if len(word) > 1]
    names = Counter(
        token.string
        for path in (ROOT / "src" / "dynaesti").rglob("*.py")
        for token in tokenize.generate_tokens(
            io.StringIO(path.read_text(encoding="utf-8")).readline
        )
        if token.type == tokenize.NAME and token.string not in FOREIGN
    )
    out = {}
    for name, times in names.items():
        parts = parts_of(name)
        for word in longer:  # `step` is retired, `e_step` is not
            for k in occurs(word, parts):
                parts = (*parts[:k], *[""] * len(word), *parts[k + len(word) :])
        for word in retired:
            if occurs(word, parts):
                out.setdefault(" ".join(word), Counter())[name] += times
    return out


def test_the_glossary_is_read():
    used, retired = glossary()
    assert {("e", "step"), ("cavity",), ("item", "bank"), ("item", "block")} <= used
    assert {("crowd",), ("row", "table"), ("instant", "variance")} <= retired
    assert not used & retired
    assert parts_of("EStep") == ("e", "step")
    assert parts_of("rowTable_2PL") == ("row", "table", "2", "pl")


def test_retired_words_are_no_identifiers():
    new = {word: dict(names) for word, names in found().items() if word not in STILL_PRESENT}
    assert not new, f"words that docs/reference/glossary.md retired: {new}"


def test_the_list_of_what_is_left_is_no_longer_than_it_must_be():
    gone = STILL_PRESENT - found().keys()
    assert not gone, f"no longer in the source, please take them out of STILL_PRESENT: {gone}"
