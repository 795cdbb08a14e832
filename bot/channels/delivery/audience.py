"""The audience of a proposal: the places of its card, the people who are named, and the admins.

All code that posts, mentions or reminds asks here. Hooks (`Hooks.quiet_audience`) may take people and places
away from a reminder only, not from the posting of a card.
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

_MAX_PRIVATE_CARDS = 10  # of a proposal, in the chats of those who may decide


@dataclass(frozen=True, slots=True)
class Audience:
    """The places that get a message about a proposal, and the people who are named there, each once."""

    places: tuple[Address, ...]
    people: tuple[Actor, ...]


def find_audience(session: Session, policies: Policies, proposal: Proposal) -> Audience:
    """Return the audience of an open proposal's reminders: the places of its card, and its named deciders.

    Hooks may leave some of them out. If they would leave out all who may decide, everyone is reminded.
    """
    copies = posted_cards.of_proposal(session, proposal.card_id)
    places = sorted({copy.address for copy in copies if not copy.gone}, key=str)
    policy = policies.load(session)
    everyone = Audience(tuple(places), _list_named(session, policy, proposal))
    quiet = _ask_who_is_quiet(session, proposal, everyone)
    if not quiet:
        return everyone
    rest = Audience(
        tuple(place for place in everyone.places if str(place) not in quiet),
        tuple(person for person in everyone.people if str(person) not in quiet),
    )
    if _reaches_decider(session, policy, proposal, everyone, rest):
        return rest
    return everyone


def find_card_places(
    session: Session,
    policy: Policy,
    conversation: Conversation,
    proposal: Proposal,
    routes: Sequence[Address],
) -> list[Address]:
    """Return the first places of a card, each once: where it was asked for, then the routes.

    If it was asked for in a private chat and there is no route, the deciders' private chats come first: the
    requester's card says that they have it. The owner of the connection that it uses gets a card, too.
    """
    owner = ownership.find_owner(session, proposal)
    if proposal.kind is kinds.READING and proposal.connection and not conversation.private:
        return [Address.parse(proposal.connection.owner)]
    if proposal.own:
        return [conversation.origin]
    all_routes = [*routes]
    if owner is not None and proposal.connection and str(proposal.requester) not in owner.accounts:
        all_routes.append(Address.parse(proposal.connection.owner))
    if policy.book.list_about(Subject.ROUTE):
        all_routes += map(Address.parse, policy.book.routes(rights.call_of(session, proposal)))
    private_chats: list[Address] = []
    if proposal.agent:  # no one is where it was asked for
        if not may_be_decided_at(session, policy, proposal, find_asker(proposal)) and not all_routes:
            private_chats = _list_private_chats(session, policy, proposal)
        return list(dict.fromkeys((find_asker(proposal), *private_chats, *all_routes)))
    if conversation.private and not all_routes:
        private_chats = _list_private_chats(session, policy, proposal)
    return list(dict.fromkeys((*private_chats, conversation.origin, *all_routes)))


def find_admins(policy: Policy) -> list[Address]:
    """Return the private chats of all admins, always in the same order."""
    return [Address.parse(admin) for admin in sorted(policy.holders(Role.ADMIN))]


def find_asker(proposal: Proposal) -> Address:
    """Return the private chat of the account that asked for a proposal."""
    return Address(proposal.requester.channel, proposal.requester.key)


def may_be_decided_at(session: Session, policy: Policy, proposal: Proposal, place: Address) -> bool:
    """Return whether people who may decide can be at a place.

    They can be anywhere, since no platform tells who reads along in a group. Only in the requester's private
    chat, and where the requester asked, must the requester themselves be allowed to decide.
    """
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    origin = conversation.origin if conversation else None
    if place not in (find_asker(proposal), origin):
        return True
    requester = people.person_of(session, proposal.requester)
    return policy.objection(proposal, requester, requester, str(place)) is None


def _list_named(session: Session, policy: Policy, proposal: Proposal) -> tuple[Actor, ...]:
    """Return the people who are named as deciders, and their stand-ins."""
    deciders = proposal.deciders.named(proposal.requester)
    stand_ins = (absence.stand_in for absence in policy.absences if absence.who in deciders)
    named = tuple(dict.fromkeys((*deciders, *stand_ins)))
    names = people.find_known_names(session, map(str, named))
    return tuple(replace(actor, name=actor.name or names.get(str(actor), "")) for actor in named)


def _list_private_chats(session: Session, policy: Policy, proposal: Proposal) -> list[Address]:
    """Return the private chats of those who may decide; empty if the requester may approve it themselves."""
    requester = people.person_of(session, proposal.requester)
    is_open = proposal.state is State.PROPOSED
    if not is_open or policy.objection(proposal, requester, requester) is None:
        return []
    holders = (policy.holders(Role(role), proposal.deciders.place) for role in proposal.deciders.roles)
    named = policy.expand_groups(proposal.deciders.people)
    accounts = {account for account in named.union(*holders) if not is_group(account)}
    accounts |= {str(absence.stand_in) for absence in policy.absences if str(absence.who) in accounts}
    accounts -= requester.accounts
    return [Address.parse(account) for account in sorted(accounts)[:_MAX_PRIVATE_CARDS]]


def _ask_who_is_quiet(session: Session, proposal: Proposal, audience: Audience) -> frozenset[str]:
    """Return the accounts and places that hooks leave out. If a hook raises, no one is left out."""
    notified = tuple(map(str, (*audience.places, *audience.people)))
    quiet: set[str] = set()
    for quiet_audience in hooks_of(session).quiet_audience:
        try:
            quiet.update(set(quiet_audience(session, proposal, notified)).intersection(notified))
        except Exception as error:
            log.error("a feature failed, so no one is left out", proposal=proposal.id, exc_info=error)
            return frozenset()
    return frozenset(quiet)


def _reaches_decider(
    session: Session, policy: Policy, proposal: Proposal, everyone: Audience, rest: Audience
) -> bool:
    """Return whether the rest of an audience has a place for deciders and, if any were named, a decider."""
    if not any(may_be_decided_at(session, policy, proposal, place) for place in rest.places):
        return False
    return not everyone.people or _has_decider(session, policy, proposal, rest.people)


def _has_decider(session: Session, policy: Policy, proposal: Proposal, actors: Collection[Actor]) -> bool:
    requester = people.person_of(session, proposal.requester)
    persons = (people.person_of(session, actor) for actor in actors)
    return any(policy.objection(proposal, person, requester) is None for person in persons)
