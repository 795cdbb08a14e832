"""A schedule: a task that the agent does at given times, in a person's name.

This module reads no database. Moments are in UTC.

A repetition in days goes by the calendar: "1d" is the same time of day in the schedule's time zone. A
repetition in hours or minutes goes by real time: "24h" may be another time of day after a change of the
clocks. If the clocks go from 2 to 3 in a night, 02:30 is taken as 03:30. If they go from 3 back to 2, 02:30
comes twice, and the first counts.
"""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import islice
from zoneinfo import ZoneInfo

from bot.domain.people import Actor
from bot.domain.text import SHORT_ID_CHARS
from bot.domain.times import (
    DAYS,
    format_length,
    format_span,
    is_repeated,
    is_skipped,
    parse_duration,
    parse_weekdays,
)

MIN_INTERVAL = timedelta(minutes=15)
"""The shortest time from one run to the next."""
MAX_COUNTED_MISSES = 100
"""The number up to which missed runs are counted."""
MAX_INTERVAL = timedelta(days=366)
"""The longest time up to the first run, and from one run to the next."""
MAX_TASK_CHARS = 2000

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_YEAR_DAYS = 366
_SYNONYMS = {"daily": "day", "weekly": "week", "monthly": "month", "hourly": "1h", "hour": "1h", "once": ""}
_UNREADABLE_TEXT = (
    "write day, weekday, week, month, days such as monday and thursday, or a length such as 2h or 3d"
)


def read_repetition(text: str, first: datetime) -> str:
    """Parse a repetition into its stored form; empty for a single run. Raises ValueError in words for people.

    ``first``: the first run, in the schedule's time zone. The forms are ``month``, ``day``, ``weekday``,
    ``weekend``, days such as ``monday, thursday``, and lengths such as ``3d`` or ``2h``. For example, "every
    week" from a Monday gives ``monday``.
    """
    words = text.strip().lower().removeprefix("every ").strip()
    words = _SYNONYMS.get(words, words)
    if words in ("", "month"):
        return words
    if words == "week":
        return DAYS[first.weekday()]
    days = parse_weekdays(words)
    if days:
        for name in ("day", "weekday", "weekend"):
            if days == parse_weekdays(name):
                return name
        return ", ".join(DAYS[day] for day in sorted(days))
    try:
        length = parse_duration(words)
    except ValueError:
        raise ValueError(_UNREADABLE_TEXT) from None
    if length < MIN_INTERVAL:
        raise ValueError(f"that is too often; the shortest is every {format_span(MIN_INTERVAL)}")
    if length > MAX_INTERVAL or length % timedelta(minutes=1):
        raise ValueError(f"write whole minutes, hours or days, up to {MAX_INTERVAL.days}d")
    is_given_in_days = words[-1] in "dw"  # days or weeks
    if length % _DAY == timedelta() and not is_given_in_days:
        return f"{length // _HOUR}h"  # "24h" must not become "1d", which is by the clock
    return format_length(length.total_seconds())


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a task."""

    start: datetime  # the first run
    every: str  # the repetition, as `read_repetition` returns it
    zone: tzinfo
    until: datetime | None = None  # no run is after this; None: without an end

    def find_next(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment; None if there is no further time."""
        return next(self._iterate_after(moment), None)

    def list_next(self, moment: datetime, count: int) -> list[datetime]:
        """Return the next times after a moment, at most ``count``."""
        return list(islice(self._iterate_after(moment), count))

    def count_missed(self, due: datetime, now: datetime) -> int:
        """Return the number of times after ``due`` up to now, at most `MAX_COUNTED_MISSES`."""
        return sum(time <= now for time in islice(self._iterate_after(due), MAX_COUNTED_MISSES))

    def _iterate_after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times after a moment, in order."""
        for time in self._iterate_near(moment):
            if self.until is not None and time > self.until:
                return
            if time > moment and time >= self.start:
                yield time

    def _iterate_near(self, moment: datetime) -> Iterator[datetime]:
        """Return times in order, from a little before a moment. ``start`` and ``until`` are not applied."""
        interval = self.interval
        if not self.every:
            return iter((self.start,))
        if interval is not None and self.is_real_time:
            return self._iterate_by_interval(moment, interval)
        return self._iterate_by_day(moment, interval)

    def _iterate_by_interval(self, moment: datetime, interval: timedelta) -> Iterator[datetime]:
        """Yield times of a repetition by real time, without an end."""
        at = self.start + interval * max(0, (moment - self.start) // interval)
        while True:
            yield at
            at += interval

    def _iterate_by_day(self, moment: datetime, interval: timedelta | None) -> Iterator[datetime]:
        """Yield times of a repetition by the calendar.

        ``interval``: in days; None for weekdays and months.
        """
        first = self.start.astimezone(self.zone)
        time_of_day = first.time().replace(fold=0)
        # a day earlier, since a change of the clocks may move a run of yesterday to past midnight
        day = max(first.date(), moment.astimezone(self.zone).date() - _DAY)
        while day.year < date.max.year:
            if self._falls_on(day, first.date(), interval):
                at = datetime.combine(day, time_of_day, self.zone).astimezone(UTC)
                # the first run may be the second 02:30 of a night
                yield self.start if day == first.date() else at
            day += _DAY

    @property
    def interval(self) -> timedelta | None:
        """The time from one run to the next; None for a single run, weekdays and days of the month."""
        if self.every in ("", "month") or parse_weekdays(self.every):
            return None
        return parse_duration(self.every)

    @property
    def is_real_time(self) -> bool:
        """True if the task repeats after a number of real hours or minutes, not at a time of day."""
        return self.interval is not None and self.every[-1] not in "dw"

    def describe_clock_changes(self, moment: datetime) -> list[str]:
        """Return sentences about runs, within a year of a moment, whose time the clocks skip or repeat."""
        if not self.every or self.is_real_time:
            return []
        first = self.start.astimezone(self.zone)
        begin = max(first, moment.astimezone(self.zone)).date()
        time_of_day = first.time().replace(fold=0)
        sentences = []
        for days_ahead in range(_YEAR_DAYS):
            day = begin + _DAY * days_ahead
            if not self._falls_on(day, first.date(), self.interval):
                continue
            at = datetime.combine(day, time_of_day, self.zone)
            day_text = f"{day.day} {day:%b %Y}"
            if is_skipped(at):
                real = at.astimezone(UTC).astimezone(self.zone)
                sentences.append(
                    f"{time_of_day:%H:%M} does not exist on {day_text}. It runs at {real:%H:%M} then."
                )
            if is_repeated(at):
                sentences.append(f"{time_of_day:%H:%M} comes twice on {day_text}. It runs at the first.")
        return sentences

    def _falls_on(self, day: date, first: date, interval: timedelta | None) -> bool:
        """Return whether a run falls on a day.

        ``first``: the day of the first run. ``interval``: in days; None for weekdays and months. A monthly
        task of the 31st runs on the last day of shorter months.
        """
        if interval is not None:
            return (day - first) % interval == timedelta()
        if self.every == "month":
            last_day = monthrange(day.year, day.month)[1]
            return day.day == min(first.day, last_day)
        return day.weekday() in parse_weekdays(self.every)

    @property
    def text(self) -> str:
        """The times in words, such as ``every weekday at 09:00`` or ``every 2 h from Monday 2 Mar …``."""
        if not self.every:
            return self.format_moment(self.start)
        first = self.start.astimezone(self.zone)
        if self.every == "month":
            last = " or the last" if first.day > 28 else ""  # noqa: PLR2004 - every month has 28 days
            return f"every month on day {first.day}{last}, at {first:%H:%M}"
        if parse_weekdays(self.every):
            names = [name.capitalize() if name in DAYS else name for name in self.every.split(", ")]
            days = names[-1]
            if len(names) > 1:
                days = f"{', '.join(names[:-1])} and {days}"
            return f"every {days} at {first:%H:%M}"
        length = parse_duration(self.every)
        if self.is_real_time:
            if length % _HOUR == timedelta():
                hours = f"{length // _HOUR} h"
            else:
                hours = format_span(length)
            return f"every {hours} from {self.format_moment(self.start)}"
        days_text = "day" if length == _DAY else f"{length.days} d"
        return f"every {days_text} at {first:%H:%M}"

    def format_moment(self, at: datetime) -> str:
        """Return a moment as text in the schedule's zone: ``Thursday 26 Nov 2026, 16:00``."""
        local = at.astimezone(self.zone)
        zone_name = f" {local:%Z}" if is_repeated(local) else ""
        return f"{local:%A} {local.day} {local:%b %Y}, {local:%H:%M}{zone_name}"


