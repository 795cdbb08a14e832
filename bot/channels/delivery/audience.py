"""The audience of a proposal: the places of its card, the people who are named, and the admins.

Whatever posts, mentions or reminds asks here. Hooks (`Hooks.quiet_audience`) take people and places away from
a reminder alone: where a card is posted is not theirs to say.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from bot.approvals import ownership, rights
from bot.domain import kinds
from bot.domain.chat import Address
from bot.domain.conversations import Conversation
from bot.domain.people import Actor, Role, is_group
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal, State
from bot.domain.rules import Subject
from bot.store import conversations, people, posted_cards
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_ASKED_PEOPLE = 10  # who get a card in their own chats


@dataclass(frozen=True, slots=True)
class Audience:
    """The places that are told of a proposal, and the people who are named there, each once."""

    places: tuple[Address, ...]
    people: tuple[Actor, ...]


def find_audience(session: Session, policies: Policies, proposal: Proposal) -> Audience:
    """Return the audience of reminders of an open proposal: the places of its card, and named deciders.

    Hooks may leave some of them out. Where no one would be left who may decide, everyone is reminded.
    """
    copies = posted_cards.of_proposal(session, proposal.card_id)
    places = sorted({copy.address for copy in copies if not copy.gone}, key=str)
    policy = policies.load(session)
    everyone = Audience(tuple(places), _list_named(session, policy, proposal))
    quiet = _ask_who_is_quiet(session, proposal, everyone)
    if not quiet:
        return everyone
    left = Audience(
        tuple(place for place in everyone.places if str(place) not in quiet),
        tuple(person for person in everyone.people if str(person) not in quiet),
    )
    if _reaches_a_decider(session, policy, proposal, everyone, left):
        return left
    return everyone


def find_card_places(
    session: Session,
    policy: Policy,
    conversation: Conversation,
    proposal: Proposal,
    routes: Sequence[Address],
) -> list[Address]:
    """Return the first places of a card, each once: where it was asked for, then the routes."""
    owner = ownership.find_owner(session, proposal)
    if proposal.kind is kinds.READING and proposal.connection and not conversation.private:
        return [Address.parse(proposal.connection.owner)]
    if proposal.own:
        return [conversation.origin]
    ruled = bool(policy.book.list_about(Subject.ROUTE))
    further = [*routes]
    if owner is not None and proposal.connection and str(proposal.requester) not in owner.accounts:
        further.append(Address.parse(proposal.connection.owner))
    if ruled:
        further += map(Address.parse, policy.book.routes(rights.call_of(session, proposal)))
    # deciders first: the requester's card says that they have it
    private = conversation.private and not further
    own_chats = _list_own_chats(session, policy, proposal) if private else []
    return list(dict.fromkeys((*own_chats, conversation.origin, *further)))


def find_admins(policy: Policy) -> list[Address]:
    """Return the private chats of all admins, in one order."""
    return [Address.parse(admin) for admin in sorted(policy.holders(Role.ADMIN))]


def find_asker(proposal: Proposal) -> Address:
    """Return the private chat of the account that asked for a proposal."""
    return Address(proposal.requester.channel, proposal.requester.key)


def may_be_decided_at(session: Session, policy: Policy, proposal: Proposal, place: Address) -> bool:
    """Say if those who may decide can be there: anywhere but with the requester, and where they asked.

    Who reads along in a group, no platform tells.
    """
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    theirs = {find_asker(proposal), conversation.origin if conversation else None}
    if place not in theirs:
        return True
    requester = people.person_of(session, proposal.requester)
    return policy.objection(proposal, requester, requester, str(place)) is None


def _list_named(session: Session, policy: Policy, proposal: Proposal) -> tuple[Actor, ...]:
    """Return those who may decide by name, with their stand-ins."""
    by_name = proposal.deciders.named(proposal.requester)
    stand_ins = (each.stand_in for each in policy.absences if each.who in by_name)
    by_name = tuple(dict.fromkeys((*by_name, *stand_ins)))
    names = people.find_known_names(session, map(str, by_name))
    return tuple(replace(each, name=each.name or names.get(str(each), "")) for each in by_name)


def _list_own_chats(session: Session, policy: Policy, proposal: Proposal) -> list[Address]:
    """Return private chats of those who may decide, where no one in the requester's own may approve it."""
    requester = people.person_of(session, proposal.requester)
    asks = proposal.state is State.PROPOSED
    if not asks or policy.objection(proposal, requester, requester) is None:
        return []
    roles = (policy.holders(Role(role), proposal.deciders.place) for role in proposal.deciders.roles)
    named = policy.expand_groups(proposal.deciders.people)
    accounts = {each for each in named.union(*roles) if not is_group(each)}
    accounts |= {str(each.stand_in) for each in policy.absences if str(each.who) in accounts}
    accounts -= requester.accounts
    return [Address.parse(account) for account in sorted(accounts)[:_MAX_ASKED_PEOPLE]]


def _ask_who_is_quiet(session: Session, proposal: Proposal, audience: Audience) -> frozenset[str]:
    """Return the accounts and places that hooks leave out. One that raises leaves out no one."""
    notified = tuple(map(str, (*audience.places, *audience.people)))
    quiet: set[str] = set()
    for quiet_audience in hooks_of(session).quiet_audience:
        try:
            quiet.update(each for each in quiet_audience(session, proposal, notified) if each in notified)
        except Exception as error:
            log.error("a feature failed, so no one is left out", proposal=proposal.id, exc_info=error)
            return frozenset()
    return frozenset(quiet)


def _reaches_a_decider(
    session: Session, policy: Policy, proposal: Proposal, everyone: Audience, left: Audience
) -> bool:
    """Say if one of the places left is for deciders and, where any were named, one of them is still named."""
    if not any(may_be_decided_at(session, policy, proposal, place) for place in left.places):
        return False
    return not everyone.people or _may_one_decide(session, policy, proposal, left.people)


def _may_one_decide(session: Session, policy: Policy, proposal: Proposal, named: Collection[Actor]) -> bool:
    requester = people.person_of(session, proposal.requester)
    persons = (people.person_of(session, each) for each in named)
    return any(policy.objection(proposal, person, requester) is None for person in persons)
