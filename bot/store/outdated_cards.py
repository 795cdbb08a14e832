"""The cards that a change of a proposal makes outdated, found and marked in the transaction of the change.

A change shows on up to three cards:

- the card of the proposal
- the card of its batch, which has the id of the batch's first proposal
- the card with the buttons for all proposals of one answer: the first card of a proposal in no batch

A *copy* is a posted card, outdated while ``rendered < wanted`` (``bot/store/posted_cards.py``).
"""

from typing import Any

from sqlalchemy import bindparam, exists, func, update
from sqlmodel import Session, select

from bot.domain.proposals import Proposal
from bot.store.tables.proposals import CopyRow, ProposalRow
from bot.store.tables.row import count_changed, table_of

_COPIES = table_of(CopyRow)
_CARD = table_of(ProposalRow).alias("card")  # the proposal that gives a card its id
_SINGLE = table_of(ProposalRow).alias("first")  # the proposals of the answer that are in no batch

_FIRST_POSITION = (
    select(func.min(_SINGLE.c.position))
    .where(_SINGLE.c.message_id == bindparam("card_message"), _SINGLE.c.batch.is_(None))
    .scalar_subquery()
)
_CARD_IDS = select(_CARD.c.id).where(
    _CARD.c.message_id == bindparam("card_message"),
    _CARD.c.id.in_((bindparam("changed_id"), bindparam("card_batch")))
    | (_CARD.c.position == _FIRST_POSITION),
)
_HAS_CARD = _COPIES.c.proposal_id.in_(_CARD_IDS)

IS_POSTED = exists().where(_HAS_CARD).label("is_posted")
"""A column for the UPDATE of a proposal: a card that shows the change is posted.

`make_card_parameters` returns the parameters.
"""
_MARK_OUTDATED = update(_COPIES).where(_HAS_CARD).values(wanted=_COPIES.c.wanted + 1)
_OUTDATED_IDS_KEY = "cards behind"
"""The key of a session's ``info`` for the ids of proposals whose posted cards this transaction outdated."""


def make_card_parameters(proposal: Proposal) -> dict[str, Any]:
    """Return the parameters of `IS_POSTED` for a change of a proposal."""
    return {"changed_id": proposal.id, "card_message": proposal.message_id, "card_batch": proposal.batch}


def mark_cards_outdated(session: Session, proposal: Proposal) -> None:
    """Mark the posted cards that show a change of a proposal as outdated."""
    marked = session.connection().execute(_MARK_OUTDATED, make_card_parameters(proposal))
    if count_changed(marked):
        session.info.setdefault(_OUTDATED_IDS_KEY, set()).add(proposal.id)


def has_outdated_cards(session: Session, proposal: Proposal) -> bool:
    """Return whether a change of a proposal in this transaction has outdated a posted card."""
    return proposal.id in session.info.get(_OUTDATED_IDS_KEY, ())
