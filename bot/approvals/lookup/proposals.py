"""Proposals as a person may see them, in a list or one by one, each with its card for that person.

One snapshot per answer. How each is told is the channel's: ``bot/web/schemas/``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import grants, rights
from bot.approvals.groups import Groups
from bot.approvals.lookup.context import context
from bot.domain.batches import batch_card
from bot.domain.cards import Card, card_of, list_named_on
from bot.domain.conversations import AskedQuestion, Conversation, Line
from bot.domain.files import File
from bot.domain.people import AGENTS, Actor
from bot.domain.proposals import Mark, Proposal, ProposalFilter, Sibling, State
from bot.store import (
    agent_calls,
    conversations,
    outputs,
    people,
    proposals,
    questions,
    rules,
    teams,
    webhooks,
)
from bot.store.audit import log
from bot.store.rules import Policies
from bot.store.tables.proposals import CallbackRow
from bot.tools.registry import AvailableTools, Registry

_HEAVIEST = 500_000  # characters of arguments and previews in a page
_LOOKS = 20  # how many pages are looked through for one that can be shown


@dataclass(frozen=True, slots=True)
class Seen:
    """A proposal as one person sees it.

    ``teammate``: the name of the one whose work it is part of, if any.
    """

    proposal: Proposal
    card: Card
    may_decide: bool
    conversation: Conversation | None
    teammate: str
    place: "PlaceInBatch | None" = None


class PlaceInBatch(NamedTuple):
    """The position of a proposal in its batch, counted from 1."""

    id: str
    size: int
    position: int


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """A batch as one person sees it: its card, and its rows as far as they may see them."""

    card: Card
    rows: Sequence[Seen]


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A script's request, and its webhook, if it has one."""

    seen: Seen
    webhook: CallbackRow | None


@dataclass(frozen=True, slots=True)
class Feed:
    """Changes of proposals since a position, and the work under way.

    ``rows``: changes, oldest first, each its number and its proposal. ``progress``: the progress of running
    proposals, by id. ``open_questions``: the proposal of each question without an answer, by its key.
    """

    rows: Sequence[tuple[int, str]]
    progress: Mapping[str, str]
    open_questions: Mapping[str, str]


