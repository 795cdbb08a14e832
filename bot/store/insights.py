"""Proposals read for counting: from the newest back, over an index, never more than so many at a time."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select, true, tuple_
from sqlmodel import Session

from bot.domain.proposals import Mark
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

MOST = 100_000  # proposals of one look
_AT_A_TIME = 2000
_P, _PLACE = table_of(ProposalRow), table_of(ConversationRow)
_COLUMNS = (
    *(
        "id",
        "kind",
        "tool_name",
        "level",
        "vouched",
        "requester",
        "requester_name",
        "state",
        "cause",
        "undoes",
    ),
    *("grant_id", "votes", "decided_by", "decided_at", "edited_by", "undone_by", "created_at"),
)
_FOUND = select(
    *(_P.c[name] for name in _COLUMNS),
    func.coalesce(_PLACE.c.shown_at, _PLACE.c.channel + ":" + _PLACE.c.key).label("place"),
    _PLACE.c.private,
).join_from(_P, _PLACE, _PLACE.c.id == _P.c.conversation_id)


def newest(
    session: Session,
    since: datetime,
    before: Mark | None = None,
    accounts: Collection[str] | None = None,
    most: int = MOST,
) -> Iterator[Row[Any]]:
    """What was proposed since then, newest first: by these accounts, or by anyone; ``before`` continues."""
    at = (_P.c.created_at, _P.c.id)
    further: Any = true() if before is None else tuple_(*at) < tuple_(*before)
    whose: Any = true() if accounts is None else _P.c.requester.in_(sorted(accounts))
    found = _FOUND.where(_P.c.created_at >= since, further, whose)
    found = found.order_by(*(each.desc() for each in at)).limit(most)
    return iter(session.connection().execute(found, execution_options={"yield_per": _AT_A_TIME}))
