"""Times of every kind on one axis."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.data import parse_iso
from dynaesti.errors import InputError

VOTES = dy.Bernoulli([0, 1, 0, 1, 1, 1])
DAYS = np.array([0.0, 1.0, 2.5, 4.0, 6.0, 7.0])


def fit(times, emissions=VOTES, **options):
    return dy.CurvFiFE(**options).fit(times, emissions)


@pytest.mark.parametrize(
    "kind", ["numpy", "datetime", "date", "pandas", "pandas_tz", "polars", "polars_tz"]
)
def test_timestamps_of_every_kind_count_in_days(kind):
    start = datetime(2024, 3, 30, 12)  # a change of daylight saving time lies within
    stamps = [start + timedelta(days=d) for d in DAYS]
    times = {
        "numpy": lambda: np.array(stamps, dtype="datetime64[s]"),
        "datetime": lambda: stamps,
        "date": lambda: [date(2024, 3, 30) + timedelta(days=int(np.ceil(d))) for d in DAYS],
        "pandas": lambda: pd.Series(stamps),
        "pandas_tz": lambda: pd.Series(stamps).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"),
        "polars": lambda: pl.Series(stamps),
        "polars_tz": lambda: pl.Series([s.replace(tzinfo=UTC) for s in stamps]),
    }[kind]()
    curve = fit(times)
    days = np.ceil(DAYS) if kind == "date" else DAYS
    assert_allclose(curve.observations.offsets, days)
    assert curve.observations.axis.unit == "days"
    assert_allclose(curve.mean(times), fit(days).mean(days), atol=1e-12)
    assert curve.grid(3).dtype.kind == "M"
    assert len(curve.to_frame()) == 200


def test_zones_must_agree():
    naive, berlin = datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    with pytest.raises(dy.InputError, match="some timestamps have a time zone"):
        fit([naive, berlin], dy.Bernoulli([0, 1]))
    curve = fit([naive, naive + timedelta(days=1)], dy.Bernoulli([0, 1]))
    with pytest.raises(dy.InputError, match="lack a time zone"):
        curve.mean([berlin])
    zoned = fit(pd.Series(pd.date_range("2024-03-01", periods=6, tz="Europe/Berlin")))
    assert_allclose(
        zoned.mean(zoned.to_frame()["time"]), zoned.mean(zoned.grid()), rtol=0
    )  # what a frame says can be asked again
    assert_allclose(
        zoned.mean(pd.Timestamp("2024-03-03", tz="Europe/Berlin")),
        zoned.mean([datetime(2024, 3, 2, 23)]),
        rtol=0,
    )
    with pytest.raises(dy.InputError, match="fitted on timestamps"):
        curve.mean([1.0])
    with pytest.raises(dy.InputError, match="fitted on numbers"):
        fit(DAYS).mean([naive])


def test_precision_of_far_and_tiny_clocks():
    """1e9 seconds, spans of 1e-12, spans of 1e12: the curve is the same."""
    t = np.linspace(0, 1, 6)
    truth = fit(t).mean(t)
    assert_allclose(
        fit(1e9 + 60 * t).mean(1e9 + 60 * t), truth, atol=1e-5
    )  # a double resolves 1e-7 s there
    for scale in (1e-12, 1e-3, 1e6, 1e12):
        assert_allclose(fit(scale * t).mean(scale * t), truth, atol=1e-9)


@pytest.mark.parametrize("text", ["31.12.2024", "31/12/2024", "31 Dec 2024", "2024/12/31"])
def test_dates_that_can_be_read_in_one_way_only_are_read(text):
    assert parse_iso([text], "at").tolist() == [datetime(2024, 12, 31)]


def test_dates_that_can_be_read_in_two_ways_are_refused():
    with pytest.raises(InputError, match="can be read as several dates"):
        parse_iso(["05/06/2024"], "at")
