"""Frames of several shards as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaesti.core import Ints
from dynaesti.data import frame_kind, make_frame
from dynaesti.tables import as_frame


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
    """Frames concatenated, of their own kind unless another is named; with `order`, sorted."""
    parts = [as_frame(frame).to_arrays() for frame in frames]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if order is not None:
        columns = {name: values[order] for name, values in columns.items()}
    return make_frame(columns, kind or frame_kind(*frames))
