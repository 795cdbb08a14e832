"""The state of a card, as notifications need it: the proposals that wait for a person, and its version.

A card shows one proposal, or a batch of several. It has the id of its first proposal.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, or_
from sqlmodel import Session, col, select

from bot.approvals import rights
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.store import proposals
from bot.store.rules import Policies
from bot.store.tables.proposals import ProposalRow


def list_open(session: Session, card_id: str) -> list[Proposal]:
    """Return the proposals of a card that wait for people."""
    is_open = col(ProposalRow.state) == State.PROPOSED
    ids = session.exec(select(ProposalRow.id).where(_is_on_card(card_id), is_open))
    found = (proposals.get(session, ident) for ident in ids)
    return [proposal for proposal in found if proposal is not None]


def list_decidable(
    session: Session, policies: Policies, open_proposals: Sequence[Proposal], actor: Actor
) -> list[Proposal]:
    """Return those of the proposals that this person may decide and has not voted on."""
    return [
        proposal
        for proposal in open_proposals
        if not _has_voted(session, proposal, actor)
        and rights.find_objection(session, policies, proposal, actor) is None
    ]


def sum_versions(session: Session, card_id: str) -> int:
    """Return the version of a card: the sum over its proposals, which grows with each change of one."""
    version = session.exec(select(func.sum(ProposalRow.version)).where(_is_on_card(card_id))).one()
    return int(version or 0)


def _has_voted(session: Session, proposal: Proposal, actor: Actor) -> bool:
    accounts = rights.list_accounts(session, actor)
    return any(str(vote.actor) in accounts for vote in proposal.votes)


def _is_on_card(card_id: str) -> ColumnElement[bool]:
    return or_(col(ProposalRow.id) == card_id, col(ProposalRow.batch) == card_id)
