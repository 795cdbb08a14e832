"""Teammates, and the one message that shows a conversation's team."""

from datetime import datetime

from sqlalchemy import Column, Index, UniqueConstraint
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.conversations import ConversationRow
from bot.store.tables.row import Id, Row, as_json, id_of, partial


class TeammateRow(Row, table=True):
    """A sub-agent; its ``id`` is that of its conversation. What it does now follows from other rows.

    ``position`` counts those of one conversation; ``asked`` is the id of the person's line on which it was
    started.
    """

    __tablename__ = "teammate"
    __table_args__ = (
        UniqueConstraint("lead_id", "name", name="teammate_once"),
        Index("teammate_place", "place"),
    )

    id: str = Field(primary_key=True, foreign_key=id_of(ConversationRow))
    lead_id: str = Field(foreign_key=id_of(ConversationRow))
    place: str
    name: str
    role: str
    task: str
    tools: list[str] | None = as_json(nullable=True)
    needs_plan: bool
    position: int
    asked: int = Field(sa_column=Column(Id, nullable=False))
    rounds: int = 0
    plan_id: str | None = None
    standing: str
    words: str = ""
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class TeamStatusRow(Row, table=True):
    """The one message that shows a conversation's team; ``ref`` is empty until it was posted."""

    __tablename__ = "board"
    __table_args__ = (
        partial(
            "board_behind",
            "lead_id",
            where="rendered < wanted AND gone = 0",
            postgresql="rendered < wanted AND NOT gone",
        ),
    )

    lead_id: str = Field(primary_key=True, foreign_key=id_of(ConversationRow))
    channel: str
    key: str
    ref: str = ""
    wanted: int
    rendered: int = 0
    gone: bool = False
