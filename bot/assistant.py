"""The core's front door: everything people send comes to `handle`, everything due to the tick's functions.

No platform is known here. What a turn says goes out by ``bot/delivery.py``; tools run behind
``bot/agent/gate.py``; rows decide, jobs only wake.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.agent.gate import Gate
from bot.agent.loop import Loop, Woke
from bot.boards import Boards
from bot.commands import Commands
from bot.delivery import Delivery
from bot.domain.chat import Address, Answer, Clock, Command, Incoming, Message, Press, Reply, Request
from bot.domain.conversations import Conversation, Turn
from bot.domain.events import Ending, ProposalOpened, TurnEnded, TurnEvent
from bot.domain.jobs import Dispatcher, Job, Work
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal, State
from bot.errors import BadArguments, KeyTaken, Refused, ToolError
from bot.presses import Presses
from bot.reminders import Reminders
from bot.store import (
    arrivals,
    boards,
    conversations,
    copies,
    endings,
    events,
    messages,
    outputs,
    people,
    proposals,
    steering,
    teams,
    turns,
)
from bot.store.audit import By
from bot.store.database import Database
from bot.store.endings import LostRace
from bot.telemetry import logger

log = logger(__name__)

MAX_MESSAGE = 32_000  # characters of one person's message
_BATCH = 200
_RACES = 8
_MAX_ATTEMPTS = 5
_GIVEN_UP = (
    "I was restarted again and again while I worked on this, so I gave it up. "
    "Please try again, in other words."
)
_DELIVERY_PATIENCE = timedelta(seconds=60)
_EVENTS_KEPT = timedelta(days=3)


class Assistant:
    """Takes in messages, presses and commands; runs jobs; lets time pass."""

    def __init__(
        self,
        database: Database,
        gate: Gate,
        presses: Presses,
        loop: Loop,
        delivery: Delivery,
        boards: Boards,
        dispatcher: Dispatcher,
        clock: Clock,
        retention: timedelta = timedelta(days=30),
    ) -> None:
        """``retention``: how long the whole of long output is kept."""
        self._database = database
        self._gate = gate
        self._loop = loop
        self._delivery = delivery
        self._boards = boards
        self._dispatcher = dispatcher
        self._clock = clock
        self._retention = retention
        self._policies = gate.policies
        self._presses = presses
        self._reminders = Reminders(database, gate.policies, delivery)
        self._commands = Commands(database, gate.policies, gate.registry, clock, self.handle, self.stop)
        self._stopping: set[str] = set()
        self._work: dict[Work, Callable[[str], Awaitable[tuple[Job, ...]]]] = {
            Work.TURN: self._turn,
            Work.EXECUTE: gate.execute,
            Work.REDRAW: self._redraw,
            Work.TEAM: self._show_team,
            Work.DELIVER: delivery.deliver,
        }

    async def handle(self, incoming: Incoming) -> Reply:
        """The inbox: returns once what came in is committed, with the answer for the one who sent it."""
        match incoming:
            case Message():
                return await self._message(incoming)
            case Press():
                return await self._press(incoming)
            case Command():
                return await self._commands.handle(incoming)
            case Request():
                return await self._request(incoming)

    async def run(self, job: Job) -> tuple[Job, ...]:
        """Do one job; returns the work it made. Safe to run at any time, any number of times."""
        return await self._work[job.work](job.key)

    async def _message(self, message: Message) -> Reply:
        if not message.text.strip():
            return Reply(Answer.INVALID, "I can only read text. Please write what you need.")
        if len(message.text) > MAX_MESSAGE:
            return Reply(
                Answer.INVALID,
                f"That is {len(message.text):,} characters; I read at most {MAX_MESSAGE:,} at once. "
                "Please shorten or split it.",
            )
        accepted = await self._database.write(arrivals.accept, message, self._clock())
        if accepted is None:
            return Reply(Answer.DUPLICATE, "I have this already.")
        await self._dispatcher.wake(Job(Work.TURN, accepted.conversation_id))
        return Reply(
            Answer.ACCEPTED,
            "",
            conversation_id=accepted.conversation_id,
            message_id=accepted.message_id,
        )

    async def _request(self, request: Request) -> Reply:
        for _ in range(_RACES):
            try:
                opened = await self._gate.open(request)
            except LostRace:
                continue
            except BadArguments as error:
                return Reply(Answer.INVALID, error.message, fields=error.fields)
            except KeyTaken as error:
                return Reply(Answer.STALE, error.message)
            except Refused as error:
                return Reply(Answer.REFUSED, error.message)
            except ToolError as error:
                return Reply(Answer.INVALID, error.message)
            await self._dispatcher.wake(*opened.jobs)
            answer = Answer.DUPLICATE if opened.again else Answer.ACCEPTED
            return Reply(answer, "", (opened.proposal,), conversation_id=opened.proposal.conversation_id)
        return Reply(Answer.STALE, "Many ask the same at once. Please ask again.")

    async def _press(self, press: Press) -> Reply:
        decided = await self._presses.take(press)
        await self._dispatcher.wake(*decided.jobs)
        return decided.reply

    async def stop(self, address: Address, who: Actor) -> str:
        """A person stops the turn at an address, and its team; says what was stopped, nothing if nothing."""
        found = await self._database.read(conversations.open_conversation, address)
        if found is None:
            return ""
        spoke, team, jobs = await self._database.write(_stop, found, who, self._clock())
        for conversation_id in (*((found.id,) if spoke else ()), *team):
            self._stopping.add(conversation_id)
            await self._dispatcher.stop_turn(conversation_id)
        await self._dispatcher.wake(*jobs)
        if not team:
            return "Stopped." if spoke else ""
        count = "a teammate" if len(team) == 1 else f"{len(team)} teammates"
        return f"Stopped, and with it {count}; what they had proposed is cancelled."

    async def _turn(self, conversation_id: str) -> tuple[Job, ...]:
        self._stopping.discard(conversation_id)  # whoever stopped an earlier turn did not mean this one
        turn, policy = await self._database.read(self._take_up, conversation_id)
        if turn is None:
            return ()
        conversation = turn.transcript.conversation
        shows_rows = self._delivery.shows_rows(conversation, policy.book)
        made: list[Job] = []
        events_of_turn = self._watched(turn, made, delivered=shows_rows)
        made += await self._delivery.show(
            conversation, turn.transcript.asker, events_of_turn, rows_shown=shows_rows
        )
        return tuple(made)

    def _take_up(self, session: Session, conversation_id: str) -> tuple[Turn | None, Policy]:
        return teams.take_up(session, conversation_id), self._policies.load(session)

    async def _watched(self, turn: Turn, made: list[Job], *, delivered: bool) -> AsyncIterator[TurnEvent]:
        """The turn's events; notes work for what policy lets run, and ends well when a person stops it."""
        conversation_id = turn.transcript.conversation.id
        try:
            async for event in self._loop.run(turn, delivered=delivered):
                if isinstance(event, Woke):
                    await self._dispatcher.wake(*event.jobs)
                    continue
                if isinstance(event, ProposalOpened) and event.proposal.state is State.APPROVED:
                    made.append(Job(Work.EXECUTE, event.proposal.id))
                yield event
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if conversation_id not in self._stopping or task is None:
                raise
            task.uncancel()
            yield TurnEnded(Ending.STOPPED, turn.transcript.seen, "")
        finally:
            self._stopping.discard(conversation_id)

    async def _redraw(self, key: str) -> tuple[Job, ...]:
        await self._delivery.redraw(int(key))
        return ()

    async def _show_team(self, lead_id: str) -> tuple[Job, ...]:
        await self._boards.show(lead_id)
        return ()

    async def expire_due(self, now: datetime) -> int:
        """Expire what nobody decided in time; returns how many."""
        count = 0
        while True:
            expired = await self._database.write_aside(endings.expire_due, self._policies, now, _BATCH)
            count += len(expired)
            await self._dispatcher.wake(*dict.fromkeys(job for _, jobs in expired for job in jobs))
            if len(expired) < _BATCH:
                return count

    async def take_over(self, now: datetime) -> None:
        """Call before any channel starts, when no other process works on this database.

        What is marked as under way is not: its process is gone. Nothing is woken yet; `recover` does that.
        """
        for conversation_id in await self._database.write(_give_up, now):
            log.error("a turn was given up after repeated restarts", conversation=conversation_id)
        await self._abandon(await self._database.read(proposals.abandoned, None), now)
        await self._database.write(endings.unask_all, now)

    async def recover(self, now: datetime, *, starting: bool = False) -> None:
        """Find in the rows what is not done, and have it done. ``starting``: nobody else is at it already."""
        jobs = await self._abandon(await self._database.read(proposals.abandoned, now), now)
        patience = now if starting else now - _DELIVERY_PATIENCE
        read = self._database.read
        jobs += [Job(Work.EXECUTE, ident) for ident in await read(proposals.approved)]
        jobs += [Job(Work.TURN, ident) for ident in await read(turns.wanted)]
        for behind in (turns.with_undelivered, outputs.with_unposted):
            jobs += [Job(Work.DELIVER, ident) for ident in await read(behind, patience)]
        jobs += [Job(Work.REDRAW, str(ident)) for ident in await read(copies.all_behind)]
        jobs += [Job(Work.TEAM, ident) for ident in await read(boards.all_behind)]
        await self._dispatcher.wake(*dict.fromkeys(jobs))

    async def _abandon(self, lost: Sequence[Proposal], now: datetime) -> list[Job]:
        """Say of executions whose process is gone that nobody knows; idempotent ones run again."""
        jobs: list[Job] = []
        if not lost:
            return jobs  # to ask for tools would start MCP servers, and wait for them
        shelf = await self._gate.registry.shelf()
        for proposal in lost:
            tool = shelf.tools.get(proposal.tool_name)
            rerun = tool is not None and tool.idempotent
            with contextlib.suppress(LostRace):
                jobs += await self._database.write(endings.abandon, proposal, now, rerun=rerun)
        return jobs

    async def remind(self, now: datetime) -> None:
        """Warn, remind, escalate, send the daily digest, seal the audit: whatever is due."""
        await self._reminders.sweep(now)

    async def purge(self, now: datetime) -> None:
        """Drop what no platform will deliver again, and long output of long ago."""
        await self._database.write_aside(events.forget_handled, now - _EVENTS_KEPT)
        await self._database.write_aside(outputs.purge, now - self._retention)


def _stop(
    session: Session, found: Conversation, who: Actor, now: datetime
) -> tuple[bool, list[str], tuple[Job, ...]]:
    """Whether a turn was stopped, the ids of the teammates that were, and the work it made."""
    by = By.press("stop", who, people.person_of(session, who))
    spoke = turns.stop_turn(session, found.id, now)
    why = f"{who.label} stopped it."
    return spoke, *steering.stop_all(session, found, by, who.label, why, now)


def _give_up(session: Session, now: datetime) -> list[str]:
    """Give up turns that take the process down with them, and tell people so."""
    given_up = turns.count_attempts(session, _MAX_ATTEMPTS, now)
    for conversation_id in given_up:
        if steering.fail(session, conversation_id, _GIVEN_UP, now):
            continue
        seen = messages.last_heard(session, conversation_id)
        messages.add_notice(session, conversation_id, _GIVEN_UP, seen, now, delivered=False)
    return given_up
