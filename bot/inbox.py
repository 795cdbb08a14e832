"""The entry point of the core: `Assistant.handle` takes all that people send, `Assistant.run` every job.

What there is to do is in rows of the database, which several processes may share. A job only wakes a process
to look at the rows, so it may run twice or late. A *turn* is one piece of the agent's work in a conversation,
until the agent has answered or must wait for people. The lead agent, to whom people write, may have
teammates: further agents that it started, each in a conversation of its own.

No platform is known here. Tools run behind ``bot/approvals/gate.py``, and a turn's text goes out by
``bot/channels/delivery/turns.py``.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

import structlog
from sqlmodel import Session

from bot.agent.loop import Loop
from bot.agent.running_turn import FollowUpJobs
from bot.approvals import incoming, moved_chats
from bot.approvals.commands import Commands
from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.approvals.execute import Execution
from bot.approvals.gate import Gate
from bot.approvals.presses import Presses
from bot.approvals.requests import RequestGate
from bot.approvals.team import stops
from bot.channels.base import ask_membership, has_account
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.team_status import TeamStatusDelivery
from bot.channels.delivery.turns import Turns
from bot.domain.audit import Act
from bot.domain.chat import (
    Address,
    Answer,
    BatchDecision,
    ChatMoved,
    Clock,
    Command,
    Incoming,
    Message,
    Press,
    Reply,
    Request,
    Sent,
    names_in,
)
from bot.domain.conversations import Conversation, LineRole, Transcript, Turn
from bot.domain.events import STOPPED, Ending, ProposalOpened, TurnEnded, TurnEvent, TurnFailed
from bot.domain.hooks import MessageAnswer
from bot.domain.jobs import CHANGED, LOCAL_QUEUE, Dispatcher, Job, Queue, Work, WorkCache
from bot.domain.people import Actor, Names
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.text import is_blank
from bot.domain.verbs import Verb
from bot.domain.work_limits import Bounds
from bot.errors import (
    BadArguments,
    CallRefused,
    KeyTaken,
    LeasedElsewhere,
    LostRace,
    TakenOver,
    ToolError,
    TooManyCalls,
    UnknownCard,
)
from bot.store import conversations, messages, people, teams, turns
from bot.store.connections import get_connections
from bot.store.database import Database
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.telemetry import tracing
from bot.telemetry.logs import logger
from bot.telemetry.outages import describe_outage

log = logger(__name__)

_MAX_MESSAGE_LENGTH = 32_000  # characters
_MAX_KNOWN_NAMES = 10_000
_MAX_ATTEMPTS = 2  # the number of failed attempts after which a turn is given up
_GIVEN_UP_TEXT = (
    "I kept being restarted while working on this, so I gave up. "
    "Send “continue” to try again, or phrase it differently."
)
_KEY_NAMES = {Work.EXECUTE: "proposal", Work.REDRAW: "message"}
"""The names of jobs' keys in the log, by the work of the job. The key of any other job is a conversation."""
_UNLIMITED_QUEUE = Queue("", sys.maxsize)
"""The queue of the jobs that wait for no slot: any number of them run at a time."""
_ANSWERED_BEFORE = MessageAnswer("")
"""The value that a feature returns for a message that was delivered a second time."""
_REFUSAL_ANSWERS: dict[type[Exception], Answer] = {
    KeyTaken: Answer.STALE,
    LostRace: Answer.STALE,
    CallRefused: Answer.REFUSED,
    TooManyCalls: Answer.LATER,
}
"""The kind of the reply to a message or request that was refused by an error, by the type of the error."""

_MessageOutcome = incoming.StoredLine | MessageAnswer | str | None
"""The result of `Assistant._store_message`.

- `StoredLine`: the message was stored, under this id in this conversation
- `MessageAnswer`: a feature waited for the message, such as for a typed number, and answers it
- `str`: the message was refused, for this reason
- `None`: the message was stored or answered before
"""


