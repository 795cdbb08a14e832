"""What turns cost, added up from their rows."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import func, literal_column, select
from sqlmodel import Session

from bot.domain.usage import Parts, Used
from bot.store.tables.conversations import ConversationRow, TurnRow
from bot.store.tables.row import table_of

_TURN, _PLACE = table_of(TurnRow), table_of(ConversationRow)
_MOST = 1000  # parts of one answer


def of(session: Session, by: Parts, since: datetime, accounts: Collection[str] | None) -> list[Used]:
    """What was used since then in the conversations of these accounts (None: of all).

    The newest day comes first; of other parts the one with the most tokens.
    """
    sums = [func.sum(_TURN.c[name]) for name in ("model_calls", "prompt_tokens", "completion_tokens")]
    at = _TURN.c.created_at
    if session.connection().dialect.name == "postgresql":
        at = func.timezone(literal_column("'UTC'"), at)  # a value would be another one each time it is given
    day = func.date(at)
    key, name, first = {
        Parts.DAY: (day, None, day.desc()),
        Parts.CONVERSATION: (_PLACE.c.id, func.max(_PLACE.c.title), func.sum(_TURN.c.prompt_tokens).desc()),
        Parts.ACCOUNT: (_PLACE.c.owner, None, func.sum(_TURN.c.prompt_tokens).desc()),
    }[by]
    columns = [key, *([name] if name is not None else []), func.count(), *sums]
    found = select(*columns).join_from(_TURN, _PLACE, _PLACE.c.id == _TURN.c.conversation_id)
    found = found.where(_TURN.c.created_at >= since).group_by(key).order_by(first, key).limit(_MOST)
    if accounts is not None:
        found = found.where(_PLACE.c.owner.in_(accounts))
    rows = session.connection().execute(found).all()
    return [Used(str(row[0]), row[1] if name is not None else "", *row[-4:]) for row in rows]
