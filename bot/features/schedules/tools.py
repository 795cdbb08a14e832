"""The tools of schedules, with which the agent asks people for tasks that repeat.

Moments are stored as dates, before anyone decides: "tomorrow 16:00" becomes its date on the card.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.proposals import PreviewField, Proposal
from bot.domain.text import one_line
from bot.domain.times import (
    add_length,
    explain_repeated,
    find_zone,
    format_moment,
    parse_datetime,
    parse_moment,
)
from bot.errors import BadArguments, Hopeless, ToolError
from bot.features.schedules import rows, runs
from bot.features.schedules.schedule import MAX_INTERVAL, MAX_TASK_CHARS, Schedule, Times, read_repetition
from bot.store import conversations, people, proposals, teams
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.signature import SEEN, STORABLE
from bot.tools.tool import Arguments, CallContext, FixedToolset, InverseCall, Ran, Tool, ToolOutput, tool

GROUP = "schedules"
_SHOWN = 3  # the number of times that the card shows
_GONE = "A schedule that was deleted is made again with a card of its own."

Task = Annotated[
    str,
    StringConstraints(strip_whitespace=True),
    Field(min_length=1, max_length=MAX_TASK_CHARS),
    STORABLE,
    SEEN,
]
Said = Annotated[str, Field(max_length=100), STORABLE]
Ident = Annotated[str, Field(pattern=r"^[0-9a-f]{8,16}$")]


def schedule_tools(database: Database, policies: Policies, clock: Clock, most: int) -> FixedToolset:
    """Return the tools for schedules; none if ``most``, the limit of a person's schedules, is 0."""
    if most < 1:
        return FixedToolset(GROUP, ())

    @tool(writes=False, group=GROUP, summary="Look up schedules")
    async def list_schedules(context: CallContext) -> dict[str, Any]:
        """List what is scheduled: in a private chat all of this person's, elsewhere what runs there."""
        found = await database.read(_list_visible, context)
        return {"schedules": [_describe_schedule(each) for each in found]}

    making = _making(database, policies, clock, most)
    every = (making, list_schedules, _ending(database, policies, clock))
    return FixedToolset(GROUP, tuple(replace(each, unattended=False) for each in every))