@dataclass(eq=False)
class Assistant:
    """The core's inbox and worker: it takes messages, presses and commands, and runs jobs."""

    database: Database
    gate: Gate
    presses: Presses
    execution: Execution
    loop: Loop
    delivery: Turns
    cards: Cards
    team_status: TeamStatusDelivery
    dispatcher: Dispatcher
    clock: Clock
    process: str  # the id of this process
    bounds: Bounds
    own_work: WorkCache  # facts about the work that this process requests and does itself, to save reads
    site_url: Callable[[], str] = str  # returns the address of the console; empty without one
    commands: Sequence[Callable[[CommandParts], CommandSet]] = ()  # the commands of features

    def __post_init__(self) -> None:
        parts = CommandParts(
            self.database,
            self.gate.policies,
            self.gate.registry,
            self.clock,
            handle_press=self.handle,
            stop=self.stop,
            wake=self.dispatcher.wake,
            site_url=self.site_url,
            prices=self.loop.prices,
            models=list(self.loop.models.by_name),
            find_posting_fault=self.cards.find_place_objection,
            groups=self.gate.groups,
            find_membership=partial(ask_membership, self.cards.channels),
            has_account=partial(has_account, self.cards.channels),
            workspace=self.loop.briefing.read_workspace,
            connections=get_connections(self.database),
        )
        self._commands = Commands(parts, [make(parts) for make in self.commands])
        self._stopping: set[str] = set()  # ids of conversations whose turn a person has stopped
        # ids of conversations whose agent was asked about a card: the answer is posted at that card, too
        self._asked_about_card: set[str] = set()
        self._known_names: dict[str, str] = {}  # the names that this process has stored
        # the functions that do the work of jobs; each gets a job's key, and returns the jobs that follow
        self._handlers: dict[Work, Callable[[str], Awaitable[tuple[Job, ...]]]] = {
            Work.TURN: self._run_turn,
            Work.EXECUTE: partial(self.execution.start, wake=self.dispatcher.wake),
            Work.REDRAW: self._redraw_card,
            Work.TEAM: self._show_team,
            Work.DELIVER: self.delivery.deliver,
        }

    async def handle(self, incoming: Incoming) -> Reply:
        """Handle what a person sent. Returns the reply for them once it is committed."""
        if isinstance(incoming, ChatMoved):
            return await self._move_chat(incoming)
        new_names = self._find_new_names(incoming)
        if isinstance(incoming, Message):  # the usual case: one transaction stores names and message
            return await self._take_message(incoming, new_names)
        if new_names:
            mentioned = incoming.mentions if isinstance(incoming, Command) else ()
            await self.database.write(_store_names, new_names, incoming.actor, *mentioned)
            self._remember_names(new_names)
        match incoming:
            case Press() | BatchDecision():
                return await self._take_press(incoming)
            case Command():
                refusal = await self.database.read(self._find_refusal, incoming)
                if refusal:
                    return Reply(Answer.REFUSED, refusal)
                return await self._commands.handle(incoming)
            case Request():
                return await self._take_request(incoming)

    async def _move_chat(self, moved: ChatMoved) -> Reply:
        """Apply the new address of a chat to all rows."""
        policies, now = self.gate.policies, self.clock()
        await self.database.write(moved_chats.move_chat, policies, moved.old, moved.new, now)
        return Reply(Answer.ACCEPTED, "")

    def _find_new_names(self, incoming: Sent) -> Names:
        """Return the names that came with what a person sent and that this process has not stored yet."""
        return {key: name for key, name in names_in(incoming).items() if self._known_names.get(key) != name}

    def _remember_names(self, new_names: Names) -> None:
        if len(self._known_names) >= _MAX_KNOWN_NAMES:
            self._known_names.clear()
        self._known_names |= new_names

    def _find_refusal(self, session: Session, incoming: Message | Command) -> str | None:
        """Return why this person may not write here; None if they may."""
        if not incoming.actor.is_outsider:
            return None
        person = people.load_person(session, incoming.actor)
        return self.gate.policies.load(session).find_message_objection(person, str(incoming.address))

    async def run(self, job: Job) -> tuple[Job, ...]:
        """Run one job, and return the jobs that follow. Safe to run at any time, any number of times."""
        with structlog.contextvars.bound_contextvars(**{_KEY_NAMES.get(job.work, "conversation"): job.key}):
            return await self._handlers[job.work](job.key)

    async def queue_of(self, job: Job) -> Queue:
        """Return the queue in which a job waits for its slot.

        A turn waits in the queue of the person who caused it, or in one for turns that no person caused or
        that failed before. The calls of a batch that was approved in this process have a queue of their own,
        and run a few at a time. Any other job waits for no slot.
        """
        posts_nothing = job == CHANGED or (job.work is Work.REDRAW and not self.cards.has_posters)
        if posts_nothing:
            return LOCAL_QUEUE  # the queue of jobs that the process that wakes them runs itself
        if job.work is not Work.TURN:
            return self.own_work.take_batch_queue(job.key) or _UNLIMITED_QUEUE
        own_queue = self.own_work.find_turn_queue(job.key)
        if own_queue is not None:
            return own_queue
        return await self.database.read(turns.find_queue, job.key, self.bounds.turns_by_person, self.process)

    async def _take_message(self, message: Message, new_names: Names) -> Reply:
        """Store a message with the names that came with it, and wake the turn that answers it."""
        files_refusal = self.bounds.files.find_refusal(message.files)
        if files_refusal:
            return Reply(Answer.INVALID, files_refusal)
        if not message.files and is_blank(message.text):
            return Reply(Answer.INVALID, "I can only read text. Please write what you need.")
        if len(message.text) > _MAX_MESSAGE_LENGTH:
            return Reply(
                Answer.INVALID,
                f"That is {len(message.text):,} characters; I read at most {_MAX_MESSAGE_LENGTH:,} "
                "in one message. Please shorten or split it.",
            )
        # the id of this process if it can begin the turn now, else empty
        owner = self.own_work.find_turn_owner(message.actor)
        try:
            outcome = await self.database.write(self._store_message, message, new_names, self.clock(), owner)
        except (TooManyCalls, LostRace) as error:
            return Reply(_REFUSAL_ANSWERS[type(error)], error.message)
        self._remember_names(new_names)
        match outcome:
            case None:
                return Reply(Answer.DUPLICATE, "I have this already.")
            case str() as refusal:
                return Reply(Answer.REFUSED, refusal)
            case MessageAnswer():
                await self.dispatcher.wake(*outcome.jobs)
                return Reply(Answer.ANSWERED, outcome.text)
            case incoming.StoredLine():
                self.own_work.remember_person(message.actor, outcome.person)
                if owner and outcome.wants_turn:
                    self.own_work.note_turn_begun(outcome.conversation_id, message.actor)
                await self.dispatcher.wake(Job(Work.TURN, outcome.conversation_id))
                return Reply(
                    Answer.ACCEPTED,
                    "",
                    conversation_id=outcome.conversation_id,
                    message_id=outcome.message_id,
                )

    def _store_message(
        self, session: Session, message: Message, new_names: Names, now: datetime, owner: str
    ) -> _MessageOutcome:
        """Store a message with the names that came with it.

        A message that a feature waits for is not stored.
        """
        if new_names:
            _store_names(session, new_names, message.actor)
        refusal = self._find_refusal(session, message)
        if refusal:
            return refusal
        if message.private:
            for answer_message in hooks_of(session).answer_message:
                answer = answer_message(session, message, now)
                if answer == _ANSWERED_BEFORE:
                    return None
                if answer is not None:
                    return answer
        return incoming.store_message(session, message, now, self.bounds, owner)

    async def _take_request(self, request: Request) -> Reply:
        """Open the proposal of a script's request, or find the one that this request opened before."""
        try:
            opened = await RequestGate(self.gate).open(request)
        except (ToolError, LostRace) as error:
            fields = error.fields if isinstance(error, BadArguments) else {}
            return Reply(_REFUSAL_ANSWERS.get(type(error), Answer.INVALID), error.message, fields=fields)
        if not opened.was_open_before:
            tracing.trace_proposal(opened.proposal.id, opened.proposal.tool_name)
        await self.dispatcher.wake(*opened.jobs)
        answer = Answer.DUPLICATE if opened.was_open_before else Answer.ACCEPTED
        return Reply(answer, "", (opened.proposal,), conversation_id=opened.proposal.conversation_id)

    async def _take_press(self, press: Press | BatchDecision) -> Reply:
        """Do what a person pressed on a card.

        Raises UnknownCard for a press on an unknown card that does not name the message with the card.
        """
        try:
            result = await self.presses.handle_press(press)
        except UnknownCard as error:
            if press.address is None or press.ref is None:
                raise
            # the message may be a card that was posted, but not stored before a crash
            jobs = await self.cards.adopt_message(press.proposal_id, press.actor, press.address, press.ref)
            if jobs is None:
                return Reply(Answer.UNKNOWN, error.message)
            await self.dispatcher.wake(*jobs)
            result = await self.presses.handle_press(press)
        verb = press.verb if isinstance(press, Press) else None
        if verb is Verb.ASK:
            self._asked_about_card.update(job.key for job in result.jobs if job.work is Work.TURN)
        if verb is Verb.STOP and result.reply.answer is Answer.ACCEPTED:
            self.execution.stop(press.proposal_id)  # another process reads the stop within a second
        self.own_work.keep_approved(result.reply.proposals, result.jobs)
        await self.dispatcher.wake(*result.jobs)
        return result.reply

    async def stop(self, address: Address, who: Actor, begun_by: datetime | None = None) -> str:
        """Stop the turn at an address and its team for a person.

        Returns what was stopped, in words; empty if nothing ran. ``begun_by``: stop only a turn that was
        requested by that time, and its team. None stops any turn.
        """
        conversation = await self.database.read(conversations.find_current_conversation, address)
        if conversation is None:
            return ""
        stopped = await self.database.write(
            _stop_turn_and_team, conversation, who, self.clock(), begun_by, urgent=True
        )
        own_ids = [conversation.id] if stopped.was_running else []
        for conversation_id in (*own_ids, *stopped.teammate_ids):
            self._stopping.add(conversation_id)
            await self.dispatcher.stop_turn(conversation_id)
        await self.dispatcher.wake(*stopped.jobs)
        if not stopped.teammate_ids:
            return STOPPED if stopped.was_running else ""
        number = len(stopped.teammate_ids)
        count = "a teammate" if number == 1 else f"{number} teammates"
        return f"Stopped, together with {count}; what they had proposed is cancelled."

    def stop_here(self, conversation_id: str) -> None:
        """Interrupt a conversation's turn if it runs here: a person has stopped it in another process."""
        if self.dispatcher.interrupt(conversation_id):
            self._stopping.add(conversation_id)

    async def _run_turn(self, conversation_id: str) -> tuple[Job, ...]:
        """Run the turn that a conversation waits for, if any, and show it. Returns the next jobs."""
        self._stopping.discard(conversation_id)  # a stop of an earlier turn does not count for this turn
        turn, policy = await self.database.read(self._load_turn, conversation_id)
        if turn is None:
            return ()
        if turn.owner != self.process:
            is_claimed = await self.database.write(turns.claim_turn, turn.id, self.process, _MAX_ATTEMPTS)
            turn = replace(turn, owner=self.process)
            if not is_claimed:  # it was begun too often, or another process runs it
                return await self.database.write(_give_up, turn, self.clock())
        conversation = turn.transcript.conversation
        needs_delivery = self.delivery.needs_delivery(conversation, policy.rulebook)
        follow_ups: list[Job] = []  # `_watch_turn` also appends to this list while the turn runs
        teammate = turn.transcript.teammate
        turn_span = tracing.trace_turn(
            conversation_id,
            teammate.name if teammate else "",
            _list_proposals_of_last_answer(turn.transcript),
        )
        try:
            with structlog.contextvars.bound_contextvars(turn=turn.id), turn_span as span:
                events = self._watch_turn(turn, follow_ups, span, delivered=not needs_delivery)
                follow_ups += await self.delivery.show(turn, events, needs_delivery=needs_delivery)
        except (asyncio.CancelledError, LeasedElsewhere):  # the process ends, or another process posts there
            await self.database.write(turns.release_turn, turn.id, self.process)
            raise
        except TakenOver:
            log.warning("another process took over this turn; what was said here is dropped")
        except Exception as error:
            if not describe_outage(error):  # an outage of the database is no failure of the turn
                await self.database.write(partial(turns.release_turn, failed=True), turn.id, self.process)
            raise
        finally:
            self.own_work.note_turn_ended(conversation_id)
        # if another process received the question about a card, recovery finds the answer to post
        if conversation_id in self._asked_about_card:
            self._asked_about_card.discard(conversation_id)
            follow_ups.append(Job(Work.DELIVER, conversation_id))
        return tuple(follow_ups)

    def _load_turn(self, session: Session, conversation_id: str) -> tuple[Turn | None, Policy]:
        return teams.load_turn(session, conversation_id), self.gate.policies.load(session)

    async def _watch_turn(
        self, turn: Turn, follow_ups: list[Job], span: tracing.TracedSpan, *, delivered: bool
    ) -> AsyncIterator[TurnEvent]:
        """Yield the events of a turn; a person's stop is yielded as a regular end.

        For each call that needs no approval, the job that executes it is appended to ``follow_ups``.
        ``delivered``: nothing has to be posted, so the turn's text counts as shown once it is stored.
        """
        conversation_id = turn.transcript.conversation.id
        try:
            async for event in self.loop.run(turn, is_streamed=delivered):
                if isinstance(event, FollowUpJobs):
                    await self.dispatcher.wake(*event.jobs)
                    continue
                match event:
                    case ProposalOpened(proposal):
                        self.own_work.keep_opened(proposal)
                        tracing.trace_proposal(proposal.id, proposal.tool_name, span)
                        if proposal.state is State.APPROVED:
                            follow_ups.append(Job(Work.EXECUTE, proposal.id))
                    case TurnEnded(ending):
                        span.set_attributes({"nod.turn.end": ending})
                    case TurnFailed():
                        span.fail("failed")
                    case _:
                        pass
                yield event
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if conversation_id not in self._stopping or task is None:
                raise  # the process ends
            task.uncancel()
            span.set_attributes({"nod.turn.end": Ending.STOPPED})
            yield TurnEnded(Ending.STOPPED, turn.transcript.last_heard_id, "")
        finally:
            self._stopping.discard(conversation_id)

    async def _redraw_card(self, key: str) -> tuple[Job, ...]:
        """Tell listeners of a change, and redraw the cards of a message.

        ``key``: the message's id, as text; empty if no card is to be redrawn.
        """
        await self.cards.announce_change()
        if key:
            await self.cards.redraw(int(key))
        return ()

    async def _show_team(self, lead_id: str) -> tuple[Job, ...]:
        await self.team_status.show(lead_id)
        return ()


