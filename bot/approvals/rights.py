"""Rights on proposals: who may make which press, and who may see a proposal.

A press is one use of a button on a card, by a person through one of their accounts (``actor``). `judge_press`
decides if they may make it: by the rules and their role, as the owner of the call (the person in whose name
it runs), or as the stand-in of an absent person. `may_see_proposal` decides who may see a proposal. The
policy has the rules; people and their accounts are read from the database.
"""

from dataclasses import replace
from typing import NamedTuple

from sqlmodel import Session

from bot.domain.call_facts import CallFacts
from bot.domain.chat import Address
from bot.domain.connections import Identity
from bot.domain.people import AGENTS, Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal, Vote
from bot.domain.verbs import Verb
from bot.store import conversations, people, proposals
from bot.store.connections import is_owner
from bot.store.proposals import SearchScope
from bot.store.rules import Policies

_NEEDS_APPROVER = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS, Verb.RETRY, Verb.FOR_REAL, Verb.UNDO)
"""The presses that only a person may make who may approve the call."""
_GRANTING = (Verb.SIMILAR, Verb.APPROVE_STEPS)  # presses that also give a grant
_NOT_BY_STAND_IN = (Verb.CANCEL, Verb.EXPIRE, Verb.REASSIGN)
"""The presses that a stand-in may not make: they are for admins, and for the person who asked."""
_ALLOWED_TO_OWNER = frozenset(
    {Verb.APPROVE, Verb.FOR_REAL, Verb.DECLINE, Verb.CANCEL, Verb.STOP, Verb.STOP_ALL}
)
"""The presses that the owner of a call may always make, even if others decide the call."""
_ONE_BY_ONE_TEXT = "A stand-in decides one at a time. Approve this on its own. It stays open."


class PressRight(NamedTuple):
    """The right of a person to make a press, or the objection to it."""

    objection: str | None = None  # in words; None if the person may press
    absent: Actor | None = None  # set if the person may press only as the stand-in of this absent person


def find_objection(
    session: Session,
    policies: Policies,
    proposal: Proposal,
    actor: Actor,
    verb: Verb = Verb.APPROVE,
    address: Address | None = None,
) -> str | None:
    """Return the reason in words why the person with this account may not press; None if they may.

    ``address``: where the pressed card is posted, since a rule may let everyone in a chat decide.
    """
    policy, person = policies.load_with_person(session, actor)
    objection, _ = judge_press(session, policy, proposal, person, actor, verb, address)
    return objection


def judge_press(
    session: Session,
    policy: Policy,
    proposal: Proposal,
    person: Person,
    actor: Actor,
    verb: Verb = Verb.APPROVE,
    address: Address | None = None,
) -> PressRight:
    """Decide if a person may make a press. ``address``: as in `find_objection`.

    The owner of a call, in whose name it runs, may always approve, decline, withdraw or stop it;
    ``votes.py`` decides if that vote is enough. An agent, which is a program, may withdraw what it asked for,
    and nothing else.
    """
    if actor.channel == AGENTS:
        if verb is Verb.CANCEL and proposal.agent == actor.key:
            return PressRight()
        return PressRight("A program decides nothing. It stays open.")
    if verb in _ALLOWED_TO_OWNER and is_owner(proposal, person):
        return PressRight()
    return judge_press_by_role(session, policy, proposal, person, actor, verb, address)


def judge_press_by_role(
    session: Session,
    policy: Policy,
    proposal: Proposal,
    person: Person,
    actor: Actor,
    verb: Verb = Verb.APPROVE,
    address: Address | None = None,
) -> PressRight:
    """Return the result of `judge_press` by rules and roles alone, without the rights of a call's owner."""
    if actor == proposal.requester:
        requester = person
    else:
        requester = people.load_person(session, proposal.requester)
    objection = _find_objection_without_stand_in(policy, proposal, person, requester, verb, address)
    if objection is None or not policy.absences:
        return PressRight(objection)
    # no one decides their own request in someone's place, and no one from outside of the team is a stand-in
    if person == requester or person.is_outsider:
        return PressRight(objection)
    if verb in _NOT_BY_STAND_IN or proposal.requester_decides_alone:
        return PressRight(objection)
    approves = verb in _NEEDS_APPROVER
    for absence in policy.absences:
        absent = people.load_person(session, absence.absent)
        if str(absence.stand_in) not in person.accounts or absent == person:
            continue  # it is another person's absence to stand in for
        if policy.find_decision_objection(proposal, absent, requester, approves=approves) is not None:
            continue  # the absent person may not decide it either
        if verb in _GRANTING:
            return PressRight(_ONE_BY_ONE_TEXT)
        return PressRight(absent=absence.absent)
    return PressRight(objection)


