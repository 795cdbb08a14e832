"""Proposals as a person may see them, in a list or one by one, each with its card for that person.

A card is what people see of a proposal, without secrets (`Card`). `VisibleProposal` is a proposal with its
card and with what the person may do. Each answer is read in one transaction. Channels turn it into their own
form, the web in ``bot/web/schemas/``. Each change of a proposal has a number: the id of the change's row in
the audit log.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import grants, rights
from bot.approvals.groups import Groups
from bot.approvals.lookup.context import read_context
from bot.domain.batches import batch_card
from bot.domain.card_rendering import find_accounts_on_card, render_card
from bot.domain.cards import Card
from bot.domain.conversations import AskedQuestion, Conversation, Line
from bot.domain.files import File
from bot.domain.people import AGENTS, Actor
from bot.domain.proposal_lists import PageCursor, ProposalFilter
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal, Sibling
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

_MAX_PAGE_CHARS = 500_000  # of a page's arguments and previews
_MAX_SEARCHED_PAGES = 20  # pages of rows for one page of visible proposals


@dataclass(frozen=True, slots=True)
class VisibleProposal:
    """A proposal as one person sees it."""

    proposal: Proposal
    card: Card
    may_decide: bool
    conversation: Conversation | None
    teammate: str  # the name of the teammate that asked for the proposal, or empty
    place_in_batch: "PlaceInBatch | None" = None


class PlaceInBatch(NamedTuple):
    """The position of a proposal in its batch."""

    id: str  # of the batch
    size: int  # the number of proposals in the batch
    position: int  # counted from 1


@dataclass(frozen=True, slots=True)
class VisibleBatch:
    """A batch as one person sees it: its card, and its rows as far as they may see them."""

    card: Card
    rows: Sequence[VisibleProposal]


@dataclass(frozen=True, slots=True)
class VisibleRequest:
    """A script's request, and its webhook, if it has one."""

    view: VisibleProposal
    webhook: CallbackRow | None


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The changes of proposals after a given change, by id alone, and the work under way."""

    changes: Sequence[tuple[int, str]]  # of each change its number and the proposal's id, oldest first
    progress: Mapping[str, str]  # of running proposals, in words, by the proposal's id
    open_questions: Mapping[str, str]  # ids of proposals, by the key of a question without an answer


class ChangedProposals(NamedTuple):
    """The proposals that changed after a given change, for listeners."""

    newest: int  # the number of the newest change
    progress: Mapping[str, str]  # of running proposals, in words, by the proposal's id
    views: Sequence[tuple[str, VisibleProposal]]
    """For each changed proposal, the key of its conversation's address, and the proposal.

    The proposal is as the person who began the conversation sees it.
    """


class ProposalLookup:
    """Proposals, as far as the person who asks may see them."""

    def __init__(self, groups: Groups, registry: Registry, policies: Policies) -> None:
        self._groups = groups
        self._registry = registry
        self._policies = policies

    async def find(self, proposal_id: str, actor: Actor) -> VisibleProposal | None:
        """Return a proposal; None if it does not exist, or this person may not see it."""
        available = await self._registry.load_tools()
        return await self._groups.read_with_members(self._find, proposal_id, actor, available)

    async def request(self, proposal_id: str, actor: Actor) -> VisibleRequest | None:
        """Return a script's request; None if it does not exist, or this person may not see it."""
        available = await self._registry.load_tools()

        def read_request(session: Session) -> VisibleRequest | None:
            view = self._find(session, proposal_id, actor, available)
            if view is None or not view.proposal.kind.is_of_script:
                return None
            return VisibleRequest(view, webhooks.find_webhook(session, proposal_id))

        return await self._groups.read_with_members(read_request)

    async def batch(self, batch_id: str, actor: Actor) -> VisibleBatch | None:
        """Return a batch; None if it does not exist, or this person may not see it."""
        available = await self._registry.load_tools()

        def read_batch(session: Session) -> VisibleBatch | None:
            rows = self.filter_visible(session, proposals.list_of_batch(session, batch_id), actor, available)
            if not rows:
                return None
            card = batch_card([row.proposal for row in rows], [row.card for row in rows])
            return VisibleBatch(card, rows)

        return await self._groups.read_with_members(read_batch)

    async def context(self, proposal_id: str, actor: Actor) -> list[Line] | None:
        """Return the lines that led to a proposal, in reading order; None for those who may not decide it."""
        return await read_context(self._groups, self._registry, proposal_id, actor)

    async def questions(self, proposal_id: str, actor: Actor) -> list[AskedQuestion] | None:
        """Return the recent questions about a proposal; None for people who may not see the proposal."""

        def read_questions(session: Session) -> list[AskedQuestion] | None:
            proposal = self._find_visible(session, proposal_id, actor)
            if proposal is None:
                return None
            return questions.list_of_proposal(session, proposal.id)

        return await self._groups.read_with_members(read_questions)

    async def files(self, proposal_id: str, actor: Actor) -> list[tuple[str, File]] | None:
        """Return the files that a proposal's tool made, each with its handle.

        None for people who may not see the proposal.
        """

        def read_files(session: Session) -> list[tuple[str, File]] | None:
            proposal = self._find_visible(session, proposal_id, actor)
            if proposal is None:
                return None
            return [(output.handle, output.file) for output in outputs.list_of_proposal(session, proposal)]

        return await self._groups.read_with_members(read_files)

    async def of_conversation(self, conversation_id: str, actor: Actor) -> list[VisibleProposal]:
        """Return a conversation's proposals and its teammates' that this person may see, oldest first."""
        available = await self._registry.load_tools()

        def read_proposals(session: Session) -> list[VisibleProposal]:
            all_proposals = proposals.list_of_conversation(session, conversation_id)
            for teammate in teams.list_of_lead(session, conversation_id):
                all_proposals += proposals.list_of_conversation(session, teammate.id)
            return self.filter_visible(session, all_proposals, actor, available)

        return await self._groups.read_with_members(read_proposals)

    async def page(
        self,
        actor: Actor,
        states: Sequence[State],
        limit: int,
        before: PageCursor | None,
        only: ProposalFilter,
        *,
        to_decide: bool = False,
    ) -> tuple[list[VisibleProposal], PageCursor | None]:
        """Return a page of the proposals that this person may see, and where the next page begins.

        ``before``: the end of the page before, or None for the first page. ``only`` filters and orders the
        proposals. ``to_decide``: only proposals that this person may decide. The second value is the
        ``before`` of the next page; None on the last page.
        """
        available = await self._registry.load_tools()

        def read_page(session: Session) -> tuple[list[VisibleProposal], PageCursor | None]:
            page, page_end = self._search_page(
                session, actor, states, limit, before, only, to_decide=to_decide
            )
            shown = _cut_page(page)
            if len(shown) < len(page):  # the page is too long: the next one begins where it was cut
                page_end = PageCursor.of(shown[-1], only.order)
            return self._view(session, shown, actor, available), page_end

        return await self._groups.read_with_members(read_page)

    def _search_page(
        self,
        session: Session,
        actor: Actor,
        states: Sequence[State],
        limit: int,
        before: PageCursor | None,
        only: ProposalFilter,
        *,
        to_decide: bool,
    ) -> tuple[list[Proposal], PageCursor | None]:
        """Return up to ``limit`` proposals that the person may see, and where the next page begins.

        Rows that the person may not see are left out, so it may take several queries to fill a page. The
        second value is None on the last page.
        """
        # the rows in the person's reach may include some that they may not see, so each is checked
        reach = rights.make_search_scope(session, self._policies, actor)
        page_end = before
        page: list[Proposal] = []
        for _ in range(_MAX_SEARCHED_PAGES):
            # one row more than the page needs tells if there is a next page
            rows = proposals.list_within_reach(session, reach, states, limit + 1, page_end, only)
            for proposal in rows:
                if not rights.may_see_proposal(session, self._policies, proposal, actor):
                    continue
                if not to_decide or self._may_decide(session, proposal, actor):
                    page.append(proposal)
            if len(page) > limit:
                return page[:limit], PageCursor.of(page[limit - 1], only.order)
            if len(rows) <= limit:  # there are no more rows
                return page, None
            page_end = PageCursor.of(rows[-1], only.order)
        return page, page_end

    async def newest_change(self) -> int:
        """Return the number of the last change of any proposal."""
        return await self._groups.read_with_members(log.find_last_id)

    async def feed(self, since: int) -> ChangeFeed:
        """Return the changes after the change with the number ``since``, by id, and the work under way."""

        def read_feed(session: Session) -> ChangeFeed:
            return ChangeFeed(
                log.list_after(session, since),
                proposals.load_progress(session),
                questions.list_unanswered(session),
            )

        return await self._groups.read_with_members(read_feed)

    async def list_changed_proposals(
        self, since: int, progress_before: Mapping[str, str], is_wanted: Callable[[str], bool]
    ) -> ChangedProposals:
        """Return the proposals that changed after the change with the number ``since``, with their cards.

        A proposal has also changed if its progress differs from ``progress_before``. A proposal is included
        only if ``is_wanted`` is true for the key of its conversation's address. Agents' calls are left out.
        """
        available = await self._registry.load_tools()

        def read_changed(session: Session) -> ChangedProposals:
            rows = log.list_after(session, since)
            newest = rows[-1][0] if rows else since
            progress = proposals.load_progress(session)
            changed = [proposal_id for _, proposal_id in rows]
            changed += list_progressed(progress_before, progress)
            changed = list(dict.fromkeys(changed))
            conversation_of = conversations.map_by_proposal(session, changed)
            views = []
            for proposal_id in changed:
                conversation = conversation_of.get(proposal_id)
                if conversation is None or not is_wanted(conversation.origin.key):
                    continue
                proposal = proposals.get(session, proposal_id)
                if proposal and not proposal.agent:
                    [view] = self._view(session, [proposal], conversation.requester, available)
                    views.append((conversation.origin.key, view))
            return ChangedProposals(newest, progress, views)

        return await self._groups.read_with_members(read_changed)

    def filter_visible(
        self, session: Session, candidates: Sequence[Proposal], actor: Actor, available: AvailableTools
    ) -> list[VisibleProposal]:
        """Return the views of the proposals that this person may see."""
        visible = [
            proposal
            for proposal in candidates
            if rights.may_see_proposal(session, self._policies, proposal, actor)
        ]
        return self._view(session, visible, actor, available)

    def _find(
        self, session: Session, proposal_id: str, actor: Actor, available: AvailableTools
    ) -> VisibleProposal | None:
        proposal = self._find_visible(session, proposal_id, actor)
        if proposal is None:
            return None
        [view] = self._view(session, [proposal], actor, available)
        return view

    def _find_visible(self, session: Session, proposal_id: str, actor: Actor) -> Proposal | None:
        loaded = self._policies.find_proposal_with_policy(session, proposal_id, actor)
        if loaded is None:
            return None
        proposal = loaded[0]
        if rights.may_see_proposal(session, self._policies, proposal, actor):
            return proposal
        return None

    def _view(
        self, session: Session, visible: Sequence[Proposal], actor: Actor, available: AvailableTools
    ) -> list[VisibleProposal]:
        """Return the views of proposals. The caller has checked that this person may see them."""
        visible = _add_answers_of_agent_calls(session, visible, actor)
        cards = cards_of(session, self._policies, available, visible)
        # the rows of each batch, by the id of its first proposal, whose card stands for the batch
        batches = proposals.load_siblings(
            session, {proposal.message_id for proposal in visible if proposal.batch}
        )
        views = []
        for proposal in visible:
            conversation = conversations.get_conversation(session, proposal.conversation_id)
            teammate = proposal.teammate or _name_teammate_of(session, conversation)
            may_decide = self._may_decide(session, proposal, actor)
            place_in_batch = _find_place_in_batch(proposal, batches.get(proposal.card_id, ()))
            views.append(
                VisibleProposal(
                    proposal, cards[proposal.id], may_decide, conversation, teammate, place_in_batch
                )
            )
        return views

    def _may_decide(self, session: Session, proposal: Proposal, actor: Actor) -> bool:
        """Tell if a person may decide a proposal.

        If the proposal's conversation is their own, they count as deciding there, else at no place.
        """
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        place = None
        if conversation and conversation.origin.is_own(actor):
            place = conversation.origin
        return rights.find_objection(session, self._policies, proposal, actor, address=place) is None


