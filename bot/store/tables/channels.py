"""What channels keep: what a platform delivered, and what a person is being asked."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, as_json, partial, serial


class NoticeRow(Row, table=True):
    """Something of Nod's own that wants to be posted: deleted once it was, or never can be."""

    __tablename__ = "notice"
    __table_args__ = (Index("notice_due", "next_at"),)

    id: int | None = serial()
    channel: str
    key: str
    instead: str = ""  # the address to try where this one refuses for good
    proposal_id: str | None = None  # what it is about; without a text its card is what is posted
    text: str = ""
    tries: int = 0
    created_at: datetime = Field(sa_type=UTCDateTime)
    next_at: datetime = Field(sa_type=UTCDateTime)


class EventRow(Row, table=True):
    """Something a platform delivered, kept from before it is acknowledged until it is handled."""

    __tablename__ = "event"
    __table_args__ = (
        partial(
            "event_unhandled",
            "channel",
            "id",
            where="handled_at IS NULL",
        ),
        partial("event_handled", "handled_at", where="handled_at IS NOT NULL"),
        UniqueConstraint("channel", "event_id", name="event_once"),
    )

    id: int | None = serial()
    channel: str
    event_id: str
    payload: dict[str, Any] = as_json()
    received_at: datetime = Field(sa_type=UTCDateTime)
    handled_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class DialogueRow(Row, table=True):
    """What a channel is in the middle of asking a person, so that it survives a restart."""

    __tablename__ = "dialogue"

    channel: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    state: dict[str, Any] = as_json()
    updated_at: datetime = Field(sa_type=UTCDateTime)
