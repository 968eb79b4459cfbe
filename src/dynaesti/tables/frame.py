"""Frame: a table as a result, for people to read and programs to go on with.

It needs no library of data frames, and hands itself over to any that is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Ints
from dynaesti.errors import InputError, MissingExtraError
from dynaesti.tables.text import aligned, as_html

REPR_ROWS = 20
REPR_WIDTH = 120  # characters; columns beyond are only named


class Column(np.ndarray[Any, np.dtype[Any]]):
    """The values of one column of a `Frame`: a NumPy array that pandas' and Polars' words reach.

    So code that takes ``frame["b"].to_numpy()`` or ``.to_list()`` works on every kind of frame.
    """

    def to_numpy(self) -> npt.NDArray[Any]:
        """The values as a plain array, (n_rows,)."""
        return self.view(np.ndarray)

    def to_list(self) -> list[Any]:
        """The values as Python's own types; times are `datetime.datetime`."""
        values = self.view(np.ndarray)
        # NumPy makes whole numbers of nanoseconds
        return list((values.astype("M8[us]") if values.dtype.kind == "M" else values).tolist())


class Frame:
    """A table: columns of equal length by name.

    Results are of this kind unless a data frame of pandas, Polars or PyArrow came in. It prints as
    an aligned table, also in notebooks, needs no further package, and turns into a frame of any
    library by `to_pandas`, `to_polars` and `to_arrow`.

    Parameters
    ----------
    columns : mapping of str to sequence (n_rows,)
        Values are copied.

    Raises
    ------
    InputError
        If columns differ in length.

    Examples
    --------
    >>> import dynaesti as dy
    >>> frame = dy.Frame({"item": ["q1", "q2", "q10"], "b": [0.5, -1.25, 2.0]})
    >>> frame
    item       b
    q1     0.500
    q2    -1.250
    q10    2.000
    >>> float(frame["b"].max()), len(frame), frame.columns
    (2.0, 3, ['item', 'b'])
    >>> frame[frame["b"] > 0]["item"].tolist()
    ['q1', 'q10']
    >>> frame.sort("b").rows()[0]
    {'item': 'q2', 'b': -1.25}
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {str(name): _as_column(values) for name, values in columns.items()}
        lengths = {name: column.size for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {size}" for name, size in lengths.items())
            raise InputError(f"columns: they differ in length: {shown}")

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self), len(self._columns)

    def __len__(self) -> int:
        return next((column.size for column in self._columns.values()), 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, key: Any) -> Any:
        """A column by its name; a frame of some columns, or of some rows."""
        if isinstance(key, str):
            if key not in self._columns:
                raise KeyError(f"no column {key!r}; there are {', '.join(self._columns)}")
            return self._columns[key]
        if isinstance(key, list | tuple) and all(isinstance(name, str) for name in key):
            return Frame({name: self[name] for name in key})
        if isinstance(key, slice) or np.ndim(key) == 1:
            rows = key if isinstance(key, slice) else np.asarray(key)
            return Frame({name: column[rows] for name, column in self._columns.items()})
        raise InputError(
            f"frame[{key!r}]: expected the name of a column, a list of names, a slice of rows, or "
            f"an array that chooses rows"
        )

    def __setitem__(self, name: str, values: Any) -> None:
        """Set a column, of as many values as there are rows."""
        column = _as_column(values)
        if self._columns and column.size != len(self):
            raise InputError(f"{name}: {column.size} values for {len(self)} rows")
        self._columns[str(name)] = column

    def head(self, n: int = 5) -> Frame:
        """The first rows."""
        return self[:n]  # type: ignore[no-any-return]

    def sort(self, by: str, *, descending: bool = False) -> Frame:
        """The rows sorted by a column; those without a value come last."""
        return self[sort_order(self[by], descending)]  # type: ignore[no-any-return]

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a dictionary from column to value."""
        lists = self.to_dict()
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists of Python's own types."""
        return {name: column.to_list() for name, column in self._columns.items()}

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The columns as plain NumPy arrays."""
        return {name: column.to_numpy() for name, column in self._columns.items()}

    def to_pandas(self) -> Any:
        """The table as a data frame of pandas."""
        return self.to_library("pandas")

    def to_polars(self) -> Any:
        """The table as a data frame of Polars."""
        return self.to_library("polars")

    def to_arrow(self) -> Any:
        """The table as one of PyArrow."""
        return self.to_library("pyarrow")

    def to_library(self, name: str) -> Any:
        """The table as a data frame of the library of that name.

        Raises
        ------
        MissingExtraError
            If it is not installed.
        """
        backend: Any = name
        try:
            return nw.from_dict(dict(self.to_arrays()), backend=backend).to_native()
        except ImportError:
            raise MissingExtraError(
                f"a data frame of {name} needs {name}: pip install {name}"
            ) from None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table as libraries exchange tables (Arrow's PyCapsule protocol); needs pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        if not self._columns:
            return "<Frame without columns>"
        return aligned(self.to_dict(), REPR_ROWS, width=REPR_WIDTH).rstrip("\n")

    def _repr_html_(self) -> str:
        return as_html(self.to_dict(), REPR_ROWS)


def as_frame(frame: Any) -> Frame:
    """A data frame of any library as a `Frame`.

    Raises
    ------
    TypeError
        If it is no data frame.
    """
    if isinstance(frame, Frame):
        return frame
    table = nw.from_native(frame, eager_only=True)
    return Frame({name: _values_of(table[name]) for name in table.columns})


def _values_of(series: nw.Series[Any]) -> Any:
    """A series as an array where that loses nothing, else as a list."""
    numeric = series.dtype.is_numeric() or series.dtype == nw.Boolean
    if numeric and (series.dtype.is_float() or not series.is_null().any()):
        return series.to_numpy()
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is None:
        return series.to_numpy()
    return series.to_list()


def with_table(text: str, frame: Frame) -> str:
    """A text above a table, as HTML for a notebook."""
    return f"<p>{escape(text)}</p>{as_html(frame.to_dict(), REPR_ROWS)}"


def sort_order(values: Sequence[Any] | npt.NDArray[Any], descending: bool = False) -> Ints:
    """Numbers of the values from the least to the greatest; missing ones come last.

    Values of several types are sorted as text.
    """
    column = _as_column(values)
    missing = np.array([value is None or value != value for value in column.tolist()], dtype=bool)
    present = np.flatnonzero(~missing)
    chosen = column[present]
    if chosen.dtype.kind == "O" and len({type(value) for value in chosen.tolist()}) > 1:
        chosen = _as_column([str(value) for value in chosen.tolist()])
    rank = np.unique(chosen, return_inverse=True)[1] if present.size else np.zeros(0, np.int64)
    order = np.argsort(-rank if descending else rank, kind="stable")
    return np.concatenate([present[order], np.flatnonzero(missing)]).astype(np.int64)


def _as_column(values: Any) -> Column:
    """Values as a column of their own: numbers and times as such, everything else as objects."""
    array = values if isinstance(values, np.ndarray) else _array_of(list(values))
    if array.dtype.kind not in "biufM":
        array = _objects(array.tolist() if array.dtype.kind in "US" else list(array))
    return np.array(array).view(Column)


def _array_of(values: list[Any]) -> npt.NDArray[Any]:
    """A list as an array: of numbers or times if all are, else of the objects."""
    kinds = {type(value) for value in values}
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return np.array(values, dtype=bool)
    numbers = all(
        issubclass(kind, int | float | np.number) and not issubclass(kind, bool) for kind in kinds
    )
    if numbers or all(issubclass(kind, np.datetime64) for kind in kinds):
        try:
            return np.array(values)
        except OverflowError:  # whole numbers beyond 64 bits
            return _objects(values)
    return _objects(values)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
