"""Dates as people and systems write them, and occasions with numbers instead of dates."""

from datetime import datetime

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.data.date_texts import occasion_numbers, plain_date

WHEN = datetime(2024, 5, 31, 22, 5, 9)
DAY = datetime(2024, 5, 31)
WRITTEN = {  # all of them the same time, in UTC
    "2024-05-31 22:05:09 UTC": WHEN,
    "2024-05-31T22:05:09Z": WHEN,
    "2024/05/31 10:05:09 PM GMT+0": WHEN,
    "2024/06/01 12:05:09 AM GMT+2": WHEN,
    "2024/06/01 03:35:09 AM GMT+5:30": WHEN,
    "2024-05-31 23:05:09 +0100": WHEN,
    "Fri, 31 May 2024 22:05:09 GMT": WHEN,
    "Fri May 31 22:05:09 UTC 2024": WHEN,
    "31/05/2024, 22:05:09": WHEN,
    "5/31/2024 10:05:09pm": WHEN,
    "May 31 2024 10:05:09PM": WHEN,
    "31. Mai 2024, 22:05:09": WHEN,
    "31 mai 2024 à 22:05:09": WHEN,
    "31 de mayo de 2024 22:05:09": WHEN,
    "31-MAY-24": DAY,
    "31-May-2024": DAY,
    "2024.05.31": DAY,
    "31st May 2024": DAY,
    "May 31, 2024": DAY,
    "Freitag, 31. Mai 2024": DAY,
    "2024-05": datetime(2024, 5, 1),
    "May 2024": datetime(2024, 5, 1),
    "05/2024": datetime(2024, 5, 1),
}


def read(times, **options):
    table = {"id": [1] * len(times), "item": range(len(times)), "resp": [0, 1] * (len(times) // 2)}
    return dy.Responses.read({**table, "time": times}, **options)


@pytest.mark.parametrize("text", WRITTEN)
def test_a_column_of_dates(text):
    found = read([text, text])
    assert found.axis.restore(found.offsets)[0] == np.datetime64(WRITTEN[text])


@pytest.mark.parametrize("text", [text for text in WRITTEN if "2024" in text])
def test_a_date_of_the_command_line(text):
    from dynaesti.data import parse_iso

    assert parse_iso([text], "at")[0] == np.datetime64(WRITTEN[text])


@pytest.mark.parametrize(
    ("word", "month"),
    [("März", 3), ("Dez.", 12), ("août", 8), ("févr.", 2), ("enero", 1), ("Sept.", 9), ("Okt", 10)],
)
def test_months_in_four_languages(word, month):
    found = read([f"3 {word} 2024", f"4 {word} 2024"])
    assert found.axis.restore(found.offsets).tolist() == [
        np.datetime64(datetime(2024, month, day), "ns").astype("int64") for day in (3, 4)
    ]


def test_plain_dates_are_left_alone():
    for text in ("2024-05-31", "31.05.2024 10:05", "5/31/24"):
        assert plain_date(text) is text


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["T1", "T2"], [1, 2]),
        (["Week 3", "week 12"], [3, 12]),
        (["wave_1", "wave_2"], [1, 2]),
        (["pre", "Post"], [0, 1]),
        (["pre", "mid", "post"], [0, 1, 2]),
        (["Pre-test", "Post-test"], [0, 1]),
        (["2022/23", "2023/24"], [2022, 2023]),
    ],
)
def test_occasions_are_read_as_their_numbers(texts, numbers):
    assert list(occasion_numbers(texts).values()) == numbers
    found = read(texts * 2)
    assert sorted(set((found.offsets + found.axis.origin).tolist())) == numbers
    assert any("occasions are read as their numbers" in note for note in found.notes)


@pytest.mark.parametrize(
    "texts", [["T1", "week 2"], ["pre", "then"], ["2022/25", "2023/24"], ["a"]]
)
def test_other_words_are_no_occasions(texts):
    assert occasion_numbers(texts) is None


def test_dates_and_hours_in_two_columns_are_put_together():
    table = {"id": [1, 1], "item": [1, 2], "resp": [0, 1], "Datum": ["31.05.2024", "01.06.2024"]}
    found = dy.Responses.read({**table, "Uhrzeit": ["22:00", "6.00"]})
    assert found.offsets.tolist() == [0, 8 / 24]
    assert "time: dates of 'Datum' and hours of 'Uhrzeit' were put together" in found.notes
    alone = dy.Responses.read({**table, "Uhrzeit": ["22:00", "6.00"]}, time="Datum")
    assert alone.offsets.tolist() == [0, 1]


def test_a_way_that_is_not_known_can_be_said():
    with pytest.raises(dy.ResponseError, match="say how times are written, such as time_format="):
        read(["kl. 3 den 5", "kl. 4 den 6"])
