"""Delivery of turns: text becomes posts, proposals become cards, one turn of a conversation at a time.

A crash in between shows it again later rather than never: messages stay undelivered until their row says
otherwise.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.channels.base import Channel, Poster, Stream, poster_at
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import GIVE_UP, Notices, Pauses
from bot.domain.chat import Address, Clock
from bot.domain.conversations import AskedQuestion, Conversation, Line, LineRole
from bot.domain.events import TextDelta, ToolProgress, ToolStarted, TurnEnded, TurnEvent, TurnFailed, Waited
from bot.domain.files import for_people
from bot.domain.jobs import Job, Work
from bot.domain.people import SHELL, Actor
from bot.domain.proposals import Proposal, State
from bot.domain.rules import Rulebook, Subject
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import conversations, messages, outputs, proposals, questions, teams
from bot.store.database import Database
from bot.store.outputs import KeptOutput
from bot.store.processes import Leases
from bot.store.tables.conversations import TeamStatusRow
from bot.telemetry.logs import logger

log = logger(__name__)

_UNDER_WAY = Waited | ToolStarted | ToolProgress
_HELD_BACK = 3.5  # seconds, longer than the pace of any stream
_MAX_PASSES = 5  # of one board in a row; the next tick continues


@dataclass(eq=False)
class Turns:
    """Shows turns as they happen, and posts later what could not be shown then. ``routes``: as in `Cards`."""

    channels: Mapping[str, Channel]
    database: Database
    cards: Cards
    clock: Clock
    notices: Notices
    leases: Leases
    routes: Sequence[Address] = ()

    def __post_init__(self) -> None:
        self._attachments = Attachments(self.channels, self.database, self.clock, self.notices)
        self._failing: dict[int, datetime] = {}  # since when, by message id
        self._pauses: Pauses[str] = Pauses(self.clock)  # by conversation id
        self._arrived: dict[int, int] = {}  # how many posts of a text, by message id
        self._told: set[int] = set()  # ids of messages whose text arrived, but not yet all their cards
        self._speaking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by conversation id

    def shows_rows(self, conversation: Conversation, book: Rulebook) -> bool:
        """Return whether people there read rows themselves, so that nothing has to be delivered."""
        channel = conversation.origin.channel
        if channel not in self.channels:
            return channel == SHELL  # of another, what was said waits for a process that has it
        return poster_at(self.channels, conversation.origin) is None and not (
            self.routes or book.list_about(Subject.ROUTE)
        )

    async def show(
        self,
        conversation: Conversation,
        requester: Actor,
        events: AsyncIterator[TurnEvent],
        *,
        rows_shown: bool,
    ) -> tuple[Job, ...]:
        """Show one turn as it happens, then its cards. Returns the work that undeliverable cards made.

        For a teammate's turn only the cards are shown; its progress is in its team's status message.
        Raises LeasedElsewhere before the first event where another process is posting there.
        """
        channel = self.channels.get(conversation.origin.channel)
        if channel is None or conversation.shown_at is not None:
            async for _ in events:
                pass
            await self.cards.changed()
            if channel is not None and not rows_shown:
                return (Job(Work.DELIVER, conversation.id),)
            return ()
        if poster_at(self.channels, conversation.origin) is None:
            stream = channel.open_stream(conversation.address, requester)
            async for event in events:
                await stream.send(event)
            await self.cards.changed()
            if rows_shown:
                return ()
            return (Job(Work.DELIVER, conversation.id),)
        async with self._posting(conversation.id):
            # what was not shown yet goes above what comes now
            jobs, left = await self._deliver(conversation.id)
            stream = channel.open_stream(conversation.address, requester)
            shown = await _pump(stream, events)
            more, _ = await self._deliver(conversation.id, shown=shown, older=left)
            return (*jobs, *more)

    def _note(self, shown: "_Shown", said: Sequence[Line]) -> None:
        """Remember what of a turn's messages need not be posted, or not all of it.

        A notice that came while it was shown still has to be, unless it says why the turn failed.
        """
        for line in said:
            if shown.complete and (line.role is LineRole.ASSISTANT or line.text == shown.text):
                self._told.add(line.id)
            elif shown.arrived and len(said) == 1 and line.text == shown.text:
                self._arrived[line.id] = shown.arrived

    async def deliver(self, conversation_id: str) -> tuple[Job, ...]:
        """Post what was said but not shown in a conversation; while that is under way, only its questions.

        Raises LeasedElsewhere where another process is posting there.
        """
        if self._pauses.holds(conversation_id):
            return ()
        if self.leases.has(_posts(conversation_id)):
            jobs, _ = await self._deliver(conversation_id, answers_only=True)
            return jobs
        async with self._posting(conversation_id):
            jobs, _ = await self._deliver(conversation_id)
            return jobs

    @contextlib.asynccontextmanager
    async def _posting(self, conversation_id: str) -> AsyncIterator[None]:
        """Hold the exclusive right to post in a conversation, across all processes."""
        async with self._alone(conversation_id), self.leases.held(_posts(conversation_id)):
            yield

    def _alone(self, conversation_id: str) -> asyncio.Lock:
        return self._speaking.setdefault(conversation_id, asyncio.Lock())

    async def _deliver(
        self,
        conversation_id: str,
        *,
        answers_only: bool = False,
        shown: "_Shown | None" = None,
        older: Collection[int] = (),
    ) -> tuple[tuple[Job, ...], list[int]]:
        """Post what is not shown; ``answers_only``: only lines with a question.

        A turn that waits for the answer to a question cannot end before its card is there. ``shown``: what
        was shown of a turn just now, whose lines are those that are not ``older``.
        Returns the work that this made, and the ids of the lines that are left.
        """
        async with self._alone(f"{conversation_id}/posting"):
            waiting = await self.database.read(_waiting, conversation_id)
            if shown is not None:
                self._note(shown, [line for line, _ in waiting.lines if line.id not in older])
            return await self._post(
                waiting, conversation_id, answers_only=answers_only, shown=shown is not None
            )

    async def _post(
        self, waiting: "_Waiting", conversation_id: str, *, answers_only: bool, shown: bool
    ) -> tuple[tuple[Job, ...], list[int]]:
        jobs: list[Job] = []
        left: list[int] = []
        refused = False
        for line, opened in waiting.lines:
            left.append(line.id)
            if answers_only and not any(p.kind.is_answer for p in opened):
                continue
            conversation = waiting.conversation
            if conversation is None or conversation.origin.channel not in {SHELL, *self.channels}:
                continue
            now = self.clock()
            last = now - self._failing.get(line.id, now) >= GIVE_UP
            try:
                await self._say(conversation, line, last=last)
                await self.cards.post_all(conversation, opened, jobs, last=last)
            except ChannelError as error:
                log.warning("message not delivered", message=line.id, why=error.message)
                self._failing.setdefault(line.id, self.clock())
                refused = True
                continue
            await self.database.write(messages.mark_delivered, [line.id])
            left.remove(line.id)
            self._told.discard(line.id)
            self._arrived.pop(line.id, None)
            self._failing.pop(line.id, None)
        if waiting.conversation is not None and waiting.files:
            refused = not await self._attachments.post(waiting.conversation, waiting.files) or refused
        if waiting.answers:
            refused = not await self.notices.tell_answers(waiting.answers) or refused
        if refused:
            self._pauses.note_refusal(conversation_id)
        elif not answers_only:
            self._pauses.over(conversation_id)
        if shown or waiting.lines or waiting.files or waiting.answers:
            await self.cards.changed()
        return tuple(jobs), left

    def due(self) -> list[Job]:
        """Work for what a platform refused just now, once it is time to try again.

        Recovery from rows finds the same later, and after a crash; this is only quicker.
        """
        return [Job(Work.DELIVER, ident) for ident in self._pauses.due()]

    async def _say(self, conversation: Conversation, line: Line, *, last: bool) -> None:
        """Post the text of a line once, after the ``last`` try to the person whom it answers.

        Raises ChannelError when it may arrive another time.
        """
        if conversation.shown_at is not None or line.id in self._told or not line.text.strip():
            return
        poster = poster_at(self.channels, conversation.origin)
        if poster is None:
            return
        try:
            await poster.post(conversation.address, line.text, self._arrived.get(line.id, 0))
        except ChannelError as error:
            if not (last or isinstance(error, NotDeliverable)):
                self._arrived[line.id] = max(error.arrived, self._arrived.get(line.id, 0))
                raise
            log.warning("message not delivered there", address=str(conversation.address), why=error.message)
            heard = await self.database.read(messages.get_line, line.after)
            asker = heard.actor if heard and heard.actor else conversation.requester
            await self.notices.answer_privately(asker, conversation.address, error.message, line.text)
        self._told.add(line.id)


def _posts(conversation_id: str) -> str:
    return f"posts in {conversation_id}"


@dataclass(frozen=True, slots=True)
class _Shown:
    """The part of a turn that a stream has displayed.

    ``complete``: all of it. Else ``arrived`` posts of ``text``, the turn's last text or the reason of its
    failure.
    """

    complete: bool = False
    arrived: int = 0
    text: str = ""


async def _pump(stream: Stream, events: AsyncIterator[TurnEvent]) -> _Shown:
    """Send events one after the other while the turn runs on; deltas that pile up are joined.

    What is under way is told once more after a while: the pace of a stream may have held it back. What the
    platform refuses does not stop the turn.
    """
    waiting: list[TurnEvent] = []
    more = asyncio.Event()
    ended = False

    async def send() -> _Shown:
        last: list[TurnEvent] = []  # what is under way
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(more.wait(), _HELD_BACK if last else None)
            more.clear()
            batch, waiting[:] = _join_texts(waiting) or last, []
            if batch is last:
                last = []
            else:
                last = [each for each in batch[-1:] if isinstance(each, _UNDER_WAY)]
            try:
                for event in batch:
                    await stream.send(event)
            except ChannelError as error:
                log.warning("a stream failed", why=error.message)
                return _Shown(arrived=error.arrived, text=_last_words(event))
            if ended and not waiting:
                return _Shown(complete=True, text=_last_words(event))

    sender = asyncio.create_task(send())
    try:
        async for event in events:
            ended = isinstance(event, TurnEnded | TurnFailed)
            waiting.append(event)
            more.set()
        return await sender if ended else _Shown()
    finally:
        if not sender.done():
            sender.cancel()


def _last_words(event: TurnEvent) -> str:
    """Return the answer with which a turn ended, or why it failed; empty for what is no end."""
    match event:
        case TurnEnded(text=text) | TurnFailed(explanation=text):
            return text
        case _:
            return ""


def _join_texts(events: Sequence[TurnEvent]) -> list[TurnEvent]:
    joined: list[TurnEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        else:
            joined.append(event)
    return joined


class _Waiting(NamedTuple):
    """The rows of a conversation that people have not been shown; lines with their proposals."""

    conversation: Conversation | None  # of which nothing waits but answers
    lines: list[tuple[Line, list[Proposal]]]
    files: list[KeptOutput]
    answers: list[AskedQuestion]


def _waiting(session: Session, conversation_id: str) -> _Waiting:
    lines = [
        (
            line,
            [
                p
                for p in proposals.of_message(session, line.id)
                if p.state is not State.CANCELLED or p.batch == p.id
            ],
        )
        for line in messages.list_undelivered(session, conversation_id)
    ]
    files = outputs.list_unposted(session, conversation_id)
    some = lines or files
    if some:
        conversation = conversations.get_conversation(session, conversation_id)
    else:
        conversation = None
    return _Waiting(conversation, lines, files, questions.list_answered(session, conversation_id))


@dataclass(eq=False)
class TeamStatusDelivery:
    """Shows a conversation's team by one message in its thread, the board, and keeps it up to date.

    As with cards, the row changes first; a message that is behind is redrawn right away, and after a restart.
    """

    channels: Mapping[str, Channel]
    database: Database
    clock: Clock
    leases: Leases

    def __post_init__(self) -> None:
        self._pauses: Pauses[str] = Pauses(self.clock)  # by lead conversation

    async def show(self, lead_id: str) -> None:
        """Bring the board of a conversation up to date; post it if there isn't one yet.

        Raises LeasedElsewhere where another process is doing so.
        """
        async with self.leases.held(f"team of {lead_id}"):
            for _ in range(_MAX_PASSES):
                copy, board = await self.database.read(_behind, lead_id)
                if copy is None or not await self._show(copy, board):
                    return

    async def _show(self, copy: TeamStatusRow, board: TeamStatus) -> bool:
        """Show the team's status, and tell if it changed again in the meantime."""
        channel = self.channels.get(copy.channel)
        if channel is None or self._pauses.holds(copy.lead_id):
            return False
        try:
            ref = await channel.show_team(Address(copy.channel, copy.key), copy.ref, board)
        except (CopyGone, NotDeliverable):
            await self.database.write(teams.mark_gone, copy)
            behind = False
        except ChannelError as error:
            log.warning("team status not updated yet", conversation=copy.lead_id, why=error.message)
            self._pauses.note_refusal(copy.lead_id)
            return False
        else:
            behind = await self.database.write(teams.mark_shown, copy, ref)
        self._pauses.over(copy.lead_id)
        return behind


