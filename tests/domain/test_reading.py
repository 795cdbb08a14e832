"""Faster than it can be read: fifty cases with the right answer, and what is counted of a person."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.domain.reading_signs import (
    ReadDecision,
    count_signs,
    count_words,
    is_faster_than_reading,
    is_outside_hours,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
BACK = -3.0

CASES: list[tuple[str, list[int | None], list[float | None], list[float | None], bool | None]] = [
    # words of each row, seconds since the copy was posted, seconds since View all was opened, the answer
    ("a pause as long as it takes", [50], [10], [None], False),
    ("a moment less", [50], [9.99], [None], True),
    ("a moment more", [50], [10.01], [None], False),
    ("a second for 50 words", [50], [1], [None], True),
    ("a minute for 50 words", [50], [60], [None], False),
    ("a week for 50 words", [50], [604_800], [None], False),
    ("no time at all", [50], [0], [None], True),
    ("one word in a fifth of a second", [1], [0.2], [None], False),
    ("one word in a tenth", [1], [0.1], [None], True),
    ("five words in a second", [5], [1], [None], False),
    ("six words in a second", [6], [1], [None], True),
    ("nothing to read", [0], [0], [None], False),
    ("nothing to read, later", [0], [5], [None], False),
    ("a long card in its time", [400], [80], [None], False),
    ("a long card too fast", [400], [79], [None], True),
    ("a long card with View all counts from the copy", [400], [80], [2], False),
    ("a card that fits, View all opened at the end", [50], [30], [1], False),
    ("a card that fits, View all opened at once", [50], [30], [29], False),
    ("a card that fits, both too fast", [50], [5], [1], True),
    ("what does not fit counts from View all", [401], [600], [10], True),
    ("what does not fit, read in full", [401], [600], [81], False),
    ("what does not fit, at the limit", [500], [600], [100], False),
    ("what does not fit, just under the limit", [500], [600], [99.9], True),
    ("what does not fit and was not opened counts from the copy", [500], [200], [None], False),
    ("what does not fit and was not opened, too fast", [500], [50], [None], True),
    ("opened without a copy", [100], [None], [20], False),
    ("opened without a copy, too fast", [100], [None], [19], True),
    ("10,000 words in half an hour", [10_000], [3600], [1800], True),
    ("10,000 words in 34 minutes", [10_000], [3600], [2040], False),
    ("not known when it was posted", [50], [None], [None], None),
    ("not counted", [None], [60], [None], None),
    ("not counted and too fast", [None], [0], [None], None),
    ("neither is known", [None], [None], [None], None),
    ("the clock was set back", [50], [BACK], [None], None),
    ("the clock was set back after View all", [500], [60], [BACK], None),
    ("a table by its rows, in time", [20, 20, 10], [10, 10, 10], [None] * 3, False),
    ("a table by its rows, too fast", [20, 20, 11], [10, 10, 10], [None] * 3, True),
    ("a table of one row", [50], [10], [None], False),
    ("a hundred rows of ten words in a minute", [10] * 100, [60] * 100, [None] * 100, True),
    ("a hundred rows of ten words in four minutes", [10] * 100, [240] * 100, [None] * 100, False),
    ("each row alone would be in time", [30, 30, 30], [10, 10, 10], [None] * 3, True),
    ("a row that was changed later counts from then", [20, 20], [60, 4], [None] * 2, True),
    ("a row that was changed later, in time", [20, 20], [60, 8], [None] * 2, False),
    ("a table that does not fit, opened", [200, 201], [600, 600], [10, 10], True),
    ("a table that does not fit, opened in time", [200, 200, 100], [600] * 3, [100] * 3, False),
    ("a table with a row that is not counted", [20, None], [60, 60], [None] * 2, None),
    ("a table of which one row has no copy", [20, 20], [8, None], [None] * 2, False),
    ("a table of which no row has a copy", [20, 20], [None, None], [None] * 2, None),
    ("a table without words", [0, 0, 0], [0, 0, 0], [None] * 3, False),
    ("a table, opened row by row", [20, 20], [None, None], [9, 7.9], True),
]


def before(seconds: float | None) -> datetime | None:
    return None if seconds is None else NOON - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("case", "words", "shown", "viewed", "answer"), CASES, ids=[case[0] for case in CASES]
)
def test_faster_than_it_can_be_read(
    case: str,
    words: list[int | None],
    shown: list[float | None],
    viewed: list[float | None],
    answer: bool | None,
) -> None:
    rows = [
        ReadDecision(
            "ben", NOON, "c1", approves=True, word_count=count, shown_at=before(at), viewed_at=before(opened)
        )
        for count, at, opened in zip(words, shown, viewed, strict=True)
    ]
    assert is_faster_than_reading(rows) is answer, case


def test_there_are_fifty_cases() -> None:
    assert len(CASES) == 50


def decide(minutes: float, *, approves: bool = True, card: str = "", **more: object) -> ReadDecision:
    at = NOON + timedelta(minutes=minutes)
    return ReadDecision("ben", at, card or f"card {minutes}", approves=approves, **more)  # type: ignore[arg-type]


def test_the_longest_run_without_a_no_is_in_the_order_of_time() -> None:
    pattern = [True, True, False, True, True, True, False, True]
    decisions = [decide(n, approves=yes) for n, yes in enumerate(pattern)]
    signs = count_signs(reversed(decisions), UTC)["ben"]
    assert (signs.decided, signs.approved, signs.longest_run) == (8, 6, 3)


def test_days_and_hours_are_those_of_the_teams_clock() -> None:
    decisions = [decide(minutes) for minutes in (0, 10, 59, 61, 24 * 60, 5 * 24 * 60, 9 * 60)]
    signs = count_signs(decisions, UTC)["ben"]
    assert (signs.days, signs.busiest_hour, signs.outside_hours) == (3, 3, 2)
    assert signs.a_day == pytest.approx(7 / 3)
    away = count_signs(decisions, ZoneInfo("Pacific/Auckland"))["ben"]
    assert away.outside_hours == 6


@pytest.mark.parametrize(
    ("day", "clock", "outside"),
    [(2, "07:59", True), (2, "08:00", False), (6, "17:59", False), (6, "18:00", True), (7, "12:00", True)],
)
def test_working_hours_are_eight_to_six_on_weekdays(day: int, clock: str, outside: bool) -> None:
    hour, minute = map(int, clock.split(":"))
    assert is_outside_hours(datetime(2026, 3, day, hour, minute, tzinfo=UTC)) is outside


def test_a_table_is_one_decision_and_what_was_opened_is_counted_before_approvals() -> None:
    opened = NOON - timedelta(minutes=1)
    decisions = [
        *(decide(0, card="batch", word_count=10, shown_at=opened) for _ in range(3)),
        decide(1, word_count=10, shown_at=opened, viewed_at=opened, has_trial=True, is_diff_open=True),
        decide(2, word_count=10, shown_at=opened, has_trial=True),
        decide(3, word_count=10, shown_at=opened, viewed_at=opened, approves=False),
    ]
    signs = count_signs(decisions, UTC)["ben"]
    assert (signs.decided, signs.approved, signs.timed, signs.faster) == (4, 3, 4, 0)
    assert (signs.viewed, signs.with_trial, signs.diffs_open) == (1, 2, 1)
    assert signs.description == (
        "decided 4; 0 of 4 faster than can be read; longest run without a no 3; "
        "4 a day, at most 4 in an hour; 0 outside working hours; "
        "View all opened before 1 of 3 approvals; the trial's diff before 1 of 2"
    )


def test_words_are_what_spaces_divide() -> None:
    assert count_words("Delete  14 branches\nof main") == 5
