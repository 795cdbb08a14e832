"""The approval of owners: a call that runs in a person's name needs a press of that person.

A connection lets a tool use someone's account at a server. A call by a personal connection runs in the name
of the account's person, who is the call's owner. The approvals that the rules ask for are needed as well, and
no role, rule or grant of others replaces the owner's press. Consent to reads under a person's account is in
``bot/approvals/read_consents.py``.
"""

from dataclasses import replace

from sqlmodel import Session

from bot.domain.connections import CONSENT, Connection
from bot.domain.deciders import Deciders
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal, Vote
from bot.domain.verbs import Verb
from bot.domain.verdicts import Judgement, Verdict
from bot.store import people
from bot.store.connections import find_current, is_owner
from bot.store.database import Database

_YES_VERBS = (CONSENT, Verb.APPROVE)  # an owner's vote has one of these, see `votes.approve`
_GONE_TEXT = "{whose} account at {server} is no longer connected."
_CHANGED_TEXT = "{whose} account at {server} is another one since this was asked."
_EXPIRED_TEXT = "{server} no longer accepts the connection of {whose} account."
_RESTING_TEXT = "The account of this chat at {server} rests now. `/nod connections` says why."
_AGAIN = " Connect the same account again, then retry."


def require_owner(verdict: Verdict, connection: Connection | None) -> Verdict:
    """Return the verdict on a write. It asks the owner of the call if the rules would let the call run."""
    if connection is None or not connection.is_personal or verdict.judgement is not Judgement.RUN:
        return verdict
    deciders = Deciders(requester=False, people=(connection.owner,), place=verdict.deciders.place)
    rule = f"what runs as {connection.owner_label} asks them"
    return replace(verdict, judgement=Judgement.ASK, rule_text=rule, deciders=deciders, quorum=1, declines=1)


def lacks_owner(session: Session, proposal: Proposal) -> bool:
    """Tell if a proposal would run in the name of a person who has not approved it.

    All votes of a proposal are for its current contents: a change of the contents deletes earlier votes.
    """
    if proposal.connection is None or not proposal.connection.is_personal:
        return False
    return not any(_is_yes_of_owner(session, proposal, vote) for vote in proposal.votes)


def name_owner(proposal: Proposal) -> str:
    """Return the name of the person in whose name a proposal runs."""
    return proposal.connection.owner_label if proposal.connection else ""


def find_owner(session: Session, proposal: Proposal) -> Person | None:
    """Return the person in whose name a proposal runs; None if it runs in no person's name."""
    if proposal.connection is None or not proposal.connection.is_personal:
        return None
    return people.load_person(session, Actor.parse(proposal.connection.owner, proposal.connection.owner_name))


def find_connection_fault(session: Session, proposal: Proposal) -> str:
    """Return why a proposal can't run with the connection that people saw; empty if it can."""
    if proposal.connection is None:
        return ""
    current = find_current(session, proposal.connection)
    if current is None:
        template = _GONE_TEXT
    elif current.key != proposal.connection.key:
        template = _CHANGED_TEXT
    elif current.is_resting:  # it is not used for now, although it still exists
        return _RESTING_TEXT.format(server=current.server)
    elif current.is_expired:
        template = _EXPIRED_TEXT
    else:
        return ""
    whose = f"{proposal.connection.owner_label}'s"
    return template.format(whose=whose, server=proposal.connection.server) + _AGAIN


async def read_connection_fault(database: Database, proposal: Proposal) -> str:
    """Return the result of `find_connection_fault`, without reading rows if there is no connection."""
    if proposal.connection is None:
        return ""
    return await database.read(find_connection_fault, proposal)


def _is_yes_of_owner(session: Session, proposal: Proposal, vote: Vote) -> bool:
    """Tell if a vote is the owner's own, and not a stand-in's."""
    return (
        vote.verb in _YES_VERBS
        and vote.absent is None
        and is_owner(proposal, people.load_person(session, vote.actor))
    )
