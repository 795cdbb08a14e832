"""The audience of a proposal: the places of its card, the people to mention or remind, and the admins.

All code that posts, mentions, notifies or reminds asks here. The deciders of a proposal are the people who
may decide it. There are three questions:

- `find_card_places`: where is the card posted? Where it was asked for, and at further places.
- `settle_recipients`: whom does the card notify when it is posted? The deciders that it mentions, and those
  whose private chat gets it.
- `find_reminder_audience`: who is reminded? The places that have the card, and the deciders that rules name.

Features may leave people out of a mention, a reminder or a card in their private chat; a shared chat always
gets its card. There are two hooks: `Hooks.quiet_audience` names people who want quiet. A watcher
(`Hooks.watch_delivery`) may hold people back, to tell them later, and may itself notify people, such as by
push.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import lifecycle, ownership, rights
from bot.domain import kinds
from bot.domain.annotations import Annotation
from bot.domain.chat import Address
from bot.domain.conversations import Conversation
from bot.domain.hooks import WatchDelivery
from bot.domain.people import Actor, Person, Role, is_group
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.rule_values import Subject
from bot.store import conversations, people, posted_cards, proposals
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.telemetry.logs import logger
from bot.telemetry.outages import is_outage

log = logger(__name__)

_MAX_PRIVATE_CARDS = 10  # of one proposal, in the private chats of people who may decide it
_MAX_MENTIONED = 20  # the people who are mentioned one by one in place of a group
_QUIET_IGNORED = Annotation("", "Told also to those who muted it: too few others may decide.")


@dataclass(frozen=True, slots=True)
class ReminderAudience:
    """The places that get a reminder of a proposal, and the people who are mentioned there, each once."""

    places: tuple[Address, ...]
    people: tuple[Actor, ...]


@dataclass(frozen=True, slots=True)
class Recipients:
    """The accounts that a card notifies when it is delivered, and the accounts that it leaves out.

    Accounts and groups are written as ``channel:key``.
    """

    notified: frozenset[str] = frozenset()
    without_private_card: frozenset[str] = frozenset()
    """The accounts whose private chat gets no card, since they are left out."""
    replaced_mentions: Mapping[str, Sequence[Actor]] = field(default_factory=dict)
    """The people to mention instead, by the account or group that the card names.

    An account or group has an entry only if someone in it is left out. Its list of people may be empty.
    """


def may_change_notified(session: Session) -> bool:
    """Tell if a feature may change now whom cards notify. Reads no row."""
    someone_may_want_quiet = any(may_be_quiet() for may_be_quiet in hooks_of(session).may_be_quiet)
    return someone_may_want_quiet or bool(_list_watchers(session))


def settle_recipients(
    session: Session, policies: Policies, proposal: Proposal, places: Sequence[Address], now: datetime
) -> Recipients:
    """Settle whom the card of a proposal notifies at ``places``, and let the watchers notify their people.

    Called before the card is posted. If too few people would be left to reach the quorum, those who want
    quiet are notified as well, and the card says so.
    """
    watchers = _list_watchers(session)
    policy = policies.load(session)
    deciders = _list_all_decider_accounts(session, policy, proposal)
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    origin = str(conversation.origin) if conversation else ""

    # 1. all whom the card would notify: in their private chat, by a mention, or by a watcher
    # (the card at the origin, where it was asked for, is always posted)
    with_private_card = deciders.intersection(map(str, places)) - {origin}
    candidates = with_private_card | _list_mentioned_accounts(session, policy, proposal)
    for watcher in watchers:
        notified_by_watcher = watcher.list_reached(session, proposal, deciders)
        candidates |= deciders.intersection(notified_by_watcher)

    # 2. without those who want quiet, and those whom a watcher holds back
    quiet = list_quiet(session, proposal, sorted(candidates))
    if quiet and _count_deciders(session, policy, proposal, candidates - quiet) < proposal.quorum:
        lifecycle.annotate(session, proposal.id, proposal.round, _QUIET_IGNORED, now)
        quiet = frozenset()
    notified = candidates - quiet
    for watcher in watchers:
        notified -= set(watcher.hold_back(session, proposal, sorted(notified), now))

    # 3. the watchers notify their people; those who are left out are not mentioned and get no private card
    for watcher in watchers:
        watcher.tell_people(session, proposal, sorted(notified), now)
    left_out = candidates - notified
    if not left_out:
        return Recipients(notified)
    without_private_card = with_private_card & left_out
    replaced_mentions = _replace_mentions(session, policy, proposal, left_out)
    return Recipients(notified, without_private_card, replaced_mentions)


def notify_added_deciders(
    session: Session, policies: Policies, before: Proposal, after: Proposal, now: datetime
) -> None:
    """Let the watchers notify the deciders whom an escalation has added.

    ``before`` and ``after``: the proposal before and after the escalation. The people in a chat are not
    known, so the chat stands for them. If a watcher fails, nothing that the watchers did is kept, and the
    escalation stays.
    """
    watchers = _list_watchers(session)
    if not watchers:
        return
    policy = policies.load(session)
    chats_before = set(before.deciders.escalation_chats)
    deciders_before = _list_all_decider_accounts(session, policy, before) | chats_before
    chats = set(after.deciders.escalation_chats)
    added = (_list_all_decider_accounts(session, policy, after) | chats) - deciders_before
    with contain_failure("a feature failed, so it notifies no one", after), session.begin_nested():
        # of those who were added, the people who are named; not those who may decide by their role alone
        notified = added & (chats | policy.expand_groups(after.deciders.people))
        for watcher in watchers:
            notified_by_watcher = watcher.list_reached(session, after, added)
            notified |= added.intersection(notified_by_watcher)
        for watcher in watchers:
            watcher.tell_people(session, after, sorted(notified), now)


def settle_step_recipients(
    session: Session, proposal: Proposal, accounts: Collection[str], now: datetime
) -> frozenset[str]:
    """Return those of the ``accounts`` that a step notifies now, and let the watchers notify their people.

    A step of an open proposal is a target that a rule notifies after some time, so the card was delivered
    before. People who want quiet are left out. A watcher that holds people back tells them later. If a
    watcher fails, nothing that the watchers did is kept, and no one is held back.
    """
    not_quiet = frozenset(accounts) - list_quiet(session, proposal, sorted(accounts))
    watchers = _list_watchers(session)
    held_back = frozenset[str]()  # stays empty if a watcher fails
    with contain_failure("a feature failed, so no one is held back", proposal), session.begin_nested():
        notified = not_quiet
        for watcher in watchers:
            notified -= set(watcher.hold_back(session, proposal, sorted(notified), now))
        for watcher in watchers:
            watcher.tell_people(session, proposal, sorted(notified), now)
        held_back = not_quiet - notified
    return not_quiet - held_back


@contextmanager
def contain_failure(event: str, proposal: Proposal) -> Iterator[None]:
    """Log the failure of a feature as ``event`` and continue. An outage of the database is raised."""
    try:
        yield
    except Exception as error:
        if is_outage(error):
            raise
        log.error(event, proposal=proposal.id, exc_info=error)


def find_reminder_audience(session: Session, policies: Policies, proposal: Proposal) -> ReminderAudience:
    """Return the audience of an open proposal's reminders: the places of its card, and its named deciders.

    People who want quiet are left out. If no one who may decide would be left, everyone is reminded.
    """
    copies = posted_cards.list_copies(session, proposal.card_id)
    places = sorted({copy.address for copy in copies if not copy.gone}, key=str)
    policy = policies.load(session)
    everyone = ReminderAudience(tuple(places), _list_named_actors(session, policy, proposal))
    reminded = [*map(str, everyone.places), *map(str, everyone.people)]
    quiet = list_quiet(session, proposal, reminded)
    if not quiet:
        return everyone
    rest = ReminderAudience(
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
    """Return the places where a card is posted first, each once, in the order of posting.

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
    if policy.book.list_about(Subject.ROUTE):
        all_routes += map(Address.parse, policy.book.routes(rights.call_of(session, proposal)))

    asker = find_asker(proposal)
    private_chats: list[Address] = []
    if proposal.agent:  # the place of an agent's request has no people
        if not all_routes and not may_be_decided_at(session, policy, proposal, asker):
            private_chats = _list_private_chats(session, policy, proposal)
        places = [asker, *private_chats, *all_routes]
    else:
        if not all_routes and conversation.private:
            private_chats = _list_private_chats(session, policy, proposal)
        places = [*private_chats, conversation.origin, *all_routes]
    return list(dict.fromkeys(places))