class ProposalLookup:
    """Proposals, as far as the person who asks may see them."""

    def __init__(self, groups: Groups, registry: Registry, policies: Policies) -> None:
        self._groups = groups
        self._registry = registry
        self._policies = policies

    async def find(self, proposal_id: str, actor: Actor) -> Seen | None:
        """Return a proposal, or None where this person may see none."""
        return await self._groups.read(self._find, proposal_id, actor, await self._registry.available())

    async def request(self, proposal_id: str, actor: Actor) -> SeenRequest | None:
        """Return a script's request, or None where this person may see none."""
        available = await self._registry.available()

        def read(session: Session) -> SeenRequest | None:
            seen = self._find(session, proposal_id, actor, available)
            if seen is None or not seen.proposal.kind.of_script:
                return None
            return SeenRequest(seen, webhooks.of_proposal(session, proposal_id))

        return await self._groups.read(read)

    async def batch(self, batch: str, actor: Actor) -> SeenBatch | None:
        """Return a batch, or None where this person may see none."""
        available = await self._registry.available()

        def read(session: Session) -> SeenBatch | None:
            found = proposals.of_batch(session, batch)
            seen = self.visible(session, found, actor, available)
            if not seen:
                return None
            return SeenBatch(batch_card([each.proposal for each in seen], [each.card for each in seen]), seen)

        return await self._groups.read(read)

    async def context(self, proposal_id: str, actor: Actor) -> list[Line] | None:
        """Return the lines that led to a proposal, in reading order; None for those who may not decide it."""
        return await context(self._groups, self._registry, proposal_id, actor)

    async def questions(self, proposal_id: str, actor: Actor) -> list[AskedQuestion] | None:
        """Return the recent questions about a proposal; None for those who may not see it."""

        def read(session: Session) -> list[AskedQuestion] | None:
            found = self._may_see(session, proposal_id, actor)
            if found is None:
                return None
            return questions.of_proposal(session, found.id)

        return await self._groups.read(read)

    async def files(self, proposal_id: str, actor: Actor) -> list[tuple[str, File]] | None:
        """Return the files that its tool made, by handle; None for those who may not see it."""

        def read(session: Session) -> list[tuple[str, File]] | None:
            found = self._may_see(session, proposal_id, actor)
            if found is None:
                return None
            return [(each.handle, each.file) for each in outputs.of_proposal(session, found)]

        return await self._groups.read(read)

    async def of_conversation(self, conversation_id: str, actor: Actor) -> list[Seen]:
        """Return a conversation's proposals and its teammates' that this person may see, oldest first."""
        available = await self._registry.available()

        def read(session: Session) -> list[Seen]:
            team = [each.id for each in teams.of_lead(session, conversation_id)]
            found = [
                p for ident in (conversation_id, *team) for p in proposals.of_conversation(session, ident)
            ]
            return self.visible(session, found, actor, available)

        return await self._groups.read(read)  # some hundred cards

    async def page(
        self,
        actor: Actor,
        states: Sequence[State],
        limit: int,
        before: Mark | None,
        only: ProposalFilter,
        *,
        to_decide: bool = False,
    ) -> tuple[list[Seen], Mark | None]:
        """Return a page of the proposals that this person may see, and where the next page begins.

        ``only`` filters and orders them. ``to_decide``: only those they may decide. The mark is None on the
        last page.
        """
        available = await self._registry.available()

        def read(session: Session) -> tuple[list[Seen], Mark | None]:
            mark = before
            reach = rights.make_reach(session, self._policies, actor)
            kept: list[Proposal] = []
            for _ in range(_LOOKS):
                found = proposals.list_seen(session, reach, states, limit + 1, mark, only)
                seen = (p for p in found if rights.visible(session, self._policies, p, actor))
                kept += (p for p in seen if not to_decide or self._may_decide(session, p, actor))
                if len(kept) > limit:
                    mark = Mark.of(kept[limit - 1], only.order)
                    break
                if len(found) <= limit:
                    mark = None
                    break
                mark = Mark.of(found[-1], only.order)
            shown = _light(kept[:limit])
            if len(shown) < min(len(kept), limit):
                mark = Mark.of(shown[-1], only.order)
            return self._view_page(session, shown, actor, available), mark

        return await self._groups.read(read)

    async def newest_change(self) -> int:
        """Return the number of the last change of any proposal."""
        return await self._groups.read(log.last_id)

    async def feed(self, since: int) -> Feed:
        """Return the changes after that one, and the work under way."""

        def read(session: Session) -> Feed:
            return Feed(
                log.since(session, since), proposals.progress(session), questions.list_unanswered(session)
            )

        return await self._groups.read(read)

    async def news(
        self, since: int, far: Mapping[str, str], wanted: Callable[[str], bool]
    ) -> tuple[int, Mapping[str, str], list[tuple[str, Seen]]]:
        """Return the newest change, the progress of running proposals, and news of ``wanted`` conversations.

        New is what changed after ``since``, and what was not as ``far`` yet. ``wanted`` is asked for the key
        of an address. Each is as the person whose conversation it is sees it.
        """
        available = await self._registry.available()

        def read(session: Session) -> tuple[int, Mapping[str, str], list[tuple[str, Seen]]]:
            rows, now = log.since(session, since), proposals.progress(session)
            changed = dict.fromkeys((*(ident for _, ident in rows), *list_progressed(far, now)))
            places = conversations.of_proposals(session, changed)
            changes = []
            for proposal_id in changed:
                place = places.get(proposal_id)
                proposal = proposals.get(session, proposal_id) if place and wanted(place.origin.key) else None
                if place and proposal and not proposal.agent:
                    seen = self._view_page(session, [proposal], place.requester, available)
                    changes.append((place.origin.key, seen[0]))
            return rows[-1][0] if rows else since, now, changes

        return await self._groups.read(read)

    def visible(
        self, session: Session, found: Sequence[Proposal], actor: Actor, available: AvailableTools
    ) -> list[Seen]:
        """Return the views of those proposals that this person may see."""
        seen = [p for p in found if rights.visible(session, self._policies, p, actor)]
        return self._view_page(session, seen, actor, available)

    def _find(
        self, session: Session, proposal_id: str, actor: Actor, available: AvailableTools
    ) -> Seen | None:
        proposal = self._may_see(session, proposal_id, actor)
        if proposal:
            return self._view_page(session, [proposal], actor, available)[0]
        return None

    def _may_see(self, session: Session, proposal_id: str, actor: Actor) -> Proposal | None:
        found = self._policies.find_for(session, proposal_id, actor)
        if found and rights.visible(session, self._policies, found[0], actor):
            return found[0]
        return None

    def _view_page(
        self, session: Session, found: Sequence[Proposal], actor: Actor, available: AvailableTools
    ) -> list[Seen]:
        """Return a page of them, the first of several with its group.

        What the tool of an agent's call said is there for that agent and its person alone.
        """
        accounts = people.person_of(session, actor).accounts if any(p.agent for p in found) else frozenset()
        found = [_unseal_for(session, p, actor, accounts) if p.agent else p for p in found]
        cards = cards_of(session, self._policies, available, found)
        groups = proposals.siblings(session, {p.message_id for p in found if p.batch})
        seen = []
        for p in found:
            conversation = conversations.get_conversation(session, p.conversation_id)
            teammate = p.teammate or _teammate_at(session, conversation)
            may = self._may_decide(session, p, actor)
            place = _place(p, groups.get(p.card_id, ()))
            seen.append(Seen(p, cards[p.id], may, conversation, teammate, place))
        return seen

    def _may_decide(self, session: Session, p: Proposal, actor: Actor) -> bool:
        conversation = conversations.get_conversation(session, p.conversation_id)
        if conversation and conversation.origin.is_own(actor):
            at = conversation.origin
        else:
            at = None
        return rights.find_objection(session, self._policies, p, actor, at=at) is None


