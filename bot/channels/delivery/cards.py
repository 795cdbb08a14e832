"""Delivery of cards: they are posted wherever people may decide, and redrawn until they are current.

Everything here happens after the commit it shows. A crash in between shows it again later rather than never:
copies stay behind until their row says otherwise.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlmodel import Session

from bot.approvals import lifecycle
from bot.approvals.lookup.proposals import cards_of
from bot.channels.base import Channel, Poster, poster_at, posters
from bot.channels.delivery import audience
from bot.channels.delivery.notices import Notices, Pauses
from bot.domain.batches import batch_card
from bot.domain.cards import Card, Elsewhere, place_card
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Conversation
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor, Names, channel_called, find_name
from bot.domain.policy import same_chat
from bot.domain.proposals import Proposal, State
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import conversations, notices, people, posted_cards, proposals
from bot.store.change_notifier import ChangeNotifier
from bot.store.connections import is_owner
from bot.store.database import Database
from bot.store.posted_cards import Copy, Known
from bot.store.processes import Leases
from bot.store.rules import Policies
from bot.telemetry.logs import logger
from bot.tools.registry import AvailableTools, Registry

log = logger(__name__)

_MOMENT = 0.05  # seconds
_MOMENTS = 20
_ASKED_FOR = 5.0  # seconds that a platform has to say whether Nod can post somewhere
_MAX_PASSES = 5  # redraws of one card in a row; the next tick continues


@dataclass(eq=False)
class Cards:
    """Draws cards, posts them and keeps their copies up to date.

    ``routes``: where every card is posted, too.
    """

    channels: Mapping[str, Channel]
    registry: Registry
    database: Database
    policies: Policies
    clock: Clock
    notifier: ChangeNotifier
    notices: Notices
    leases: Leases
    routes: Sequence[Address] = ()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _told: set[tuple[str, Address]] = field(default_factory=set, init=False)  # of which refusals people know

    def __post_init__(self) -> None:
        self._pauses: Pauses[tuple[int, int]] = Pauses(self.clock)  # by copy and the version it is to show

    async def post_all(
        self, conversation: Conversation, opened: Sequence[Proposal], jobs: list[Job], *, last: bool
    ) -> None:
        """Post every card, adding to ``jobs``; then raise what hindered the first that may arrive yet.

        The first carries the buttons for all of them, and gets those once the others stand below it. A batch
        has one card.
        """
        hindered: list[ChannelError] = []
        opened = [p for p in opened if p.batch in (None, p.id)]
        for proposal in opened:
            try:
                jobs += await self._post(conversation, proposal, last=last)
            except ChannelError as error:
                hindered.append(error)
        if len(opened) > 1 and posters(self.channels):
            await self.database.write(posted_cards.group_is_there, opened[0].message_id)
            jobs.append(Job(Work.REDRAW, str(opened[0].message_id)))
        if hindered:
            raise hindered[0]

    async def _post(self, conversation: Conversation, proposal: Proposal, *, last: bool) -> tuple[Job, ...]:
        """Post a proposal's card wherever people may decide; nowhere at all ends the proposal.

        Raises ChannelError when it may still arrive at one more of them, unless this is the ``last`` try.
        """
        there, wanted = await self.database.read(self._destinations, conversation, proposal)
        failures: dict[Address, ChannelError] = {}
        jobs: set[Job] = set()
        for address in wanted:
            poster = poster_at(self.channels, address)
            if address in there or poster is None:
                continue
            try:
                jobs.update(await self._post_card(poster, proposal.id, address))
            except ChannelError as error:
                failures[address] = error
                asker = audience.find_asker(proposal)
                if not isinstance(error, NotDeliverable):
                    continue
                if asker not in wanted and asker != address:
                    wanted.append(asker)  # where they can still read it
                elif around := self._place_around(failures, there):
                    wanted.append(around)
            else:
                there.add(address)
        hopeful = [error for error in failures.values() if not isinstance(error, NotDeliverable)]
        final = {at: error for at, error in failures.items() if last or isinstance(error, NotDeliverable)}
        if there and final:
            await self.database.write(self._tell_unreached, proposal, there, final)
        if hopeful and not last:
            raise hopeful[0]
        if there or not failures:
            return tuple(jobs)
        return await self.database.write(self._undeliverable, proposal, next(iter(failures.values())).message)

    def _place_around(self, failures: Collection[Address], there: Collection[Address]) -> Address | None:
        """Return the place around a failed address, for a card that is posted nowhere yet."""
        found = map(self.notices.find_place_around, () if there else failures)
        return next((place for place in found if place and place not in failures), None)

    def _destinations(
        self, session: Session, conversation: Conversation, proposal: Proposal
    ) -> tuple[set[Address], list[Address]]:
        there = {copy.address for copy in posted_cards.of_proposal(session, proposal.id)}
        return there, self._addresses(session, conversation, proposal)

    def _undeliverable(self, session: Session, proposal: Proposal, why: str) -> tuple[Job, ...]:
        if proposal.batch:
            shown = proposals.of_batch(session, proposal.batch)
        else:
            shown = [proposal]
        ended = (lifecycle.undeliverable(session, each.id, why, self.clock()) for each in shown)
        jobs = tuple(job for made in ended for job in made)
        if jobs:
            self.notices.for_admins(
                session,
                f"A proposal could not be delivered to anyone who may decide, so it was cancelled: "
                f"{proposal.description}. Reason: {why}",
            )
        return jobs

    def _tell_unreached(
        self,
        session: Session,
        proposal: Proposal,
        there: Collection[Address],
        final: Mapping[Address, ChannelError],
    ) -> None:
        """Have people told of the places that refused a card, once, unless one who may decide has it."""
        policy = self.policies.load(session)
        if any(audience.may_be_decided_at(session, policy, proposal, address) for address in there):
            return
        for address, error in final.items():
            if (proposal.id, address) not in self._told:
                self._told.add((proposal.id, address))
                self.notices.tell_unreached(session, proposal, address, error.message)

    async def hindrance(self, address: Address) -> str:
        """Return why the platform will never take a card there.

        Empty where it will, or did not answer in time.
        """
        poster = poster_at(self.channels, address)
        if poster is not None:
            try:
                async with asyncio.timeout(_ASKED_FOR):
                    await poster.check_place(address)
            except NotDeliverable as error:
                return error.message
            except (ChannelError, TimeoutError) as error:
                log.info("a place was not checked", address=str(address), why=str(error))
        return ""

    async def post_at(self, proposal_id: str, address: Address) -> None:
        """Post the card in one more place, unless it is already there; raises ChannelError."""
        poster = poster_at(self.channels, address)
        there = await self.database.read(posted_cards.of_proposal, proposal_id)
        if poster is None or any(copy.address == address and not copy.gone for copy in there):
            return
        for job in await self._post_card(poster, proposal_id, address):
            await self.redraw(int(job.key))

    async def _post_card(self, poster: Poster, proposal_id: str, address: Address) -> tuple[Job, ...]:
        """Post the card as it is now, and remember the copy; gives the work where it is behind."""
        current, card = await self._at(proposal_id, address)
        try:
            ref = await poster.post_card(address, card)
        except ChannelError as error:
            log.error("card not posted", proposal=proposal_id, address=str(address), why=error.message)
            raise
        version, fingerprint = card.version, card.fingerprint
        behind = await self.database.write(
            posted_cards.add_card, proposal_id, address, ref, version, fingerprint
        )
        if behind:
            return (Job(Work.REDRAW, str(current.message_id)),)
        return ()

    async def recognise(
        self, proposal_id: str, actor: Actor, address: Address, ref: str
    ) -> tuple[Job, ...] | None:
        """Recognise the pressed message ``ref`` as a card of this proposal; None when it can't be one.

        A card whose posting was never answered, or whose row a crash took, is in no row: it is remembered
        here and redrawn from now on, by the jobs that are given back. So is one that had been given up.
        """
        known = await self.database.read(posted_cards.find_known, address.channel, ref)
        if known == Known(proposal_id, gone=False):
            return ()
        return await self.database.write(self._recognise, proposal_id, actor, address, ref, first=True)

    def _recognise(
        self, session: Session, proposal_id: str, actor: Actor, address: Address, ref: str
    ) -> tuple[Job, ...] | None:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return ()
        known = posted_cards.find_known(session, address.channel, ref)
        if known is None:
            if address not in self._places(session, proposal, actor):
                return None
            posted_cards.add_card(session, proposal.card_id, address, ref, shown_version=0)
        elif known.proposal_id not in (proposal_id, proposal.card_id):
            return None
        else:
            posted_cards.revive(session, address.channel, ref)
        return (Job(Work.REDRAW, str(proposal.message_id)),)

    def _places(self, session: Session, proposal: Proposal, actor: Actor) -> set[Address]:
        """Return the places where a card of this proposal may be.

        ``actor``'s private chat is one of these.
        """
        places = {copy.address for copy in posted_cards.of_proposal(session, proposal.card_id)}
        places.add(Address(actor.channel, actor.key))
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        if conversation:
            places.update(self._addresses(session, conversation, proposal))
        if proposal.escalate_to:
            places.add(Address.parse(proposal.escalate_to))
        return places

    def _addresses(self, session: Session, conversation: Conversation, proposal: Proposal) -> list[Address]:
        policy = self.policies.load(session)
        return audience.find_card_places(session, policy, conversation, proposal, self.routes)

    @property
    def stand_anywhere(self) -> bool:
        """True if some channel holds copies of cards; elsewhere people read the rows themselves."""
        return bool(posters(self.channels))

    async def redraw(self, message_id: int) -> None:
        """Bring every copy of an answer's cards up to date.

        Raises LeasedElsewhere where another process is doing so.
        """
        if self.stand_anywhere:
            async with self.leases.held(f"cards of {message_id}"):
                await self._redraw_all(message_id)

    async def _redraw_all(self, message_id: int) -> None:
        """Redraw what is decided or open; give what is about to run or runs a moment to end.

        Most tools end within it, and each redraw counts against what a platform lets Nod send.
        """
        tried: set[tuple[int, int]] = set()
        for moment in range(_MOMENTS + _MAX_PASSES):
            waits = moment < _MOMENTS
            behind = await self.database.read(posted_cards.behind, message_id)
            ready = [copy for copy, passing in behind if not (passing and waits)]
            again = [await self._redraw(copy) for copy in ready if (copy.id, copy.wanted) not in tried]
            tried.update((copy.id, copy.wanted) for copy in ready)
            if waits and any(passing for _, passing in behind):
                await self.sleep(_MOMENT)
            elif not any(again):
                return

    async def _redraw(self, copy: Copy) -> bool:
        """Redraw the cards, and tell if one changed again in the meantime."""
        poster = poster_at(self.channels, copy.address)
        key = (copy.id, copy.wanted)
        if poster is None or self._pauses.holds(key):
            return False
        proposal, card = await self._at(copy.proposal_id, copy.address)
        try:
            if card.fingerprint != copy.shown:  # each edit counts against what a platform lets Nod send
                await poster.redraw_card(copy.address, copy.ref, card)
        except (CopyGone, NotDeliverable):
            await self.database.write(
                partial(self._replace_lost, again=proposal.state is State.PROPOSED), copy
            )
            behind = False
        except ChannelError as error:
            log.info("card not updated yet", proposal=copy.proposal_id, why=error.message)
            self._pauses.note_refusal(key)
            return False
        else:
            behind = await self.database.write(posted_cards.mark_rendered, copy, card.fingerprint)
        self._pauses.over(key)
        return behind

    def _replace_lost(self, session: Session, copy: Copy, *, again: bool) -> None:
        posted_cards.mark_gone(session, copy)
        if again:
            notices.store_notice(session, copy.address, "", self.clock(), copy.proposal_id)

    async def changed(self) -> None:
        """Wake what waits for rows, and let every channel bring its lists up to date."""
        self.notifier.notify()
        for channel in self.channels.values():
            await channel.changed()

    async def card(
        self, proposal_id: str, at: Address | None = None, *, together: bool = False
    ) -> tuple[Proposal, Card]:
        """Return the card as it is now; the first of several in one answer carries the group's buttons.

        ``together``: of a row of a batch, that of the batch and its first proposal.
        """
        available = await self.registry.available()
        find = partial(_card, together=together)
        return await self.database.read(find, proposal_id, available, self.policies, at)

    async def _at(self, proposal_id: str, address: Address) -> tuple[Proposal, Card]:
        """Return the card for a place, with the group's buttons only where the complete group is posted."""
        proposal, card = await self.card(proposal_id, address, together=True)
        group = card.group
        there = group is None or await self.database.read(posted_cards.stand_at, group.members, address)
        return proposal, card if there else card.alone

    async def cards(self, find: Callable[[Session], Sequence[Proposal]]) -> Mapping[str, Card]:
        """Return the cards of what ``find`` gives, by proposal id, found and drawn in one read."""
        available = await self.registry.available()
        return await self.database.read(lambda s: cards_of(s, self.policies, available, find(s)))


