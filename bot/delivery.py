"""What a turn says becomes posts, and proposals become cards; copies are redrawn until they are current.

Everything here happens after the commit it shows. A crash in between shows it again later rather than
never: messages stay undelivered and copies stay behind until their row says otherwise.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.attachments import GIVE_UP, Attachments
from bot.domain.cards import Card, card_of
from bot.domain.chat import SHELL, Address, Channel, Clock, Stream
from bot.domain.conversations import Conversation, Line
from bot.domain.events import TextDelta, TurnEnded, TurnEvent, TurnFailed
from bot.domain.jobs import Job
from bot.domain.people import Actor, Role
from bot.domain.proposals import Kind, Proposal, State
from bot.domain.rules import Rulebook, Subject
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import conversations, copies, endings, grants, messages, proposals
from bot.store.copies import Copy
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry import logger
from bot.tools.registry import Registry, Shelf

log = logger(__name__)

_RING_SECONDS = 0.02
_MAX_PASSES = 5  # redraws of one card in a row; the next tick goes on


class Bell:
    """Wakes whoever waits for rows to change in this process.

    Changes that come close together ring once: each ring makes everybody who waits read rows.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self.rings = 0

    def ring(self) -> None:
        """Ring within `_RING_SECONDS`."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_RING_SECONDS, self._ring)

    def _ring(self) -> None:
        self._soon = None
        self.rings += 1
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, heard: int, seconds: float) -> None:
        """Return once there were more than ``heard`` rings, or after ``seconds`` (others ring theirs)."""
        if self.rings != heard:
            return
        with contextlib.suppress(TimeoutError):
            # not wait_for: before Python 3.12 that loses a cancellation that comes together with a ring
            async with asyncio.timeout(seconds):
                await self._event.wait()


class Delivery:
    def __init__(
        self,
        channels: Mapping[str, Channel],
        registry: Registry,
        database: Database,
        policies: Policies,
        clock: Clock,
        bell: Bell,
        routes: Sequence[Address] = (),
    ) -> None:
        self._channels = channels
        self._registry = registry
        self._database = database
        self._policies = policies
        self._clock = clock
        self._bell = bell
        self._routes = routes
        self._attachments = Attachments(channels, database, clock)
        self._failing: dict[int, datetime] = {}  # since when, by message id
        self._told: set[int] = set()  # ids of messages whose text arrived, but not yet all their cards
        self._speaking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by conversation id

    def shows_rows(self, conversation: Conversation, book: Rulebook) -> bool:
        """Whether people there read rows themselves, so that nothing has to be delivered."""
        channel = self._channels.get(conversation.origin.channel)
        routed = self._routes or book.about(Subject.ROUTE)
        return channel is None or (channel.pulls and not routed)

    async def show(
        self,
        conversation: Conversation,
        requester: Actor,
        events: AsyncIterator[TurnEvent],
        *,
        rows_shown: bool,
    ) -> tuple[Job, ...]:
        """Show one turn as it happens, then its cards. Returns the work that undeliverable cards made.

        Of a teammate's turn only the cards are shown: what it does is on the board of its team.
        """
        channel = self._channels.get(conversation.origin.channel)
        if channel is None or conversation.shown_at is not None:
            async for _ in events:
                pass
            if channel is not None and not rows_shown:
                return await self.deliver(conversation.id)
            await self._changed()
            return ()
        if channel.pulls:
            stream = channel.open_stream(conversation.address, requester)
            async for event in events:
                await stream.send(event)
            await self._changed()
            return () if rows_shown else await self.deliver(conversation.id)
        async with self._alone(conversation.id):
            # what was left unsaid before stands above what comes now
            jobs = await self._deliver(conversation.id)
            left = await self._database.read(messages.undelivered, conversation.id)
            stream = channel.open_stream(conversation.address, requester)
            if await _pump(stream, events):
                said = await self._database.read(messages.undelivered, conversation.id)
                self._told.update(set(said) - set(left))
            return (*jobs, *await self._deliver(conversation.id))

    async def deliver(self, conversation_id: str) -> tuple[Job, ...]:
        """Post what was said but not shown in a conversation; while that is under way, only its questions."""
        alone = self._alone(conversation_id)
        if alone.locked():
            return await self._deliver(conversation_id, only=Kind.QUESTION)
        async with alone:
            return await self._deliver(conversation_id)

    def _alone(self, conversation_id: str) -> asyncio.Lock:
        """One at a time speaks in a conversation, else things would be said twice."""
        return self._speaking.setdefault(conversation_id, asyncio.Lock())

    async def _deliver(self, conversation_id: str, only: Kind | None = None) -> tuple[Job, ...]:
        """Post what is not shown; with ``only``, what carries a proposal of that kind.

        A turn that waits for the answer to a question cannot end before its card is there.
        """
        async with self._alone(f"{conversation_id}/posting"):
            return await self._deliver_alone(conversation_id, only)

    async def _deliver_alone(self, conversation_id: str, only: Kind | None) -> tuple[Job, ...]:
        jobs: list[Job] = []
        for line, conversation, opened in await self._database.read(_undelivered, conversation_id):
            if only is not None and not any(p.kind is only for p in opened):
                continue
            channel = self._channels.get(conversation.origin.channel)
            if channel is None and conversation.origin.channel != SHELL:
                continue
            last = self._clock() - self._failing.get(line.id, self._clock()) >= GIVE_UP
            try:
                await self._say(channel, conversation, line)
                for proposal in opened:
                    jobs += await self._post(conversation, proposal, last=last)
            except ChannelError as error:
                log.warning("a message did not arrive", message=line.id, why=error.message)
                self._failing.setdefault(line.id, self._clock())
                if not last:
                    continue
                for proposal in opened:
                    jobs += await self._post(conversation, proposal, last=True)
            await self._database.write(messages.mark_delivered, [line.id])
            self._told.discard(line.id)
            self._failing.pop(line.id, None)
        await self._attachments.post(conversation_id)
        await self._changed()
        return tuple(jobs)

    async def _say(self, channel: Channel | None, conversation: Conversation, line: Line) -> None:
        """Post the text of a line once; raises ChannelError when it may arrive another time."""
        silent = conversation.shown_at is not None
        if channel is None or channel.pulls or silent or line.id in self._told or not line.text.strip():
            return
        try:
            await channel.post(conversation.address, line.text)
        except NotDeliverable as error:
            log.warning("a message can never arrive", address=str(conversation.address), why=error.message)
        self._told.add(line.id)

    async def _post(self, conversation: Conversation, proposal: Proposal, *, last: bool) -> tuple[Job, ...]:
        """Post a proposal's card wherever people may decide; nowhere at all ends the proposal.

        Raises ChannelError when it stands nowhere yet, but may another time, unless this is the ``last`` try.
        """
        there = {copy.address for copy in await self._database.read(copies.of_proposal, proposal.id)}
        policy = await self._database.read(self._policies.load)
        routes = policy.book.routes(str(conversation.origin), proposal.tool_name)
        further = () if proposal.kind is Kind.QUESTION else (*self._routes, *map(Address.parse, routes))
        addresses = dict.fromkeys((conversation.origin, *further))
        failures: list[ChannelError] = []
        for address in addresses:
            channel = self._channels.get(address.channel)
            if address in there or channel is None or channel.pulls:
                continue
            if error := await self._post_card(channel, proposal.id, address):
                failures.append(error)
            else:
                there.add(address)
        if there or not failures:
            return ()
        hopeful = [error for error in failures if not isinstance(error, NotDeliverable)]
        if hopeful and not last:
            raise hopeful[0]
        why = failures[0].message
        jobs = await self._database.write(endings.undeliverable, proposal.id, why, self._clock())
        if jobs:
            await self._tell_admins(
                f"A proposal could not be delivered to anybody who may decide, so it was cancelled: "
                f"{proposal.description}. Reason: {why}"
            )
        return jobs

    async def _tell_admins(self, text: str) -> None:
        policy = await self._database.read(self._policies.load)
        for admin in sorted(policy.holders(Role.ADMIN)):
            await self.say(Address.parse(admin), text)

    async def say(self, address: Address, text: str) -> None:
        """Post a text of Nod's own; what cannot arrive is in the log."""
        channel = self._channels.get(address.channel)
        if channel is None or channel.pulls:
            return
        try:
            await channel.post(address, text)
        except ChannelError as error:
            log.error("a word of Nod's own did not arrive", address=str(address), why=error.message)

    async def nudge(self, proposal_id: str, text: str) -> None:
        """Say something about a proposal wherever its card stands."""
        there = await self._database.read(copies.of_proposal, proposal_id)
        for address in dict.fromkeys(copy.address for copy in there):
            await self.say(address, text)

    async def post_at(self, proposal_id: str, address: Address) -> None:
        """Post the card at one more place, unless it stands there."""
        channel = self._channels.get(address.channel)
        if channel is None or channel.pulls or await self._database.read(copies.is_at, proposal_id, address):
            return
        await self._post_card(channel, proposal_id, address)

    async def _post_card(self, channel: Channel, proposal_id: str, address: Address) -> ChannelError | None:
        """Post the card as it is now, and remember the copy; gives what hindered it."""
        current, card = await self.card(proposal_id)
        try:
            ref = await channel.post_card(address, card)
        except ChannelError as error:
            log.error(
                "a card could not be posted", proposal=proposal_id, address=str(address), why=error.message
            )
            return error
        await self._database.write(copies.add, proposal_id, address, ref, current.version)
        return None

    async def redraw(self, message_id: int) -> None:
        """Bring every copy of an answer's cards up to date."""
        await self._changed()
        if all(channel.pulls for channel in self._channels.values()):
            return  # nowhere is there a copy
        for _ in range(_MAX_PASSES):
            behind = await self._database.read(copies.behind, message_id)
            done = [await self._redraw(copy) for copy in behind]
            if not any(done):
                return

    async def _redraw(self, copy: Copy) -> bool:
        channel = self._channels.get(copy.address.channel)
        if channel is None:
            return False
        _, card = await self.card(copy.proposal_id)
        try:
            await channel.redraw_card(copy.address, copy.ref, card)
        except (CopyGone, NotDeliverable):
            await self._database.write(copies.mark_gone, copy)
        except ChannelError as error:
            log.warning("a card stays behind for now", proposal=copy.proposal_id, why=error.message)
            return False
        else:
            await self._database.write(copies.mark_rendered, copy)
        return True

    async def _changed(self) -> None:
        """Wake whoever waits for rows, and let every channel bring its lists up to date."""
        self._bell.ring()
        for channel in self._channels.values():
            await channel.changed()

    async def card(self, proposal_id: str) -> tuple[Proposal, Card]:
        """The card as it is now; the last of several in one answer carries the group's buttons."""
        shelf = await self._registry.shelf()
        return await self._database.read(_card, proposal_id, shelf, self._policies)


