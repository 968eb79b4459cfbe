"""Every kind of file and table gives the same responses."""

import pytest

import dynaesti as dy
from support.oracles import assert_same_responses
from support.simulated import classroom

read = dy.Responses.read


@pytest.fixture(scope="module")
def table():
    return classroom(12, 5, 10)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", lambda t, p: t.to_csv(p, index=False)),
        ("a.tsv", lambda t, p: t.to_csv(p, index=False, sep="\t")),
        ("a.txt", lambda t, p: t.to_csv(p, index=False, sep=";")),
        ("a.csv.gz", lambda t, p: t.to_csv(p, index=False)),
        ("a.parquet", lambda t, p: t.to_parquet(p)),
        ("a.jsonl", lambda t, p: t.to_json(p, orient="records", lines=True, double_precision=15)),
        (
            "a.jsonl.gz",
            lambda t, p: t.to_json(p, orient="records", lines=True, double_precision=15),
        ),
        ("a.json", lambda t, p: t.to_json(p, orient="records", double_precision=15)),
        ("bom.csv", lambda t, p: t.to_csv(p, index=False, encoding="utf-8-sig")),
        ("wide.csv", lambda t, p: t.to_csv(p, index=False, encoding="utf-16")),
        ("answers", lambda t, p: t.to_csv(p, index=False)),
    ],
)
def test_files_of_every_kind_give_the_same(tmp_path, table, name, write):
    write(table, tmp_path / name)
    assert_same_responses(read(tmp_path / name), read(table))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "csv", "parquet", "dicts"])
def test_any_table_goes_in_and_the_same_kind_comes_out(kind, tmp_path):
    import polars as pl
    import pyarrow as pa

    table = classroom(8, 3, 6)
    data = {
        "pandas": lambda: table,
        "polars": lambda: pl.from_pandas(table),
        "pyarrow": lambda: pa.Table.from_pandas(table),
        "csv": lambda: table.to_csv(tmp_path / "t.csv", index=False) or tmp_path / "t.csv",
        "parquet": lambda: table.to_parquet(tmp_path / "t.parquet") or str(tmp_path / "t.parquet"),
        "dicts": lambda: table.to_dict("records"),
    }[kind]()
    fit = dy.DynAEsti(bandwidth=0.5).fit(data)
    assert len(fit.responses) == len(table)
    if kind in ("pandas", "polars", "pyarrow"):
        assert type(fit.ability([0.5])).__module__.split(".")[0] == kind
    assert fit.ids == sorted(table["id"].unique())