def _add_answers_of_agent_calls(
    session: Session, visible: Sequence[Proposal], actor: Actor
) -> Sequence[Proposal]:
    """Return the proposals; the calls of agents with the tool's answer, if this person may read it.

    An agent here is a program with a token. Only the agent that called and its person may read the answer,
    so the answer is stored apart from the proposal.
    """
    if not any(proposal.agent for proposal in visible):
        return visible
    accounts = people.load_person(session, actor).accounts
    result = []
    for proposal in visible:
        is_theirs = str(actor) == f"{AGENTS}:{proposal.agent}" or str(proposal.requester) in accounts
        if proposal.agent and is_theirs:
            result.append(agent_calls.unseal(session, proposal))
        else:
            result.append(proposal)
    return result


def cards_of(
    session: Session, policies: Policies, available: AvailableTools, shown: Sequence[Proposal]
) -> dict[str, Card]:
    """Return the cards of these proposals by id. Shared rows are read once for all cards."""
    # the members of each group, by the id of its first proposal, whose card has the buttons for all
    groups = proposals.load_siblings(
        session, {proposal.message_id for proposal in shown if not proposal.batch}
    )
    declined = proposals.find_declined_before(session, shown)
    policy = policies.load(session)
    pause_words = ""
    if policy.rulebook.paused:
        pause_words = rules.format_pause(session, policy.rulebook.zone)
    schemas = {proposal.id: available.schema_of(session, proposal) for proposal in shown}
    accounts: set[str] = set()
    for proposal in shown:
        accounts.update(find_accounts_on_card(proposal, schemas[proposal.id]))
    names = people.find_known_names(session, accounts)
    cards = {}
    for proposal in shown:
        cards[proposal.id] = render_card(
            proposal,
            schemas[proposal.id],
            () if proposal.batch else groups.get(proposal.id, ()),
            grantable=grants.is_grantable(session, policies, proposal),
            pause_words=pause_words,
            declined_before=declined.get(proposal.id),
            names=names,
            zone=policy.rulebook.zone,
            stand_ins=rights.list_stand_ins(session, policy, proposal)
            if proposal.state is State.PROPOSED
            else (),
        )
    return cards


