"""Groups of people: one label for each person, read from a column of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Ints
from dynaesti.data.columns import null_mask
from dynaesti.data.labels import Labels, count_noun, label_text
from dynaesti.errors import ResponseError

NO_GROUP = "(no group)"  # label of the group of people without one


def parse_groups(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Labels of groups as text, one for each row; "" where there is none."""
    raw = series.to_list()
    blank = null_mask(series)
    texts = [
        "" if empty or value != value else label_text(value).strip()
        for value, empty in zip(raw, blank, strict=True)
    ]
    return np.array(texts, dtype=object)


def group_of_each_person(
    people: Labels, person: Ints, labels: npt.NDArray[Any], notes: list[str]
) -> tuple[tuple[str, ...], Ints]:
    """Labels of all groups in order, and the number of each person's.

    People without any are a group of their own; a blank beside a label counts as that label.

    Parameters
    ----------
    people : array (n_people,)
    person : int array (n_rows,)
        Number of each row's person.
    labels : array (n_rows,)
        Label of the group in each row, "" where there is none.
    notes : list of str
        Gets a note on people without a group.

    Raises
    ------
    ResponseError
        If the rows of a person name different groups.
    """
    named = np.flatnonzero(labels != "")
    groups, code = np.unique(labels[named].astype(str), return_inverse=True)
    group = np.full(people.size, -1, dtype=np.int64)
    group[person[named][::-1]] = code[::-1]
    refuse_changing_groups(people, person[named], code, group, groups.tolist())
    return with_the_rest(groups.tolist(), group, notes)


def with_the_rest(groups: list[str], group: Ints, notes: list[str]) -> tuple[tuple[str, ...], Ints]:
    """Groups with people who have none (−1) as one more, the last, where there are such people."""
    none = int((group < 0).sum())
    if not none:
        return tuple(groups), group
    notes.append(
        f"group: {count_noun(none, 'people')} of {group.size:,} have none; they are a group of "
        f"their own, {NO_GROUP!r}"
    )
    return (*groups, NO_GROUP), np.where(group < 0, len(groups), group)


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
