"""What a file is by its first bytes, where its name does not tell, and what to do with others."""

from __future__ import annotations

import codecs
import io
import zipfile

from dynaesti.data.readers.encoding import unmarked_utf16
from dynaesti.data.readers.input_file import InputFile
from dynaesti.errors import ResponseError

ZIP = b"PK\x03\x04"
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SQLITE = b"SQLite format 3\x00"
# control characters, which no text has but tabs and ends of lines and pages
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b")) + b"\x7f"
MOST_CONTROLS = 0.05  # of the bytes of a text that was damaged; binary files have more
DUCKDB = b"DUCK"  # from the ninth byte on
# what cannot be read: first bytes, what it is, what to do
REFUSED = (
    (b"%PDF", "a PDF document", "copy its table into a spreadsheet and save that as CSV"),
    (b"\x89PNG", "an image (PNG)", "type its table into a spreadsheet"),
    (b"\xff\xd8\xff", "an image (JPEG)", "type its table into a spreadsheet"),
    (b"GIF8", "an image (GIF)", "type its table into a spreadsheet"),
    (b"RDX", "an R data file", "write it in R: write.csv(x, 'answers.csv', row.names = FALSE)"),
    (b"X\n\x00\x00", "an R data file", "write it in R: write.csv(x, 'answers.csv')"),
    (b"\x89HDF", "an HDF5 or MATLAB file", "save its table as CSV or Parquet"),
    (b"MATLAB", "a MATLAB file", "write it in MATLAB: writetable(t, 'answers.csv')"),
    (b"\x93NUMPY", "a NumPy array", "load it in Python and hand over the array"),
    (b"\x80\x04", "a Python pickle", "load it in Python and hand over what it holds"),
    (b"\x80\x05", "a Python pickle", "load it in Python and hand over what it holds"),
    (b"ARROW1", "an Arrow (Feather) file", "write it as Parquet"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it"),
    (b"Rar!", "a RAR archive", "unpack it"),
    (b"BZh", "a bzip2 archive", "unpack it"),
    (b"\xfd7zXZ", "an xz archive", "unpack it"),
    (b"(\xb5/\xfd", "a zstd archive", "unpack it"),
)
# what begins like this, in lower case
MARKUP = (
    (b"<?xml", "an XML file", "open it in a spreadsheet and save its table as CSV or Excel"),
    *(
        (start, "a web page", "open it in a spreadsheet and save its table as .xlsx; if it shows a "
         "page for signing in, download the file again")
        for start in (b"<!doctype html", b"<html", b"<table", b"<head", b"<body")
    ),
)  # fmt: skip
MARKUP_BYTES = 20
WIDE_TEXT = (
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
)
# by a part of the names within a ZIP archive
WITHIN_ZIP = (
    ("word/", "a Word document", "copy its table into a spreadsheet and save that as CSV"),
    ("ppt/", "a PowerPoint document", "copy its table into a spreadsheet and save that as CSV"),
    (".iwa", "a Numbers document", "export it as CSV or Excel"),
)


def is_workbook(file: InputFile) -> bool:
    """Whether a file is a workbook of Excel or OpenDocument."""
    if file.head.startswith(OLD_OFFICE):
        return True
    if not file.head.startswith(ZIP):
        return False
    names = _names_within(file)
    return any(name.startswith("xl/") or name == "content.xml" for name in names)


def is_sqlite(file: InputFile) -> bool:
    """Whether a file is a database of SQLite."""
    return file.head.startswith(SQLITE)


def is_duckdb(file: InputFile) -> bool:
    """Whether a file is a database of DuckDB."""
    return file.head[8:12] == DUCKDB


def refuse_binary(file: InputFile) -> None:
    """Raise if a file is no text.

    Raises
    ------
    ResponseError
        The message says what it is, and what to do.
    """
    found = next((what for what in REFUSED if file.head.startswith(what[0])), None)
    if found is not None:
        raise _refusal(file, found[1], found[2])
    if file.head.startswith(ZIP):
        names = _names_within(file)
        for part, what, remedy in WITHIN_ZIP:
            if any(part in name for name in names):
                raise _refusal(file, what, remedy)
        raise _refusal(file, "a ZIP archive", "unpack it, and name the file of answers in it")
    begin = file.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:MARKUP_BYTES].lower()
    for start, what, remedy in MARKUP:
        if begin.startswith(start):
            raise _refusal(file, what, remedy)
    is_wide_text = file.head.startswith(WIDE_TEXT)
    n_controls = len(file.head) - len(file.head.translate(None, CONTROLS))
    is_binary = n_controls > MOST_CONTROLS * len(file.head)
    if is_binary and not is_wide_text and unmarked_utf16(file.head) is None:
        raise _refusal(file, "no text", "save its table as CSV, Excel or Parquet")


def _names_within(file: InputFile) -> list[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(file.open().read())) as archive:
            return archive.namelist()
    except zipfile.BadZipFile:
        return []


def _refusal(file: InputFile, what: str, remedy: str) -> ResponseError:
    return ResponseError(f"{file.label}: this is {what}, not a table of answers; {remedy}")
