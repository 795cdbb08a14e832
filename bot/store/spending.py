"""What models cost in a period, at a place or for a person, as the turns have it."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import func, or_, select
from sqlmodel import Session

from bot.store.tables.conversations import ConversationRow, TurnRow, inside
from bot.store.tables.row import table_of

_TURN, _PLACE = table_of(TurnRow), table_of(ConversationRow)
_SUM = select(func.coalesce(func.sum(_TURN.c.cost), 0.0)).where(_TURN.c.cost.is_not(None))


def since(session: Session, begin: datetime, scope: str, accounts: Collection[str]) -> float:
    """What it cost since then below a place, and wherever one of these accounts asked."""
    found = _SUM.join_from(_TURN, _PLACE, _PLACE.c.id == _TURN.c.conversation_id)
    there = or_(inside(scope), _TURN.c.asker.in_(sorted(accounts)))
    found = found.where(_TURN.c.created_at >= begin, there)
    return float(session.connection().execute(found).scalar_one())


def of_order(session: Session, order: int) -> float:
    """What it cost to answer one line of a person, teammates included."""
    return float(session.connection().execute(_SUM.where(_TURN.c.asked == order)).scalar_one())
