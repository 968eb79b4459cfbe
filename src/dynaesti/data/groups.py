"""Groups of people: one label for each person, read from a column of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Bools, Ints
from dynaesti.data.columns import MISSING, as_text, null_mask
from dynaesti.data.labels import Labels, count_noun, label_text
from dynaesti.errors import ResponseError

NO_GROUP = "(no group)"  # label of the group of people without one


def parse_groups(series: nw.Series[Any], name: str, notes: list[str]) -> npt.NDArray[Any]:
    """Labels of groups as text, one for each row; rows without one are a group of their own."""
    raw = np.asarray(series.to_numpy(), dtype=object)
    missing: Bools = null_mask(series)
    texts = as_text(np.array([label_text(value) for value in raw.tolist()], dtype=object), missing)
    blank = missing | np.array([text.strip().lower() in MISSING for text in texts.tolist()])
    if blank.any():
        notes.append(
            f"{name}: {count_noun(int(blank.sum()), 'rows')} of {blank.size:,} have none; these "
            f"people are a group of their own, {NO_GROUP!r}"
        )
    return np.where(blank, NO_GROUP, texts).astype(object)


def group_of_each_person(
    people: Labels, person: Ints, labels: npt.NDArray[Any]
) -> tuple[tuple[str, ...], Ints]:
    """Labels of all groups in order, and the number of each person's.

    Parameters
    ----------
    people : array (n_people,)
    person : int array (n_rows,)
        Number of each row's person.
    labels : array (n_rows,)
        Label of the group in each row.

    Raises
    ------
    ResponseError
        If the rows of a person name different groups.
    """
    groups, code = np.unique(labels.astype(str), return_inverse=True)
    group = np.zeros(people.size, dtype=np.int64)
    group[person[::-1]] = code[::-1]
    refuse_changing_groups(people, person, code, group, groups.tolist())
    return tuple(groups.tolist()), group


def refuse_changing_groups(
    people: Labels, person: Ints, code: Ints, group: Ints, groups: Sequence[str]
) -> None:
    """Refuse people whose rows name different groups.

    `code` is the number of each row's group, `group` that of each person's.
    """
    differ = code != group[person]
    if not differ.any():
        return
    row = int(differ.argmax())
    who = people.tolist()[person[row]]
    changing = np.unique(person[differ]).size
    raise ResponseError(
        f"groups: {count_noun(changing, 'people')} of {people.size:,} change their group (first: "
        f"{who!r} is in {groups[group[person[row]]]!r} and in {groups[code[row]]!r}); a group "
        "belongs to a person for good, so name a column that does not change, such as the group "
        "at the start"
    )
