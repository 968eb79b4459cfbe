"""Frames of several shards as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaesti.core import Ints
from dynaesti.data import KINDS, make_frame


def rows_of_ids(frames: list[Any], ids: list[Any]) -> Ints:
    """Rows of concatenated frames in the order of the ids, which may repeat."""
    found = np.concatenate([np.asarray(frame["id"], dtype=object) for frame in frames])
    return np.concatenate([np.flatnonzero(found == label) for label in ids])


def rows_by_change(frames: list[Any]) -> Ints:
    """Rows of concatenated frames of changes, those who rose most first."""
    change = np.concatenate([np.asarray(frame["change"], dtype=np.float64) for frame in frames])
    return np.argsort(-change, kind="stable")


def concatenate_frames(
    frames: list[Any], order: Ints | None = None, kind: str | None = None
) -> Any:
    """Frames concatenated; with `order`, their rows in that order."""
    import narwhals as nw

    whole = nw.concat([nw.from_native(frame, eager_only=True) for frame in frames], how="vertical")
    if order is None and kind is None:
        return whole.to_native()
    columns = {
        name: whole[name].to_numpy() if order is None else whole[name].to_numpy()[order]
        for name in whole.columns
    }
    return make_frame(columns, kind if kind in KINDS else None)
