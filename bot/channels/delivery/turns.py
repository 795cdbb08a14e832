"""Delivery of turns: text becomes posts, proposals become cards, one turn of a conversation at a time.

A turn is one piece of the agent's work. `Turns.show` shows its events, such as new text or a tool that
starts, as they happen. It does so by a *stream*, such as a message that grows with them. A *line* is one
stored message of a conversation, with the proposals that it opened. Lines that no stream has shown, and the
cards of all lines, are posted from the rows (`Turns.deliver`). A line is marked as delivered after it was
posted, so a crash in between posts it twice rather than never.

Two locks and a lease keep the order of a conversation, always taken in this order:

1. the delivery lock of the conversation, against other tasks of this process, and
2. its lease, against other processes; both are held while a turn is shown, or while lines are delivered;
3. its posting lock, against other tasks of this process, only while stored lines are posted.

A question that is asked during a turn is posted under the posting lock alone: until the question is answered,
the turn holds the delivery lock and the lease.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.channels.base import Channel, Stream, poster_at
from bot.channels.delivery.attachments import Attachments
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import Notices
from bot.channels.delivery.pauses import GIVE_UP, Pauses
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Conversation, Line, LineRole, Turn
from bot.domain.events import (
    Ending,
    TextDelta,
    ToolProgress,
    ToolStarted,
    TurnDelayed,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.domain.hooks import WatchDelivery
from bot.domain.jobs import Job, Work
from bot.domain.people import AGENTS, SHELL
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject
from bot.domain.rulebook import Rulebook
from bot.errors import ChannelError, NotDeliverable
from bot.store import messages
from bot.store.database import Database
from bot.store.processes import Leases
from bot.store.undelivered import Undelivered, read_undelivered
from bot.telemetry.logs import logger

log = logger(__name__)

_PROGRESS_EVENTS = TurnDelayed | ToolStarted | ToolProgress
_REPEAT_SECONDS = 3.5  # the time until a progress event is sent again; longer than the pace of any stream


@dataclass(slots=True)
class _LineProgress:
    """The progress of a line that is not yet marked as delivered."""

    posts_arrived: int = 0  # of the posts of a long text, the number that arrived
    needs_no_text: bool = False  # its text arrived: as posts, by a stream or privately
    failing_since: datetime | None = None  # the time of the first failure; None without any


class _PostedLine(NamedTuple):
    """The outcome of posting one line, with the jobs that its cards need."""

    is_delivered: bool
    jobs: Sequence[Job] = ()


class _Delivery(NamedTuple):
    """The outcome of posting the undelivered lines, files and answers of a conversation."""

    jobs: tuple[Job, ...]
    undelivered: list[int]  # ids of the lines that are still to be posted


_NOTHING_POSTED = _Delivery((), [])


@dataclass(eq=False)
class Turns:
    """Shows turns as they happen, and posts lines and cards from the rows.

    ``routes`` are places where every card is posted in addition to the chat where it was asked for.
    ``watchers`` are the features that change which people a card notifies.
    """

    channels: Mapping[str, Channel]
    database: Database
    cards: Cards
    clock: Clock
    notices: Notices
    leases: Leases
    routes: Sequence[Address] = ()
    watchers: Sequence[WatchDelivery] = ()

    def __post_init__(self) -> None:
        self._attachments = Attachments(self.channels, self.database, self.clock, self.notices)
        self._progress: defaultdict[int, _LineProgress] = defaultdict(_LineProgress)  # by line id
        self._pauses: Pauses[str] = Pauses(self.clock)  # by conversation id
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def needs_delivery(self, conversation: Conversation, rulebook: Rulebook) -> bool:
        """Tell if lines or cards of the conversation must be posted, since people there can't read the rows.

        This is also true for requests of programs (``AGENTS``), and if cards have routes. While a feature
        watches whom cards notify, it is true for every conversation.
        """
        origin = conversation.origin
        if origin.channel == AGENTS or any(watcher.is_watching() for watcher in self.watchers):
            return True
        if origin.channel not in self.channels:
            return origin.channel != SHELL  # a process that has the channel delivers it
        if poster_at(self.channels, origin) is not None:
            return True
        return bool(self.routes or rulebook.list_about(Subject.ROUTE))

    async def show(
        self, turn: Turn, events: AsyncIterator[TurnEvent], *, needs_delivery: bool
    ) -> tuple[Job, ...]:
        """Show one turn as it happens, then its cards. Returns the jobs that are left to do.

        Of a teammate's turn only the cards are shown: its team's status message tells its progress.
        ``needs_delivery``: the result of the method `needs_delivery` for this conversation. Raises
        LeasedElsewhere before the first event if another process is posting in the conversation.
        """
        conversation = turn.transcript.conversation
        channel = self.channels.get(conversation.origin.channel)
        if channel is None or _is_teammates(conversation):
            await _run_without_showing(events)
        elif poster_at(self.channels, conversation.origin) is not None:
            return await self._show_and_post(channel, turn, events)
        else:  # people read the stream, and later the stored lines: nothing is posted
            await _send_all(channel.open_stream(conversation.address, turn.transcript.asker), events)
        await self.cards.announce_change()
        if channel is None or not needs_delivery:
            return ()
        return (Job(Work.DELIVER, conversation.id),)

    async def _show_and_post(
        self, channel: Channel, turn: Turn, events: AsyncIterator[TurnEvent]
    ) -> tuple[Job, ...]:
        """Show a turn, and post what belongs to it.

        First older undelivered lines are posted, so that they are above the turn. After the turn its cards
        are posted, and the text that its stream could not show.
        """
        conversation = turn.transcript.conversation
        async with self._hold_delivery(conversation.id):
            jobs: tuple[Job, ...] = ()
            older_line_ids: list[int] = []  # the lines from before the turn that could not be posted
            if turn.has_undelivered:
                older = await self._post_stored(conversation.id)
                jobs, older_line_ids = older.jobs, older.undelivered
            stream = channel.open_stream(conversation.address, turn.transcript.asker)
            result = await _EventSender(stream).send_all(events)
            rest = await self._post_after_stream(conversation.id, result, older_line_ids)
            return (*jobs, *rest.jobs)

    async def deliver(self, conversation_id: str) -> tuple[Job, ...]:
        """Post the undelivered lines of a conversation; while a turn is shown there, only its questions.

        Raises LeasedElsewhere if another process is posting there.
        """
        if self._pauses.is_backing_off(conversation_id):
            return ()
        # if this process has the lease already, another of its tasks shows a turn or delivers lines there
        is_busy = self.leases.has(_name_lease(conversation_id))
        if is_busy:
            delivery = await self._post_stored(conversation_id, questions_only=True)
            return delivery.jobs
        async with self._hold_delivery(conversation_id):
            delivery = await self._post_stored(conversation_id)
            return delivery.jobs

    def due(self) -> list[Job]:
        """Return a job for each conversation whose pause after a platform's refusal is over.

        This is only quicker: recovery from the rows finds the same conversations later, also after a crash.
        """
        return [Job(Work.DELIVER, conversation_id) for conversation_id in self._pauses.list_over()]

    @contextlib.asynccontextmanager
    async def _hold_delivery(self, conversation_id: str) -> AsyncIterator[None]:
        """Hold the delivery lock and the lease of a conversation, to show a turn or deliver lines there.

        Raises LeasedElsewhere if another process holds the lease.
        """
        async with self._lock(conversation_id), self.leases.hold(_name_lease(conversation_id)):
            yield

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _post_stored(self, conversation_id: str, *, questions_only: bool = False) -> _Delivery:
        """Post the undelivered lines, files and answers of a conversation.

        ``questions_only``: of the lines, only those with a question of the agent.
        """
        async with self._lock_posting(conversation_id):
            rows = await self.database.read(read_undelivered, conversation_id)
            if rows is None:
                return _NOTHING_POSTED
            delivery = await self._post_rows(rows, questions_only=questions_only)
            if rows.lines or rows.files or rows.answers:
                await self.cards.announce_change()
            return delivery

    async def _post_after_stream(
        self, conversation_id: str, result: "_StreamResult", older_line_ids: Collection[int]
    ) -> _Delivery:
        """Post what a stream has not displayed of a turn: cards, files, answers, and the text that is left.

        All undelivered lines but those in ``older_line_ids`` are the turn's.
        """
        async with self._lock_posting(conversation_id):
            rows: Undelivered | None
            # displayed lines without cards need nothing more, so the transaction that reads also marks them
            if result.is_complete and result.ending is Ending.DONE:
                rows = await self.database.write(
                    _settle_streamed_lines, conversation_id, result, older_line_ids
                )
            else:
                rows = await self.database.read(read_undelivered, conversation_id)
            if rows is None:
                return _NOTHING_POSTED
            lines_of_turn = [line for line, _ in rows.lines if line.id not in older_line_ids]
            self._note_stream_result(result, lines_of_turn)
            delivery = await self._post_rows(rows)
            await self.cards.announce_change()
            return delivery

    def _lock_posting(self, conversation_id: str) -> asyncio.Lock:
        return self._lock(f"{conversation_id}/posting")

    def _note_stream_result(self, result: "_StreamResult", lines: Sequence[Line]) -> None:
        """Note which of a turn's lines the stream has displayed, in full or in part."""
        if result.is_complete:
            for line in lines:
                if result.has_displayed(line):
                    self._progress[line.id].needs_no_text = True
            return
        # with several lines it is not known whose posts arrived
        if result.posts_arrived and len(lines) == 1 and lines[0].text == result.text:
            self._progress[lines[0].id].posts_arrived = result.posts_arrived

    async def _post_rows(self, rows: Undelivered, *, questions_only: bool = False) -> _Delivery:
        """Post lines in their order, then files and answers.

        Lines of a channel that this process does not have are left to another process. A refusal begins the
        pause of the conversation, and its next delivery without a refusal ends it.
        """
        jobs: list[Job] = []
        undelivered: list[int] = []
        is_refused = False
        conversation = rows.conversation
        # nothing is posted in the shell and for programs, but their lines are marked and get their cards
        is_served = conversation.origin.channel in {SHELL, AGENTS, *self.channels}
        for line, opened in rows.lines:
            # a question is a proposal whose decision is the answer
            has_question = any(proposal.kind.is_answer for proposal in opened)
            if not is_served or (questions_only and not has_question):
                undelivered.append(line.id)
                continue
            posted = await self._post_line(conversation, line, opened)
            jobs += posted.jobs
            if not posted.is_delivered:
                undelivered.append(line.id)
                is_refused = True
        if rows.files:
            arrived = await self._attachments.post(conversation, rows.files)
            is_refused = is_refused or not arrived
        if rows.answers:
            arrived = await self.notices.tell_answers(rows.answers)
            is_refused = is_refused or not arrived
        if is_refused:
            self._pauses.note_refusal(conversation.id)
        elif not questions_only:
            self._pauses.end(conversation.id)
        return _Delivery(tuple(jobs), undelivered)

    async def _post_line(
        self, conversation: Conversation, line: Line, opened: Sequence[Proposal]
    ) -> _PostedLine:
        """Post a line's text and the cards of the proposals it ``opened``, then mark it as delivered."""
        progress = self._progress[line.id]
        failing_since = progress.failing_since
        is_last_try = failing_since is not None and self.clock() - failing_since >= GIVE_UP
        jobs: Sequence[Job] = ()
        hindrance: ChannelError | None
        try:
            await self._post_text(conversation, line, progress, is_last_try=is_last_try)
            jobs, hindrance = await self.cards.post_all(conversation, opened, is_last_try=is_last_try)
        except ChannelError as error:
            hindrance = error
        if hindrance is not None:
            log.warning("message not delivered", message=line.id, why=hindrance.message)
            progress.failing_since = failing_since or self.clock()
            return _PostedLine(is_delivered=False, jobs=jobs)
        await self.database.write(messages.mark_delivered, [line.id])
        del self._progress[line.id]
        return _PostedLine(is_delivered=True, jobs=jobs)

    async def _post_text(
        self, conversation: Conversation, line: Line, progress: _LineProgress, *, is_last_try: bool
    ) -> None:
        """Post a line's text, unless all of it arrived already.

        A text that is refused for good, or at the last try, goes to the private chat of the person to whom
        the line is the answer. Raises ChannelError if another try may succeed.
        """
        poster = poster_at(self.channels, conversation.origin)
        if poster is None or _is_teammates(conversation):
            return  # people read the stored line, or the team's status message
        if progress.needs_no_text or not line.text.strip():
            return
        try:
            await poster.post(conversation.address, line.text, progress.posts_arrived)
        except ChannelError as error:
            if not (is_last_try or isinstance(error, NotDeliverable)):
                progress.posts_arrived = max(error.arrived, progress.posts_arrived)
                raise
            log.warning("message not delivered there", address=str(conversation.address), why=error.message)
            await self._answer_privately(conversation, line, error.message)
        progress.needs_no_text = True

    async def _answer_privately(self, conversation: Conversation, line: Line, why: str) -> None:
        question = await self.database.read(messages.get_line, line.after)
        asker = question.actor if question else None
        await self.notices.answer_privately(
            asker or conversation.requester, conversation.address, why, line.text
        )


