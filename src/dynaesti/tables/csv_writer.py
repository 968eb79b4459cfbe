"""Frames as CSV that spreadsheets open without running anything; by Arrow where it is installed.

Both ways write the same text: every float as `repr` does, so that it is read back to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.tables.frame import Frame

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the beginning of one
# floats between these, whole ones excepted, are written alike by Arrow and by `repr`
WRITTEN_ALIKE = (1e-4, 1e9)
ROWS_AT_ONCE = 200_000  # Arrow's text arrays hold 2 GB


def csv_text(frame: Frame) -> str:
    """A frame as CSV: a heading, and a line for each row."""
    return b"".join(csv_blocks(frame)).decode()


def csv_blocks(frame: Frame) -> Iterator[bytes]:
    """The CSV of a frame in pieces, in UTF-8."""
    yield (",".join(text_cell(name) for name in frame.columns) + "\n").encode()
    lines = _lines_by_arrow if find_spec("pyarrow") else _lines
    for start in range(0, len(frame), ROWS_AT_ONCE):
        yield lines(frame[start : start + ROWS_AT_ONCE])


def text_cell(text: str) -> str:
    """A text as a CSV cell, quoted where it has to be.

    What a spreadsheet would run as a formula gets a ' in front.
    """
    if text.startswith(FORMULA) and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cell(value: Any) -> str:
    """A value that is neither missing nor of an array's own type."""
    if isinstance(value, float):
        return "" if value != value else repr(value)
    if isinstance(value, str):
        return text_cell(value)
    return "" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


# --- without Arrow


def _lines(frame: Frame) -> bytes:
    """The rows of a frame, each with its line's end."""
    cells = [_cells(column) for column in frame.to_arrays().values()]
    return "".join(f"{','.join(row)}\n" for row in zip(*cells, strict=True)).encode()


def _cells(column: npt.NDArray[Any]) -> list[str]:
    """A column as cells."""
    if column.dtype.kind == "M":
        return list(_time_texts(column).tolist())
    if column.dtype.kind == "f":
        return ["" if value != value else repr(value) for value in column.tolist()]
    if column.dtype.kind == "O":
        return [_cell(value) for value in column.tolist()]
    return [str(value) for value in column.tolist()]


def _time_texts(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Times as ISO text, with the digits of a second that they need: object array (n_rows,)."""
    out = np.datetime_as_string(column, unit="s").astype(object)
    for unit in ("us", "ns"):  # micro- and nanoseconds
        coarser = "s" if unit == "us" else "us"
        finer = np.flatnonzero(column != column.astype(f"M8[{coarser}]"))
        out[finer] = np.datetime_as_string(column[finer].astype(f"M8[{unit}]"), unit=unit)
    out[np.isnat(column)] = ""
    return out


# --- by Arrow


def _lines_by_arrow(frame: Frame) -> bytes:
    """The same as `_lines`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = [_cells_by_arrow(column) for column in frame.to_arrays().values()]
    comma = pa.scalar(",")
    rows = cells[0] if len(cells) == 1 else pc.binary_join_element_wise(*cells, comma)
    lines = pc.binary_join_element_wise(rows, pa.scalar("\n"), pa.scalar(""))
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)[: len(lines) + 1]
    return bytes(lines.buffers()[2][int(offsets[0]) : int(offsets[-1])])


def _cells_by_arrow(column: npt.NDArray[Any]) -> Any:
    """A column as a text array of Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.dtype.kind
    if kind == "f":
        return _float_cells(column.astype(np.float64))
    if kind in "iu":
        return pa.array(column).cast(pa.string())
    if kind != "O":
        return pa.array(_cells(column), pa.string())
    number: dict[Any, int] = {}
    # 1, 1.0 and True are equal, and are written differently
    codes = [number.setdefault((type(value), value), len(number)) for value in column.tolist()]
    texts = pa.array([_cell(value) for _, value in number], pa.string())
    return pc.take(texts, pa.array(codes, pa.int64()))


def _float_cells(values: npt.NDArray[np.float64]) -> Any:
    """Floats as `repr` writes them; nothing for NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = np.abs(values)
    alike = (size >= WRITTEN_ALIKE[0]) & (size < WRITTEN_ALIKE[1])
    whole = alike & (values == np.floor(values))
    texts = pa.array(values).cast(pa.string())
    if whole.any():
        with_point = pc.binary_join_element_wise(texts, pa.scalar(".0"), pa.scalar(""))
        texts = pc.if_else(pa.array(whole), with_point, texts)
    if alike.all():
        return texts
    others = pa.array(_cells(values[~alike]), pa.string())
    return pc.replace_with_mask(texts, pa.array(~alike), others)
