"""The tools of schedules, by which the agent proposes tasks for set times, lists them, and deletes them.

The arguments of a call are settled before anyone decides: "tomorrow 16:00" becomes a date in a named time
zone, so that the card and the call mean the same moment whenever it is approved (`_settle_moments`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.preview import PreviewField
from bot.domain.proposals import Proposal
from bot.domain.text import SHORT_ID_CHARS, one_line
from bot.domain.times import (
    add_length,
    explain_repeated,
    find_zone,
    format_moment,
    parse_datetime,
    parse_moment,
)
from bot.errors import BadArguments, PermanentRefusal, ToolError
from bot.features.schedules import rows, runs
from bot.features.schedules.schedule import MAX_INTERVAL, MAX_TASK_CHARS, Schedule, Times, read_repetition
from bot.store import conversations, people, proposals, teams
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.call import Arguments, CallContext, InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.signature import NOT_BLANK, STORABLE
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

GROUP = "schedules"
_SHOWN_TIMES = 3  # the number of next times that a card shows
_NO_UNDO_TEXT = "A schedule that was deleted is made again with a card of its own."

Task = Annotated[
    str,
    StringConstraints(strip_whitespace=True),
    Field(min_length=1, max_length=MAX_TASK_CHARS),
    STORABLE,
    NOT_BLANK,
]
ShortText = Annotated[str, Field(max_length=100), STORABLE]
ScheduleId = Annotated[str, Field(pattern=r"^[0-9a-f]{8,16}$")]


def make_schedule_toolset(
    database: Database, policies: Policies, clock: Clock, max_schedules: int
) -> FixedToolset:
    """Return the tools for schedules; none if ``max_schedules``, the limit for one person, is 0."""
    if max_schedules < 1:
        return FixedToolset(GROUP, ())

    @tool(writes=False, group=GROUP, summary="Look up schedules")
    async def list_schedules(context: CallContext) -> dict[str, Any]:
        """List what is scheduled: in a private chat all of this person's, elsewhere what runs there."""
        schedules = await database.read(_list_visible, context)
        return {"schedules": [_describe_schedule(schedule) for schedule in schedules]}

    schedule_tool = _make_schedule_tool(database, policies, clock, max_schedules)
    delete_tool = _make_delete_tool(database, policies, clock)
    # runs of schedules get none of these tools: a schedule must not make others
    tools = (schedule_tool, list_schedules, delete_tool)
    return FixedToolset(GROUP, tuple(replace(one, unattended=False) for one in tools))


def _make_schedule_tool(database: Database, policies: Policies, clock: Clock, max_schedules: int) -> Tool:
    async def preview(arguments: Arguments) -> Sequence[PreviewField]:
        return _preview_schedule(arguments, clock())

    async def undo(ran: Ran) -> InverseCall:
        return InverseCall("delete_schedule", {"schedule": ran.kept})

    @tool(
        group=GROUP,
        summary="Schedule “{task}”",
        preview=preview,
        undo=undo,
        idempotent=True,
        touches="",
        open_world=False,
    )
    async def schedule_task(
        context: CallContext,
        task: Task,
        at: ShortText = "",
        every: ShortText = "",
        until: ShortText = "",
        time_zone: ShortText = "",
        after_proposal: ShortText = "",
    ) -> ToolOutput:
        """Have a task done later, or again and again: you do it then, here, in the name of who asks now.

        For reminders, reports and whatever should happen at a time or after a decision.

        Args:
            task: all that is to be done then, such as list the issues that are overdue, or remind Ana to call
            at: when first, such as tomorrow 16:00, friday 9:00, 09:00, 2026-12-01 18:00 or in 2h
            every: how often, such as day, weekday, week, month, monday and thursday, 2h, 3d; empty for once
            until: after when it ends, such as 2026-12-31; empty for no end
            time_zone: whose time that is, such as Europe/Berlin; empty for that of who asks
            after_proposal: the id of a proposal instead of a time: it runs once when that has ended
        """
        moments = {"at": at, "every": every, "until": until, "time_zone": time_zone}

        def begin(session: Session) -> Schedule:
            proposal = _load_proposal(session, context)
            if proposal is None:
                raise PermanentRefusal("Only an approved proposal schedules something.")
            # a schedule that a teammate proposes runs in the lead agent's conversation, which people see
            conversation_id = teams.find_lead_conversation(session, proposal)
            schedule = _make_schedule(proposal, conversation_id, task, moments, after_proposal, clock())
            runs.store_schedule(session, policies, schedule, max_schedules, clock())
            return schedule

        schedule = await database.write(begin)
        following = f", next {schedule.next}" if every else ""
        data = {"schedule": schedule.label, "when": schedule.times_text, "next": schedule.next}
        told = f"Scheduled as {schedule.label}: {schedule.times_text}{following}"
        return ToolOutput(data, told=told, kept=schedule.id)

    validate_types = schedule_task.validate  # made by `tool` from the parameters' types

    def validate(raw: Any) -> dict[str, Any]:
        # without a session, the rules that were read last give the team's time zone
        return _settle_moments(validate_types(raw), policies.latest_policy.rulebook.zone, clock())

    def check(session: Session, context: CallContext, settled: Arguments) -> None:
        """Raise PermanentRefusal if the schedule is to follow a proposal that the person may not see."""
        id_prefix = settled.get("after_proposal")
        if id_prefix:
            teammate = teams.get(session, context.conversation_id)
            conversation_id = teammate.lead_id if teammate else context.conversation_id
            person = Actor.parse(context.requested_by)
            runs.find_followed(session, policies, id_prefix, conversation_id, person)

    return replace(schedule_task, validate=validate, check=check, zone_argument="time_zone")


