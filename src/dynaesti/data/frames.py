"""Data frames as results: of the library that came in, else our own.

What comes out never depends on what happens to be installed.
"""

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from dynaesti.errors import InputError, MissingExtraError
from dynaesti.tables import Frame

KINDS = ("pandas", "polars", "pyarrow")


def frame_kind(*values: Any) -> str | None:
    """The library of the first frame or series among the values; None when there is none."""
    for value in values:
        owner = type(value).__module__.split(".")[0]
        if owner in KINDS:
            return owner
    return None


def make_frame(columns: Mapping[str, Any], kind: str | None = None) -> Any:
    """Make a native data frame of the named library, or a `Frame` where none is named.

    Raises
    ------
    InputError
        If `kind` is not in KINDS.
    MissingExtraError
        If the library is missing.
    """
    if kind is None:
        return Frame(columns)
    if kind not in KINDS:
        raise InputError(f"frame: {kind!r} is none of {', '.join(KINDS)}")
    backend: Any = kind
    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ImportError:
        raise MissingExtraError(
            f"the data came as a frame of {kind}, which is not installed here: pip install {kind}"
        ) from None
