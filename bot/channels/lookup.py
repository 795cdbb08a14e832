"""The implementation of `Lookup`: a channel's queries about proposals, each for one person at one place.

Most queries are answered from the database in one read, with the rights of that person (``rights``). Rights
may depend on groups of people whose members only a platform knows. If a read finds that such a group is not
known here yet, ``presses.gate.groups.read_with_members`` asks the platform for it, and reads once more.

A card is the message about a proposal, as ``delivery/cards.py`` draws it. A batch is several calls of one
tool that have one card. With the flag ``together`` that card is returned for each of its proposals. A grant
lets calls similar to an approved one run without asking.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.lookup import context as turn_context
from bot.approvals.presses import Presses
from bot.channels.base import Overview
from bot.channels.delivery.card_drawing import draw_card
from bot.channels.delivery.cards import Cards
from bot.domain.batch_groups import group_by_card
from bot.domain.batches import batch_card
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.hooks import CommandOffer
from bot.domain.people import Actor
from bot.domain.proposal_states import SETTLED, State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from bot.store import conversations, people, posted_cards, proposals
from bot.store.database import Database
from bot.store.hooks import hooks_in, hooks_of
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_RECENT = 20  # the cards of a person's overview that have ended
_MAX_READ_RECENT = 100  # most proposals that a person may see are not in their overview, so more are read


class _StoredCard(NamedTuple):
    """A card as it is now."""

    card: Card
    is_copy_known: bool  # the pressed message is a stored copy of the card; True without a pressed message


@dataclass(frozen=True, slots=True)
class _OverviewProposals:
    """The proposals of an overview by section, and the offered commands.

    A section has a list for each card: one proposal, or the rows of a batch.
    """

    waiting: list[list[Proposal]]
    asked: list[list[Proposal]]
    recent: list[list[Proposal]]
    offers: Sequence[CommandOffer] = ()

    def list_all(self) -> list[Proposal]:
        cards = [*self.waiting, *self.asked, *self.recent]
        return [proposal for same_card in cards for proposal in same_card]


@dataclass(eq=False)
class CoreLookup:
    """Implements `Lookup` over the database; the protocol says what each query returns.

    A method and its private namesake belong together: the first asks for missing groups of people, the second
    reads within a transaction.
    """

    database: Database
    cards: Cards
    presses: Presses
    policies: Policies
    notice: str = ""

    async def card(
        self,
        proposal_id: str,
        actor: Actor,
        address: Address | None = None,
        ref: str | None = None,
        *,
        together: bool = False,
    ) -> Card | None:
        available = await self.cards.registry.load_tools()

        def read_card(session: Session) -> _StoredCard | None:
            entry = self.policies.find_proposal_with_policy(session, proposal_id, actor)
            if entry is None:
                return None
            proposal = entry[0]
            if not self._may_see(session, proposal, actor, address):
                return None
            is_copy_known = True
            if address and ref:
                is_copy_known = posted_cards.is_card_of(session, proposal, address.channel, ref)
            drawn = draw_card(session, proposal, available, self.policies, address, as_batch=together)
            return _StoredCard(drawn.card, is_copy_known)

        result = await self.presses.gate.groups.read_with_members(read_card)
        if result is None:
            return None
        if result.is_copy_known or address is None or ref is None:
            return result.card
        # the pressed message is no stored copy: store it, if it can be one, and draw what it should show
        if await self.cards.adopt_message(proposal_id, actor, address, ref) is None:
            return None
        drawn = await self.cards.load_card(proposal_id, address, as_batch=together)
        return drawn.card

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        """Return the arguments for an edit form, secrets hidden; None if this person may not edit."""
        if not await self.presses.gate.groups.read_with_members(
            self._may_press, proposal_id, actor, address, Verb.EDIT
        ):
            return None
        drawn = await self.cards.load_card(proposal_id)
        return drawn.card.arguments

    async def may_press(
        self, proposal_id: str, actor: Actor, address: Address | None = None, verb: Verb = Verb.APPROVE
    ) -> bool:
        """Tell if a person may press the button of ``verb``."""
        return await self.presses.gate.groups.read_with_members(
            self._may_press, proposal_id, actor, address, verb
        )

    async def decides(self, proposal_id: str, actor: Actor) -> bool:
        """Tell if a person may decide someone else's proposal: unlike `may_press`, never for their own."""
        return await self.presses.gate.groups.read_with_members(self._decides, proposal_id, actor)

    async def follows(self, address: Address) -> bool:
        """Tell if a conversation is open at the address."""
        return await self.database.read(conversations.find_current_id, address) is not None

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        """Return the scopes of a grant, narrowest first: each allows more calls than the one before."""
        return await self.presses.list_grant_scopes(proposal_id, actor, address)

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        """Return the audiences of a grant, narrowest first: whose calls it covers, and where."""
        return await self.presses.list_grant_audiences(proposal_id, actor, address)

    async def context(self, proposal_id: str, actor: Actor, address: Address | None = None) -> str | None:
        """Return the turn that led to a proposal, as text; None for people who may not decide it."""
        gate = self.presses.gate
        lines = await turn_context.read_context(gate.groups, gate.registry, proposal_id, actor, address)
        if lines is None:
            return None
        return turn_context.format_lines(lines)

    async def note_opened(self, proposal_id: str, actor: Actor) -> None:
        """Tell the features that a person opened the full content of a card; a failure is only logged."""
        if not hooks_in(self.database).note_opened:
            return
        try:
            await self.database.write(self._note_opened, proposal_id, actor)
        except Exception as error:  # the person has seen the card: the press must not fail for a note
            log.error("what was opened is not noted", proposal=proposal_id, exc_info=error)

    def _note_opened(self, session: Session, proposal_id: str, actor: Actor) -> None:
        proposal = proposals.get(session, proposal_id)
        if proposal is None or proposal.state is not State.PROPOSED:
            return
        for note_opened in hooks_of(session).note_opened:
            note_opened(session, proposal, actor, "all", self.cards.clock())  # "all": by *View all*

    async def overview(self, actor: Actor) -> Overview:
        """Return the cards that concern a person. All are read again if missing groups became known."""
        overview_proposals = _OverviewProposals([], [], [])

        def find_proposals(session: Session) -> list[Proposal]:
            nonlocal overview_proposals  # the transaction may run more than once: the last run counts
            overview_proposals = self._read_overview(session, actor)
            return overview_proposals.list_all()

        cards = await self.cards.load_cards(find_proposals)
        # with the groups that were not known before, the person may have more rights
        if await self.presses.gate.groups.ask_missing():
            cards = await self.cards.load_cards(find_proposals)

        def make_card(same_card: Sequence[Proposal]) -> Card:
            single_cards = [cards[proposal.id] for proposal in same_card]
            if same_card[0].batch:
                return batch_card(same_card, single_cards)
            return single_cards[0]

        return Overview(
            tuple(map(make_card, overview_proposals.waiting)),
            tuple(map(make_card, overview_proposals.asked)),
            tuple(map(make_card, overview_proposals.recent)),
            tuple(overview_proposals.offers),
        )

    def _may_see(self, session: Session, proposal: Proposal, actor: Actor, address: Address | None) -> bool:
        """Tell if a person may see a proposal: by their rights, or since its card is at the address."""
        if rights.may_see_proposal(session, self.policies, proposal, actor):
            return True
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        is_origin = conversation is not None and conversation.origin == address
        if is_origin:
            return True
        return address is not None and posted_cards.are_posted_at(session, [proposal.card_id], address)

    def _may_press(
        self, session: Session, proposal_id: str, actor: Actor, address: Address | None, verb: Verb
    ) -> bool:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return False
        return rights.find_objection(session, self.policies, proposal, actor, verb, address=address) is None

    def _decides(self, session: Session, proposal_id: str, actor: Actor) -> bool:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return False
        is_own = people.load_person(session, proposal.requester) == people.load_person(session, actor)
        if is_own:
            return False
        return rights.find_objection(session, self.policies, proposal, actor) is None

    def _read_overview(self, session: Session, actor: Actor) -> _OverviewProposals:
        """Return the proposals that wait for a person, their own open ones, and those that ended recently."""
        person = people.load_person(session, actor)

        def may_decide(proposal: Proposal) -> bool:
            return rights.find_objection(session, self.policies, proposal, actor) is None

        def is_own(proposal: Proposal) -> bool:
            return people.load_person(session, proposal.requester) == person

        def has_vote(proposal: Proposal) -> bool:
            return any(vote.person_id == person.id for vote in proposal.votes)

        # the search also finds proposals that the person may not decide, so each is checked
        reach = rights.make_search_scope(session, self.policies, actor)
        pending = proposals.list_within_reach(session, reach, [State.PROPOSED])
        waiting = [proposal for proposal in pending if may_decide(proposal)]
        own = [proposal for proposal in pending if is_own(proposal)]
        ended = proposals.list_within_reach(session, reach, sorted(SETTLED), _MAX_READ_RECENT)
        recent = [proposal for proposal in ended if is_own(proposal) or has_vote(proposal)]
        offers: list[CommandOffer] = []
        for offer_commands in hooks_of(session).offer_commands:
            offers.extend(offer_commands(session, actor))
        return _OverviewProposals(
            self._complete_cards(session, waiting),
            self._complete_cards(session, own),
            self._complete_cards(session, recent[:_MAX_RECENT]),
            offers,
        )

    def _complete_cards(self, session: Session, section: Sequence[Proposal]) -> list[list[Proposal]]:
        """Return all proposals of the cards in a section, card by card."""
        return [proposals.list_on_card(session, first) for first, *_ in group_by_card(section)]