def _find_place_in_batch(proposal: Proposal, rows: Sequence[Sibling]) -> PlaceInBatch | None:
    if not proposal.batch:
        return None
    ids = [row.id for row in rows]
    return PlaceInBatch(proposal.batch, len(rows), ids.index(proposal.id) + 1)


def _cut_page(page: Sequence[Proposal]) -> Sequence[Proposal]:
    """Return the first proposals of a page, at least one, up to the limit of characters."""
    chars = 0
    for position, proposal in enumerate(page):
        chars += len(str(proposal.arguments)) + len(str(proposal.preview))
        if position > 0 and chars > _MAX_PAGE_CHARS:
            return page[:position]
    return page


def list_progressed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the ids of the running proposals whose progress ``now`` differs from that ``before``."""
    return [proposal_id for proposal_id, text in now.items() if before.get(proposal_id) != text]


def _name_teammate_of(session: Session, conversation: Conversation | None) -> str:
    """Return the name of the teammate with this conversation, or an empty text.

    An MCP server may ask a question during a teammate's call. The question's proposal does not name the
    teammate, so the conversation tells.
    """
    # only a teammate's conversation has ``shown_at``: the place where people see the teammate's work
    if conversation is None or conversation.shown_at is None:
        return ""
    teammate = teams.get(session, conversation.id)
    return teammate.name if teammate else ""