async def _pump(stream: Stream, events: AsyncIterator[TurnEvent]) -> bool:
    """Send events one after the other while the turn runs on; deltas that pile up are joined.

    Returns whether everything was shown. What the platform refuses does not stop the turn.
    """
    waiting: list[TurnEvent] = []
    more = asyncio.Event()
    ended = False

    async def send() -> bool:
        while True:
            await more.wait()
            more.clear()
            batch, waiting[:] = _joined(waiting), []
            try:
                for event in batch:
                    await stream.send(event)
            except ChannelError as error:
                log.warning("a stream broke", why=error.message)
                return False
            if ended and not waiting:
                return True

    sender = asyncio.create_task(send())
    try:
        async for event in events:
            ended = isinstance(event, TurnEnded | TurnFailed)
            waiting.append(event)
            more.set()
        return await sender if ended else False
    finally:
        if not sender.done():
            sender.cancel()


def _joined(events: Sequence[TurnEvent]) -> list[TurnEvent]:
    joined: list[TurnEvent] = []
    for event in events:
        if isinstance(event, TextDelta) and joined and isinstance(joined[-1], TextDelta):
            joined[-1] = TextDelta(joined[-1].text + event.text)
        else:
            joined.append(event)
    return joined


def _undelivered(session: Session, conversation_id: str) -> list[tuple[Line, Conversation, list[Proposal]]]:
    found = []
    conversation = conversations.get_conversation(session, conversation_id)
    for message_id in messages.undelivered(session, conversation_id):
        line = messages.get_line(session, message_id)
        if line and conversation:
            opened = [p for p in proposals.of_message(session, line.id) if p.state is not State.CANCELLED]
            found.append((line, conversation, opened))
    return found


def _card(session: Session, proposal_id: str, shelf: Shelf, policies: Policies) -> tuple[Proposal, Card]:
    proposal = proposals.get(session, proposal_id)
    if proposal is None:
        raise KeyError(proposal_id)
    group = proposals.of_message(session, proposal.message_id)
    shown = group if group[-1].id == proposal.id else []
    grantable = grants.possible(session, policies, proposal)
    return proposal, card_of(proposal, shelf.schema_of(session, proposal), shown, grantable=grantable)