def _is_teammates(conversation: Conversation) -> bool:
    """Tell if this is the conversation of a teammate, an agent that the lead agent started.

    People see its proposals in the lead agent's conversation (``shown_at``), and its progress in a status
    message of the team, so its lines are not posted.
    """
    return conversation.shown_at is not None


def _name_lease(conversation_id: str) -> str:
    return f"posts in {conversation_id}"


async def _run_without_showing(events: AsyncIterator[TurnEvent]) -> None:
    """Run a turn to its end without showing it. A turn runs only while its events are taken."""
    async for _ in events:
        pass


async def _send_all(stream: Stream, events: AsyncIterator[TurnEvent]) -> None:
    async for event in events:
        await stream.send(event)


@dataclass(frozen=True, slots=True)
class _StreamResult:
    """The part of a turn that a stream has displayed."""

    is_complete: bool = False  # the stream displayed the turn in full
    posts_arrived: int = 0  # the number of posts of ``text`` that the platform took
    text: str = ""  # the turn's answer, or the reason of its failure
    ending: Ending | None = None  # None for a failure

    def has_displayed(self, line: Line) -> bool:
        """Tell if a line was displayed, given that the turn was displayed in full.

        A stream displays the answers of the turn, and the reason of its failure. It displays no other lines
        that were stored during the turn, such as notes.
        """
        return line.role is LineRole.ASSISTANT or line.text == self.text