def _list_proposals_of_last_answer(transcript: Transcript) -> list[str]:
    """Return the ids of the last answer's proposals, whose outcomes the agent reads in this turn.

    Empty if another line, such as a person's message, came after that answer.
    """
    lines = [line for line in transcript.lines if line.role is not LineRole.NOTICE]
    if not lines or lines[-1].role is not LineRole.ASSISTANT:
        return []
    answer = lines[-1]
    return [
        proposal.id
        for (message_id, _call_id), proposal in transcript.proposals.items()
        if message_id == answer.id
    ]


class _StoppedWork(NamedTuple):
    """The work that a person's stop has ended."""

    was_running: bool  # the conversation's own turn was stopped
    teammate_ids: list[str]  # the conversations of the teammates that were stopped
    jobs: tuple[Job, ...]  # the next jobs


def _stop_turn_and_team(
    session: Session, conversation: Conversation, who: Actor, now: datetime, begun_by: datetime | None
) -> _StoppedWork:
    """Stop a turn and its team.

    ``begun_by``: stop only a turn that was requested by that time, and its team. None stops any turn.
    """
    conversation_lock.lock_conversation(session, conversation.id)
    author = people.make_author(session, Act.STOP, who)
    was_running = turns.stop_turn(session, conversation.id, now, begun_by)
    if begun_by is not None and not was_running:  # the turn was requested later, so its team continues, too
        return _StoppedWork(was_running, [], ())
    teammate_ids, jobs = stops.stop_all(
        session, conversation, author, who.label, f"{who.label} stopped it.", now
    )
    return _StoppedWork(was_running, teammate_ids, jobs)


