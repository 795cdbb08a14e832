"""Delivery of cards: they are posted wherever people may decide, and redrawn until they are current.

A card is the message about a proposal. A copy is one posted card, stored with its place and the platform's
reference to the message (``bot/store/posted_cards.py``). `Cards.post_all` posts the cards of the proposals of
one answer of the agent, `Cards.redraw` brings their copies up to date. Three or more calls of one tool in an
answer are a batch and have one card together, a table. Several other proposals of an answer are a group,
whose first card also has buttons for all. Where a card is posted is told in ``card_places.py``, whom it
notifies in ``audience.py``, and what it says at each place in ``card_drawing.py``.

A copy is outdated if its proposal has changed since it was drawn. Two fields of a `Copy` serve that:
``wanted`` counts the changes that it should show, and ``shown`` is the fingerprint of the card that it shows,
a hash of the card's contents.

Everything here happens after the commit that it shows. A copy is marked as current after it was drawn: a
crash in between draws it twice rather than never.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import lifecycle
from bot.approvals.lookup.proposals import cards_of
from bot.channels.base import Channel, Poster, poster_at, posters
from bot.channels.delivery import audience, card_places
from bot.channels.delivery.card_drawing import ProposalCard, draw_card
from bot.channels.delivery.notices import Notices
from bot.channels.delivery.pauses import Pauses
from bot.domain.cards import Card
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Conversation
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor, is_group
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import conversations, notices, posted_cards, proposals
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.store.posted_cards import Copy
from bot.store.processes import Leases
from bot.store.rules import Policies
from bot.telemetry.logs import logger
from bot.tools.registry import AvailableTools, Registry

log = logger(__name__)

_LOOK_SECONDS = 0.05  # between two looks for outdated copies, see `Cards._redraw_all`
_MAX_LOOKS = 20  # the looks in which copies that will change again soon may wait
_MAX_PASSES = 5  # the looks after those, in which every outdated copy is redrawn
_CHECK_SECONDS = 5.0  # the time for a platform to say whether Nod can post at a place


class _DrawnCard(NamedTuple):
    """A card as it was drawn for the readers at one address."""

    address: Address
    card: ProposalCard


class Destinations(NamedTuple):
    """The places of a proposal's card."""

    posted: set[Address]  # the addresses that have or had the card
    addresses: list[Address]  # all addresses that should have the card
    first: _DrawnCard | None  # the card for the first address to post it at; None if all have it
    is_watched: bool  # a feature may change whom the card notifies


class OutdatedCopies(NamedTuple):
    """The outdated copies of the cards of an answer, as one look finds them."""

    due: Sequence[Copy]  # the copies to redraw now
    card: ProposalCard | None  # the card that the first copy in ``due`` should show; None without a copy
    must_wait: bool  # there are further outdated copies, which will change again soon


class PostingOutcome(NamedTuple):
    """The outcome of posting cards."""

    jobs: Sequence[Job]  # further work that the posting has caused, such as a redraw
    hindrance: ChannelError | None  # the first refusal after which another try may succeed


