"""Names that other packages give to item parameters, told by the set of names in use."""

from __future__ import annotations

import re
from collections.abc import Iterable

# By package: what shows that its names are used, and its names of ours. `\1` is the number of a
# threshold. mirt's d is an intercept, which is why a set of names is read as a whole.
DIALECTS: tuple[tuple[re.Pattern[str], dict[str, str]], ...] = (
    (  # mirt
        re.compile(r"a1"),
        {r"a1": "a", r"d": "intercept", r"d(\d+)": r"intercept\1", r"g": "c", r"u": "d"},
    ),
    (  # ltm
        re.compile(r"dscrmn"),
        {r"dscrmn": "a", r"dffclt": "b", r"extrmt(\d+)": r"b\1", r"gussng": "c"},
    ),
    (  # words: girth, py-irt, catR's documentation, tables in papers
        re.compile(r"(discrimination|slope|difficulty|location)(_?\d+)?"),
        {
            r"discrimination|slope": "a",
            r"difficulty|location": "b",
            r"(?:difficulty|location|threshold|step)_?(\d+)": r"b\1",
            r"guessing|guess|pseudo_?guessing|lower|lower_asymptote": "c",
            r"upper|upper_asymptote": "d",
        },
    ),
)


def own_names(names: Iterable[str]) -> dict[str, str]:
    """Our name of each parameter; names that no other package has stay as they are.

    Examples
    --------
    >>> own_names(["a1", "d", "g"])
    {'a1': 'a', 'd': 'intercept', 'g': 'c'}
    >>> own_names(["a", "b", "d"])
    {'a': 'a', 'b': 'b', 'd': 'd'}
    """
    given = list(names)
    lower = [name.strip().lower().replace(" ", "_") for name in given]
    for sign, meanings in DIALECTS:
        if any(sign.fullmatch(name) for name in lower):
            found = (_translated(name, meanings) for name in lower)
            return {name: own or name for name, own in zip(given, found, strict=True)}
    return {name: name for name in given}


def _translated(name: str, meanings: dict[str, str]) -> str | None:
    for theirs, ours in meanings.items():
        match = re.fullmatch(theirs, name)
        if match:
            return match.expand(ours)
    return None
