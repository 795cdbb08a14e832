"""The audience of a proposal: whom its card notifies, who is reminded, and the admins.

An account and a group are written as ``channel:key``; so is a place, and a private chat as its account. A
*step* is a target that a rule notifies of a waiting card after some time. When a card is posted, or a step is
due, or an escalation adds deciders, this is settled here:

- whom it notifies: `choose_and_tell_recipients`, `choose_and_tell_step_recipients`, `tell_added_deciders`
- who is reminded later: `find_reminder_audience`

Features may leave people out of a mention, a reminder or a card in their private chat; a shared chat always
gets its card. There are two hooks: `Hooks.quiet_audience` names people who want quiet. A watcher
(`Hooks.watch_delivery`) may hold people back, to tell them later, and may itself notify people, such as by
push.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel import Session

from bot.approvals import lifecycle
from bot.channels.delivery import card_places, deciders
from bot.domain.annotations import Annotation
from bot.domain.chat import Address
from bot.domain.hooks import WatchDelivery
from bot.domain.people import Actor, Role
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.store import conversations, people, posted_cards, proposals
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.telemetry.logs import logger
from bot.telemetry.outages import is_outage

log = logger(__name__)

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


def choose_and_tell_recipients(
    session: Session, policies: Policies, proposal: Proposal, places: Sequence[Address], now: datetime
) -> Recipients:
    """Choose whom the card of a proposal notifies at ``places``, and let the watchers notify their people.

    Called before the card is posted. If too few people would be left to reach the quorum, those who want
    quiet are notified as well, and the card says so.
    """
    policy = policies.load(session)
    decider_accounts = deciders.list_all_accounts(session, policy, proposal)
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    origin = str(conversation.origin) if conversation else ""

    # 1. all whom the card would notify: in their private chat, by a mention, or by a watcher
    # (a private chat is written as its account; the card at the origin is always posted)
    with_private_card = decider_accounts.intersection(map(str, places)) - {origin}
    candidates = with_private_card | deciders.list_mentioned_accounts(session, policy, proposal)
    candidates |= _list_reached_by_watchers(session, proposal, decider_accounts)

    # 2. without those who want quiet, and those whom a watcher holds back
    quiet = _list_quiet(session, proposal, candidates)
    if quiet and deciders.count_deciders(session, policy, proposal, candidates - quiet) < proposal.quorum:
        lifecycle.annotate(session, proposal.id, proposal.round, _QUIET_IGNORED, now)
        quiet = frozenset()
    notified = _hold_back_and_tell(session, proposal, candidates - quiet, now)

    # 3. those who are left out are not mentioned and get no private card
    left_out = candidates - notified
    if not left_out:
        return Recipients(notified)
    without_private_card = with_private_card & left_out
    replaced_mentions = _replace_mentions(session, policy, proposal, left_out)
    return Recipients(notified, without_private_card, replaced_mentions)


def choose_and_tell_step_recipients(
    session: Session, proposal: Proposal, accounts: Collection[str], now: datetime
) -> frozenset[str]:
    """Return those of the ``accounts`` that a step notifies now, and let the watchers notify their people.

    People who want quiet are left out. A watcher that holds people back tells them later. If a watcher fails,
    nothing that the watchers did is kept, and no one is held back.
    """
    not_quiet = frozenset(accounts) - _list_quiet(session, proposal, accounts)
    held_back = frozenset[str]()  # stays empty if a watcher fails
    with contain_failure("a feature failed, so no one is held back", proposal), session.begin_nested():
        held_back = not_quiet - _hold_back_and_tell(session, proposal, not_quiet, now)
    return not_quiet - held_back


def tell_added_deciders(
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
    known_before = deciders.list_all_accounts(session, policy, before) | chats_before
    chats = set(after.deciders.escalation_chats)
    added = (deciders.list_all_accounts(session, policy, after) | chats) - known_before
    with contain_failure("a feature failed, so it notifies no one", after), session.begin_nested():
        # who may decide by their role alone is told only by a watcher that reaches them
        named = chats | policy.expand_groups(after.deciders.people)
        notified = (added & named) | _list_reached_by_watchers(session, after, added)
        for watcher in watchers:
            watcher.tell_people(session, after, sorted(notified), now)


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
    everyone = ReminderAudience(tuple(places), deciders.list_named(session, policy, proposal))
    reminded = [*map(str, everyone.places), *map(str, everyone.people)]
    quiet = _list_quiet(session, proposal, reminded)
    if not quiet:
        return everyone
    rest = ReminderAudience(
        tuple(place for place in everyone.places if str(place) not in quiet),
        tuple(person for person in everyone.people if str(person) not in quiet),
    )
    if _reaches_decider(session, policy, proposal, everyone, rest):
        return rest
    return everyone


def is_urgent(session: Session, proposal: Proposal) -> bool:
    """Tell if people have to be told now: a change on the card can't be undone, or it was escalated."""
    members = proposals.list_on_card(session, proposal)
    return any(member.risk.level is Level.DESTRUCTIVE or member.is_escalated for member in members)


def find_admins(policy: Policy) -> list[Address]:
    """Return the private chats of all admins, always in the same order."""
    return [Address.parse(admin) for admin in sorted(policy.list_holders(Role.ADMIN))]


def _list_watchers(session: Session) -> list[WatchDelivery]:
    """Return the features that may change now whom cards notify, or that notify people themselves."""
    return [watcher for watcher in hooks_of(session).watch_delivery if watcher.is_watching()]


def _list_reached_by_watchers(
    session: Session, proposal: Proposal, accounts: frozenset[str]
) -> frozenset[str]:
    """Return those of the ``accounts`` that a watcher notifies itself, such as by push."""
    reached = frozenset[str]()
    for watcher in _list_watchers(session):
        reached |= accounts.intersection(watcher.list_reached(session, proposal, accounts))
    return reached


def _hold_back_and_tell(
    session: Session, proposal: Proposal, accounts: frozenset[str], now: datetime
) -> frozenset[str]:
    """Let the watchers hold people back, and then notify theirs of the others. Return the others."""
    watchers = _list_watchers(session)
    notified = accounts
    for watcher in watchers:
        notified -= set(watcher.hold_back(session, proposal, sorted(notified), now))
    for watcher in watchers:
        watcher.tell_people(session, proposal, sorted(notified), now)
    return notified


def _list_quiet(session: Session, proposal: Proposal, candidates: Collection[str]) -> frozenset[str]:
    """Return those of the ``candidates``, accounts and places, that want quiet; none if a hook fails."""
    listed = sorted(candidates)
    quiet: set[str] = set()
    for quiet_audience in hooks_of(session).quiet_audience:
        try:
            quiet.update(quiet_audience(session, proposal, listed))
        except Exception as error:
            log.error("a feature failed, so no one is left out", proposal=proposal.id, exc_info=error)
            return frozenset()
    return frozenset(quiet.intersection(listed))


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


def _reaches_decider(
    session: Session, policy: Policy, proposal: Proposal, everyone: ReminderAudience, rest: ReminderAudience
) -> bool:
    """Tell if a reminder of the ``rest`` alone, without those who want quiet, reaches someone who may decide.

    ``everyone``: the audience with those who want quiet.
    """
    if everyone.people and not deciders.count_deciders(session, policy, proposal, map(str, rest.people)):
        return False
    # the people who are named see the card in a shared chat where it was asked for
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    shared_origin = conversation.origin if conversation is not None and not conversation.private else None
    if shared_origin in rest.places and rest.people:
        return True
    return any(card_places.may_be_decided_at(session, policy, proposal, place) for place in rest.places)
