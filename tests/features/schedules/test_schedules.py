"""What comes back by itself: proposed on a card, run once, in a person's name, and ended when it should."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.domain.audit import AuditFilter
from bot.domain.chat import Address, Answer
from bot.domain.conversations import LineRole
from bot.domain.people import Membership
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable
from bot.features.schedules import rows as schedules
from bot.features.schedules.schedule import Schedule, ScheduleState
from bot.store.audit import search, verification
from bot.testing.control import Hold
from tests.kit import ADA, ANA, BEN, EVE, ROOM, FakeClock, MakeNod, Nod, call, says

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(schedules_each=3, admins=[ADA])


async def made(nod: Nod, **given: Any) -> Proposal:
    """Ana asks for a schedule and approves it; by default for every day at 10."""
    [asked] = await nod.asked(
        call("schedule_task", {"task": "list what is late", "at": "10:00", "every": "day", **given})
    )
    nod.model.will(says("It is set."))
    return await nod.approve(asked)


async def all_of(nod: Nod) -> list[Schedule]:
    return await nod.database.read(lambda session: schedules.list_of_people(session, None, ended=True))


async def only(nod: Nod) -> Schedule:
    [found] = await all_of(nod)
    return found


def runs(nod: Nod, words: str = "list what is late") -> int:
    """How often the model was told to do it."""
    last = nod.model.transcripts[-1] if nod.model.transcripts else ()
    return sum("is due" in getattr(e, "text", "") and words in e.text for e in last)  # type: ignore[union-attr]


async def test_the_card_says_the_task_the_times_and_in_whose_name(nod: Nod) -> None:
    [asked] = await nod.asked(
        call(
            "schedule_task",
            task="list what\nis late",
            at="tomorrow 9:00",
            every="weekday",
            until="2026-12-31",
        )
    )
    assert asked.description == "Schedule “list what is late”"
    assert [(each.field, each.new_value) for each in asked.preview] == [
        ("task", "list what is late"),
        ("when", "every weekday at 09:00 (UTC)"),
        ("until", "Thursday 31 Dec 2026, 00:00"),
        ("next_times", "Tuesday 3 Mar 2026, 09:00\nWednesday 4 Mar 2026, 09:00\nThursday 5 Mar 2026, 09:00"),
        ("each_run", "in the name of the person who asks; its changes ask as usual"),
    ]
    assert asked.arguments["at"] == "2026-03-03 09:00"  # whenever it is approved, tomorrow is that day
    assert await all_of(nod) == []


@pytest.mark.parametrize(
    ("past", "at"),
    [
        (timedelta(), "2026-03-02 10:00"),
        (timedelta(microseconds=1), "2026-03-02 10:01"),
        (timedelta(milliseconds=999), "2026-03-02 10:01"),
        (timedelta(seconds=1), "2026-03-02 10:01"),
        (timedelta(seconds=59, milliseconds=999), "2026-03-02 10:01"),
    ],
)
async def test_a_length_of_time_is_never_cut_short(nod: Nod, past: timedelta, at: str) -> None:
    nod.clock.forward(past)
    [asked] = await nod.asked(call("schedule_task", task="greet Ben", at="in 1h"))
    assert asked.arguments["at"] == at


async def test_it_runs_as_a_turn_in_that_persons_name_and_people_see_why(nod: Nod) -> None:
    done = await made(nod)
    assert done.state is State.SUCCEEDED
    assert done.result_sentence is not None
    assert "every day at 10:00 (UTC), next Monday 2 Mar 2026, 10:00" in done.result_sentence
    await nod.say("and something else", by=BEN)
    await nod.idle()
    nod.model.will(says("I paint it.", call("paint", lamp="desk", color="red")))
    await nod.tick(HOUR)
    assert runs(nod) == 1
    [*_, painted] = await nod.proposals()
    assert (painted.requester, painted.state, painted.schedule) == (ANA, State.PROPOSED, done.id)
    assert (ROOM, "Scheduled for Ana: list what is late.") in nod.chat.texts
    found = await only(nod)
    assert (found.runs, found.state, found.next) == (1, ScheduleState.ACTIVE, "Tuesday 3 Mar 2026, 10:00")
    await nod.tick(HOUR)
    assert found.runs == 1


async def test_what_was_declined_in_one_run_is_asked_for_in_the_next(nod: Nod) -> None:
    await made(nod)
    for day in (1, 2):
        nod.model.will(says("I paint it.", call("paint", lamp="desk", color="red")))
        await nod.tick(DAY)
        assert len(await nod.proposals()) == 1 + day
        await nod.press(Verb.DECLINE, (await nod.proposals())[-1])
        await nod.idle()


async def test_a_time_that_passed_while_it_was_paused_comes_late_where_it_was_the_last(nod: Nod) -> None:
    await made(nod, every="")
    label = (await only(nod)).label
    await nod.command(f"/nod schedules pause {label}")
    await nod.tick(DAY)
    assert (await only(nod)).runs == 0
    await nod.command(f"/nod schedules resume {label}")
    await nod.tick()
    found = await only(nod)
    assert (found.runs, found.state) == (1, ScheduleState.DONE)
    assert "It was due Monday 2 Mar 2026, 10:00." in nod.chat.shown


async def test_two_processes_run_it_once(nod: Nod) -> None:
    await made(nod)
    other = nod.beside()
    nod.clock.forward(HOUR)
    both = await asyncio.gather(*(each.schedules.run_due(nod.clock()) for each in (nod, other, nod, other)))
    await nod.idle()
    await other.idle()
    assert sum(both) == 1
    assert (await only(nod)).runs == 1
    lines = (await nod.transcript()).lines
    assert sum(line.role is LineRole.NOTE and line.schedule is not None for line in lines) == 1
    await other.close()


@pytest.mark.slow
async def test_many_that_are_due_in_one_chat_hold_up_no_other_chat(make_nod: MakeNod) -> None:
    nod, there = make_nod(schedules_each=30), Address("chat", "D2")
    for number in range(30):
        await made(nod, task=f"list {number}")
    [asked] = await nod.asked(call("schedule_task", task="greet Ben", at="10:01"), by=BEN, at=there)
    await nod.press(Verb.APPROVE, asked, by=BEN)
    await nod.idle()
    hold = Hold()
    nod.model.rule = lambda _: says("At it.", hold=hold)
    nod.clock.forward(HOUR + timedelta(minutes=1))
    assert [await nod.schedules.run_due(nod.clock()) for _ in range(2)] == [2, 0]
    hold.go.set()
    await nod.idle()
    assert sum(each.runs for each in await all_of(nod)) == 2
    for _ in range(40):
        await nod.tick()
    assert [each.runs for each in await all_of(nod)] == [1] * 31


async def test_those_that_wait_for_their_platform_hold_up_no_others(nod: Nod) -> None:
    """Each look finds the one of a conversation that waited longest, but for those that are held."""
    for clock in ("10:00", "10:01"):
        await made(nod, at=clock, task=f"at {clock}")
    there = Address("chat", "D2")
    [asked] = await nod.asked(call("schedule_task", task="greet Ben", at="10:02"), by=BEN, at=there)
    await nod.press(Verb.APPROVE, asked, by=BEN)
    await nod.idle()
    nod.clock.forward(2 * HOUR)

    async def found(limit: int, *held: str) -> list[Schedule]:
        return await nod.database.read(schedules.list_due, nod.clock(), limit, held)

    first, bens = await found(3)
    assert [first.task, bens.task] == ["at 10:00", "greet Ben"]
    assert [each.task for each in await found(3, first.id)] == ["at 10:01", "greet Ben"]
    assert await found(1, first.id, *(each.id for each in await found(1, first.id))) == [bens]


async def test_after_a_week_away_it_runs_once_and_says_what_was_missed(nod: Nod) -> None:
    await made(nod)
    await nod.close()
    nod.clock.forward(7 * DAY + 2 * HOUR)
    await nod.up()
    await nod.tick()
    await nod.tick()
    assert runs(nod) == 1
    told = [line.text for line in (await nod.transcript()).lines if line.schedule]
    assert (
        "It was due Monday 2 Mar 2026, 10:00. This run stands for 7 more that were missed since." in told[0]
    )
    assert (await only(nod)).next == "Tuesday 10 Mar 2026, 10:00"


async def test_a_reminder_comes_once_and_late_rather_than_never(nod: Nod) -> None:
    await made(nod, every="", at="tomorrow 16:00", task="remind Ana to call Sam")
    await nod.tick(3 * DAY)
    await nod.tick(3 * DAY)
    assert runs(nod, "remind Ana") == 1
    assert (await only(nod)).state is ScheduleState.DONE


@pytest.mark.parametrize("wrong", [30 * DAY, timedelta(minutes=90)])
async def test_a_clock_that_was_ahead_takes_no_time_away(nod: Nod, wrong: timedelta) -> None:
    await made(nod)
    await nod.tick(wrong)
    assert (await only(nod)).runs == 1
    nod.clock.forward(-wrong)
    await nod.schedules.correct_due_times(nod.clock())
    await nod.tick()
    assert (await only(nod)).next == "Tuesday 3 Mar 2026, 10:00"  # what ran ahead does not run again
    await nod.tick(DAY + HOUR)
    assert (await only(nod)).runs == 2


async def test_approved_too_late_it_says_so(nod: Nod) -> None:
    [asked] = await nod.asked(call("schedule_task", task="call", at="10:00"))
    nod.clock.forward(2 * HOUR)
    late = await nod.approve(asked)
    assert (late.state, late.cause) == (State.FAILED, Cause.REFUSED)
    assert late.error == "It has ended. Ask for another one."


async def test_while_everything_is_paused_nothing_runs_and_nothing_is_lost(nod: Nod) -> None:
    await made(nod)
    await nod.command("/approvals pause", by=ADA)
    await nod.tick(3 * HOUR)
    assert runs(nod) == 0
    await nod.command("/approvals resume", by=ADA)
    await nod.tick()
    assert runs(nod) == 1


async def test_a_run_waits_while_something_else_is_under_way_there(nod: Nod) -> None:
    await made(nod)
    hold = Hold()
    nod.model.will(says("Wait.", hold=hold))
    await nod.say("do this first", by=BEN)
    await hold.reached.wait()
    nod.clock.forward(HOUR)
    assert await nod.schedules.run_due(nod.clock()) == 0  # it would be Ben's order in Ana's name
    hold.go.set()
    await nod.idle()
    await nod.tick()
    assert runs(nod) == 1


@pytest.mark.parametrize(
    ("standing", "why"),
    [(None, "Ana is no longer there"), (Membership.OUTSIDER, "Ana may no longer do that there")],
)
async def test_it_ends_when_its_person_has_left_or_lost_the_right(
    nod: Nod, standing: Membership | None, why: str
) -> None:
    await made(nod)
    nod.chat.standings[str(ANA)] = standing
    await nod.tick(HOUR)
    await nod.tick()
    assert runs(nod) == 0
    found = await only(nod)
    assert (found.state, found.why) == (ScheduleState.ENDED, why)
    told = {where: text for where, text in nod.chat.texts if f"has ended. {why}: " in text}
    assert told.keys() == {ROOM, Address("chat", "ada")}
    assert "list what is late" in told[ROOM]
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_it_ends_when_a_rule_forbids_schedules_there(nod: Nod) -> None:
    await made(nod)
    await nod.command("/approvals policy forbid for schedule_task", by=ADA)
    await nod.tick(HOUR)
    assert (await only(nod)).state is ScheduleState.ENDED


@pytest.mark.parametrize("limit", ["between 09:30 and 11:30", "on monday", "until tomorrow"])
async def test_while_a_rule_forbids_schedules_for_a_time_it_waits_and_comes_late(
    nod: Nod, limit: str
) -> None:
    await made(nod)
    rule_set = await nod.command(f"/approvals policy forbid for schedule_task {limit}", by=ADA)
    assert rule_set.answer is Answer.ACCEPTED, rule_set.text
    await nod.tick(HOUR)
    assert (runs(nod), (await only(nod)).state) == (0, ScheduleState.ACTIVE)
    await nod.tick(2 * HOUR if "between" in limit else DAY)
    assert (runs(nod), (await only(nod)).state) == (1, ScheduleState.ACTIVE)


async def test_it_ends_when_a_rule_forbids_schedules_to_its_person(nod: Nod) -> None:
    await made(nod)
    await nod.command(f"/approvals policy forbid for schedule_task by {ANA}", by=ADA)
    await nod.tick(HOUR)
    assert (await only(nod)).state is ScheduleState.ENDED


async def test_where_the_platform_cannot_say_it_waits_and_comes_late(nod: Nod) -> None:
    await made(nod)
    nod.chat.refusals["standing"] = ChannelError("down")
    await nod.tick(HOUR)
    await nod.tick(HOUR)
    nod.chat.standings[str(ANA)] = Membership.UNKNOWN
    del nod.chat.refusals["standing"]
    await nod.tick(HOUR)
    assert (runs(nod), (await only(nod)).state) == (0, ScheduleState.ACTIVE)
    nod.chat.standings.clear()
    await nod.tick(HOUR)
    assert runs(nod) == 1


async def test_where_the_platform_never_can_say_it_is_paused_and_people_are_told_once(nod: Nod) -> None:
    await made(nod)
    nod.chat.refusals["standing"] = NotDeliverable("Nod was removed.")
    await nod.tick(HOUR)
    await nod.tick(HOUR)
    assert (await only(nod)).state is ScheduleState.PAUSED
    assert sum("is paused. Nod was removed." in text for where, text in nod.chat.texts if where == ROOM) == 1


async def test_its_changes_run_under_a_grant_that_names_it_and_nothing_else_does(nod: Nod) -> None:
    scheduled = await made(nod)
    red = call("paint", lamp="desk", color="red")
    [alone] = await nod.asked(red)
    grant = {"rung": GrantScope.TOOL, "lasting": GrantDuration.CONVERSATION}
    await nod.press(Verb.SIMILAR, alone, rung=GrantScope.TOOL, lasting=GrantDuration.DAY)
    await nod.idle()
    nod.model.will(says("I paint.", red))
    await nod.tick(HOUR)
    [*_, first] = await nod.proposals()
    assert first.state is State.PROPOSED  # what Ana allows for her own calls is not for what comes by itself
    reply = await nod.press(Verb.SIMILAR, first, **grant)  # type: ignore[arg-type]
    assert f"for runs of Ana's schedule {scheduled.id[:8]}" in reply.text
    await nod.idle()
    nod.model.will(says("Again.", red), says("Done."), says("I smash.", call("smash", lamp="door")))
    await nod.tick(DAY)
    [*_, second] = await nod.proposals()
    assert (second.state, second.grant_id) == (State.SUCCEEDED, 2)
    await nod.tick(DAY)
    [*_, smashed] = await nod.proposals()
    assert smashed.state is State.PROPOSED
    refused = await nod.press(Verb.SIMILAR, smashed, by=ADA, **grant)  # type: ignore[arg-type]
    assert refused.text == "What can't be undone asks each time that a schedule runs."
    assert "G-2" in (await nod.command("/approvals grants", by=ADA)).text
    await nod.command(f"/nod schedules delete {scheduled.id[:8]}")
    assert "G-2" not in (await nod.command("/approvals grants", by=ADA)).text


async def test_nothing_is_allowed_for_the_runs_of_a_schedule_that_has_ended(nod: Nod) -> None:
    scheduled = await made(nod)
    nod.model.will(says("I paint.", call("paint", lamp="desk", color="red")))
    await nod.tick(HOUR)
    [*_, p] = await nod.proposals()
    await nod.command(f"/nod schedules delete {scheduled.id[:8]}")
    refused = await nod.press(Verb.SIMILAR, p, rung=GrantScope.TOOL, lasting=GrantDuration.DAY)
    assert refused.text == "Its schedule has ended, so there is nothing more to allow."
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_run_may_spend_so_many_tokens_and_no_more(make_nod: MakeNod) -> None:
    nod = make_nod(schedules_each=3, schedule_tokens=5)
    await made(nod)
    nod.model.rule = lambda _: says("Let me look.", call("look", lamp="desk"))
    await nod.tick(HOUR)
    assert any("This run of the schedule has spent" in text for text in await nod.said())
    assert (await only(nod)).spent >= 5
    nod.model.rule = lambda _: says("OK.")
    await nod.tick(DAY)
    assert (await only(nod)).runs == 2  # the next has its own


async def test_a_run_makes_no_schedules(nod: Nod) -> None:
    await made(nod)
    nod.model.will(says("More.", call("schedule_task", task="more", at="11:00", every="15m")), says("Well."))
    await nod.tick(HOUR)
    assert len(await all_of(nod)) == 1
    assert "changes no schedules" in str(nod.model.transcripts[-1])


@pytest.mark.parametrize("decline", [False, True])
async def test_it_runs_once_a_proposal_has_ended(nod: Nod, decline: bool) -> None:
    [painted] = await nod.asked(call("paint", lamp="desk", color="red"))
    [asked] = await nod.asked(call("schedule_task", task="tell Sam", after_proposal=painted.id[:8]))
    assert asked.preview[1].new_value == f"once proposal {painted.id[:8]} has ended"
    await nod.approve(asked)
    await nod.tick(DAY / 2)
    assert runs(nod, "tell Sam") == 0
    await nod.press(Verb.DECLINE if decline else Verb.APPROVE, painted)
    await nod.idle()
    await nod.tick()
    await nod.tick()
    assert runs(nod, "tell Sam") == 1
    [told] = [line.text for line in (await nod.transcript()).lines if line.schedule]
    assert f"the proposal “Paint lamp desk red” has ended as {'declined' if decline else 'succeeded'}" in told


async def test_a_run_that_someone_wants_earlier_comes_in_addition_to_the_awaited_one(nod: Nod) -> None:
    [painted] = await nod.asked(call("paint", lamp="desk", color="red"))
    [asked] = await nod.asked(call("schedule_task", task="tell Sam", after_proposal=painted.id[:8]))
    await nod.approve(asked)
    for count in (1, 2):
        await nod.command(f"/nod schedules run {asked.id[:8]}")
        await nod.tick()
        await nod.tick()
        assert runs(nod, "tell Sam") == count
        assert (await only(nod)).state is ScheduleState.ACTIVE
    await nod.press(Verb.APPROVE, painted)
    await nod.idle()
    await nod.tick()
    await nod.tick()
    assert runs(nod, "tell Sam") == 3
    found = await only(nod)
    assert (found.state, found.runs) == (ScheduleState.DONE, 1)
    early, _, awaited = [line.text for line in (await nod.transcript()).lines if line.schedule]
    assert "a person wants it now, while the proposal “Paint lamp desk red” is still open" in early
    assert "the proposal “Paint lamp desk red” has ended as succeeded" in awaited


async def test_no_one_is_asked_to_wait_for_what_is_not_there_or_hidden(nod: Nod) -> None:
    [painted] = await nod.asked(call("paint", lamp="desk", color="red"), by=BEN, at=Address("chat", "bens"))
    for named in (painted.id, "1a2b3c4d"):
        assert await nod.asked(call("schedule_task", task="tell me", after_proposal=named), by=EVE) == []
        assert f"There is no proposal {named[:8]} that the person who asks may see." in nod.model.results[-1]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"every": "1s"}, "every: That is too often; the shortest is every 15 min."),
        ({"at": "soon"}, "at: Write a moment such as 18:00"),
        ({"at": "2020-01-01"}, "at: That time has passed."),
        ({"at": "2027-03-04"}, "at: That is too far ahead; the first run is at most 366 days away."),
        ({"time_zone": "Moon/Base"}, "time_zone: There is no time zone"),
        ({"until": "2026-03-02 09:30"}, "until: It ends before it would run."),
        ({"at": ""}, "at: Say when"),
        ({"after_proposal": "1a2b3c4d"}, "Leave this out: it runs once."),
        ({"task": "x" * 2001}, "task: At most 2"),
        ({"task": "\u200b\u2060"}, "task: This is empty. Write something."),
    ],
)
async def test_bad_input_is_refused_in_words_before_any_card(
    nod: Nod, given: dict[str, Any], why: str
) -> None:
    arguments = {"task": "list", "at": "10:00", "every": "day", **given}
    assert await nod.asked(call("schedule_task", arguments)) == []
    assert why in str(nod.model.transcripts[-1])


async def test_one_person_has_so_many_and_no_more(nod: Nod) -> None:
    for _ in range(3):
        assert (await made(nod)).state is State.SUCCEEDED
    full = await made(nod)
    assert full.error is not None
    assert full.error.startswith("Ana has 3 schedules, which is the most. Delete one first")


async def test_the_time_zone_is_the_teams_or_the_one_that_was_said(
    make_nod: MakeNod, clock: FakeClock
) -> None:
    nod = make_nod(schedules_each=3)
    done = await made(nod, time_zone="America/New_York", at="09:00", every="weekday")
    assert done.result_sentence is not None
    assert "every weekday at 09:00 (America/New_York), next Monday 2 Mar 2026, 09:00" in done.result_sentence
    await nod.tick(5 * HOUR)
    assert clock().hour == 14
    assert runs(nod) == 1


async def test_undo_deletes_it(nod: Nod) -> None:
    done = await made(nod)
    reply = await nod.press(Verb.UNDO, done)
    assert reply.answer is Answer.ACCEPTED
    await nod.idle()
    assert (await only(nod)).state is ScheduleState.ENDED
    await nod.tick(DAY)
    assert runs(nod) == 0


async def test_people_list_pause_run_and_delete_their_own_and_admins_all(nod: Nod) -> None:
    ident = (await made(nod)).id[:8]
    listed = (await nod.command("/nod schedules")).text
    assert listed == (
        f"- `{ident}` list what is late (every day at 10:00 (UTC), for Ana, next Monday 2 Mar 2026, 10:00)"
    )
    assert (await nod.command("/nod schedules", by=ADA)).text == listed
    assert "Nothing is scheduled" in (await nod.command("/nod schedules", by=BEN)).text
    for word in ("pause", "resume", "run", "delete"):
        assert (await nod.command(f"/nod schedules {word} {ident}", by=BEN)).answer is Answer.UNKNOWN
    assert (await nod.command("/nod schedules explode it")).answer is Answer.INVALID
    await nod.command(f"/nod schedules pause {ident}")
    assert "paused already" in (await nod.command(f"/nod schedules pause {ident}")).text
    await nod.tick(HOUR)
    assert runs(nod) == 0
    assert (await nod.command(f"/nod schedules run {ident}")).answer is Answer.ALREADY
    await nod.command(f"/nod schedules resume {ident}", by=ADA)
    await nod.tick()
    assert runs(nod) == 0  # its next time is tomorrow's
    await nod.command(f"/nod schedules run {ident}")
    await nod.tick()
    assert (runs(nod), (await only(nod)).next) == (1, "Tuesday 3 Mar 2026, 10:00")
    assert (
        await nod.command(f"/nod schedules delete {ident}", by=ADA)
    ).text == f"Schedule {ident} is deleted."
    await nod.tick(DAY)
    assert runs(nod) == 1
    assert await nod.database.read(verification.find_faults_in_session) == []
    rows, _ = await nod.database.read(lambda s: search.load_page(s, AuditFilter(), 100))
    verbs = [row["verb"] for row in rows if row.get("thing") == "schedule"]
    assert verbs == ["drop", "run", "resume", "pause", "set"]


async def test_the_agent_lists_and_deletes_what_is_the_askers(nod: Nod) -> None:
    ident = (await made(nod)).id[:8]
    nod.model.will(says("", call("list_schedules")), says("There."))
    await nod.say("what is scheduled?")
    await nod.idle()
    assert f'"id": "{ident}"' in str(nod.model.transcripts[-1])
    [asked] = await nod.asked(call("delete_schedule", schedule=ident), by=BEN)
    assert asked.description == "Delete the schedule “list what is late”"
    other = await nod.approve(asked, by=BEN)
    assert other.error == "Only its owner or an admin can delete it."
    [asked] = await nod.asked(call("delete_schedule", schedule=ident))
    done = await nod.approve(asked)
    assert (done.state, done.wrong_fields) == (State.SUCCEEDED, ())
    assert (await only(nod)).state is ScheduleState.ENDED


async def test_it_survives_a_restart_and_ends_with_its_deleted_conversation(nod: Nod) -> None:
    done = await made(nod)
    await nod.restart()
    await nod.tick(HOUR)
    assert runs(nod) == 1
    from bot.approvals import forgetting

    await nod.database.write(forgetting.forget_conversation, done.conversation_id, nod.clock())
    found = await only(nod)
    assert (found.state, found.why) == (ScheduleState.ENDED, "Its conversation was deleted")


async def test_in_a_chat_that_began_again_it_runs_in_what_is_there(nod: Nod) -> None:
    await made(nod)
    await nod.command("/nod new")
    await nod.say("hello again")
    await nod.idle()
    await nod.tick(HOUR)
    assert any(line.schedule for line in (await nod.transcript()).lines)


async def test_the_same_approved_call_run_again_makes_one(nod: Nod) -> None:
    done = await made(nod)
    kept = await only(nod)
    assert kept.id == done.id
    assert replace(kept, due_at=None).task == "list what is late"