def is_urgent(session: Session, proposal: Proposal) -> bool:
    """Tell if people have to be told now: a change on the card can't be undone, or it was escalated."""
    members = proposals.list_on_card(session, proposal)
    return any(member.risk.level is Level.DESTRUCTIVE or member.is_escalated for member in members)


def find_admins(policy: Policy) -> list[Address]:
    """Return the private chats of all admins, always in the same order."""
    return [Address.parse(admin) for admin in sorted(policy.holders(Role.ADMIN))]


def find_asker(proposal: Proposal) -> Address:
    """Return the private chat of the account that asked for a proposal."""
    return Address(proposal.requester.channel, proposal.requester.key)


def list_quiet(session: Session, proposal: Proposal, notified: Collection[str]) -> frozenset[str]:
    """Return those of the ``notified`` accounts and places that want quiet; none if a hook fails."""
    quiet: set[str] = set()
    for quiet_audience in hooks_of(session).quiet_audience:
        try:
            quiet.update(set(quiet_audience(session, proposal, notified)).intersection(notified))
        except Exception as error:
            log.error("a feature failed, so no one is left out", proposal=proposal.id, exc_info=error)
            return frozenset()
    return frozenset(quiet)


def may_be_decided_at(session: Session, policy: Policy, proposal: Proposal, place: Address) -> bool:
    """Tell if people who may decide can be at a place.

    No platform tells who reads along in a group chat, so any group chat counts. In the requester's private
    chat, and where the requester asked, only the requester counts.
    """
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    origin = conversation.origin if conversation else None
    if place not in (find_asker(proposal), origin):
        return True
    requester = people.load_person(session, proposal.requester)
    return policy.find_decision_objection(proposal, requester, requester, str(place)) is None