def _store_names(session: Session, new_names: Names, *actors: Actor) -> None:
    """Store names, and the membership that a platform gave with each account, such as guest."""
    people.store_names(session, new_names)
    for actor in actors:
        people.store_standing(session, actor)


def _give_up(session: Session, turn: Turn, now: datetime) -> tuple[Job, ...]:
    """Give up a turn whose process ended too often, and tell people. Returns the next jobs."""
    conversation_id = turn.transcript.conversation.id
    if not turns.give_up_turn(session, turn.id, turn.owner, _MAX_ATTEMPTS, _GIVEN_UP_TEXT, now):
        return ()  # a person has stopped the turn, or another process runs it
    log.error("a turn was given up after repeated restarts", conversation=conversation_id)
    jobs = stops.fail_teammate(session, conversation_id, _GIVEN_UP_TEXT, now)
    if jobs:  # it was a teammate's turn
        return jobs
    messages.add_notice(
        session, conversation_id, _GIVEN_UP_TEXT, turn.transcript.last_heard_id, now, delivered=False
    )
    if turns.has_later_message(session, turn.id, conversation_id):  # a later message needs a turn of its own
        turns.request_turn(session, conversation_id, now)
        return (Job(Work.DELIVER, conversation_id), Job(Work.TURN, conversation_id))
    return (Job(Work.DELIVER, conversation_id),)