@dataclass(eq=False)
class Cards:
    """Draws cards, posts them and keeps their copies up to date.

    ``routes`` are places where every card is posted in addition to the chat where it was asked for.
    ``leases`` let one process at a time redraw the cards of an answer.
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
    _reported_refusals: set[tuple[str, Address]] = field(default_factory=set, init=False)
    """The refusals that people have been told of, each by its proposal's id and its place."""

    def __post_init__(self) -> None:
        self._pauses: Pauses[tuple[int, int]] = Pauses(self.clock)
        """The pauses after refused redraws, by the copy's id and its ``wanted``."""

    async def post_all(
        self, conversation: Conversation, opened: Sequence[Proposal], *, is_last_try: bool
    ) -> PostingOutcome:
        """Post the cards of an answer's proposals; a batch has one card.

        The first card gets the group's buttons by a redraw, once the others are posted below it.
        ``is_last_try``: every refusal counts as final.
        """
        hindrance: ChannelError | None = None
        jobs: list[Job] = []
        # a batch has the id of its first proposal, which has the card
        with_own_card = [proposal for proposal in opened if proposal.batch in (None, proposal.id)]
        for proposal in with_own_card:
            outcome = await self._post(conversation, proposal, is_last_try=is_last_try)
            jobs += outcome.jobs
            hindrance = hindrance or outcome.hindrance
        if len(with_own_card) > 1 and self.has_posters:
            message_id = with_own_card[0].message_id
            await self.database.write(posted_cards.mark_group_outdated, message_id)
            jobs.append(Job(Work.REDRAW, str(message_id)))
        return PostingOutcome(jobs, hindrance)

    async def _post(
        self, conversation: Conversation, proposal: Proposal, *, is_last_try: bool
    ) -> PostingOutcome:
        """Post a proposal's card wherever people may decide. Cancel it if every place refuses for good."""
        available = await self.registry.load_tools()
        destinations = await self.database.read(self._read_destinations, conversation, proposal, available)
        posted = destinations.posted
        addresses = destinations.addresses
        first = destinations.first
        recipients = audience.Recipients()
        if destinations.is_watched:
            recipients = await self._choose_recipients(proposal, addresses)
            # people who are left out get no card in their private chat
            addresses = [
                address for address in addresses if str(address) not in recipients.without_private_card
            ]
            first = None  # the card must be read again: it may say now that it notifies more people

        # post the card at each address that does not have it yet
        failures: dict[Address, ChannelError] = {}
        redraw_jobs: set[Job] = set()
        for address in addresses:  # grows in the loop: a place that refuses for good adds its replacement
            poster = poster_at(self.channels, address)
            if address in posted or poster is None:
                continue
            drawn = first.card if first and first.address == address else None
            try:
                redraw_jobs.update(await self._post_card(poster, proposal.id, address, drawn, recipients))
            except ChannelError as error:
                failures[address] = error
                if isinstance(error, NotDeliverable):
                    replacement = self._find_replacement(proposal, addresses, failures, posted)
                    if replacement is not None:
                        addresses.append(replacement)
            else:
                posted.add(address)

        temporary = {} if is_last_try else _select_temporary(failures)
        final = {at: error for at, error in failures.items() if at not in temporary}
        jobs_of_end: tuple[Job, ...] = ()
        if final:
            jobs_of_end = await self._handle_final_failures(
                proposal, posted, final, may_retry=bool(temporary)
            )
        hindrance = next(iter(temporary.values()), None)
        return PostingOutcome((*redraw_jobs, *jobs_of_end), hindrance)

    async def _handle_final_failures(
        self,
        proposal: Proposal,
        posted: Collection[Address],
        final: Mapping[Address, ChannelError],
        *,
        may_retry: bool,
    ) -> tuple[Job, ...]:
        """Tell people of the places that refused a card for good. Returns the jobs that follow.

        A card that no place has is cancelled, unless another try may succeed (``may_retry``).
        """
        if posted:
            told = await self.database.write(self._tell_unreached, proposal, posted, final)
            self._reported_refusals.update((proposal.id, address) for address in told)
            return ()
        if may_retry:
            return ()
        first_failure = next(iter(final.values()))
        return await self.database.write(self._end_undeliverable, proposal, first_failure.message)

    async def _choose_recipients(
        self, proposal: Proposal, addresses: Sequence[Address]
    ) -> audience.Recipients:
        """Choose whom the card notifies, and let features notify people. If one fails, no one is left out."""
        chosen = None
        with audience.contain_failure("a feature failed, so no one is left out", proposal):
            chosen = await self.database.write(
                audience.choose_and_tell_recipients, self.policies, proposal, tuple(addresses), self.clock()
            )
        return chosen or audience.Recipients()

    def _find_replacement(
        self,
        proposal: Proposal,
        addresses: Collection[Address],
        failures: Collection[Address],
        posted: Collection[Address],
    ) -> Address | None:
        """Return one more place for a card that a place refused; None without one.

        It is the requester's private chat, unless that is among the ``addresses`` already. Else, while no
        place has the card, it is the place around one that failed, such as the group around a topic.
        """
        requester_chat = card_places.find_requester_chat(proposal)
        if requester_chat not in addresses:
            return requester_chat
        if posted:
            return None
        for failed in failures:
            around = self.notices.find_place_around(failed)
            if around is not None and around not in failures:
                return around
        return None

    def _read_destinations(
        self, session: Session, conversation: Conversation, proposal: Proposal, available: AvailableTools
    ) -> Destinations:
        """Read where the card is and should be, with the card for the first place to post it at."""
        entry = self.policies.find_proposal_with_policy(session, proposal.id, proposal.requester)
        if entry is None:
            raise KeyError(proposal.id)
        current, policy, _ = entry
        is_watched = audience.may_change_notified(session)
        posted = {copy.address for copy in posted_cards.list_copies(session, current.id)}
        addresses = card_places.find_card_places(session, policy, conversation, current, self.routes)
        for address in addresses:
            if address not in posted and poster_at(self.channels, address):
                drawn = self._draw_at(session, current, available, address)
                return Destinations(posted, addresses, _DrawnCard(address, drawn), is_watched)
        return Destinations(posted, addresses, None, is_watched)

    def _end_undeliverable(self, session: Session, proposal: Proposal, why: str) -> tuple[Job, ...]:
        """Cancel the proposals of a card that no place takes, and tell the admins. Returns further jobs."""
        members = proposals.list_on_card(session, proposal)
        jobs: list[Job] = []
        for member in members:
            jobs += lifecycle.cancel_undeliverable(session, member.id, why, self.clock())
        if jobs:
            self.notices.queue_for_admins(
                session,
                f"A proposal could not be delivered to anyone who may decide, so it was cancelled: "
                f"{proposal.description}. Reason: {why}",
            )
        return tuple(jobs)

    def _tell_unreached(
        self,
        session: Session,
        proposal: Proposal,
        posted: Collection[Address],
        refusals: Mapping[Address, ChannelError],
    ) -> list[Address]:
        """Tell people of each place that refused a card, unless a place with deciders has the card.

        Places in ``_reported_refusals`` are left out. Returns the others, which the caller adds to
        ``_reported_refusals`` after the commit: a transaction may run several times.
        """
        policy = self.policies.load(session)
        if any(card_places.may_be_decided_at(session, policy, proposal, address) for address in posted):
            return []
        unreported = [
            address for address in refusals if (proposal.id, address) not in self._reported_refusals
        ]
        for address in unreported:
            self.notices.tell_unreached(session, proposal, address, refusals[address].message)
        return unreported

    async def find_place_objection(self, address: Address) -> str:
        """Return why the platform will never take a card at a place.

        Empty if it takes cards there, or did not say in time.
        """
        poster = poster_at(self.channels, address)
        if poster is None:
            return ""
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await poster.check_place(address)
        except NotDeliverable as error:
            return error.message
        except (ChannelError, TimeoutError) as error:
            log.info("a place was not checked", address=str(address), why=str(error))
        return ""

    async def post_at(self, proposal_id: str, address: Address) -> None:
        """Post the card in a further place, unless it has the card already. Raises ChannelError."""
        poster = poster_at(self.channels, address)
        copies = await self.database.read(posted_cards.list_copies, proposal_id)
        if poster is None or any(copy.address == address and not copy.gone for copy in copies):
            return
        for job in await self._post_card(poster, proposal_id, address):
            await self.redraw(int(job.key))

    async def _post_card(
        self,
        poster: Poster,
        proposal_id: str,
        address: Address,
        drawn: ProposalCard | None = None,
        recipients: audience.Recipients = audience.Recipients(),  # noqa: B008 - frozen
    ) -> tuple[Job, ...]:
        """Post the card as it is now, and store the copy. Returns a job if the copy is outdated already.

        ``drawn``: the card as it was just read for this place; without it, it is read here. ``recipients``:
        the people whom the card notifies. Raises ChannelError.
        """
        proposal, card = drawn or await self._load_card_at(proposal_id, address)
        card_to_post = card.with_mentions(recipients.replaced_mentions)
        try:
            ref = await poster.post_card(address, card_to_post)
        except ChannelError as error:
            log.error("card not posted", proposal=proposal_id, address=str(address), why=error.message)
            raise
        is_outdated = await self.database.write(
            posted_cards.add_card, proposal_id, address, ref, card.version, card.fingerprint
        )
        if is_outdated:
            return (Job(Work.REDRAW, str(proposal.message_id)),)
        return ()

    async def adopt_message(
        self, proposal_id: str, actor: Actor, address: Address, ref: str
    ) -> tuple[Job, ...] | None:
        """Store the message ``ref``, whose button ``actor`` pressed, as a copy of this proposal's card.

        A posted card may have no copy yet: the platform never answered when it was posted, or a crash came
        first. A copy that was marked as gone counts again. Returns the jobs that redraw it; no jobs for an
        unknown proposal; None if the message can't be a card of this proposal.
        """
        # ``urgent``: before other waiting writes, since the person who pressed waits
        return await self.database.write(self._adopt_message, proposal_id, actor, address, ref, urgent=True)

    def _adopt_message(
        self, session: Session, proposal_id: str, actor: Actor, address: Address, ref: str
    ) -> tuple[Job, ...] | None:
        """Do the work of `adopt_message` in a transaction."""
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return ()
        stored = posted_cards.find_posted(session, address.channel, ref)
        if stored is None:
            if address not in self._list_possible_places(session, proposal, actor):
                return None
            posted_cards.add_card(session, proposal.card_id, address, ref, shown_version=0)
        elif stored.proposal_id not in (proposal_id, proposal.card_id):
            return None
        else:
            posted_cards.mark_reachable(session, address.channel, ref)
        return (Job(Work.REDRAW, str(proposal.message_id)),)

    def _list_possible_places(self, session: Session, proposal: Proposal, actor: Actor) -> set[Address]:
        """Return the places where a card of this proposal may be; ``actor``'s private chat is one of them."""
        places = {copy.address for copy in posted_cards.list_copies(session, proposal.card_id)}
        places.add(Address(actor.channel, actor.key))
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        if conversation:
            places.update(self._list_addresses(session, conversation, proposal))
        targets = (target for target in proposal.escalation_targets if not is_group(target))
        places.update(map(Address.parse, targets))
        return places

    def _list_addresses(
        self, session: Session, conversation: Conversation, proposal: Proposal
    ) -> list[Address]:
        policy = self.policies.load(session)
        return card_places.find_card_places(session, policy, conversation, proposal, self.routes)

    @property
    def has_posters(self) -> bool:
        """True if any channel holds copies of cards; elsewhere people see the rows themselves."""
        return bool(posters(self.channels))

    async def redraw(self, message_id: int) -> None:
        """Bring every copy of an answer's cards up to date.

        Raises LeasedElsewhere if another process is doing so.
        """
        if self.has_posters:
            async with self.leases.hold(f"cards of {message_id}"):
                await self._redraw_all(message_id)

    async def _redraw_all(self, message_id: int) -> None:
        """Redraw the outdated copies of an answer's cards, until all are current.

        At first copies of proposals that run or are about to run may wait, for up to `_MAX_LOOKS` looks: most
        tools end in that time, and each redraw counts towards the platform's rate limit. Then up to
        `_MAX_PASSES` passes redraw all outdated copies. Later changes are left to the next job.
        """
        redrawn: set[tuple[int, int]] = set()  # the copies just redrawn: the id and ``wanted`` of each
        for look in range(_MAX_LOOKS + _MAX_PASSES):
            may_wait = look < _MAX_LOOKS
            available = await self.registry.load_tools()
            outdated = await self.database.read(self._read_outdated, message_id, available, redrawn, may_wait)
            has_changed = False
            for position, copy in enumerate(outdated.due):
                redrawn.add((copy.id, copy.wanted))
                card = outdated.card if position == 0 else None
                if await self._redraw(copy, card):
                    has_changed = True
            if outdated.must_wait:
                await self.sleep(_LOOK_SECONDS)
            elif not has_changed:
                return

    def _read_outdated(
        self,
        session: Session,
        message_id: int,
        available: AvailableTools,
        redrawn: Collection[tuple[int, int]],
        may_wait: bool,  # noqa: FBT001 - `Database.read` hands it on
    ) -> OutdatedCopies:
        """Return the outdated copies of an answer's cards, without those just ``redrawn`` as they are now.

        ``may_wait``: copies that will change again soon are not due yet.
        """
        outdated = posted_cards.list_outdated_copies(session, message_id)
        due: list[Copy] = []
        must_wait = False
        for copy, changes_soon in outdated:
            if changes_soon and may_wait:
                must_wait = True
            elif (copy.id, copy.wanted) not in redrawn:
                due.append(copy)
        if not due:
            return OutdatedCopies(due, None, must_wait)
        card = self._read_card_at(session, due[0].proposal_id, available, due[0].address)
        return OutdatedCopies(due, card, must_wait)

    async def _redraw(self, copy: Copy, drawn: ProposalCard | None = None) -> bool:
        """Redraw one copy. Returns True if its card has changed again since it was read.

        ``drawn``: the card as it was read together with the copy; without it, it is read here.
        """
        poster = poster_at(self.channels, copy.address)
        key = (copy.id, copy.wanted)
        if poster is None or self._pauses.is_backing_off(key):
            return False
        proposal, card = drawn or await self._load_card_at(copy.proposal_id, copy.address)
        try:
            if card.fingerprint != copy.shown:  # each edit counts towards the platform's rate limit
                await poster.redraw_card(copy.address, copy.ref, card)
        except (CopyGone, NotDeliverable):
            replace_lost = partial(self._replace_lost, posts_again=proposal.state is State.PROPOSED)
            await self.database.write(replace_lost, copy)
            has_changed = False
        except ChannelError as error:
            log.info("card not updated yet", proposal=copy.proposal_id, why=error.message)
            self._pauses.note_refusal(key)
            return False
        else:
            has_changed = await self.database.write(posted_cards.mark_rendered, copy, card.fingerprint)
        self._pauses.end(key)
        return has_changed

    def _replace_lost(self, session: Session, copy: Copy, *, posts_again: bool) -> None:
        """Mark a copy as gone. With ``posts_again``, let `Notices` post the card there again."""
        posted_cards.mark_gone(session, copy)
        if posts_again:  # a notice about a proposal that has no text posts the proposal's card
            notices.store_notice(session, copy.address, "", self.clock(), copy.proposal_id)

    async def announce_change(self) -> None:
        """Wake the tasks that wait for rows, and let every channel redraw its lists."""
        self.notifier.notify()
        for channel in self.channels.values():
            await channel.changed()

    async def load_card(
        self, proposal_id: str, address: Address | None = None, *, as_batch: bool = False
    ) -> ProposalCard:
        """Return the card as it is now, for a reader at ``address``, or for no place in particular.

        ``as_batch``: for a proposal of a batch, return the batch's first proposal and the card of the batch.
        Raises KeyError for an unknown id.
        """
        available = await self.registry.load_tools()

        def read_card(session: Session) -> ProposalCard:
            proposal = proposals.get(session, proposal_id)
            if proposal is None:
                raise KeyError(proposal_id)
            return draw_card(session, proposal, available, self.policies, address, as_batch=as_batch)

        return await self.database.read(read_card)

    async def _load_card_at(self, proposal_id: str, address: Address) -> ProposalCard:
        available = await self.registry.load_tools()
        return await self.database.read(self._read_card_at, proposal_id, available, address)

    def _read_card_at(
        self, session: Session, proposal_id: str, available: AvailableTools, address: Address
    ) -> ProposalCard:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            raise KeyError(proposal_id)
        return self._draw_at(session, proposal, available, address)

    def _draw_at(
        self, session: Session, proposal: Proposal, available: AvailableTools, address: Address
    ) -> ProposalCard:
        """Return the card for a place, with the group's buttons only if all its cards are posted there."""
        proposal, card = draw_card(session, proposal, available, self.policies, address, as_batch=True)
        if card.group is None or posted_cards.are_posted_at(session, card.group.approvable_ids, address):
            return ProposalCard(proposal, card)
        return ProposalCard(proposal, card.without_group)

    async def load_cards(self, find: Callable[[Session], Sequence[Proposal]]) -> Mapping[str, Card]:
        """Return the cards of the proposals that ``find`` returns, by proposal id, all in one read."""
        available = await self.registry.load_tools()
        return await self.database.read(
            lambda session: cards_of(session, self.policies, available, find(session))
        )


def _select_temporary(failures: Mapping[Address, ChannelError]) -> dict[Address, ChannelError]:
    """Return the failures after which another try may succeed."""
    return {at: error for at, error in failures.items() if not isinstance(error, NotDeliverable)}