def _list_watchers(session: Session) -> list[WatchDelivery]:
    """Return the features that may change now whom cards notify, or that notify people themselves."""
    return [watcher for watcher in hooks_of(session).watch_delivery if watcher.is_watching()]


def _list_named_actors(session: Session, policy: Policy, proposal: Proposal) -> tuple[Actor, ...]:
    """Return the people who are named as deciders, and their stand-ins."""
    deciders = proposal.deciders.list_named(proposal.requester)
    stand_ins = (absence.stand_in for absence in policy.absences if absence.who in deciders)
    named = tuple(dict.fromkeys((*deciders, *stand_ins)))
    names = people.find_known_names(session, map(str, named))
    return tuple(replace(actor, name=actor.name or names.get(str(actor), "")) for actor in named)


def _list_private_chats(session: Session, policy: Policy, proposal: Proposal) -> list[Address]:
    """Return the private chats of some people who may decide an open proposal, at most `_MAX_PRIVATE_CARDS`.

    Empty if the requester may approve it themselves.
    """
    requester = people.load_person(session, proposal.requester)
    is_open = proposal.state is State.PROPOSED
    if not is_open or policy.find_decision_objection(proposal, requester, requester) is None:
        return []
    accounts = _list_accounts_by_name_or_role(policy, proposal) - requester.accounts
    return [Address.parse(account) for account in sorted(accounts)[:_MAX_PRIVATE_CARDS]]