class _EventSender:
    """Sends a turn's events to its stream one by one, while the turn runs in another task.

    Texts that wait are joined. A stream may have dropped a progress event that came too fast, so the last
    progress event is sent once more after a while. A refusal of the platform ends the sending, not the turn.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._pending: list[TurnEvent] = []
        self._has_pending = asyncio.Event()
        self._has_ended = False

    async def send_all(self, events: AsyncIterator[TurnEvent]) -> _StreamResult:
        """Run the turn to its end and send its events. Return the part that the stream has displayed."""
        sender = asyncio.create_task(self._send_pending())
        try:
            async for event in events:
                self._has_ended = isinstance(event, TurnEnded | TurnFailed)
                self._pending.append(event)
                self._has_pending.set()
            if not self._has_ended:
                return _StreamResult()
            return await sender
        finally:
            if not sender.done():
                sender.cancel()

    async def _send_pending(self) -> _StreamResult:
        """Send events as they come, until the turn has ended or the platform refuses one."""
        to_repeat: TurnEvent | None = None  # a progress event that was sent only once
        while True:
            batch = await self._take_pending(None if to_repeat is None else _REPEAT_SECONDS)
            if batch:
                to_repeat = batch[-1] if isinstance(batch[-1], _PROGRESS_EVENTS) else None
            elif to_repeat is not None:  # no events came within _REPEAT_SECONDS
                batch = [to_repeat]
                to_repeat = None
            for event in batch:
                try:
                    await self._stream.send(event)
                except ChannelError as error:
                    log.warning("a stream failed", why=error.message)
                    return _StreamResult(posts_arrived=error.arrived, text=_final_text(event))
            if self._has_ended and not self._pending:
                last = batch[-1]
                ending = last.ending if isinstance(last, TurnEnded) else None
                return _StreamResult(is_complete=True, text=_final_text(last), ending=ending)

    async def _take_pending(self, seconds: float | None) -> list[TurnEvent]:
        """Wait for events, and return all of them.

        The list is empty after ``seconds`` without an event; None waits without a limit.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._has_pending.wait(), seconds)
        self._has_pending.clear()
        batch = _join_texts(self._pending)
        self._pending.clear()
        return batch


