"""What channels may look up, each answer checked against who asks and where."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlmodel import Session

from bot.delivery import Delivery
from bot.domain.cards import Card
from bot.domain.chat import Address, Overview
from bot.domain.people import Actor
from bot.domain.proposals import SETTLED, Proposal, State
from bot.domain.similarity import Rung
from bot.presses import Presses
from bot.store import conversations, copies, people, proposals, votes
from bot.store.database import Database
from bot.store.rules import Policies

_RECENT = 20


class CoreDesk:
    def __init__(self, database: Database, delivery: Delivery, presses: Presses, policies: Policies) -> None:
        self._database = database
        self._delivery = delivery
        self._policies = policies
        self._presses = presses

    async def card(self, proposal_id: str, actor: Actor, address: Address | None = None) -> Card | None:
        if not await self._database.read(self._may_see, proposal_id, actor, address):
            return None
        return (await self._delivery.card(proposal_id))[1]

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        if not await self.may_decide(proposal_id, actor, address):
            return None
        return (await self._delivery.card(proposal_id))[1].arguments

    async def may_decide(self, proposal_id: str, actor: Actor, address: Address | None = None) -> bool:
        return await self._database.read(self._may_decide, proposal_id, actor, address)

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[Rung, str]]:
        return await self._presses.ladder(proposal_id, actor, address)

    async def overview(self, actor: Actor) -> Overview:
        waiting, asked, recent = await self._database.read_aside(self._overview, actor)
        cards = {p.id: (await self._delivery.card(p.id))[1] for p in (*waiting, *asked, *recent)}
        return Overview(
            waiting=tuple(cards[p.id] for p in waiting),
            asked=tuple(cards[p.id] for p in asked),
            recent=tuple(cards[p.id] for p in recent),
        )

    def visible(self, session: Session, proposal: Proposal, actor: Actor) -> bool:
        """Whether a person may see a proposal anywhere: it is theirs, or theirs to decide."""
        person = people.person_of(session, actor)
        return (
            votes.objection(session, self._policies, proposal, actor) is None
            or person == people.person_of(session, proposal.requester)
            or bool(self._policies.load(session).roles_of(person))
        )

    def _may_see(self, session: Session, proposal_id: str, actor: Actor, address: Address | None) -> bool:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return False
        if self.visible(session, proposal, actor):
            return True
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        home = conversation is not None and conversation.origin == address
        return home or (address is not None and copies.is_at(session, proposal_id, address))

    def _may_decide(self, session: Session, proposal_id: str, actor: Actor, address: Address | None) -> bool:
        proposal = proposals.get(session, proposal_id)
        if proposal is None:
            return False
        return votes.objection(session, self._policies, proposal, actor, at=address) is None

    def _overview(
        self, session: Session, actor: Actor
    ) -> tuple[list[Proposal], list[Proposal], list[Proposal]]:
        person = people.person_of(session, actor)
        pending = proposals.in_states(session, [State.PROPOSED])
        waiting = [p for p in pending if votes.objection(session, self._policies, p, actor) is None]
        ended = proposals.in_states(session, sorted(SETTLED), _RECENT * 5)

        def mine(p: Proposal) -> bool:
            return people.person_of(session, p.requester) == person

        recent = [p for p in ended if mine(p) or any(v.person_id == person.id for v in p.votes)]
        return waiting, [p for p in pending if mine(p)], recent[:_RECENT]
