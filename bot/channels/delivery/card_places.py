"""The places of a proposal's card.

- `find_card_places`: where is it posted?
- `may_be_decided_at`: can people who may decide be at such a place?
"""

from collections.abc import Sequence

from sqlmodel import Session

from bot.approvals import ownership, rights
from bot.channels.delivery import deciders
from bot.domain import kinds
from bot.domain.chat import Address
from bot.domain.conversations import Conversation
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject
from bot.store import conversations, people

_MAX_PRIVATE_CARDS = 10  # of one proposal, in the private chats of people who may decide it


def find_card_places(
    session: Session,
    policy: Policy,
    conversation: Conversation,
    proposal: Proposal,
    routes: Sequence[Address],
) -> list[Address]:
    """Return the places where a card is posted before any escalation, each once, in the order of posting.

    These are the chat where it was asked for, and the routes:

    - places that get every card (``routes``),
    - places that a rule names for this call, and
    - the private chat of the owner, if the call uses a connection to a person's account at a server.

    If the card was asked for in a private chat and there is no route, the deciders' private chats come first:
    the card in the requester's chat then says that they have it.
    """
    # Two sorts of proposals get one card, for the only person who may decide. A read with a connection is
    # decided by the connection's owner. A call that its requester decides alone stays where it was asked for.
    if proposal.kind is kinds.READING and proposal.connection and not conversation.private:
        return [Address.parse(proposal.connection.owner)]
    if proposal.requester_decides_alone:
        return [conversation.origin]
    owner = ownership.find_owner(session, proposal)

    all_routes = list(routes)
    if owner is not None and proposal.connection and str(proposal.requester) not in owner.accounts:
        all_routes.append(Address.parse(proposal.connection.owner))
    if policy.rulebook.list_about(Subject.ROUTE):
        all_routes += map(Address.parse, policy.rulebook.routes(rights.call_of(session, proposal)))

    requester_chat = find_requester_chat(proposal)
    private_chats: list[Address] = []
    if proposal.agent:  # the place of an agent's request has no people
        if not all_routes and not may_be_decided_at(session, policy, proposal, requester_chat):
            private_chats = _list_private_chats(session, policy, proposal)
        places = [requester_chat, *private_chats, *all_routes]
    else:
        if not all_routes and conversation.private:
            private_chats = _list_private_chats(session, policy, proposal)
        places = [*private_chats, conversation.origin, *all_routes]
    return list(dict.fromkeys(places))


def may_be_decided_at(session: Session, policy: Policy, proposal: Proposal, place: Address) -> bool:
    """Tell if people who may decide can be at a place.

    No platform tells who reads along in a group chat, so any group chat counts. In the requester's private
    chat, and where the requester asked, only the requester counts.
    """
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    origin = conversation.origin if conversation else None
    if place not in (find_requester_chat(proposal), origin):
        return True
    requester = people.load_person(session, proposal.requester)
    return policy.find_decision_objection(proposal, requester, requester, str(place)) is None


def find_requester_chat(proposal: Proposal) -> Address:
    """Return the private chat of the account that asked for a proposal."""
    return Address(proposal.requester.channel, proposal.requester.key)


def _list_private_chats(session: Session, policy: Policy, proposal: Proposal) -> list[Address]:
    """Return the private chats of some people who may decide an open proposal, at most `_MAX_PRIVATE_CARDS`.

    Empty if the requester may approve it themselves.
    """
    requester = people.load_person(session, proposal.requester)
    is_open = proposal.state is State.PROPOSED
    if not is_open or policy.find_decision_objection(proposal, requester, requester) is None:
        return []
    accounts = deciders.list_accounts_by_name_or_role(policy, proposal) - requester.accounts
    return [Address.parse(account) for account in sorted(accounts)[:_MAX_PRIVATE_CARDS]]