class ScheduleState(StrEnum):
    """The state of a schedule."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"  # the schedule has no further times
    ENDED = "ended"  # deleted, or its person can no longer be there


@dataclass(frozen=True, slots=True)
class Schedule:
    """A task that runs at its times, or once after the end of a proposal."""

    id: str
    conversation_id: str
    person: Actor  # the person in whose name it runs
    task: str
    created_at: datetime
    # the values of its `Times`, as rows store them; ``start`` is None for a schedule without times
    start: datetime | None = None
    repeats: str = ""
    zone: str = "UTC"
    until: datetime | None = None
    follows: str | None = None  # for a schedule without times: the proposal after whose end it runs once
    due_at: datetime | None = None  # the next run
    runs: int = 0  # the number of runs so far, without those before the end of a followed proposal
    ran_for: datetime | None = None  # the due time of the last run
    last_at: datetime | None = None  # the begin of the last run
    spent: int = 0  # the tokens of the last run
    paused_at: datetime | None = None
    ended_at: datetime | None = None
    ended_by: str = ""
    why: str = ""  # the reason for the end, if no person ended it

    @property
    def label(self) -> str:
        """The short id that people use."""
        return self.id[:SHORT_ID_CHARS]

    @property
    def times(self) -> Times | None:
        """The times of the schedule; None if it waits for the end of a proposal."""
        if self.start:
            return Times(self.start, self.repeats, ZoneInfo(self.zone), self.until)
        return None

    @property
    def state(self) -> ScheduleState:
        if self.ended_at is not None:
            return ScheduleState.ENDED
        waits_for_proposal = bool(self.follows) and not self.runs
        if self.due_at is None and not waits_for_proposal:
            return ScheduleState.DONE
        if self.paused_at:
            return ScheduleState.PAUSED
        return ScheduleState.ACTIVE

    @property
    def times_text(self) -> str:
        """The times of the schedule in words, with the time zone."""
        if self.times is None:
            return f"once proposal {(self.follows or '')[:SHORT_ID_CHARS]} has ended"
        return f"{self.times.text} ({self.times.zone})"

    @property
    def next(self) -> str:
        """The next run in words; empty without a next run."""
        if self.times and self.due_at:
            return self.times.format_moment(self.due_at)
        return ""