def _list_accounts_by_name_or_role(policy: Policy, proposal: Proposal) -> frozenset[str]:
    """Return the known accounts that may decide by name, group or role, and those of their stand-ins."""
    named = set(policy.expand_groups(proposal.deciders.people))
    for role in proposal.deciders.roles:
        named.update(policy.holders(Role(role), proposal.deciders.place))
    accounts = {account for account in named if not is_group(account)}
    accounts |= {str(absence.stand_in) for absence in policy.absences if str(absence.who) in accounts}
    return frozenset(accounts)


def _list_all_decider_accounts(session: Session, policy: Policy, proposal: Proposal) -> frozenset[str]:
    """Return the known accounts that may decide a proposal.

    In addition to those by name, group or role, these are the owner's of its connection, and the requester's
    if they may decide.
    """
    deciders = proposal.deciders
    requester = people.load_person(session, proposal.requester)
    accounts = _list_accounts_by_name_or_role(policy, proposal)
    if deciders.four_eyes:
        accounts -= requester.accounts
    elif deciders.requester:
        accounts |= requester.accounts
    owner = ownership.find_owner(session, proposal)
    if owner is not None:
        accounts |= owner.accounts
    return accounts


def _list_mentioned_accounts(session: Session, policy: Policy, proposal: Proposal) -> frozenset[str]:
    """Return the accounts that the cards of a proposal mention, without the accounts of its requester."""
    named = frozenset(map(str, proposal.deciders.list_named(proposal.requester)))
    accounts = policy.expand_groups(named)
    mentioned = frozenset(account for account in accounts if not is_group(account))
    if proposal.agent:
        return mentioned
    return mentioned - people.load_person(session, proposal.requester).accounts


def _replace_mentions(
    session: Session, policy: Policy, proposal: Proposal, left_out: frozenset[str]
) -> Mapping[str, Sequence[Actor]]:
    """Return `Recipients.replaced_mentions`, given the accounts that are ``left_out``."""
    replaced: dict[str, Sequence[Actor]] = {}
    for named in map(str, proposal.deciders.list_named(proposal.requester)):
        members = policy.expand_groups([named])
        if members & left_out:
            mentioned = sorted(members - left_out)[:_MAX_MENTIONED]
            names = people.find_known_names(session, mentioned)
            replaced[named] = [Actor.parse(account, names.get(account, "")) for account in mentioned]
    return replaced


def _count_deciders(session: Session, policy: Policy, proposal: Proposal, accounts: Collection[str]) -> int:
    """Return the number of persons with these accounts who may approve a proposal."""
    requester = people.load_person(session, proposal.requester)
    persons: dict[str, Person] = {}
    for account in sorted(accounts):
        person = people.load_person(session, Actor.parse(account))
        persons[person.id] = person
    may_approve = [
        person
        for person in persons.values()
        if policy.find_decision_objection(proposal, person, requester) is None
    ]
    return len(may_approve)


def _reaches_decider(
    session: Session, policy: Policy, proposal: Proposal, everyone: ReminderAudience, rest: ReminderAudience
) -> bool:
    """Tell if the ``rest`` of an audience still reaches someone who may decide.

    It needs a place where such people can be and, if ``everyone`` names people, one of them who may decide.
    """
    if everyone.people and not _has_decider(session, policy, proposal, rest.people):
        return False
    # the people who are named see the card in a shared chat where it was asked for
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    shared_origin = conversation.origin if conversation is not None and not conversation.private else None
    if shared_origin in rest.places and rest.people:
        return True
    return any(may_be_decided_at(session, policy, proposal, place) for place in rest.places)


def _has_decider(session: Session, policy: Policy, proposal: Proposal, actors: Collection[Actor]) -> bool:
    requester = people.load_person(session, proposal.requester)
    persons = (people.load_person(session, actor) for actor in actors)
    return any(policy.find_decision_objection(proposal, person, requester) is None for person in persons)
