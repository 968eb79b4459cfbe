"""Files of SPSS, Stata and SAS to tables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.table import Source, Table, as_arrow, from_columns
from dynaesti.errors import MissingExtraError

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def read_statistics(file: InputFile, rows: int | None) -> Iterator[Table]:  # noqa: ARG001  one file is one table
    """A file of SPSS, Stata or SAS as one table; values are codes, not their labels."""
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtraError(
            "reading SPSS, Stata and SAS files needs pyreadstat: pip install 'dynaesti[spss]'"
        ) from None
    read = getattr(pyreadstat, READERS[file.suffix])
    source = file.name if file.content is None else io.BytesIO(file.content)
    found, _ = read(source, output_format="dict")
    columns = {name: [_plain(value) for value in values] for name, values in found.items()}
    frame = as_arrow(from_columns(columns))
    yield Table(frame, None, (Source(file.label, len(frame)),))


def _plain(value: Any) -> Any:
    """A value: None where it is missing, whole numbers without a point."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or value != value or value == "":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value
