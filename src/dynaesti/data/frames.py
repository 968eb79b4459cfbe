"""Data frames as results: of the caller's library if it is known, else of one installed."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import narwhals as nw

from dynaesti.errors import InputError, MissingExtraError

KINDS = ("pandas", "polars", "pyarrow")


def frame_kind(*values: Any) -> str | None:
    """The library of the first frame or series among the values; None when there is none."""
    for value in values:
        owner = type(value).__module__.split(".")[0]
        if owner in KINDS:
            return owner
    return None


def make_frame(columns: Mapping[str, Any], kind: str | None = None) -> Any:
    """Make a native data frame of the named library, or of the first of KINDS that is installed.

    Raises
    ------
    InputError
        If `kind` is not in KINDS.
    MissingExtraError
        If the library, or every library, is missing.
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"frame: {kind!r} is none of {', '.join(KINDS)}")
    for name in KINDS if kind is None else (kind,):
        try:
            import_module(name)
        except ImportError:
            continue
        backend: Any = name
        return nw.from_dict(dict(columns), backend=backend).to_native()
    raise MissingExtraError(
        "a data frame needs pandas, polars or pyarrow; install one of them: pip install pandas"
    )
