"""JSON files to tables: one object a line, or one list of objects."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from typing import Any

import narwhals as nw

from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.table import Source, Table, as_arrow, from_rows
from dynaesti.errors import ResponseError

# members of an object that hold its rows
WRAPPERS = ("statements", "data", "rows", "records", "results", "answers", "responses")


def read_json(file: InputFile, rows: int | None) -> Iterator[Table]:
    """A JSON file in tables of at most `rows` rows; as one table if `rows` is None.

    A list of objects is always one table. Lines that are no JSON are named in the table's `broken`.

    Raises
    ------
    ResponseError
        If a list is no valid JSON, or if there are no objects.
    """
    if file.head.lstrip().startswith(b"[") or _is_one_object(file):
        yield _read_list(file)
        return
    objects: list[Any] = []
    line_numbers: list[int] = []
    broken: list[str] = []
    start = 0
    for number, line in _lines(file):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            broken.append(f"{file.label}, line {number}")
            continue
        objects.append(row)
        line_numbers.append(number)
        if len(objects) == rows:
            yield _table_of_lines(objects, broken, file.label, start, line_numbers)
            start += len(objects)
            objects = []
            line_numbers = []
            broken = []
    if objects or start == 0:
        yield _table_of_lines(objects, broken, file.label, start, line_numbers)


def _is_one_object(file: InputFile) -> bool:
    """Whether a file is one object over several lines, or one that holds a list of objects."""
    begin = file.head.decode("utf-8-sig", "replace").lstrip()
    if not begin.startswith("{"):
        return False
    first, _, rest = begin.partition("\n")
    if not rest.strip():
        return True
    try:
        members = json.loads(first).items()
        return any(key in WRAPPERS and _is_list_of_objects(value) for key, value in members)
    except json.JSONDecodeError:
        return not rest.lstrip().startswith("{")


def _rows_of(whole: dict[str, Any]) -> list[Any]:
    """The rows of one object: a list that it holds, its columns, or itself."""
    lists = [whole[key] for key in WRAPPERS if _is_list_of_objects(whole.get(key))]
    if lists:
        return list(lists[0])
    columns, data = whole.get("columns"), whole.get("data")
    if isinstance(columns, list) and isinstance(data, list):
        return [dict(zip(columns, row, strict=False)) for row in data]
    values = [list(one.values()) if isinstance(one, dict) else one for one in whole.values()]
    sizes = {len(one) if isinstance(one, list) else None for one in values}
    keys = {tuple(one) for one in whole.values() if isinstance(one, dict)}
    if len(values) > 1 and len(sizes) == 1 and None not in sizes and len(keys) <= 1:
        return [dict(zip(whole, row, strict=True)) for row in zip(*values, strict=True)]
    return [whole]


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _lines(file: InputFile) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, from 1."""
    with io.TextIOWrapper(file.open(), encoding="utf-8-sig") as lines:
        yield from enumerate(lines, 1)


def _read_list(file: InputFile) -> Table:
    with file.open() as stream:
        text = codecs.decode(stream.read(), "utf-8-sig")
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise ResponseError(f"{file.label}: no valid JSON ({error})") from None
    rows = _rows_of(rows) if isinstance(rows, dict) else rows
    return Table(_frame(rows, file.label), None, (Source(file.label, len(rows)),))


def _table_of_lines(
    rows: list[Any], broken: list[str], label: str, start: int, line_numbers: list[int]
) -> Table:
    """A table of objects that stood in these lines; `start` is the file's row of the first."""
    source = Source(label, len(rows), start, lambda row: line_numbers[row - start])
    return Table(_frame(rows, label), None, (source,), (), tuple(broken))


def _frame(rows: list[Any], label: str) -> nw.DataFrame[Any]:
    """Objects as a frame, of pyarrow where that is installed."""
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ResponseError(
            f"{label}: expected one JSON object a line, such as "
            f'{{"id": "ada", "item": 3, "resp": 1, "date": 5}}'
        )
    return as_arrow(from_rows([_flat(one) for row in rows for one in _unfolded(row)]))


def _unfolded(row: dict[str, Any]) -> list[dict[str, Any]]:
    """An object for each object in the only list of objects that a row holds, such as answers."""
    lists = [key for key, value in row.items() if key in WRAPPERS and _is_list_of_objects(value)]
    if len(lists) != 1:
        return [row]
    beside = {key: value for key, value in row.items() if key != lists[0]}
    return [{**beside, **one} for one in row[lists[0]]]


def _flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object with the members of objects within it: {"a": {"b": 1}} is {"a.b": 1}.

    Lists are kept as text.
    """
    out: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = json.dumps(value) if isinstance(value, list) else value
    return out