def _settle_streamed_lines(
    session: Session, conversation_id: str, result: _StreamResult, older_line_ids: Collection[int]
) -> Undelivered | None:
    """Mark the lines of a turn that a stream has displayed as delivered, and return the remaining rows.

    A line with cards remains: it counts as delivered once its cards are posted.
    """
    rows = read_undelivered(session, conversation_id)
    if rows is None:
        return None
    delivered: list[int] = []
    remaining = []
    for line, opened in rows.lines:
        is_of_turn = line.id not in older_line_ids
        if is_of_turn and not opened and result.has_displayed(line):
            delivered.append(line.id)
        else:
            remaining.append((line, opened))
    if delivered:
        messages.mark_delivered(session, sorted(delivered))
    return rows._replace(lines=remaining)


def _final_text(event: TurnEvent) -> str:
    """Return the answer with which a turn ended, or why the turn failed; empty for any other event."""
    match event:
        case TurnEnded(text=text) | TurnFailed(explanation=text):
            return text
        case _:
            return ""


def _join_texts(events: Sequence[TurnEvent]) -> list[TurnEvent]:
    """Return the events, with each run of texts joined into one."""
    joined: list[TurnEvent] = []
    for event in events:
        previous = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(previous, TextDelta):
            joined[-1] = TextDelta(previous.text + event.text)
        else:
            joined.append(event)
    return joined
