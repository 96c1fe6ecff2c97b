"""Dates, times and durations against the calendar of `datetime` and against clock arithmetic."""

from __future__ import annotations

import calendar
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.formats import FORMATS, Format
from tests.grammar.formats.membership import check, decide, holds

DATE, TIME, DATE_TIME, DURATION = (FORMATS[name] for name in ("date", "time", "date-time", "duration"))
OFFSET_MINUTES = st.integers(-(24 * 60) + 1, 24 * 60 - 1)


def offset_text(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def test_every_day_of_every_kind_of_year_is_a_date() -> None:
    for year in (1, 4, 100, 400, 1582, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9999):
        for month in range(14):
            days = calendar.monthrange(year, month)[1] if 1 <= month <= 12 else 0
            for day in range(34):
                assert holds(DATE, f"{year:04}-{month:02}-{day:02}") == (1 <= day <= days)


def test_the_29th_of_february_is_there_in_leap_years_only() -> None:
    for year in range(10_000):
        leap = calendar.isleap(year)
        assert holds(DATE, f"{year:04}-02-29") == leap
        assert holds(DATE_TIME, f"{year:04}-02-29T23:59:60Z") == leap
        assert holds(DATE_TIME, f"{year:04}-02-28T23:59:60Z") == (not leap)


@given(st.dates())
def test_a_date_of_datetime_is_a_date(date: datetime.date) -> None:
    assert holds(DATE, date.isoformat())


@given(st.datetimes(), OFFSET_MINUTES)
def test_a_datetime_of_datetime_is_a_date_time(moment: datetime.datetime, minutes: int) -> None:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    text = moment.replace(tzinfo=zone).isoformat()
    assert holds(DATE_TIME, text)
    assert holds(TIME, text[11:])
    assert not holds(TIME, text)
    assert not holds(DATE, text)


@given(st.text("0123456789-+:.TtZz", max_size=26))
def test_what_is_a_date_time_is_a_date_and_a_time(text: str) -> None:
    assert not holds(DATE_TIME, text) or (holds(DATE, text[:10]) and holds(TIME, text[11:]) and text[10] in "Tt")


def leap_second(is_one: bool, minutes: int) -> bool | None:
    """What the formats say: at offsets other than whole quarters of an hour, they leave a leap second open."""
    return None if is_one and minutes % 15 else is_one


def test_a_leap_second_is_one_minute_of_utc_at_every_offset() -> None:
    for minutes in range(-(24 * 60) + 1, 24 * 60):
        local = (23 * 60 + 59 + minutes) % (24 * 60)
        for shift in (0, 1, -1, 60, -60, 59, 61):
            clock = (local + shift) % (24 * 60)
            text = f"{clock // 60:02}:{clock % 60:02}:60{offset_text(minutes)}"
            assert decide(TIME, text) is leap_second(shift == 0, minutes)


@given(st.integers(0, 23), st.integers(0, 59), OFFSET_MINUTES, st.sampled_from(["", ".5", ".000"]))
def test_a_leap_second_anywhere_else_is_invalid(hour: int, minute: int, minutes: int, fraction: str) -> None:
    text = f"{hour:02}:{minute:02}:60{fraction}{offset_text(minutes)}"
    assert decide(TIME, text) is leap_second((hour * 60 + minute - minutes) % (24 * 60) == 23 * 60 + 59, minutes)


@pytest.mark.parametrize("step", [1, 15])
@given(st.data())
def test_a_leap_second_ends_a_month_in_utc(step: int, data: st.DataObject) -> None:
    """The date of the string is local: east of Greenwich the first day of the next month has begun."""
    day = data.draw(st.dates(datetime.date(1, 1, 2), datetime.date(9999, 12, 30)))
    if data.draw(st.booleans()):
        day = max(day.replace(day=1), datetime.date(1, 2, 1)) - datetime.timedelta(days=1)
    minutes = data.draw(st.integers(-(24 * 60) // step + 1, 24 * 60 // step - 1)) * step
    local = datetime.datetime.combine(day, datetime.time(23, 59)) + datetime.timedelta(minutes=minutes)
    ends_a_month = (day + datetime.timedelta(days=1)).day == 1
    text = f"{local.date().isoformat()}T{local:%H:%M}:60{offset_text(minutes)}"
    assert decide(DATE_TIME, text) is leap_second(ends_a_month, minutes)


@pytest.mark.parametrize("form", [TIME, DATE_TIME], ids=lambda form: form.name)
@given(st.data())
def test_the_wider_set_differs_in_leap_seconds_only(form: Format, data: st.DataObject) -> None:
    assert form.wider is not None
    text = data.draw(st.from_regex(form.wider.all_of[0].replace("[^]", r"[\s\S]"), fullmatch=True))
    if not holds(form, text) and holds(form.wider, text):
        assert ":60" in text


def test_times() -> None:
    check(
        "time",
        accepts=["00:00:00Z", "23:59:59.9z", "12:00:00-00:00", "23:59:60Z", "23:59:60-00:00", "00:14:60.25+00:15"],
        rejects=["24:00:00Z", "00:00:00", "00:00:00.Z", "00:00Z", "00:00:00+24:00", "00:00:00+1:00", "00:00:00+0100"],
    )
    check("time", rejects=["00:00:60Z", "00:00:60+00:00", "23:59:60+23:59", "23:58:60+23:58", "00:00:60-00:00"])
    assert decide(TIME, "23:58:60+23:59") is None


def test_date_times() -> None:
    check(
        "date-time",
        accepts=["0000-02-29T00:00:00Z", "2016-12-31t23:59:60z", "2017-01-01T00:59:60+01:00", "2016-12-31T18:59:60.9-05:00"],
        rejects=[
            "2016-12-31 23:59:59Z",
            "2016-12-30T23:59:60Z",
            "2017-01-01T23:59:60Z",
            "2016-12-31T00:59:60+01:00",
            "2016-12-31",
        ],
    )


@given(st.lists(st.integers(0, 10**6), min_size=6, max_size=6), st.integers(0, 63))
def test_a_duration_has_no_gap_between_its_units(numbers: list[int], chosen: int) -> None:
    units = [index for index in range(6) if chosen >> index & 1]
    date = "".join(f"{numbers[index]}{'YMD'[index]}" for index in units if index < 3)
    time = "".join(f"{numbers[index]}{'HMS'[index - 3]}" for index in units if index >= 3)
    gapless = "".join("YMD"[index] for index in units if index < 3) in "YMD"
    gapless &= "".join("HMS"[index - 3] for index in units if index >= 3) in "HMS"
    assert holds(DURATION, f"P{date}{'T' if time else ''}{time}") == (gapless and bool(units))


def test_durations() -> None:
    check(
        "duration",
        accepts=["P3W", "P007D", "PT0S"],
        rejects=["P", "PT", "P1DT", "p1d", "P1W1D", "P1.5D", "P1Y1W", "PT1D", "P1S"],
    )
