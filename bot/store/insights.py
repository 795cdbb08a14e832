"""Proposals read for counting: from the newest back, over an index, never more than so many at a time."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import select, true, tuple_
from sqlmodel import Session

from bot.domain.proposals import Mark
from bot.store.tables.conversations import SEEN_AT, ConversationRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

MOST = 50_000  # proposals of one look
_AT_A_TIME = 500
_P, _PLACE = table_of(ProposalRow), table_of(ConversationRow)
_JUDGED = (
    *("id", "kind", "tool_name", "level", "vouched", "requester", "undoes"),
    *("state", "grant_id", "edited_by", "undone_by", "created_at"),
)
_ENDED = ("requester_name", "votes", "decided_at")
_CONDITIONS = ("arguments", "tool_version")


def newest(
    session: Session,
    since: datetime,
    before: Mark | None = None,
    accounts: Collection[str] | None = None,
    *,
    most: int = MOST,
    ended: bool = False,
    arguments: bool = False,
) -> Iterator[Any]:
    """What was proposed since then, newest first: by these accounts, or by anyone.

    ``before`` continues below what stands there. ``ended``: also who decided it, and when. ``arguments``:
    with those of each call, and the version of its tool.
    """
    also = (*(_ENDED if ended else ()), *(_CONDITIONS if arguments else ()))
    found = select(
        *(_P.c[name] for name in (*_JUDGED, *also)),
        SEEN_AT.label("place"),
        _PLACE.c.private,
    ).join_from(_P, _PLACE, _PLACE.c.id == _P.c.conversation_id)
    at = (_P.c.created_at, _P.c.id)
    further: Any = true() if before is None else tuple_(*at) < tuple_(*before)
    whose: Any = true() if accounts is None else _P.c.requester.in_(sorted(accounts))
    found = found.where(at[0] >= since, further, whose).order_by(*(each.desc() for each in at)).limit(most)
    with session.connection().execute(found, execution_options={"yield_per": _AT_A_TIME}) as rows:
        yield from rows
