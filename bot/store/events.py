"""Incoming events of platforms, stored before they are acknowledged, so that a crash loses nothing.

A channel records an event, acknowledges it, handles it, and marks it handled. An event that is unhandled
at the next start is handled then; a second delivery of the same event is not recorded again.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint, update
from sqlmodel import Field, Session, col, select
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.inserts import insert_new, insert_or_ignore
from bot.store.tables.row import (
    Row,
    delete_older,
    make_json_column,
    make_key_numbered_by_database,
    make_partial_index,
)


class EventRow(Row, table=True):
    """An event that a platform delivered, kept from before it is acknowledged until it is handled."""

    __tablename__ = "event"
    __table_args__ = (
        make_partial_index(
            "event_unhandled",
            "channel",
            "id",
            where="handled_at IS NULL",
        ),
        make_partial_index("event_handled", "handled_at", where="handled_at IS NOT NULL"),
        UniqueConstraint("channel", "event_id", name="event_once"),
    )

    id: int | None = make_key_numbered_by_database()
    channel: str
    event_id: str
    payload: dict[str, Any] = make_json_column()
    received_at: datetime = Field(sa_type=UTCDateTime)
    handled_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


def record(
    session: Session, channel: str, event_id: str, payload: Mapping[str, Any], now: datetime
) -> int | None:
    """Store an event and return the id of its row; None if the event was delivered before."""
    statement = insert_or_ignore(session, EventRow).values(
        channel=channel, event_id=event_id, payload=dict(payload), received_at=now
    )
    return session.execute(statement.returning(col(EventRow.id))).scalar_one_or_none()


def claim_once(session: Session, channel: str, event_id: str, now: datetime, until: datetime) -> bool:
    """Store that an event came, as already handled; return False if it came before.

    ``until``: the time up to which the platform may deliver it again. It is stored as the time at which the
    event was handled, so that `forget_handled` deletes the row only some days after.
    """
    row = {"channel": channel, "event_id": event_id, "payload": {}, "received_at": now, "handled_at": until}
    return insert_new(session, EventRow, row) is not None


def mark_handled(session: Session, row_id: int, now: datetime) -> None:
    """Mark an event as handled and delete its payload, which is not needed any longer."""
    done = update(EventRow).where(col(EventRow.id) == row_id)
    session.execute(done.values(handled_at=now, payload={}))


def list_unhandled(session: Session, channel: str) -> list[tuple[int, dict[str, Any]]]:
    """Return row id and payload of the unhandled events, oldest first."""
    rows = session.exec(
        select(EventRow)
        .where(EventRow.channel == channel, col(EventRow.handled_at).is_(None))
        .order_by(col(EventRow.id))
    )
    return [(row.id or 0, row.payload) for row in rows]


def forget_handled(session: Session, before: datetime, most: int) -> int:
    """Delete up to ``most`` events that were handled before a moment; return how many.

    No platform delivers an event again that is so old.
    """
    return delete_older(session, EventRow, "handled_at", before, most)