def _card(
    session: Session,
    proposal_id: str,
    available: AvailableTools,
    policies: Policies,
    at: Address | None,
    *,
    together: bool,
) -> tuple[Proposal, Card]:
    """``at``: where its reader is, if that is known."""
    proposal = proposals.get(session, proposal_id)
    if proposal is None:
        raise KeyError(proposal_id)
    if together and proposal.batch:
        found = proposals.of_batch(session, proposal.batch)
        cards = cards_of(session, policies, available, found)
        proposal, card = found[0], batch_card(found, [cards[each.id] for each in found])
    else:
        card = cards_of(session, policies, available, [proposal])[proposal_id]
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    if at is None or conversation is None or not card.pending:
        return proposal, card
    elsewhere = at != conversation.origin and not same_chat(str(conversation.origin), str(at))
    escalated = proposal.deciders.escalated
    came = escalated is not None and same_chat(escalated, str(at))
    requester = people.person_of(session, proposal.requester)
    further = {str(conversation.origin)} if elsewhere else set()
    named = people.find_known_names(session, {*proposal.deciders.people, *further})
    alone = conversation.private and not elsewhere  # only they read it there
    own = is_owner(proposal, requester)  # whose yes it waits for
    may_approve = not alone or own or policies.load(session).objection(proposal, requester, requester) is None
    sent_on = not may_approve and any(
        copy.address != conversation.origin for copy in posted_cards.of_proposal(session, proposal.card_id)
    )
    return proposal, place_card(
        card,
        proposal,
        elsewhere=_elsewhere(conversation, at, named) if elsewhere else None,
        may_approve=may_approve,
        sent_on=sent_on,
        escalated=came,
        names=named,
    )


def _elsewhere(conversation: Conversation, at: Address, named: Names) -> Elsewhere:
    """Return the origin of a card for people who read it in another chat."""
    channel, origin = conversation.origin.channel, str(conversation.origin)
    there = channel_called(channel)
    further = "" if channel == at.channel else f" in {there}"
    if conversation.private:
        return Elsewhere(f"a private chat{further}", None, named=False)
    alone = there[:1].islower()  # "the console" is one place, Slack has many
    if not alone and (name := find_name(origin, named)):
        return Elsewhere(f"{name}{further}", origin, named=True)
    return Elsewhere(there if alone else f"a chat in {there}", origin, named=alone)