def _unseal_for(session: Session, p: Proposal, actor: Actor, accounts: frozenset[str]) -> Proposal:
    if str(actor) == f"{AGENTS}:{p.agent}" or str(p.requester) in accounts:
        return agent_calls.unseal(session, p)
    return p


def cards_of(
    session: Session, policies: Policies, available: AvailableTools, found: Sequence[Proposal]
) -> dict[str, Card]:
    """Return the cards of these proposals by id; what they share is read in one query."""
    groups = proposals.siblings(session, {p.message_id for p in found if not p.batch})
    declined = proposals.find_declined_before(session, found)
    policy = policies.load(session)
    if policy.book.paused:
        paused = rules.pause_words(session, policy.book.zone)
    else:
        paused = ""
    schemas = {p.id: available.schema_of(session, p) for p in found}
    named = people.find_known_names(
        session, {each for p in found for each in list_named_on(p, schemas[p.id])}
    )
    return {
        p.id: card_of(
            p,
            schemas[p.id],
            () if p.batch else groups.get(p.id, ()),
            grantable=grants.is_grantable(session, policies, p),
            paused=paused,
            declined=declined.get(p.id),
            names=named,
            zone=policy.book.zone,
            stand_ins=rights.stand_ins(session, policy, p) if p.state is State.PROPOSED else (),
        )
        for p in found
    }


def _place(p: Proposal, rows: Sequence[Sibling]) -> PlaceInBatch | None:
    places = (n for n, row in enumerate(rows, 1) if row.id == p.id)
    if p.batch:
        return PlaceInBatch(p.batch, len(rows), next(places))
    return None


def _light(found: Sequence[Proposal]) -> Sequence[Proposal]:
    """Return the first proposals that make a page together: one or more, not too long in all."""
    weight = 0
    for number, p in enumerate(found):
        weight += len(str(p.arguments)) + len(str(p.preview))
        if number and weight > _HEAVIEST:
            return found[:number]
    return found


def list_progressed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the running proposals that told of progress in between."""
    return [ident for ident, words in now.items() if before.get(ident) != words]


def _teammate_at(session: Session, conversation: Conversation | None) -> str:
    """Return the name of the teammate whose conversation it is, or an empty text.

    A server's question belongs to a teammate although no call of a model opened it.
    """
    if conversation and conversation.shown_at:
        found = teams.get(session, conversation.id)
    else:
        found = None
    return found.name if found else ""
