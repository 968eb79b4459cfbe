"""Dates and text: nothing wraps, nothing is swallowed, nothing is guessed without a word."""

import os
import threading

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from support.saying import spoken


@pytest.mark.parametrize(
    "stamp", ["9999-12-31", "0001-01-01", "1600-01-01", "2300-01-01", "9999-12-31T23:59:59-05:00"]
)
def test_dates_that_no_clock_can_tell_are_refused_not_wrapped(small, stamp):
    dates = [
        f"2024-01-{k % 28 + 1:02d}{'T10:00:00+01:00' if 'T' in stamp else ''}"
        for k in range(len(small))
    ]
    dates[5] = stamp
    table = small.assign(date=dates)
    with pytest.raises(dy.ResponseError, match="outside the years"):
        dy.Responses.read(table)
    found = dy.Responses.read(table, unreadable="drop")
    assert len(found) == len(small) - 1
    assert str(found.axis.restore(np.zeros(1))[0]).startswith("2024-01-01")


@pytest.mark.parametrize(
    ("number", "called"),
    [
        (lambda t: t.year * 100 + t.month, "YYYYMM"),
        (lambda t: t.year * 10000 + t.month * 100 + t.day, "YYYYMMDD"),
        (lambda t: int(t.strftime("%Y%m%d%H%M%S")), "YYYYMMDDHHMMSS"),
        (lambda t: t.timestamp(), "seconds"),
        (lambda t: t.timestamp() * 1e3, "milliseconds"),
        (lambda t: t.timestamp() * 1e6, "microseconds"),
        (lambda t: t.timestamp() * 1e9, "nanoseconds"),
    ],
)
def test_numbers_that_are_dates_are_read_as_such_and_told(small, number, called):
    stamps = pd.date_range("2023-11-03", periods=len(small), freq="3D", tz="UTC")
    found = dy.Responses.read(small.assign(date=[number(t) for t in stamps]))
    assert found.unit == "days"
    assert any(called in note for note in found.notes)
    wanted = np.array(
        [t.replace(day=1) if called == "YYYYMM" else t for t in stamps.tz_localize(None)],
        dtype="datetime64[ns]",
    )
    assert (
        np.abs((np.sort(found.axis.restore(found.offsets)) - np.sort(wanted)).astype(float)).max()
        < 2e3
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (lambda k: 20240101 + k % 28, 20240231),
        (lambda k: 202401 + k % 12, 0),
        (lambda k: 1.7e9 + 1e4 * k, -1),
    ],
)
def test_one_odd_number_among_dates_is_named(small, right, wrong):
    table = small.assign(date=[right(k) if k else wrong for k in range(len(small))])
    with pytest.raises(dy.ResponseError, match="where the others do"):
        dy.Responses.read(table)
    assert dy.Responses.read(table, unreadable="drop").unit == "days"