def _make_delete_tool(database: Database, policies: Policies, clock: Clock) -> Tool:
    async def describe(arguments: Arguments) -> str:
        found = await database.read(rows.get, arguments["schedule"])
        if found:
            return f"Delete the schedule “{one_line(found.task)}”"
        return "Delete a schedule"

    async def preview(arguments: Arguments) -> Sequence[PreviewField]:
        found = await database.read(rows.get, arguments["schedule"])
        if found is None or found.ended_at is not None:
            raise PermanentRefusal("There is no such schedule, or it has ended.")
        return [PreviewField("task", found.task, None), PreviewField("when", found.times_text, None)]

    async def refuse_undo(_: Ran) -> str:
        return _NO_UNDO_TEXT

    @tool(
        group=GROUP,
        summary="Delete schedule {schedule}",
        title=describe,
        preview=preview,
        undo=refuse_undo,
        key=("schedule",),
        touches="schedule {schedule}",
        open_world=False,
    )
    async def delete_schedule(context: CallContext, schedule: ScheduleId) -> ToolOutput:
        """End a schedule for good, and what was allowed for its runs.

        Args:
            schedule: its id, as list_schedules gives it
        """

        def end(session: Session) -> str:
            found = rows.get(session, schedule)
            proposal = _load_proposal(session, context)
            if found is None or proposal is None or not _may_delete(session, policies, found, proposal):
                raise PermanentRefusal("Only its owner or an admin can delete it.")
            runs.end_schedule(session, found, proposal.requester, clock())
            return found.label

        label = await database.write(end)
        return ToolOutput({"schedule": label, "ended": True}, told=f"Deleted schedule {label}")

    return delete_schedule


def _load_proposal(session: Session, context: CallContext) -> Proposal | None:
    """Return the proposal whose approved call runs: its idempotency key is ``nod-`` and the proposal's id."""
    return proposals.get(session, context.idempotency_key.removeprefix("nod-"))


def _settle_moments(arguments: dict[str, Any], team_zone: tzinfo, now: datetime) -> dict[str, Any]:
    """Return the arguments of `schedule_task` with each moment as a date and time in a named time zone.

    For example, ``{"task": "…", "at": "tomorrow 16:00"}`` gives ``{"task": "…", "at": "2026-12-01 16:00",
    "time_zone": "Europe/Berlin"}``. ``team_zone``: for a call without a time zone. Raises BadArguments.
    """
    given = {name: value for name, value in arguments.items() if value != ""}
    given["task"] = one_line(given["task"])
    if "after_proposal" in given:
        superfluous = [name for name in ("at", "every", "until") if name in given]
        if superfluous:
            raise BadArguments(dict.fromkeys(superfluous, "Leave this out: it runs once."))
        return {name: given[name] for name in ("task", "after_proposal")}
    if "at" not in given:
        raise BadArguments({"at": "Say when, such as tomorrow 16:00."})
    current_field = "time_zone"  # the argument that is read next, which an error is about
    try:
        zone = find_zone(given.get("time_zone", str(team_zone)))
        current_field = "at"
        start = _round_up_to_minute(parse_moment(given["at"], now.astimezone(zone)))
        if start.astimezone(UTC) > now.astimezone(UTC) + MAX_INTERVAL:
            raise ValueError(f"that is too far ahead; the first run is at most {MAX_INTERVAL.days} days away")
        current_field = "every"
        every = read_repetition(given.get("every", ""), start)
        current_field = "until"
        until = None
        if "until" in given:
            until = parse_moment(given["until"], now.astimezone(zone))
    except ValueError as error:
        words = str(error)
        raise BadArguments({current_field: f"{words[:1].upper()}{words[1:]}."}) from None
    settled = {"task": given["task"], "at": format_moment(start), "time_zone": str(zone)}
    if every:
        settled["every"] = every
    if until:
        settled["until"] = format_moment(_round_up_to_minute(until))
    if _read_times(settled).find_next(now) is None:
        raise BadArguments({"until": "It ends before it would run."})
    return settled


