"""Files of frames: CSV, Parquet, Excel and LaTeX, by the file's ending."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynaesti.core import atomic_path
from dynaesti.errors import InputError, MissingExtraError
from dynaesti.tables.csv_writer import csv_blocks
from dynaesti.tables.excel import write_sheets
from dynaesti.tables.frame import Frame, as_frame
from dynaesti.tables.latex import latex_text

TABLE_ENDINGS = (".csv", ".parquet", ".xlsx", ".tex")


def write_frame(frame: Any, path: Any) -> Path:
    """Write a table to a file, in the format that the file's ending names.

    CSV holds all digits, and nothing that a spreadsheet would run. Excel files hold all digits too,
    and show as many as are worth reading; LaTeX tables are rounded to these. The file is
    complete or not there at all.

    Parameters
    ----------
    frame : Frame, or data frame of pandas, Polars or PyArrow
    path : str or path
        Ends in .csv, .parquet, .xlsx or .tex.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    InputError
        If the ending is another one, or the format cannot hold the table.
    MissingExtraError
        If Parquet or Excel files need a package that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dynaesti as dy
    >>> frame = dy.Frame({"item": ["q1", "q2"], "b": [0.25, -1.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(dy.write_frame(frame, Path(folder) / "items.csv").read_text())
    item,b
    q1,0.25
    q2,-1.5
    """
    file = Path(path)
    if file.suffix.lower() not in TABLE_ENDINGS:
        raise InputError(
            f"path: {file.name} ends in none of {', '.join(TABLE_ENDINGS)}, by which the format is "
            f"known"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(file) as part:
        write_table(frame, part, file.suffix.lower())
    return file


def write_table(frame: Any, file: Path, ending: str) -> None:
    """Write a table straight into a file, in the format of one of `TABLE_ENDINGS`."""
    table = as_frame(frame)
    if ending == ".xlsx":
        write_sheets({"table": table}, file)
    elif ending == ".tex":
        file.write_text(latex_text(table), encoding="utf-8")
    elif ending == ".parquet":
        _write_parquet(table, file)
    else:
        with file.open("wb") as opened:
            opened.writelines(csv_blocks(table))


def write_workbook(frames: Mapping[str, Any], file: Path) -> None:
    """Write tables straight into one Excel file, a sheet each."""
    write_sheets({name: as_frame(frame) for name, frame in frames.items()}, file)


def _write_parquet(frame: Frame, file: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(
            "Parquet files need pyarrow: pip install 'dynaesti[files]', or write .csv"
        ) from None
    columns = {
        name: _one_type(values.tolist()) if values.dtype.kind == "O" else values
        for name, values in frame.to_arrays().items()
    }
    pq.write_table(pa.table(columns), file)


def _one_type(values: list[Any]) -> list[Any]:
    """A column of one type: labels of several types become text."""
    kinds = {type(value) for value in values if value is not None}
    return (
        [None if value is None else str(value) for value in values]
        if len(kinds) > 1 and not kinds <= {int, float}
        else values
    )
