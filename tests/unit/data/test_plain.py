"""Reading without any library of data frames gives the same responses and the same words."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.data.labels import encode
from dynaesti.data.readers.plain import PlainFrame
from dynaesti.data.readers.read import read_table
from support.oracles import assert_same_responses

MESSY = (
    "\ufeffdate;Correct;student_id;problem_id;\r\n"
    "\r\n"
    "2024-03-01T10:00:00+01:00;1;007;p1;\r\n"
    '2024-03-02T10:00:00+01:00;0;ada;"p;2";\r\n'
    "2024-03-02T09:00:00Z;yes;bob;p1;\r\n"
    "2024-03-03T09:00:00Z;;bob;p2;\r\n"
    "2024-03-05T09:00:00Z;1;cyd\r\n"
    "2024-03-05T09:00:00Z;0,0;cyd;p1;\r\n"
)
QUOTES = 'id,item,resp,date\nann,5" screw,1,1\nbob,"q,2",0,2\nbob,5" screw,1,3\ncy,x,0,4\n'
NUMBERS = "id,item,resp,date\n1,12345678901234567890,1,0.5\n,007,0,1\n-3,8,,2\n10,9,1,3\n"


@pytest.fixture
def bare(monkeypatch):
    """A call as if pandas, polars and pyarrow were not installed."""

    def call(function, *args, **options):
        with monkeypatch.context() as hidden:
            for module in ("table", "input_file", "files"):
                hidden.setattr(f"dynaesti.data.readers.{module}.find_spec", lambda name: None)
            return function(*args, **options)

    return call


@pytest.mark.parametrize("text", [MESSY, QUOTES, NUMBERS], ids=["messy", "quotes", "numbers"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_text_is_read_as_with_pyarrow(tmp_path, bare, text, encoding):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(text.encode(encoding)))
    with_arrow = dy.Responses.read(path, unreadable="drop")
    without = bare(dy.Responses.read, path, unreadable="drop")
    assert_same_responses(with_arrow, without)
    assert with_arrow.notes == without.notes
    assert isinstance(bare(read_table, path).frame, PlainFrame)
    refusals = []
    for read in (dy.Responses.read, lambda data: bare(dy.Responses.read, data)):
        try:
            refusals.append(len(read(path)))
        except dy.ResponseError as error:
            refusals.append(str(error))
    assert refusals[0] == refusals[1]


def test_bytes_that_are_no_utf8_are_repaired(tmp_path, bare):
    path = tmp_path / "a.csv"
    path.write_bytes("id,item,resp,date\nJosé,a,1,1\nann,a,0,2\n".encode("cp1252"))
    assert_same_responses(dy.Responses.read(path), bare(dy.Responses.read, path))
    assert bare(dy.Responses.read, path).notes == dy.Responses.read(path).notes


def test_mappings_rows_json_and_several_files(tmp_path, bare, small):
    text = small.astype({"date": str})
    text.to_csv(tmp_path / "a.csv", index=False)
    text.head(30).to_csv(tmp_path / "b.csv", index=False)
    rows = small.to_dict("records")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    whole = dy.Responses.read(small)
    for data in (rows, small.to_dict("list"), tmp_path / "a.jsonl", tmp_path / "a.csv"):
        assert_same_responses(whole, bare(dy.Responses.read, data))
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert_same_responses(dy.Responses.read(files), bare(dy.Responses.read, files))
    small.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(dy.MissingExtraError, match=r"dynaesti\[files\]"):
        bare(dy.Responses.read, tmp_path / "a.parquet")


def test_dates_gaps_and_odd_values(bare):
    stamps = np.array(["2024-01-01", "2024-01-03", "2024-01-02"], "M8[ns]")
    columns = {"id": ["a", "a", "b"], "item": [1, 1, 2], "resp": [1, None, True], "date": stamps}
    assert_same_responses(dy.Responses.read(columns), bare(dy.Responses.read, columns))
    texts = columns | {"date": ["3.1.2024", "2024-01-01", "2024-01-02"]}
    assert_same_responses(dy.Responses.read(texts), bare(dy.Responses.read, texts))
    words = []
    for read in (dy.Responses.read, lambda data: bare(dy.Responses.read, data)):
        with pytest.raises(dy.ResponseError) as caught:
            read(columns | {"id": [1.5, 2, None]})
        words.append(str(caught.value))
    assert words[0] == words[1]


def test_what_comes_out_depends_on_what_came_in_only(bare, small):
    static = dy.DynAEsti("1PL", bandwidth=np.inf, standard_errors=False)
    kinds = {
        pd.DataFrame: static.fit(small).items,
        dy.Frame: static.fit(small.to_dict("list")).items,
    }
    for kind, frame in kinds.items():
        assert type(frame) is kind
    fit = bare(static.fit, small.to_dict("list"))
    assert type(fit.items) is dy.Frame
    assert type(fit.predict(small.head(3))) is pd.DataFrame
    again = static.with_options(fixed=fit.items[["item", "b"]]).fit(dy.Frame(small.to_dict("list")))
    np.testing.assert_allclose(again.items["b"], fit.items["b"])


def test_labels_are_in_natural_order():
    names = ["q10", "q2", "Q1", "10", "9", "a", "a1", "a1b", "a01", "", "x-3", "007", "7", "1a"]
    ordered = ["", "1a", "007", "7", "9", "10", "Q1", "a", "a01", "a1", "a1b", "q2", "q10", "x-3"]
    rng = np.random.default_rng(1)
    for _ in range(5):
        labels, codes = encode(np.array(rng.permutation(names), dtype=object), "id")
        assert labels.tolist() == ordered
    assert labels[codes].size == len(names)
