"""Tables of conversations: their lines, the turns of the agent in them, and its teammates.

People see a conversation at its own address, but a teammate's conversation at the lead agent's address.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, Index, UniqueConstraint, case, func, true
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.rules import EVERYWHERE
from bot.store.tables.row import (
    IdType,
    Row,
    make_json_column,
    make_key_numbered_by_database,
    make_partial_index,
    name_id_column,
    table_of,
)

_THREAD_SLASHES = 2  # in the address of a thread, as in slack:T1/C2/1.5: a team, a channel, a thread


class ConversationRow(Row, table=True):
    """A conversation at an address; ``/nod new`` ends it and the next message starts another there."""

    __tablename__ = "conversation"
    __table_args__ = (
        make_partial_index(
            "one_open_conversation",
            "channel",
            "key",
            unique=True,
            where="ended_at IS NULL",
        ),
        Index("conversation_of_owner", "channel", "owner", "created_at", "id"),
    )

    id: str = Field(primary_key=True)
    channel: str  # with ``key``, the address
    key: str
    private: bool  # it is in a private chat of one person
    owner: str  # the account that began it
    title: str
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    shown_at: str | None = None  # a teammate's: the address of the lead agent's, which people see
    deleted_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


_PLACES = table_of(ConversationRow)
ADDRESS_SHOWN: Any = func.coalesce(_PLACES.c.shown_at, _PLACES.c.channel + ":" + _PLACES.c.key)
"""The address, as text, where people see a conversation."""
_NO_SLASHES = func.replace(ADDRESS_SHOWN, "/", "")
_IS_THREAD = func.length(ADDRESS_SHOWN) - func.length(_NO_SLASHES) >= _THREAD_SLASHES
# rtrim removes characters of a set from the end: all but slashes, which leaves slack:T1/C2/, then the slash
_WITHOUT_THREAD = func.rtrim(func.rtrim(ADDRESS_SHOWN, _NO_SLASHES), "/")
CHAT_SHOWN: Any = case((_IS_THREAD, _WITHOUT_THREAD), else_=ADDRESS_SHOWN)
"""The chat of `ADDRESS_SHOWN`, as text, like `bot.domain.chat.chat_of` of that address."""


def is_inside(scope: str) -> Any:
    """Return the SQL condition for conversations that people see in a scope, as `bot.domain.rules.covers`.

    A scope is an address with all that is below it, a whole channel such as ``slack:*``, or everywhere. Case
    counts, unlike in LIKE.
    """
    if scope == EVERYWHERE:
        return true()
    below = scope.removesuffix("*") if scope.endswith(":*") else f"{scope}/"
    return (scope == ADDRESS_SHOWN) | (func.substr(ADDRESS_SHOWN, 1, len(below)) == below)


class MessageRow(Row, table=True):
    """One line of a conversation."""

    __tablename__ = "message"
    __table_args__ = (
        Index("message_of_conversation", "conversation_id", "id"),
        UniqueConstraint("channel", "event_id", name="message_once"),
        make_partial_index(
            "message_undelivered",
            "id",
            where="delivered = 0",
            postgresql="NOT delivered",
        ),
        make_partial_index(
            "message_of_person",
            "actor",
            "created_at",
            where="role = 'user'",
        ),
    )

    id: int | None = make_key_numbered_by_database()
    conversation_id: str = Field(foreign_key=name_id_column(ConversationRow))
    role: str  # a `LineRole`
    text: str
    # the id of the last heard line (a person's, or a note) that this line answers or follows; NULL: the
    # line's own id. Lines are ordered by this id, so an answer comes before lines that arrived while the
    # answer was written. For a summary: the last line that it stands for
    after: int | None = None
    actor: str | None = None  # the account that wrote the line, or for which Nod wrote it
    name: str = ""  # the account's name at that time
    channel: str | None = None  # with ``event_id``: unique, so an event that comes twice has one line
    event_id: str | None = None
    calls: list[list[str]] | None = make_json_column(nullable=True)  # id, tool, arguments and summary of each
    # the text and the success of each call, by the call's id
    results: dict[str, list[Any]] | None = make_json_column(nullable=True)
    files: list[str] | None = make_json_column(nullable=True)  # handles (``bot/store/outputs.py``)
    delivered: bool = True
    created_at: datetime = Field(sa_type=UTCDateTime)


class TurnRow(Row, table=True):
    """A turn, one piece of the agent's work. In a conversation, at most one at a time is wanted."""

    __tablename__ = "turn"
    __table_args__ = (
        make_partial_index(
            "one_wanted_turn",
            "conversation_id",
            unique=True,
            where="state = 'wanted'",
        ),
        make_partial_index("turn_to_retry", "retry_at", where="retry_at IS NOT NULL"),
        Index("turn_begun", "created_at"),
        make_partial_index("turn_of_order", "asked", where="cost IS NOT NULL"),
    )

    id: int | None = make_key_numbered_by_database()
    conversation_id: str = Field(foreign_key=name_id_column(ConversationRow))
    # ``wanted`` until it ends; then an `Ending` or ``failed``; or see `bot.store.turns.OTHER_MODEL`
    state: str
    owner: str = ""  # the id of the process that runs it; empty while none does
    attempts: int = 0  # failed attempts since its last answer
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None  # in the currency at that time; NULL where the model has no price
    model: str | None = None  # the model that was asked last
    asker: str | None = None  # the account for which the agent works
    # the id of the person's line that ordered the work
    asked: int | None = Field(default=None, sa_column=Column(IdType, nullable=True))
    error: str | None = None
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    retry_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # the next try after a failure


class TeammateRow(Row, table=True):
    """A teammate, a sub-agent of the lead agent. What it does now follows from other rows."""

    __tablename__ = "teammate"
    __table_args__ = (
        UniqueConstraint("lead_id", "name", name="teammate_once"),
        Index("teammate_place", "place"),
    )

    id: str = Field(primary_key=True, foreign_key=name_id_column(ConversationRow))  # its own conversation's
    # the conversation in which it was started
    lead_id: str = Field(foreign_key=name_id_column(ConversationRow))
    place: str  # the address of that conversation
    name: str
    role: str
    task: str
    tools: list[str] | None = make_json_column(nullable=True)  # NULL: all that the lead agent has
    needs_plan: bool
    position: int  # among the teammates of that conversation
    asked: int = Field(sa_column=Column(IdType, nullable=False))  # the id of the person's line that led to it
    rounds: int = 0  # the number of plans that it submitted
    plan_id: str | None = None  # its newest plan
    standing: str  # a `TeammateState`
    words: str = ""  # its result, or why it ended
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class TeamStatusRow(Row, table=True):
    """The message that shows a conversation's team; ``ref`` is empty until it was posted."""

    __tablename__ = "board"
    __table_args__ = (
        make_partial_index(
            "board_behind",
            "lead_id",
            where="rendered < wanted AND gone = 0",
            postgresql="rendered < wanted AND NOT gone",
        ),
    )

    lead_id: str = Field(primary_key=True, foreign_key=name_id_column(ConversationRow))
    channel: str
    key: str
    ref: str = ""
    wanted: int  # counts the changes to show
    rendered: int = 0  # the value of ``wanted`` that was drawn last
    gone: bool = False  # the message can't be edited any longer
