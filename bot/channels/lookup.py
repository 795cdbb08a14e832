"""Cards as channels may look them up, each answer checked against who asks and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.lookup import context
from bot.approvals.presses import Presses
from bot.channels.base import Overview
from bot.channels.delivery.cards import Cards, draw_card
from bot.domain.batches import batch_card
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.hooks import CommandOffer
from bot.domain.people import Actor
from bot.domain.proposals import SETTLED, Proposal, State, together
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from bot.store import conversations, people, posted_cards, proposals
from bot.store.database import Database
from bot.store.hooks import hooks_of
from bot.store.rules import Policies

_RECENT = 20


@dataclass(eq=False)
class CoreLookup:
    """Implements `Lookup` over the database."""

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
        available = await self.cards.registry.available()

        def read(session: Session) -> tuple[Card, bool] | None:
            seen = self.policies.find_for(session, proposal_id, actor)
            if seen is None or not self._may_see(session, seen[0], actor, address):
                return None
            proposal = seen[0]
            is_known = not (address and ref) or posted_cards.is_card_of(
                session, proposal, address.channel, ref
            )
            drawn = draw_card(session, proposal, available, self.policies, address, together=together)
            return drawn.card, is_known

        found = await self.presses.gate.groups.read(read)
        if found is None:
            return None
        card, is_known = found
        if is_known or address is None or ref is None:
            return card
        if await self.cards.recognise(proposal_id, actor, address, ref) is None:
            return None
        return (await self.cards.load_card(proposal_id, address, together=together)).card

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        if not await self.presses.gate.groups.read(self._may, proposal_id, actor, address, Verb.EDIT):
            return None
        return (await self.cards.load_card(proposal_id)).card.arguments

    async def may_press(
        self, proposal_id: str, actor: Actor, address: Address | None = None, verb: Verb = Verb.APPROVE
    ) -> bool:
        return await self.presses.gate.groups.read(self._may, proposal_id, actor, address, verb)

    async def decides(self, proposal_id: str, actor: Actor) -> bool:
        return await self.presses.gate.groups.read(self._decides, proposal_id, actor)

    async def follows(self, address: Address) -> bool:
        return await self.database.read(conversations.open_at, address) is not None

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        return await self.presses.ladder(proposal_id, actor, address)

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        return await self.presses.reaches(proposal_id, actor, address)

    async def context(self, proposal_id: str, actor: Actor, address: Address | None = None) -> str | None:
        groups, registry = self.presses.gate.groups, self.presses.gate.registry
        found = await context.context(groups, registry, proposal_id, actor, address)
        if found is None:
            return None
        return context.format_lines(found)

    async def overview(self, actor: Actor) -> Overview:
        parts: list[list[list[Proposal]]] = []
        offers: list[CommandOffer] = []

        def find(session: Session) -> list[Proposal]:
            found = [together(part) for part in self._overview(session, actor)]
            parts[:] = [[_whole(session, each[0]) for each in part] for part in found]
            offers[:] = [each for offer in hooks_of(session).offer_commands for each in offer(session, actor)]
            return [p for part in parts for rows in part for p in rows]

        cards = await self.cards.load_cards(find)
        if await self.presses.gate.groups.ask_missing():
            cards = await self.cards.load_cards(find)

        def shown(rows: Sequence[Proposal]) -> Card:
            each = [cards[p.id] for p in rows]
            if rows[0].batch:
                return batch_card(rows, each)
            return each[0]

        waiting, asked, recent = (tuple(map(shown, part)) for part in parts)
        return Overview(waiting, asked, recent, tuple(offers))

    def _may_see(self, session: Session, proposal: Proposal, actor: Actor, address: Address | None) -> bool:
        if rights.visible(session, self.policies, proposal, actor):
            return True
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        home = conversation is not None and conversation.origin == address
        return home or (address is not None and posted_cards.stand_at(session, [proposal.card_id], address))

    def _may(
        self, session: Session, proposal_id: str, actor: Actor, address: Address | None, verb: Verb
    ) -> bool:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return False
        return rights.find_objection(session, self.policies, proposal, actor, verb, at=address) is None

    def _decides(self, session: Session, proposal_id: str, actor: Actor) -> bool:
        p, person = proposals.get(session, proposal_id), people.person_of(session, actor)
        if p is None or people.person_of(session, p.requester) == person:
            return False
        return rights.find_objection(session, self.policies, p, actor) is None

    def _overview(
        self, session: Session, actor: Actor
    ) -> tuple[list[Proposal], list[Proposal], list[Proposal]]:
        person = people.person_of(session, actor)
        reach = rights.make_reach(session, self.policies, actor)
        pending = proposals.list_seen(session, reach, [State.PROPOSED])
        waiting = [p for p in pending if rights.find_objection(session, self.policies, p, actor) is None]
        ended = proposals.list_seen(session, reach, sorted(SETTLED), _RECENT * 5)

        def mine(p: Proposal) -> bool:
            return people.person_of(session, p.requester) == person

        recent = [p for p in ended if mine(p) or any(v.person_id == person.id for v in p.votes)]
        return waiting, [p for p in pending if mine(p)], recent[:_RECENT]


def _whole(session: Session, p: Proposal) -> list[Proposal]:
    if p.batch:
        return proposals.of_batch(session, p.batch)
    return [p]