def _behind(session: Session, lead_id: str) -> tuple[TeamStatusRow | None, TeamStatus]:
    copy = teams.behind(session, lead_id)
    return copy, teams.board(session, lead_id) if copy else TeamStatus(lead_id, ())


@dataclass(eq=False)
class Attachments:
    """Files for people: what was too long for a card or for the model, and what tools made.

    A row (``bot/store/outputs.py``) says that a text still has to be posted, committed together with what it
    belongs to. A crash before the row says otherwise posts it again later rather than never.
    """

    channels: Mapping[str, Channel]
    database: Database
    clock: Clock
    notices: Notices
    _failing: dict[str, datetime] = field(default_factory=dict, init=False)  # since when, by handle

    async def post(self, conversation: Conversation, waiting: Sequence[KeptOutput]) -> bool:
        """Post what people in a conversation still have to get; one caller at a time for each.

        False when something may arrive another time.
        """
        if conversation.origin.channel not in self.channels:
            return True
        poster = poster_at(self.channels, conversation.origin)
        done = True
        for kept in waiting:
            if poster is not None and not await self._post_output(poster, conversation, kept):
                done = False
                continue
            await self.database.write(outputs.mark_posted, kept.handle)
            self._failing.pop(kept.handle, None)
        return done

    async def _post_output(self, poster: Poster, conversation: Conversation, kept: KeptOutput) -> bool:
        """Post one; False when it may arrive another time."""
        file, address = kept.file, conversation.origin
        text = await asyncio.to_thread(for_people, file.text)
        try:
            await poster.post_file(address, file.name, file.data or text)
        except ChannelError as error:
            log.warning("file not delivered", file=kept.handle, address=str(address), why=error.message)
            since = self._failing.setdefault(kept.handle, self.clock())
            if not isinstance(error, NotDeliverable) and self.clock() - since < GIVE_UP:
                return False
            where = "Ask me for the part you need."
            if kept.proposal_id:
                where = (
                    f"It is in the web console with the proposal; `nod show {kept.proposal_id}` prints it."
                )
            words = f"I could not post the file `{kept.file.name}` here ({error.message}). {where}"
            asker = conversation.requester
            await self.notices.say(address, words, instead=Address(asker.channel, asker.key))
        return True
