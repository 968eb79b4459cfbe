"""Dates in text: formats, zones, epochs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.data.dates import looks_like_epoch

read = dy.Responses.read


@pytest.mark.parametrize(
    ("texts", "days", "options"),
    [
        (["2024-05-01", "2024-05-03"], [0, 2], {}),
        (["01.05.2024", "03.05.2024"], [0, 2], {}),
        (["13/05/2024 10:00", "15/05/2024 22:00"], [0, 2.5], {}),
        (["05/13/2024", "05/15/2024"], [0, 2], {}),
        (["20240501", "20240503"], [0, 2], {}),
        (["1714521600", "1714694400"], [0, 2], {"unit": "unix"}),
        (["1714521600000", "1714694400000"], [0, 2], {"unit": "unix-ms"}),
        (["5/1/24", "5/3/24"], [0, 2], {"time_format": "%m/%d/%y"}),
        (
            ["2024-03-31 01:00", "2024-03-31 03:00"],
            [0, 1 / 24],
            {"timezone": "Europe/Zurich"},
        ),  # the clock jumped in between
        (["1.5", "3.5"], [0, 2], {}),
    ],
)
def test_dates_are_read_as_they_are_written(tmp_path, texts, days, options):
    path = tmp_path / "a.csv"
    path.write_text(
        "id,item,resp,date\n" + "".join(f"a,{k},1,{text}\n" for k, text in enumerate(texts))
    )
    assert_allclose(read(path, **options).offsets, days, atol=1e-9)


def test_dates_that_can_be_read_two_ways_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,item,resp,date\na,1,1,03/04/2024\na,2,1,05/06/2024\n")
    with pytest.raises(dy.ResponseError, match="can be read as '%d/%m/%Y' or '%m/%d/%Y'"):
        read(path)
    path.write_text("id,item,resp,date\na,1,1,2024-01-01T10:00Z\na,2,1,2024-01-02T10:00\n")
    with pytest.raises(dy.ResponseError, match="lack one"):
        read(path)
    with pytest.raises(dy.InputError, match="no zone is called"):
        read(path, timezone="Mars/Olympus")
    assert len(read(path, timezone="Europe/Zurich")) == 2


def test_unix_clocks_are_recognised():
    assert looks_like_epoch(np.array([1.7e9, 1.71e9])) == "unix"
    assert looks_like_epoch(np.array([1.7e12])) == "unix-ms"
    assert looks_like_epoch(np.array([12.0, 300.0])) is None


@pytest.mark.parametrize("gap", [None, "NA"])
def test_iso_dates_are_alike_by_arrow_and_one_by_one(monkeypatch, rng, gap):
    from dynaesti.data import dates

    stamps = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 10**8, 200)
    texts = [*np.datetime_as_string(stamps).tolist(), "1999-12-31", "2024-02-29 10:30:15.25", gap]
    table = {"id": ["a"] * 203, "item": ["q"] * 203, "resp": [1] * 203, "date": texts}
    fast = read(table, unreadable="drop")
    monkeypatch.setattr(dates, "_plain_iso", lambda series, options: None)
    slow = read(table, unreadable="drop")
    assert fast.axis == slow.axis
    assert fast.offsets.tolist() == slow.offsets.tolist()
    assert fast.notes == slow.notes