def _making(database: Database, policies: Policies, clock: Clock, most: int) -> Tool:
    async def shown(arguments: Arguments) -> Sequence[PreviewField]:
        return _fields(arguments, clock())

    async def unmade(ran: Ran) -> InverseCall:
        return InverseCall("delete_schedule", {"schedule": ran.kept})

    @tool(
        group=GROUP,
        summary="Schedule “{task}”",
        preview=shown,
        undo=unmade,
        idempotent=True,
        touches="",
        open_world=False,
    )
    async def schedule_task(
        context: CallContext,
        task: Task,
        at: Said = "",
        every: Said = "",
        until: Said = "",
        time_zone: Said = "",
        after_proposal: Said = "",
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
        given = {"at": at, "every": every, "until": until, "time_zone": time_zone}

        def keep(session: Session) -> Schedule:
            asked = proposals.get(session, context.idempotency_key.removeprefix("nod-"))
            if asked is None:
                raise Hopeless("Only an approved proposal schedules something.")
            schedule = _new(
                asked, teams.find_lead_conversation(session, asked), task, given, after_proposal, clock()
            )
            runs.begin_schedule(session, policies, schedule, most, clock())
            return schedule

        kept = await database.write(keep)
        following = f", next {kept.next}" if every else ""
        data = {"schedule": kept.label, "when": kept.words, "next": kept.next}
        told = f"Scheduled as {kept.label}: {kept.words}{following}"
        return ToolOutput(data, told=told, kept=kept.id)

    checked = schedule_task.validate

    def validate(raw: Any) -> dict[str, Any]:
        return _settle_moments(checked(raw), policies.held.book.zone, clock())

    def check(session: Session, context: CallContext, settled: Arguments) -> None:
        begins = settled.get("after_proposal")
        if begins:
            teammate = teams.get(session, context.conversation_id)
            where = teammate.lead_id if teammate else context.conversation_id
            runs.find_followed(session, policies, begins, where, Actor.parse(context.requested_by))

    return replace(schedule_task, validate=validate, check=check, zoned="time_zone")


def _ending(database: Database, policies: Policies, clock: Clock) -> Tool:
    async def named(arguments: Arguments) -> str:
        found = await database.read(rows.get, arguments["schedule"])
        if found:
            return f"Delete the schedule “{one_line(found.task)}”"
        return "Delete a schedule"

    async def lost(arguments: Arguments) -> Sequence[PreviewField]:
        found = await database.read(rows.get, arguments["schedule"])
        if found is None or found.ended_at is not None:
            raise Hopeless("There is no such schedule, or it has ended.")
        return [PreviewField("task", found.task, None), PreviewField("when", found.words, None)]

    async def kept_out(_: Ran) -> str:
        return _GONE

    @tool(
        group=GROUP,
        summary="Delete schedule {schedule}",
        title=named,
        preview=lost,
        undo=kept_out,
        key=("schedule",),
        touches="schedule {schedule}",
        open_world=False,
    )
    async def delete_schedule(context: CallContext, schedule: Ident) -> ToolOutput:
        """End a schedule for good, and what was allowed for its runs.

        Args:
            schedule: its id, as list_schedules gives it
        """

        def end(session: Session) -> str:
            found = rows.get(session, schedule)
            asked = proposals.get(session, context.idempotency_key.removeprefix("nod-"))
            if found is None or asked is None or not _may(session, policies, found, asked):
                raise Hopeless("Only its owner or an admin can delete it.")
            runs.end_schedule(session, found, asked.requester, clock())
            return found.label

        label = await database.write(end)
        return ToolOutput({"schedule": label, "ended": True}, told=f"Deleted schedule {label}")

    return delete_schedule


def _settle_moments(given: dict[str, Any], zone: tzinfo, now: datetime) -> dict[str, Any]:
    """Return the arguments with moments as dates in a named zone. Raises BadArguments."""
    given = {name: value for name, value in given.items() if value != ""} | {"task": one_line(given["task"])}
    if "after_proposal" in given:
        also = [name for name in ("at", "every", "until") if name in given]
        if also:
            raise BadArguments(dict.fromkeys(also, "Leave this out: it runs once."))
        return {name: given[name] for name in ("task", "after_proposal")}
    if "at" not in given:
        raise BadArguments({"at": "Say when, such as tomorrow 16:00."})
    field = "time_zone"
    try:
        zone = find_zone(given[field]) if field in given else find_zone(str(zone))
        field = "at"
        start = _whole_minute(parse_moment(given["at"], now.astimezone(zone)))
        if start.astimezone(UTC) > now.astimezone(UTC) + MAX_INTERVAL:
            raise ValueError(f"that is too far ahead; the first run is at most {MAX_INTERVAL.days} days away")
        field = "every"
        every = read_repetition(given.get("every", ""), start)
        field = "until"
        if "until" in given:
            until = parse_moment(given["until"], now.astimezone(zone))
        else:
            until = None
    except ValueError as error:
        raise BadArguments({field: f"{str(error)[:1].upper()}{str(error)[1:]}."}) from None
    kept = {"task": given["task"], "at": format_moment(start), "time_zone": str(zone)}
    kept |= {"every": every} if every else {}
    kept |= {"until": format_moment(_whole_minute(until))} if until else {}
    if _times(kept).after(now) is None:
        raise BadArguments({"until": "It ends before it would run."})
    return kept


def _whole_minute(at: datetime) -> datetime:
    return add_length(at, timedelta(seconds=-at.second % 60, microseconds=-at.microsecond))


def _times(given: Mapping[str, Any]) -> Times:
    """Return the times in a schedule's settled arguments."""
    zone = find_zone(given["time_zone"])

    def read(name: str) -> datetime:
        return parse_datetime(given[name], zone).astimezone(UTC)

    return Times(read("at"), given.get("every", ""), zone, read("until") if given.get("until") else None)


def _fields(given: Arguments, now: datetime) -> list[PreviewField]:
    """Return the fields of the card."""
    rows = {"task": given["task"]}
    followed = given.get("after_proposal")
    if followed:
        rows["when"] = f"once proposal {followed[:8]} has ended"
    else:
        times = _times(given)
        rows["when"] = f"{times.words} ({times.zone})"
        if times.every:
            rows["until"] = "no end"
            rows["next_times"] = "\n".join(map(times.format_moment, times.following(now, _SHOWN)))
        if times.until:
            rows["until"] = times.format_moment(times.until)
        once = explain_repeated(times.start.astimezone(times.zone))
        rows["clock_changes"] = "\n".join(filter(None, [once, *times.clock_changes(now)]))
    rows["each_run"] = "in the name of the person who asks; its changes ask as usual"
    return [PreviewField(name, None, words) for name, words in rows.items() if words]


def _new(
    asked: Proposal, where: str, task: str, given: Mapping[str, str], follows: str, now: datetime
) -> Schedule:
    made = Schedule(asked.id, where, asked.requester, task, now, follows=follows or None)
    if follows:
        return made
    times = _times(given)
    made = replace(made, start=times.start, repeats=times.every, zone=str(times.zone), until=times.until)
    return replace(made, due_at=times.after(now))


def _may(session: Session, policies: Policies, found: Schedule, asked: Proposal) -> bool:
    """Tell if the requester or a decider may delete the schedule. An undo was decided already, so it may."""
    who = [asked.requester, *(vote.actor for vote in asked.votes)]
    undoes = asked.undoes is not None and asked.undoes == found.id
    return undoes or any(runs.may_change(session, policies, found, each) for each in who)


def _list_visible(session: Session, context: CallContext) -> list[Schedule]:
    here = conversations.get_conversation(session, context.conversation_id)
    if here is None:
        raise ToolError("There is no conversation here.")
    if not here.private:
        return rows.list_in_conversation(session, here.id)
    return rows.list_of_people(session, people.person_of(session, Actor.parse(context.requested_by)).accounts)


def _describe_schedule(each: Schedule) -> dict[str, Any]:
    return {
        "id": each.label,
        "task": each.task,
        "when": each.words,
        "next": each.next,
        "state": each.state,
        "in_the_name_of": each.person.label,
    }
