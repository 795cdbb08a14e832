"""Who may press what, and who may see a proposal, by the policy and what the rows know of people."""

from sqlmodel import Session

from bot.domain.chat import Address
from bot.domain.people import Actor, Person, Role
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import people
from bot.store.proposals import Reach
from bot.store.rules import Policies


def objection(
    session: Session,
    policies: Policies,
    proposal: Proposal,
    actor: Actor,
    verb: Verb = Verb.APPROVE,
    at: Address | None = None,
) -> str | None:
    """Why this account's Person may not press that, in words; None when they may.

    ``at`` is where the pressed card is posted: some circles are "anyone in this chat".
    """
    policy, person = policies.load_for(session, actor)
    return objection_of(session, policy, proposal, person, actor, verb, at)


def objection_of(
    session: Session,
    policy: Policy,
    proposal: Proposal,
    person: Person,
    actor: Actor,
    verb: Verb = Verb.APPROVE,
    at: Address | None = None,
) -> str | None:
    requester = person if actor == proposal.requester else people.person_of(session, proposal.requester)
    if verb is Verb.CANCEL:
        if policy.may_take_back(proposal, person, requester):
            return None
        return f"Only {proposal.requester.label} or an admin can withdraw this. It stays open."
    if verb in (Verb.ASK, Verb.STOP) and policy.may_take_back(proposal, person, requester):
        return None
    if verb in (Verb.EXPIRE, Verb.REASSIGN):
        return (
            None
            if Role.ADMIN in policy.roles_for(person, proposal)
            else "Only an admin can do that. It stays open."
        )
    of_approval = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS, Verb.RETRY, Verb.FOR_REAL, Verb.UNDO)
    approves = verb in of_approval
    return policy.objection(proposal, person, requester, str(at) if at else None, approves=approves)


def visible(session: Session, policies: Policies, proposal: Proposal, actor: Actor) -> bool:
    """Whether a person may see a proposal anywhere: it is theirs, or theirs to decide, or of their role."""
    policy, person = policies.load_for(session, actor)
    return (
        objection_of(session, policy, proposal, person, actor) is None
        or person == people.person_of(session, proposal.requester)
        or bool(policy.roles_for(person, proposal))
    )


def rules_all(session: Session, policies: Policies, actor: Actor) -> bool:
    """Whether a person is an admin of all of Nod, not of one workspace alone."""
    return policies.is_admin(session, actor) and not policies.bound_to(session, actor)


def reach(session: Session, policies: Policies, actor: Actor) -> Reach:
    """Where in the rows a person finds what they may see or decide; each is still to be checked."""
    policy, person = policies.load_for(session, actor)
    return Reach(person.accounts | policy.groups_of(person), everything=bool(policy.roles_of(person)))
