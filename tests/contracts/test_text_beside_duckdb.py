"""Our reader of text beside DuckDB's: what it reads, ours reads, with as many sound rows."""

import pytest

from dynaesti.data.readers.read import read_table

duckdb = pytest.importorskip("duckdb")

HEADING = ("id", "item", "resp", "date")
ROWS = [(f"p{k % 7}", f"q{k % 3}", str(k % 2), f"2024-03-{k % 28 + 1:02d}") for k in range(60)]


def text(separator=",", quote="", end="\n", heading=HEADING):
    lines = [heading, *ROWS]
    return "".join(separator.join(f"{quote}{c}{quote}" for c in line) + end for line in lines)


def broken(line, at=30):
    """A line among the others that is no row."""
    lines = text().splitlines()
    lines.insert(at, line)
    return "\n".join(lines) + "\n"


FILES = {
    "commas": text(),
    "semicolons": text(";"),
    "tabs": text("\t"),
    "bars": text("|"),
    "quotes": text(quote='"'),
    "single quotes": text(quote="'"),
    "windows": text(end="\r\n"),
    "no last line end": text().rstrip("\n"),
    "byte order mark": "\ufeff" + text(),
    "too many fields": broken("p1,q1,1,2024-03-01,more"),
    "too few fields": broken("p1,q1"),
    "separator in quotes": text().replace("p1,", '"p, 1",'),
    "line end in quotes": text().replace("p1,", '"p\n1",'),
    "blank lines": text().replace("\np3", "\n\np3"),
    "other encoding": text().replace("p1,", "Jos\xe9,"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_duckdb_reads_is_read_with_as_many_rows(name, tmp_path):
    file = tmp_path / "a.csv"
    encoding = "latin-1" if name == "other encoding" else "utf-8"
    file.write_bytes(FILES[name].encode(encoding))
    ours = read_table(file)
    assert [column.strip("'") for column in ours.frame.columns][:4] == list(HEADING)
    assert len(ours.frame) == len(ROWS)
    broken_lines = name in ("too many fields", "too few fields")
    assert len(ours.broken) == broken_lines
    try:
        theirs = duckdb.sql(f"select * from read_csv('{file}', store_rejects = true)").fetchall()
    except duckdb.Error:
        return  # which ours reads
    assert len(ours.frame) >= len(theirs)
