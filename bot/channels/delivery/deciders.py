"""The deciders of a proposal: the known accounts of the people who may decide it.

An account is written as ``channel:key``. There are four lists:

- `list_named`: the people who are named as deciders, and their stand-ins; not the members of named groups
- `list_accounts_by_name_or_role`: all who may decide by name, as a member of a named group, or by role
- `list_all_accounts`: in addition, those who may decide by what they are to this proposal, such as its
  connection's owner
- `list_mentioned_accounts`: those that the card mentions, who are named or members of a named group
"""

from collections.abc import Iterable
from dataclasses import replace

from sqlmodel import Session

from bot.approvals import ownership
from bot.domain.people import Actor, Person, Role, is_group
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal
from bot.store import people


def list_named(session: Session, policy: Policy, proposal: Proposal) -> tuple[Actor, ...]:
    """Return the people who are named as deciders, and their stand-ins."""
    named = proposal.deciders.list_named(proposal.requester)
    stand_ins = (absence.stand_in for absence in policy.absences if absence.absent in named)
    actors = tuple(dict.fromkeys((*named, *stand_ins)))
    names = people.find_known_names(session, map(str, actors))
    return tuple(replace(actor, name=actor.name or names.get(str(actor), "")) for actor in actors)


def list_accounts_by_name_or_role(policy: Policy, proposal: Proposal) -> frozenset[str]:
    """Return the known accounts that may decide by name, group or role, and those of their stand-ins."""
    accounts_and_groups = set(policy.expand_groups(proposal.deciders.people))
    for role in proposal.deciders.roles:
        accounts_and_groups.update(policy.list_holders(Role(role), proposal.deciders.place))
    accounts = {account for account in accounts_and_groups if not is_group(account)}
    accounts |= {str(absence.stand_in) for absence in policy.absences if str(absence.absent) in accounts}
    return frozenset(accounts)


def list_all_accounts(session: Session, policy: Policy, proposal: Proposal) -> frozenset[str]:
    """Return the known accounts that may decide a proposal.

    In addition to those by name, group or role, these are the owner's of its connection, and the requester's
    if they may decide.
    """
    deciders = proposal.deciders
    requester = people.load_person(session, proposal.requester)
    accounts = list_accounts_by_name_or_role(policy, proposal)
    if deciders.four_eyes:
        accounts -= requester.accounts
    elif deciders.requester:
        accounts |= requester.accounts
    owner = ownership.find_owner(session, proposal)
    if owner is not None:
        accounts |= owner.accounts
    return accounts


def list_mentioned_accounts(session: Session, policy: Policy, proposal: Proposal) -> frozenset[str]:
    """Return the accounts that the cards of a proposal mention.

    Those of its requester are left out, unless an agent asked for the requester.
    """
    named = map(str, proposal.deciders.list_named(proposal.requester))
    accounts_and_groups = policy.expand_groups(named)
    mentioned = frozenset(account for account in accounts_and_groups if not is_group(account))
    if proposal.agent:
        return mentioned
    return mentioned - people.load_person(session, proposal.requester).accounts


def count_deciders(session: Session, policy: Policy, proposal: Proposal, accounts: Iterable[str]) -> int:
    """Return the number of persons with these accounts who may approve a proposal."""
    requester = people.load_person(session, proposal.requester)
    persons: dict[str, Person] = {}
    for account in sorted(accounts):
        person = people.load_person(session, Actor.parse(account))
        persons[person.id] = person
    objections = [policy.find_decision_objection(proposal, person, requester) for person in persons.values()]
    return objections.count(None)
