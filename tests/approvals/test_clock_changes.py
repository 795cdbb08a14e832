"""A length of time is as long as it says, whatever the team's clocks do in between."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from bot.domain.chat import Answer
from bot.domain.policy import Policy
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.rulebook import Rulebook
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.times import format_moment, format_relative, parse_datetime, parse_moment
from bot.domain.verbs import Verb
from bot.features.schedules import rows as schedules
from bot.features.schedules.schedule import Times, read_repetition
from bot.tools.call import InverseCall, Ran
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, BEN, FakeClock, MakeNod, Nod, call
from tests.tiers import thin

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Change(NamedTuple):
    """When the clocks of a zone change, and a time of day that they skip, or show twice."""

    zone: str
    at: datetime
    clock: str
    skips: bool


CHANGES = [
    Change("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC), "02:30", skips=True),
    Change("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC), "02:30", skips=False),
    Change("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC), "00:30", skips=True),
    Change("America/Sao_Paulo", datetime(2018, 2, 18, 2, tzinfo=UTC), "23:30", skips=False),
    Change("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC), "02:15", skips=True),
    Change("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC), "01:45", skips=False),
]
BEFORE = [-90, -31, -30, -10, 0, 10, 29]
"""Minutes from a change of the clocks at which something is said."""
pytestmark = pytest.mark.parametrize(
    "change", thin(CHANGES, 5), ids=[f"{each.zone} {'forward' if each.skips else 'back'}" for each in CHANGES]
)


async def old_and_new(_: Mapping[str, Any]) -> list[PreviewField]:
    return [PreviewField("level", "low", "high")]


async def back(_: Ran) -> InverseCall:
    return InverseCall("dial", {"level": "low"})


@tool(preview=old_and_new, undo=back)
async def dial(level: str) -> str:
    """Set a dial."""
    return level


@pytest.fixture
def nod(make_nod: MakeNod, clock: FakeClock, change: Change) -> Nod:
    """Ada is an admin of a team in that zone."""
    clock.now = change.at - 2 * HOUR
    book = Rulebook(zone=ZoneInfo(change.zone))
    nod = make_nod(admins=[ADA], policy=Policy(rulebook=book), schedules_each=50)
    nod.toolset = FixedToolset("lamps", (*nod.toolset.fixed, dial))
    nod.rebuild()
    return nod


async def rule(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


async def is_forbidden(nod: Nod) -> bool:
    reply = await nod.command('/approvals policy test paint {"lamp": "desk", "color": "red"}', by=ADA)
    return "refused" in reply.text


@pytest.mark.parametrize("minutes", BEFORE)
async def test_a_rule_holds_as_long_as_it_says(nod: Nod, change: Change, minutes: int) -> None:
    nod.clock.now = change.at + minutes * MINUTE
    for words, length in (("20m", 20 * MINUTE), ("2h", 2 * HOUR), ("1d", 24 * HOUR)):
        begin = nod.clock()
        await rule(nod, f"policy forbid for paint for {words}")
        nod.clock.now = begin + length - MINUTE
        assert await is_forbidden(nod), words
        nod.clock.now = begin + length
        assert not await is_forbidden(nod), words
        await nod.tick()
        assert "forbid" not in (await nod.command("/approvals rules", by=ADA)).text
        nod.clock.now = begin


async def test_a_rule_until_a_span_from_now_is_that_span(nod: Nod, change: Change) -> None:
    nod.clock.now = change.at - 10 * MINUTE
    await rule(nod, "policy forbid for paint until in 40m")
    nod.clock.forward(39 * MINUTE)
    assert await is_forbidden(nod)
    nod.clock.forward(MINUTE)
    assert not await is_forbidden(nod)


async def test_a_grant_a_proposal_a_reminder_and_an_undo_last_as_long_as_they_say(
    nod: Nod, change: Change
) -> None:
    await rule(nod, "ttl 3h")
    await rule(nod, "remind 2h")
    await rule(nod, "undo 90m")
    nod.clock.now = begin = change.at - HOUR
    [first] = await nod.asked(call("paint", lamp="desk", color="red"))
    [turned] = await nod.asked(call("dial", level="high"))
    [left] = await nod.asked(call("paint", lamp="door", color="blue"))
    await nod.press(Verb.SIMILAR, first, rung=GrantScope.KEY, lasting=GrantDuration.HOUR)
    turned = await nod.approve(turned)
    assert turned.undo_until == begin + 90 * MINUTE
    assert (left.expires_at, left.remind_at) == (begin + 3 * HOUR, begin + 2 * HOUR)

    await nod.tick(59 * MINUTE)
    [ridden] = await nod.asked(call("paint", lamp="desk", color="green"))
    assert (await nod.now(ridden)).state is State.SUCCEEDED
    await nod.tick(MINUTE)
    [asks] = await nod.asked(call("paint", lamp="desk", color="white"))
    assert asks.state is State.PROPOSED

    def reminded() -> int:
        return sum("Still waiting" in text and "door" in text for _, text in nod.chat.texts)

    await nod.tick(59 * MINUTE)
    assert reminded() == 0
    assert (await nod.press(Verb.UNDO, turned)).answer is not Answer.ACCEPTED  # 1 h 59 min later
    await nod.tick(MINUTE)
    assert reminded() == 1
    await nod.tick(59 * MINUTE)
    assert (await nod.now(left)).state is State.PROPOSED
    await nod.tick(MINUTE)
    assert (await nod.now(left)).state is State.EXPIRED


async def test_what_was_done_can_be_undone_up_to_the_last_minute(nod: Nod, change: Change) -> None:
    await rule(nod, "undo 90m")
    nod.clock.now = change.at - HOUR
    [turned] = await nod.asked(call("dial", level="high"))
    turned = await nod.approve(turned)
    await nod.tick(89 * MINUTE)
    assert (await nod.press(Verb.UNDO, turned)).answer is Answer.ACCEPTED


async def test_someone_stands_in_as_long_as_was_said(nod: Nod, change: Change) -> None:
    await nod.say(by=BEN)
    nod.clock.now = change.at - HOUR
    said = await nod.command(f"/nod away {BEN} for 2h", by=ANA)
    assert said.answer is Answer.ACCEPTED, said.text
    nod.clock.forward(2 * HOUR - MINUTE)
    assert "Ana is away" in (await nod.command("/nod away", by=ANA)).text
    await nod.tick(MINUTE)
    assert (await nod.command("/nod away", by=ANA)).text == "No one is away."


async def test_a_schedule_comes_back_after_as_long_as_it_says(nod: Nod, change: Change) -> None:
    nod.clock.now = begin = change.at - 70 * MINUTE
    for every, length in (("90m", 90 * MINUTE), ("2h", 2 * HOUR), ("24h", 24 * HOUR)):
        [asked] = await nod.asked(call("schedule_task", task=f"look {every}", at="in 20m", every=every))
        await nod.approve(asked)
        found = await nod.database.read(lambda session: schedules.list_of_people(session, None, ended=True))
        [made] = [each for each in found if each.task == f"look {every}"]
        assert made.times is not None
        first = begin + 20 * MINUTE
        assert made.times.list_next(begin, 3) == [first, first + length, first + 2 * length]


async def test_a_day_is_a_day_of_the_calendar(change: Change) -> None:
    zone = ZoneInfo(change.zone)
    start = (change.at - 30 * HOUR).astimezone(zone).replace(hour=9, minute=0)
    assert read_repetition("1d", start) == "1d"
    times = Times(start.astimezone(UTC), "1d", zone).list_next(start - MINUTE, 4)
    assert [each.astimezone(zone).strftime("%H:%M") for each in times] == ["09:00"] * 4


async def test_a_time_of_day_that_does_not_exist_or_comes_twice_is_said(nod: Nod, change: Change) -> None:
    zone = ZoneInfo(change.zone)
    nod.clock.now = change.at - 40 * HOUR
    day = (
        (change.at - MINUTE).astimezone(zone).date()
        if not change.skips
        else change.at.astimezone(zone).date()
    )
    said = f"{day} {change.clock}"
    ruled = await nod.command(f"/approvals policy forbid for paint until {said}", by=ADA)
    spared = await nod.command(f"/approvals policy never for paint until {said}", by=ADA)
    await nod.say(by=BEN)
    away = await nod.command(f"/nod away {BEN} until {said}", by=ANA)
    [*asked] = await nod.asked(call("schedule_task", task="look", at=said))
    if change.skips:
        for reply in (ruled, spared, away):
            assert reply.answer is Answer.INVALID
            assert f"{change.clock} does not exist on {day.day} {day:%B %Y}" in reply.text
        assert asked == []
        assert "does not exist" in nod.model.results[-1]
        return
    assert f"The clocks show {change.clock} twice on {day.day} {day:%B %Y}. This is the last" in ruled.text
    assert "This is the first" in spared.text
    assert "This is the first" in away.text
    assert "This is the first" in str(asked[0].preview)
    first, last = (
        datetime.combine(day, parse_moment(said, nod.clock().astimezone(zone)).time(), zone).replace(fold=f)
        for f in (0, 1)
    )
    nod.clock.now = last.astimezone(UTC) - MINUTE
    assert await is_forbidden(nod)
    nod.clock.now = last.astimezone(UTC)
    assert not await is_forbidden(nod)
    for at in (first, last):  # as rows, cards and edits keep it
        assert parse_datetime(format_moment(at), zone).astimezone(UTC) == at.astimezone(UTC)
        assert parse_moment(format_moment(at), (change.at - 20 * HOUR).astimezone(zone)).astimezone(
            UTC
        ) == at.astimezone(UTC)


async def test_in_the_hour_that_comes_twice_the_second_one_is_ahead(change: Change) -> None:
    if change.skips:
        return
    zone = ZoneInfo(change.zone)
    now = change.at.astimezone(zone)  # the clocks have just gone back
    ahead = parse_moment(f"{change.clock}", now)
    assert timedelta() < ahead.astimezone(UTC) - change.at <= 30 * MINUTE
    assert format_relative(ahead, now) == f"in {(ahead.astimezone(UTC) - change.at) // MINUTE} min"


async def test_a_daily_schedule_says_what_becomes_of_its_time_that_day(change: Change) -> None:
    zone = ZoneInfo(change.zone)
    begin = change.at - 60 * HOUR
    hour, minute = map(int, change.clock.split(":"))
    start = begin.astimezone(zone).replace(hour=hour, minute=minute)
    times = Times(start.astimezone(UTC), "day", zone)
    notes = " ".join(times.describe_clock_changes(begin))
    assert (
        f"{change.clock} does not exist on" if change.skips else f"{change.clock} comes twice on"
    ) in notes
    runs = times.list_next(start.astimezone(UTC) - MINUTE, 6)
    days = [each.astimezone(zone).date() for each in runs]
    assert len(set(days)) == 6  # once a day
