"""Conversations, what was said in them, and the turns of the agent there."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, as_json, id_of, partial, serial


class ConversationRow(Row, table=True):
    """A conversation at an address; ``/nod new`` ends it and the next message starts another there."""

    __tablename__ = "conversation"
    __table_args__ = (
        partial(
            "one_open_conversation",
            "channel",
            "key",
            unique=True,
            where="ended_at IS NULL",
        ),
        Index("conversation_of_owner", "channel", "owner", "created_at", "id"),
    )

    id: str = Field(primary_key=True)
    channel: str
    key: str
    private: bool
    owner: str
    title: str
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    shown_at: str | None = None
    deleted_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class MessageRow(Row, table=True):
    """One entry of a conversation.

    ``role``: user (a person), note (Nod tells the model), assistant, notice (Nod tells people only).
    ``after`` is the id of the last user or note the entry answers: history is ordered by it, so an answer
    stands before what came while it was written. ``calls`` holds [id, tool, arguments, summary] lists,
    ``results`` [text, ok] by call id.
    """

    __tablename__ = "message"
    __table_args__ = (
        Index("message_of_conversation", "conversation_id", "id"),
        UniqueConstraint("channel", "event_id", name="message_once"),
        partial(
            "message_undelivered",
            "id",
            where="delivered = 0",
            postgresql="NOT delivered",
        ),
        partial(
            "message_of_person",
            "actor",
            "created_at",
            where="role = 'user'",
        ),
    )

    id: int | None = serial()
    conversation_id: str = Field(foreign_key=id_of(ConversationRow))
    role: str
    text: str
    after: int | None = None
    actor: str | None = None
    name: str = ""
    channel: str | None = None
    event_id: str | None = None
    calls: list[list[str]] | None = as_json(nullable=True)
    results: dict[str, list[Any]] | None = as_json(nullable=True)
    delivered: bool = True
    created_at: datetime = Field(sa_type=UTCDateTime)


class TurnRow(Row, table=True):
    """One piece of agent work; at most one per conversation is ``wanted`` at a time."""

    __tablename__ = "turn"
    __table_args__ = (
        partial(
            "one_wanted_turn",
            "conversation_id",
            unique=True,
            where="state = 'wanted'",
        ),
        partial("turn_to_retry", "retry_at", where="retry_at IS NOT NULL"),
    )

    id: int | None = serial()
    conversation_id: str = Field(foreign_key=id_of(ConversationRow))
    state: str
    owner: str = ""  # id of the process that runs it; "" while none does
    attempts: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    retry_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # of one that failed and may pass
