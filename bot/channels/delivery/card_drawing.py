"""The card of a proposal as readers at one address see it, with the deciders and the buttons there."""

from typing import NamedTuple

from sqlmodel import Session

from bot.approvals.lookup.proposals import cards_of
from bot.domain.batches import batch_card
from bot.domain.card_rendering import place_card
from bot.domain.cards import Card, OriginChat
from bot.domain.chat import Address, same_chat
from bot.domain.conversations import Conversation
from bot.domain.people import Names, find_name, name_of_channel
from bot.domain.proposals import Proposal
from bot.store import conversations, people, posted_cards, proposals
from bot.store.connections import is_owner
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools


class ProposalCard(NamedTuple):
    """A proposal and its card as it is now."""

    proposal: Proposal
    card: Card


def draw_card(
    session: Session,
    proposal: Proposal,
    available: AvailableTools,
    policies: Policies,
    address: Address | None,
    *,
    as_batch: bool,
) -> ProposalCard:
    """Return a proposal's card for a reader at ``address``; None for no place in particular.

    ``as_batch``: as in `Cards.load_card`.
    """
    if as_batch and proposal.batch:
        members = proposals.list_of_batch(session, proposal.batch)
        cards = cards_of(session, policies, available, members)
        proposal = members[0]
        card = batch_card(members, [cards[member.id] for member in members])
    else:
        card = cards_of(session, policies, available, [proposal])[proposal.id]
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    if address is not None and conversation is not None and card.pending:
        card = _place_card_at(session, policies, conversation, proposal, card, address)
    return ProposalCard(proposal, card)


def _place_card_at(
    session: Session,
    policies: Policies,
    conversation: Conversation,
    proposal: Proposal,
    card: Card,
    address: Address,
) -> Card:
    """Return a pending card with the deciders and the buttons that readers at an address may have."""
    origin = str(conversation.origin)
    # True if the reader is in another chat than where it was asked for. An agent's request was asked for in
    # no chat that people could open, and its card names the agent instead.
    is_elsewhere = (
        address != conversation.origin and not same_chat(origin, str(address)) and not proposal.agent
    )
    named_places = {origin} if is_elsewhere else set()
    names = people.find_known_names(session, {*proposal.deciders.people, *named_places})
    origin_chat = _describe_origin(conversation, address, names) if is_elsewhere else None

    may_approve = True
    has_other_copies = False  # then the card says that people who may approve have it, too
    if conversation.private and not is_elsewhere:  # only the requester reads this chat
        requester = people.load_person(session, proposal.requester)
        # a call under the requester's own account at a server waits for their own approval
        uses_own_account = is_owner(proposal, requester)
        objection = policies.load(session).find_decision_objection(proposal, requester, requester)
        may_approve = uses_own_account or objection is None
    if not may_approve:
        copies = posted_cards.list_copies(session, proposal.card_id)
        has_other_copies = any(copy.address != conversation.origin for copy in copies)

    chats = proposal.deciders.escalation_chats
    return place_card(
        card,
        proposal,
        origin_chat=origin_chat,
        may_approve=may_approve,
        deciders_have_copies=has_other_copies,
        escalated=any(same_chat(chat, str(address)) for chat in chats),
        names=names,
    )


def _describe_origin(conversation: Conversation, address: Address, names: Names) -> OriginChat:
    """Return the chat where a card was asked for, as people in another chat, at ``address``, read it."""
    origin = str(conversation.origin)
    channel = name_of_channel(conversation.origin.channel)
    in_channel = "" if conversation.origin.channel == address.channel else f" in {channel}"
    if conversation.private:
        return OriginChat(f"a private chat{in_channel}", None, has_own_name=False)
    if channel[:1].islower():  # a single place, such as "the console"; Slack has many
        return OriginChat(channel, origin, has_own_name=True)
    name = find_name(origin, names)
    if name:
        return OriginChat(f"{name}{in_channel}", origin, has_own_name=True)
    return OriginChat(f"a chat in {channel}", origin, has_own_name=False)
