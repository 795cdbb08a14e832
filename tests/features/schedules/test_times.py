"""When a schedule is due: whatever the clocks of its zone do, and however it was written."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.domain.times import find_zone
from bot.features.schedules.schedule import MAX_COUNTED_MISSES, Times, read_repetition

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def times(first: str, every: str = "", until: str = "") -> Times:
    return Times(at(first), every, BERLIN, at(until) if until else None)


def local(moments: list[datetime]) -> list[str]:
    return [f"{each.astimezone(BERLIN):%d %b %H:%M}" for each in moments]


def test_nine_is_nine_on_both_sides_of_each_change_of_the_clocks() -> None:
    daily = times("2026-03-27 09:00", "day")
    found = daily.list_next(at("2026-03-27 10:00"), 3)
    assert local(found) == ["28 Mar 09:00", "29 Mar 09:00", "30 Mar 09:00"]
    assert found[1] - found[0] == timedelta(hours=23)
    found = times("2026-10-24 09:00", "day").list_next(at("2026-10-24 10:00"), 2)
    assert found[1] - found[0] == timedelta(hours=24)
    assert found[0] - at("2026-10-24 09:00") == timedelta(hours=25)


def test_a_time_that_the_clocks_skip_comes_once_and_so_does_one_that_they_repeat() -> None:
    night = times("2026-03-28 02:30", "day")
    assert local(night.list_next(at("2026-03-28 03:00"), 2)) == ["29 Mar 03:30", "30 Mar 02:30"]
    night = times("2026-10-24 02:30", "day")
    twice = night.list_next(at("2026-10-24 03:00"), 2)
    assert local(twice) == ["25 Oct 02:30", "26 Oct 02:30"]
    assert twice[0] == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # the first of both


@pytest.mark.parametrize(
    ("said", "first", "found"),
    [
        ("day", "2026-03-02 09:00", ["03 Mar 09:00", "04 Mar 09:00", "05 Mar 09:00"]),
        ("weekday", "2026-03-06 09:00", ["09 Mar 09:00", "10 Mar 09:00", "11 Mar 09:00"]),
        ("mondays and thursdays", "2026-03-02 09:00", ["05 Mar 09:00", "09 Mar 09:00", "12 Mar 09:00"]),
        ("week", "2026-03-04 09:00", ["11 Mar 09:00", "18 Mar 09:00", "25 Mar 09:00"]),
        ("month", "2026-01-31 09:00", ["28 Feb 09:00", "31 Mar 09:00", "30 Apr 09:00"]),
        ("3d", "2026-03-02 09:00", ["05 Mar 09:00", "08 Mar 09:00", "11 Mar 09:00"]),
        ("2h", "2026-03-02 09:00", ["02 Mar 11:00", "02 Mar 13:00", "02 Mar 15:00"]),
    ],
)
def test_how_often(said: str, first: str, found: list[str]) -> None:
    every = read_repetition(said, at(first).astimezone(BERLIN))
    assert read_repetition(every, at(first).astimezone(BERLIN)) == every  # what is kept reads the same
    assert local(times(first, every).list_next(at(first), 3)) == found


def test_it_ends_and_starts_when_it_says() -> None:
    short = times("2026-03-02 09:00", "day", until="2026-03-03 09:00")
    assert local(short.list_next(at("2026-03-01 00:00"), 9)) == ["02 Mar 09:00", "03 Mar 09:00"]
    assert times("2026-03-02 09:00").find_next(at("2026-03-02 09:00")) is None


def test_a_week_away_is_counted_and_a_year_of_quarters_is_not() -> None:
    assert times("2026-03-02 09:00", "day").count_missed(at("2026-03-03 09:00"), at("2026-03-10 12:00")) == 7
    assert (
        times("2026-03-02 09:00", "15m").count_missed(at("2026-03-03 09:00"), at("2027-03-03 09:00"))
        == MAX_COUNTED_MISSES
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("1s", "the shortest is every 15 min"),
        ("14m", "the shortest is every 15 min"),
        ("901s", "whole minutes"),
        ("500d", "up to 366d"),
        ("now and then", "write day, weekday, week"),
        ("* * * * *", "write day, weekday, week"),
    ],
)
def test_what_is_no_pace_is_refused_in_words(said: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("*", r"\*")):
        read_repetition(said, at("2026-03-02 09:00"))


@pytest.mark.parametrize("name", ["Nowhere/Land", "../../etc/passwd", "Europe", "", "\x00"])
def test_what_is_no_time_zone_is_refused_in_words(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        find_zone(name)


@pytest.mark.parametrize(
    ("every", "words"),
    [
        ("", "Monday 2 Mar 2026, 09:00"),
        ("weekday", "every weekday at 09:00"),
        ("monday, thursday", "every Monday and Thursday at 09:00"),
        ("month", "every month on day 2, at 09:00"),
        ("3d", "every 3 d at 09:00"),
        ("2h", "every 2 h from Monday 2 Mar 2026, 09:00"),
    ],
)
def test_when_in_words(every: str, words: str) -> None:
    assert times("2026-03-02 09:00", every).text == words