def _round_up_to_minute(at: datetime) -> datetime:
    since_minute = timedelta(seconds=at.second, microseconds=at.microsecond)
    return add_length(at, -since_minute % timedelta(minutes=1))


def _read_times(settled: Mapping[str, Any]) -> Times:
    """Return the times in settled arguments."""
    zone = find_zone(settled["time_zone"])

    def read_moment(name: str) -> datetime:
        return parse_datetime(settled[name], zone).astimezone(UTC)

    until = read_moment("until") if settled.get("until") else None
    return Times(read_moment("at"), settled.get("every", ""), zone, until)


def _preview_schedule(settled: Arguments, now: datetime) -> list[PreviewField]:
    """Return the fields that the card of a new schedule shows, without those that are empty."""
    fields = {"task": settled["task"]}
    followed = settled.get("after_proposal")
    if followed:
        fields["when"] = f"once proposal {followed[:SHORT_ID_CHARS]} has ended"
    else:
        times = _read_times(settled)
        fields["when"] = f"{times.text} ({times.zone})"
        if times.every:
            fields["until"] = "no end"
            fields["next_times"] = "\n".join(map(times.format_moment, times.list_next(now, _SHOWN_TIMES)))
        if times.until:
            fields["until"] = times.format_moment(times.until)
        about_start = explain_repeated(times.start.astimezone(times.zone))
        fields["clock_changes"] = "\n".join(filter(None, [about_start, *times.describe_clock_changes(now)]))
    fields["each_run"] = "in the name of the person who asks; its changes ask as usual"
    return [PreviewField(name, None, words) for name, words in fields.items() if words]


def _make_schedule(
    proposal: Proposal,
    conversation_id: str,
    task: str,
    moments: Mapping[str, str],
    follows: str,
    now: datetime,
) -> Schedule:
    """Return the schedule of an approved proposal.

    ``conversation_id``: the conversation in which it runs. ``follows``: the id of the proposal whose end it
    waits for; if it is empty, ``moments`` has the times.
    """
    schedule = Schedule(proposal.id, conversation_id, proposal.requester, task, now, follows=follows or None)
    if follows:
        return schedule
    times = _read_times(moments)
    return replace(
        schedule,
        start=times.start,
        repeats=times.every,
        zone=str(times.zone),
        until=times.until,
        due_at=times.find_next(now),
    )


def _may_delete(session: Session, policies: Policies, schedule: Schedule, proposal: Proposal) -> bool:
    """Return whether the people behind a proposal, its requester or a voter, may delete a schedule.

    The undo of the proposal that made the schedule always may, since undoing was decided already.
    """
    if proposal.undoes_proposal_id == schedule.id:  # a schedule has the id of the proposal that made it
        return True
    actors = [proposal.requester, *(vote.actor for vote in proposal.votes)]
    return any(runs.may_change(session, policies, schedule, actor) for actor in actors)


def _list_visible(session: Session, context: CallContext) -> list[Schedule]:
    """Return the schedules that a call may list: in a private chat the person's, else those that run here."""
    conversation = conversations.get_conversation(session, context.conversation_id)
    if conversation is None:
        raise ToolError("There is no conversation here.")
    if not conversation.private:
        return rows.list_in_conversation(session, conversation.id)
    person = people.load_person(session, Actor.parse(context.requested_by))
    return rows.list_of_people(session, person.accounts)


def _describe_schedule(schedule: Schedule) -> dict[str, Any]:
    return {
        "id": schedule.label,
        "task": schedule.task,
        "when": schedule.times_text,
        "next": schedule.next,
        "state": schedule.state,
        "in_the_name_of": schedule.person.label,
    }
