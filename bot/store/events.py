"""What platforms delivered: kept before it is acknowledged, so that a crash loses nothing.

A channel records an event, acknowledges it, handles it, and marks it handled. What is unhandled at the
next start is handled then; a second delivery of the same event is not recorded again.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from bot.store.engine import insert_or_ignore, insert_or_replace
from bot.store.tables.channels import DialogueRow, EventRow
from bot.store.tables.row import forget


def record(
    session: Session, channel: str, event_id: str, payload: Mapping[str, Any], now: datetime
) -> int | None:
    """Keep the event and return its row id; None when it was delivered before."""
    statement = insert_or_ignore(session, EventRow).values(
        channel=channel, event_id=event_id, payload=dict(payload), received_at=now
    )
    return session.execute(statement.returning(col(EventRow.id))).scalar_one_or_none()


def mark_handled(session: Session, row_id: int, now: datetime) -> None:
    """Keep of an event only that it came: what people said in it is not needed any longer."""
    done = update(EventRow).where(col(EventRow.id) == row_id)
    session.execute(done.values(handled_at=now, payload={}))


def unhandled(session: Session, channel: str) -> list[tuple[int, dict[str, Any]]]:
    """Row id and payload of what was kept and not handled, oldest first."""
    rows = session.exec(
        select(EventRow)
        .where(EventRow.channel == channel, col(EventRow.handled_at).is_(None))
        .order_by(col(EventRow.id))
    )
    return [(row.id or 0, row.payload) for row in rows]


def forget_handled(session: Session, before: datetime, most: int) -> int:
    """Drop up to ``most`` handled events older than any platform's redelivery; returns how many."""
    return forget(session, EventRow, "handled_at", before, most)


def dialogue(session: Session, channel: str, key: str) -> dict[str, Any] | None:
    """What is being asked at ``key``; None when nothing is."""
    row = session.get(DialogueRow, (channel, key))
    return row.state if row else None


def dialogues(session: Session, channel: str, prefix: str) -> dict[str, dict[str, Any]]:
    """Everything that is kept at keys that begin with ``prefix``."""
    rows = session.exec(
        select(DialogueRow).where(DialogueRow.channel == channel, col(DialogueRow.key).startswith(prefix))
    )
    return {row.key: row.state for row in rows}


def keep_dialogue(
    session: Session, channel: str, key: str, state: Mapping[str, Any] | None, now: datetime
) -> None:
    """Remember what is being asked at ``key``; None ends it."""
    if state is not None:
        values = {"channel": channel, "key": key, "state": dict(state), "updated_at": now}
        insert_or_replace(session, DialogueRow, values)
        return
    session.execute(
        delete(DialogueRow).where(col(DialogueRow.channel) == channel, col(DialogueRow.key) == key)
    )