def test_a_stated_zone_holds_for_frames_too(small, tmp_path):
    table = small.assign(
        date=pd.Timestamp("2024-03-30 12:00") + pd.to_timedelta(np.arange(len(small)), unit="h")
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    starts = {
        str(dy.Responses.read(data, timezone="Asia/Tokyo").axis.restore(np.zeros(1))[0])
        for data in (table, tmp_path / "t.csv")
    }
    assert starts == {"2024-03-30T03:00:00.000000000"}


def test_mixed_clocks_and_odd_hours_are_told(small):
    seconds = 1.7e9 + 1e4 * small["date"]
    with pytest.raises(dy.ResponseError, match="make them alike"):
        dy.Responses.read(small.assign(date=np.where(small.index % 2, seconds, seconds * 1e3)))
    with pytest.raises(dy.ResponseError, match="did you mean"):
        dy.Responses.read(small.assign(date=seconds * 1e9), unit="unix")
    dates = ["2024-03-31 02:30:00" if k % 2 else "2024-10-27 02:30:00" for k in range(len(small))]
    notes = " ".join(dy.Responses.read(small.assign(date=dates), timezone="Europe/Zurich").notes)
    assert "do not exist in Europe/Zurich" in notes
    assert "occur twice" in notes


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_times_beyond_computing_are_refused_at_once(small, scale):
    with pytest.raises(dy.InputError, match="unit"):
        dy.DynAEsti().fit(small.assign(date=small["date"] * scale))


def test_nobody_at_two_instants_is_told_as_such(small):
    alone = small.groupby("id").head(1)
    with pytest.raises(dy.InputError, match="nobody answered at more than one instant"):
        dy.DynAEsti(cohort=None).fit(alone)
    with pytest.raises(dy.InputError, match="everybody answered at one instant"):
        dy.DynAEsti().fit(alone.assign(date=7.0))


@pytest.mark.parametrize("strays", [[500], [300, 700], [10, 11, 500]])
def test_a_stray_quote_costs_its_own_line_only(tmp_path, capsys, strays):
    rows = [f"p{k % 9},i{k % 4},{k % 2},{k}" for k in range(1000)]
    for k in strays:
        rows[k] = '"' + rows[k]
    (tmp_path / "q.csv").write_text("id,item,resp,date\n" + "\n".join(rows) + "\n")
    code, _, err = spoken(capsys, "validate", tmp_path / "q.csv")
    assert code == 3
    assert f"line {strays[0] + 2}" in err
    _, out, _ = spoken(capsys, "validate", tmp_path / "q.csv", "--drop-unreadable")
    assert f"{1000 - len(strays)} answers" in out
    assert f"Left out: {len(strays)} line" in out


def test_names_may_hold_quotes_commas_and_line_ends(tmp_path):
    rows = [f'"Smith, {k % 3}\nthe ""younger""",i{k % 4},{k % 2},{k}' for k in range(30)]
    (tmp_path / "q.csv").write_text("id,item,resp,date\n" + "\n".join(rows) + "\n")
    found = dy.Responses.read(tmp_path / "q.csv")
    assert len(found) == 30
    assert found.people.tolist() == [f'Smith, {k}\nthe "younger"' for k in range(3)]


def test_one_byte_of_another_encoding_costs_nobody_their_name(tmp_path):
    rows = [f"José {k % 5},i{k % 4},{k % 2},{k}" for k in range(100_000)]
    text = ("id,item,resp,date\n" + "\n".join(rows) + "\n").encode()
    broken = text + "Zoë,i0,1,5\n".encode("cp1252") + b"Ren\xe9e,i1,0,6\n"
    (tmp_path / "a.csv").write_bytes(broken)
    found = dy.Responses.read(tmp_path / "a.csv")
    assert sorted(found.people) == [
        "José 0",
        "José 1",
        "José 2",
        "José 3",
        "José 4",
        "Renée",
        "Zoë",
    ]
    assert any("2 bytes are not UTF-8" in note for note in found.notes)
    shards = dy.prepare(tmp_path / "a.csv", tmp_path / "s")
    assert shards.people == 7


@pytest.mark.parametrize(
    ("heading", "end"),
    [
        ("id,item,resp,date", ","),
        ("id,item,resp,date,", ","),
        ("id;item;resp;date", ""),
        ("id;item;resp;date", ";"),
        ("id\titem\tresp\tdate", ""),
    ],
)
def test_delimiters_at_line_ends_and_ragged_first_lines(tmp_path, heading, end):
    mark = next(sign for sign in ",;\t" if sign in heading)
    rows = [mark.join((f"p{k % 5}", f"i{k % 3}", str(k % 2), str(k))) for k in range(40)]
    (tmp_path / "a.csv").write_text(heading + "\n" + "".join(f"{row}{end}\n" for row in rows))
    assert len(dy.Responses.read(tmp_path / "a.csv")) == 40


def test_points_beside_decimal_commas_are_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("id;item;resp;date\na;i;1;1,5\na;i;0;1.000\nb;i;1;2\n")
    with pytest.raises(dy.ResponseError, match=r"1\.000"):
        dy.Responses.read(tmp_path / "a.csv")


def test_rows_of_dicts_mix_whole_numbers_and_others():
    values = ((1, 1, 1, 1), (1, 1, 0, 1.5), (2, 1, None, 2))
    rows = [dict(zip(("id", "item", "resp", "date"), row, strict=True)) for row in values]
    found = dy.Responses.read(rows)
    assert found.axis.restore(found.offsets).tolist() == [1.0, 1.5]
    assert dy.Responses.read([row | {"id": 2**70 + row["id"]} for row in rows]).people.tolist() == [
        str(2**70 + 1)
    ]


def test_pipes_are_read_as_files(small, tmp_path):
    small.to_csv(tmp_path / "a.csv", index=False)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "a.csv").read_bytes())
    )
    writer.start()
    assert len(dy.Responses.read(tmp_path / "pipe")) == len(small)
    writer.join()