def without_void_votes(session: Session, policies: Policies, proposal: Proposal) -> Proposal:
    """Return the proposal with only the votes of people who may still decide it.

    Membership in a group or a chat was checked when they voted, and is not asked for again.
    """
    if not proposal.votes:
        return proposal
    policy = policies.load(session)
    requester = people.load_person(session, proposal.requester)
    # ``members``: a chat whose members may decide. If there is such a chat, each vote is taken as one from it
    chat = proposal.deciders.members
    if not chat:
        chat = next(iter(proposal.deciders.escalation_chats), None)

    def is_still_valid(vote: Vote) -> bool:
        voter = people.load_person(session, vote.absent or vote.actor)
        approves = vote.verb == Verb.APPROVE
        if not approves and vote.verb != Verb.DECLINE:
            return True  # the lead agent's review of a plan, or the owner's consent
        objection = policy.find_decision_objection(proposal, voter, requester, chat, approves=approves)
        return objection is None or policy.may_be_in_group(proposal, voter)

    votes = tuple(filter(is_still_valid, proposal.votes))
    return replace(proposal, votes=votes, for_real=proposal.for_real if votes else None)


def list_stand_ins(session: Session, policy: Policy, proposal: Proposal) -> list[str]:
    """Return the absences whose stand-in may decide a proposal, each in words for the card."""
    lines = []
    for absence in policy.absences:
        stand_in = people.load_person(session, absence.stand_in)
        _, absent = judge_press(session, policy, proposal, stand_in, absence.stand_in)
        if absent:
            lines.append(people.put_names_in(session, absence.label))
    return lines


def _find_objection_without_stand_in(
    policy: Policy, proposal: Proposal, person: Person, requester: Person, verb: Verb, address: Address | None
) -> str | None:
    """Return in words why a person may not press, apart from absences; None if they may."""
    if _is_hidden(proposal) and person != requester:
        return "Only the person it is about decides this one."
    if verb is Verb.CANCEL:
        if policy.may_withdraw(proposal, person, requester):
            return None
        return f"Only {proposal.requester.label} or an admin can withdraw this. It stays open."
    if verb in (Verb.ASK, Verb.STOP, Verb.STOP_ALL) and policy.may_withdraw(proposal, person, requester):
        return None
    if verb in (Verb.EXPIRE, Verb.REASSIGN):
        if Role.ADMIN in policy.roles_for(person, proposal):
            return None
        return "Only an admin can do that. It stays open."
    chat = str(address) if address else None
    return policy.find_decision_objection(proposal, person, requester, chat, approves=verb in _NEEDS_APPROVER)


def call_of(session: Session, proposal: Proposal) -> CallFacts:
    """Return the facts by which the rules judge a proposed call, as of the time of the proposal."""
    place = conversations.load_place(session, proposal.conversation_id)
    requester = people.load_person(session, proposal.requester)
    schema = proposals.load_schema(session, proposal.tool_name, proposal.tool_version) or {}
    identity = proposal.connection.identity if proposal.connection else Identity.NOD
    return CallFacts(
        proposal.tool_name,
        proposal.risk,
        place,
        requester,
        proposal.created_at,
        proposal.kind,
        proposal.arguments,
        schema,
        identity=identity,
    )


def may_see_proposal(session: Session, policies: Policies, proposal: Proposal, actor: Actor) -> bool:
    """Tell if a person may see a proposal: they requested it, may decide it, or hold a role for it."""
    if actor.channel == AGENTS:
        return proposal.agent == actor.key
    policy, person = policies.load_with_person(session, actor)
    refusal, _ = judge_press(session, policy, proposal, person, actor)
    if refusal is None or person == people.load_person(session, proposal.requester):
        return True
    return bool(policy.roles_for(person, proposal)) and not _is_hidden(proposal)


def _is_hidden(proposal: Proposal) -> bool:
    """Tell if only the requester may see the proposal, whatever roles others have.

    This is so for some kinds, if only the requester may decide (``requester_decides_alone``).
    """
    return proposal.kind.hides_own and proposal.requester_decides_alone


def is_global_admin(session: Session, policies: Policies, actor: Actor) -> bool:
    """Tell if a person is an admin of all of Nod, not of one workspace alone."""
    return policies.is_admin(session, actor) and not policies.find_workspace_bound(session, actor)


def find_visible_accounts(session: Session, policies: Policies, actor: Actor) -> frozenset[str] | None:
    """Return the accounts whose rows a person may see.

    None for an admin of all of Nod, who sees everyone's.
    """
    if is_global_admin(session, policies, actor):
        return None
    return people.load_person(session, actor).accounts


def list_accounts(session: Session, actor: Actor) -> frozenset[str]:
    """Return all accounts of the person with this account."""
    return people.load_person(session, actor).accounts | {str(actor)}


def make_search_scope(session: Session, policies: Policies, actor: Actor) -> SearchScope:
    """Return the search conditions for the proposals that a person may see or decide.

    A search by them also finds other proposals, so the caller checks each by `may_see_proposal`.
    """
    policy, person = policies.load_with_person(session, actor)
    # the person may also decide for the absent people whose stand-in they are
    absent = [absence.absent for absence in policy.absences if str(absence.stand_in) in person.accounts]
    persons = [person, *(people.load_person(session, who) for who in absent)]
    # the search finds the proposals that name one of these accounts or groups as deciders
    accounts_and_groups: frozenset[str] = frozenset()
    for represented in persons:
        accounts_and_groups |= represented.accounts | policy.groups_of(represented)
    has_role = any(policy.roles_of(represented) for represented in persons)
    return SearchScope(person.accounts, everything=has_role, deciding_for=accounts_and_groups)
