"""Nobody is merged, torn apart or renamed in silence."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dynaesti as dy
from support.saying import spoken, told

LONG = 1712345678901234000


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        pl.from_pandas,
        pa.Table.from_pandas,
    ],
)
def test_long_ids_are_told_apart_beside_a_blank_one(small, make):
    numbers = LONG + np.unique(small["id"], return_inverse=True)[1]
    table = small.assign(id=numbers.astype(object))
    table.loc[len(table)] = [None, None, None, None]
    found = dy.Responses.read(make(table.astype({"id": "Int64"})), unreadable="drop")
    assert found.people.tolist() == sorted(set(numbers.tolist()))


def test_a_blank_last_line_merges_nobody(tmp_path, capsys):
    (tmp_path / "s.csv").write_text(
        f"user_id,item,resp,date\n{LONG + 1},q1,1,1\n{LONG + 2},q1,0,2\n,,,\n"
    )
    assert "2 answers of 2 people" in spoken(capsys, "validate", tmp_path / "s.csv")[1]


def test_ids_that_floats_have_rounded_are_refused(small):
    with pytest.raises(dy.ResponseError, match="cannot be told apart"):
        dy.Responses.read(
            small.assign(id=float(LONG) + 256.0 * np.unique(small["id"], return_inverse=True)[1])
        )


def test_unsigned_ids_beyond_the_signed_ones_survive_shards(small, tmp_path):
    ids = np.array([2**63 + 5 + k % 3 for k in range(len(small))], dtype=np.uint64)
    shards = dy.prepare(small.assign(id=ids), tmp_path / "shards")
    assert sorted(map(int, shards.responses(0).people.tolist())) == [
        2**63 + 5,
        2**63 + 6,
        2**63 + 7,
    ]
    assert dy.Responses.read(small.assign(id=ids)).people.tolist() == [
        2**63 + 5,
        2**63 + 6,
        2**63 + 7,
    ]


@pytest.mark.parametrize(("first", "then"), [(str, float), (int, float), (float, str), (str, int)])
def test_one_person_however_their_number_is_written(small, first, then):
    numbers = np.unique(small["id"], return_inverse=True)[1] + 1
    fit = dy.DynAEsti(standard_errors=False).fit(small.assign(id=[first(n) for n in numbers]))
    more = small.assign(id=[then(n) for n in numbers], date=small["date"] + 200).head(30)
    if {first, then} == {float, str}:  # text such as "1.0" is a name of its own; 1.0 is 1
        more = more.assign(
            id=[str(n) for n in numbers[:30]] if then is str else numbers[:30].astype(float)
        )
    assert fit.update(more).responses.people.size == 20


def test_a_number_and_its_text_are_one_in_memory_and_shards(small, tmp_path):
    table = small.assign(
        id=pd.Series([(1, "1", 2, "2")[k % 4] for k in range(len(small))], dtype=object)
    )
    assert dy.Responses.read(table).people.size == 2
    assert dy.prepare(table, tmp_path / "s", shards=2).people == 2
    ids = pl.Series([2**100, 1, 2**100], dtype=pl.Int128)
    wide = pl.DataFrame({"id": ids, "item": [1, 1, 1], "resp": [1, 0, 1], "date": [1.0, 2.0, 3.0]})
    assert dy.Responses.read(wide).people.size == 2


def test_strangers_who_are_called_nearly_alike_are_named(small):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    more = small.head(30).assign(id=small["id"].head(30) + " ", date=small["date"].head(30) + 200)
    words, grown = told(lambda: fit.update(more))
    assert "called nearly as known ones" in words
    assert any("2 of them new" in note for note in grown.responses.notes)
    composed, apart = "Jos\u00e9", "Jose\u0301"
    fit = dy.DynAEsti(standard_errors=False).fit(small.replace({"id": {small["id"][0]: composed}}))
    assert (
        "called nearly" in told(lambda: fit.predict(small.head(2).assign(id=[apart, composed])))[0]
    )


def test_torn_characters_are_refused_at_the_door(small):
    table = small.assign(
        id=pd.Series([name if k else "\udc80x" for k, name in enumerate(small["id"])], dtype=object)
    )
    with pytest.raises(dy.ResponseError, match="cannot be written down"):
        dy.Responses.read(table)
    with pytest.raises(dy.DynaestiError):
        dy.Responses.read({name: list(table[name]) for name in table})


def test_two_rows_of_a_matrix_are_not_one_person():
    with pytest.raises(dy.ResponseError, match="several rows"):
        dy.Responses.from_matrices(np.eye(2), np.eye(2), people=["a", "a"])
