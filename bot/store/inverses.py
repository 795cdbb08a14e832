"""What would undo a proposal: the arguments of the inverse call, kept under the retention.

What was there before may be long and private, so it is no part of the record: it goes with its conversation.
That it is what was kept is told by the digest in the proposal.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlmodel import Session

from bot.domain.proposals import Proposal
from bot.store.tables.proposals import InverseRow
from bot.store.tables.row import forget, table_of

_INVERSE = table_of(InverseRow)


def keep(session: Session, p: Proposal, arguments: Mapping[str, Any], now: datetime) -> None:
    """Keep the arguments of the call that undoes ``p``; those of an earlier run are replaced."""
    session.execute(delete(_INVERSE).where(_INVERSE.c.id == p.id))
    row = InverseRow(id=p.id, conversation_id=p.conversation_id, arguments=dict(arguments), created_at=now)
    session.add(row)


def arguments_of(session: Session, proposal_id: str) -> Mapping[str, Any] | None:
    """None where none were kept, or no longer."""
    found = select(_INVERSE.c.arguments).where(_INVERSE.c.id == proposal_id)
    return session.execute(found).scalar()


def delete_all(session: Session, conversation_ids: Sequence[str]) -> None:
    """Delete what is kept of these conversations."""
    session.execute(delete(_INVERSE).where(_INVERSE.c.conversation_id.in_(conversation_ids)))


def purge(session: Session, before: datetime, most: int) -> int:
    """Forget up to ``most`` of what was kept before then; returns how many."""
    return forget(session, InverseRow, "created_at", before, most)
