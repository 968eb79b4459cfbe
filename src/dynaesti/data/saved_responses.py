"""Responses that come from a saved file, checked before anything trusts them."""

from __future__ import annotations

import numpy as np

from dynaesti.data.responses import Responses


def check_saved_responses(r: Responses) -> None:
    """Check responses that come from a saved file, as `Responses.read` would have made them.

    Compiled loops trust every index, so a false one must not get through.

    Raises
    ------
    ValueError
        If arrays are malformed, out of order or out of range.
    """
    n_people = r.people.size
    _check_response_arrays(r)
    if (
        r.origin.shape != (n_people,)
        or r.origin.dtype.kind != "f"
        or not np.isfinite(r.origin).all()
    ):
        raise ValueError("the people's clocks are malformed")
    if r.group is not None and (
        r.group.shape != (n_people,)
        or r.group.dtype != np.int64
        or r.group.min(initial=0) < -1
        or r.group.max(initial=-1) >= len(r.groups)
    ):
        raise ValueError("the people's groups are malformed")
    if r.models is not None and r.models.shape != r.items.shape:
        raise ValueError("the items' models are malformed")
    if len(r) and (
        r.person[0] != 0
        or r.person[-1] != n_people - 1
        or not np.isin(np.diff(r.person), (0, 1)).all()
    ):
        raise ValueError("the answers are not in the order of the people, or some have none")
    if (not len(r)) != (not n_people):
        raise ValueError("answers without people, or people without answers")
    if len(r) and (r.item.min() < 0 or r.item.max() >= r.items.size):
        raise ValueError("answers to items that do not exist")
    if np.any((np.diff(r.offsets) < 0) & (np.diff(r.person) == 0)):
        raise ValueError("answers of a person are not in the order of time")
    if r.weight is not None and r.weight.min(initial=0.0) < 0:
        raise ValueError("weights below 0")
    for name, column in r.covariates.items():
        whole = column.levels is None or (
            bool((column.values == np.floor(column.values)).all())
            and column.values.min(initial=0.0) >= -1
            and column.values.max(initial=-1.0) < len(column.levels)
        )
        if not whole:
            raise ValueError(f"levels of {name} are out of range")


def _check_response_arrays(r: Responses) -> None:
    """Check shape (n_responses,), type and finiteness of the arrays with one entry a response."""
    arrays = [
        ("person", r.person, "i"),
        ("item", r.item, "i"),
        ("resp", r.resp, "f"),
        ("offsets", r.offsets, "f"),
        ("row", r.row, "i"),
    ]
    if r.weight is not None:
        arrays.append(("weight", r.weight, "f"))
    arrays += [(name, column.values, "f") for name, column in r.covariates.items()]
    for name, array, kind in arrays:
        if (
            array.shape != (r.person.size,)
            or array.dtype.kind != kind
            or array.dtype.itemsize != 8
            or not np.isfinite(array).all()
        ):
            raise ValueError(f"{name} of the answers is malformed")
