"""The tables of the core: flat rows, times in UTC. Values are made of them in the file of each aggregate."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    UniqueConstraint,
    event,
    false,
    insert,
    literal_column,
    text,
)
from sqlmodel import Field, SQLModel
from sqlmodel.sql.sqltypes import UTCDateTime


class Row(SQLModel):
    """A row of a table. What pydantic would check it with is not built: the database checks."""

    model_config = {"defer_build": True}


_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts only INTEGER PRIMARY KEY by itself


def table_of(row: type[SQLModel]) -> Any:
    """The table behind a class of rows, for statements that are built once."""
    return row.__table__  # type: ignore[attr-defined]


def partial(
    name: str, *columns: str, where: str, postgresql: str | None = None, unique: bool = False
) -> Index:
    """An index of the rows that these words name; a query has to name them by the same words.

    ``postgresql``: its words, where they differ.
    """
    there = text(postgresql or where)
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=there)


def among(column: Any, values: Collection[str]) -> Any:
    """``column IN (…)`` of constants, in the statement's text: a list of parameters is put in at each run."""
    return column.in_([literal_column(f"'{value}'") for value in values])


def changed(done: Any) -> int:
    """How many rows a statement changed."""
    return int(done.rowcount)


def _serial() -> Any:
    return Field(default=None, sa_column=Column(_Id, primary_key=True, autoincrement=True))


def _numbered() -> Any:
    return Field(default=None, sa_column=Column(_Id, primary_key=True, autoincrement=False))


def _json(*, nullable: bool = False) -> Any:
    return Field(default=None, sa_column=Column(JSON(none_as_null=True), nullable=nullable))


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

    id: str = Field(primary_key=True, foreign_key="conversation.id")
    lead_id: str = Field(foreign_key="conversation.id")
    place: str
    name: str
    role: str
    task: str
    tools: list[str] | None = _json(nullable=True)
    needs_plan: bool
    position: int
    asked: int = Field(sa_column=Column(_Id, nullable=False))
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

    lead_id: str = Field(primary_key=True, foreign_key="conversation.id")
    channel: str
    key: str
    ref: str = ""
    wanted: int
    rendered: int = 0
    gone: bool = False


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

    id: int | None = _serial()
    conversation_id: str = Field(foreign_key="conversation.id")
    role: str
    text: str
    after: int | None = None
    actor: str | None = None
    name: str = ""
    channel: str | None = None
    event_id: str | None = None
    calls: list[list[str]] | None = _json(nullable=True)
    results: dict[str, list[Any]] | None = _json(nullable=True)
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
    )

    id: int | None = _serial()
    conversation_id: str = Field(foreign_key="conversation.id")
    state: str
    owner: str = ""  # id of the process that runs it; "" while none does
    attempts: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None
    created_at: datetime = Field(sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class ProcessRow(Row, table=True):
    """A process that works on this database. One whose row is gone owns nothing: others take it over."""

    __tablename__ = "process"

    id: str = Field(primary_key=True)
    host: str
    pid: int
    began_at: datetime = Field(sa_type=UTCDateTime)
    beats: int = 0


class HoldRow(Row, table=True):
    """What one process at a time may do, by name, such as polling Telegram."""

    __tablename__ = "hold"

    name: str = Field(primary_key=True)
    owner: str


WAITS = "NOT state <> 'proposed'"
"""Said like this, SQLite has no choice but the index of exactly these rows: it takes one over all states for
better, and would read and sort everything that waits. To PostgreSQL it is what it means."""
OPEN_QUESTION = "kind = 'question' AND NOT (state <> 'proposed' AND state <> 'approved')"
CALLS = ("warn", "remind", "escalate")


class ProposalRow(Row, table=True):
    """A proposal; see ``bot.domain.proposals.Proposal`` for what each column means."""

    __tablename__ = "proposal"
    __table_args__ = (
        Index("proposal_of_conversation", "conversation_id", "message_id"),
        Index("proposal_of_message", "message_id"),
        partial(
            "proposal_moving",
            "state",
            where="state IN ('approved', 'executing')",
        ),
        partial(
            "proposal_open_in",
            "conversation_id",
            where="state = 'proposed'",
        ),
        partial("proposal_question", "owner", where=OPEN_QUESTION),
        partial("proposal_due", "expires_at", where=WAITS),
        *(
            partial(f"proposal_{what}", f"{what}_at", where=f"{WAITS} AND {what}_at IS NOT NULL")
            for what in CALLS
        ),
        Index("proposal_recent", "state", "updated_at", "id"),
        Index("proposal_asked", "requester", "state", "updated_at", "id"),
    )

    id: str = Field(primary_key=True)
    kind: str
    conversation_id: str = Field(foreign_key="conversation.id")
    message_id: int = Field(sa_column=Column(_Id, nullable=False))
    call_id: str
    position: int
    tool_name: str
    tool_version: str
    arguments: dict[str, Any] = _json()
    description: str
    preview: list[list[str | None]] = _json()
    level: str
    risk_reason: str
    reason: str
    requester: str
    requester_name: str
    deciders: dict[str, Any] = _json()
    quorum: int
    rule: str
    declines: int = 1
    grant_id: int | None = None
    ttl_seconds: float = 86400.0
    warn_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    remind_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    remind_every: float | None = None
    escalate_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    escalate_to: str | None = None
    teammate: str = ""
    state: str
    cause: str | None = None
    round: int
    version: int
    digest: str
    idempotency_key: str = Field(unique=True)
    votes: list[list[str | None]] = _json()
    decided_by: str | None = None
    decided_from: str | None = None
    decided_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    decline_reason: str | None = None
    edited_by: str | None = None
    edits: list[list[Any]] | None = _json(nullable=True)
    changed: bool = False
    result: str | None = None
    told: str | None = None
    ended_badly: str | None = None
    result_url: str | None = None
    error: str | None = None
    progress: str | None = None
    owner: str | None = None  # id of the process that runs it, or that waits for the answer to a question
    created_at: datetime = Field(sa_type=UTCDateTime)
    updated_at: datetime = Field(sa_type=UTCDateTime)
    expires_at: datetime = Field(sa_type=UTCDateTime)


class DeciderRow(Row, table=True):
    """An account that a proposal names as decider, or that voted on it: a way to find it, not a right."""

    __tablename__ = "decider"

    account: str = Field(primary_key=True)
    proposal_id: str = Field(foreign_key="proposal.id", primary_key=True)


class ToolVersionRow(Row, table=True):
    """A tool's JSON schema, kept since the first proposal of that version."""

    __tablename__ = "tool_version"

    name: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    parameters: dict[str, Any] = _json()


class CallbackRow(Row, table=True):
    """Whom to tell when a request has ended, and how far that has come."""

    __tablename__ = "callback"
    __table_args__ = (
        partial(
            "callback_open",
            "next_at",
            where="over = 0",
            postgresql="NOT over",
        ),
    )

    proposal_id: str = Field(foreign_key="proposal.id", primary_key=True)
    url: str
    attempts: int = 0
    next_at: datetime = Field(sa_type=UTCDateTime)
    told_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    over: bool = False
    fault: str = ""


class AuditRow(Row, table=True):
    """Append-only: one row per change of a proposal, a link of the chain in ``bot/store/record/chain.py``.

    ``content`` is the hash of the proposal as the change left it. ``about`` says who asked for what and
    where, on the first row and where the arguments change.
    """

    __tablename__ = "audit"
    __table_args__ = (UniqueConstraint("proposal_id", "version", name="audit_once"),)

    id: int | None = _numbered()
    proposal_id: str = Field(foreign_key="proposal.id")
    version: int
    at: datetime = Field(sa_type=UTCDateTime)
    verb: str
    state: str
    actor: str
    person: str
    channel: str
    reason: str | None = None
    digest: str
    rule: str
    grant_id: int | None = None
    about: dict[str, Any] | None = _json(nullable=True)
    content: str = Field("", sa_column_kwargs={"server_default": ""})
    previous: str
    hash: str


class LedgerRow(Row, table=True):
    """Append-only: who changed what besides proposals; see ``bot/store/record/changes.py``.

    ``holds`` has the hash of each row that the change concerned, as the change left it.
    """

    __tablename__ = "ledger"

    id: int | None = _numbered()
    at: datetime = Field(sa_type=UTCDateTime)
    thing: str
    key: str
    tool: str
    verb: str
    actor: str
    person: str
    channel: str
    before: dict[str, Any] | None = _json(nullable=True)
    after: dict[str, Any] | None = _json(nullable=True)
    holds: dict[str, str | None] | None = _json(nullable=True)
    previous: str = Field(unique=True)
    hash: str


class ChainEndRow(Row, table=True):
    """Where the record ends: the number and hash of its newest row, and which key sealed it. One row."""

    __tablename__ = "chain_end"

    id: int = Field(primary_key=True)
    number: int = Field(sa_column=Column(_Id, nullable=False))
    hash: str
    key: str
    mark: str


@event.listens_for(table_of(ChainEndRow), "after_create")
def _begin_the_chain(table: Any, connection: Connection, **_: Any) -> None:
    """As the migration does it: an empty record has an end, too."""
    connection.execute(insert(table), {"id": 1, "number": 0, "hash": "", "key": "", "mark": ""})


class CopyRow(Row, table=True):
    """Where a card was posted. Behind when ``rendered < wanted``; ``gone`` when it cannot be edited."""

    __tablename__ = "copy"
    __table_args__ = (
        UniqueConstraint("channel", "key", "ref", name="copy_once"),
        Index("copy_of_proposal", "proposal_id"),
        partial(
            "copy_behind",
            "proposal_id",
            where="rendered < wanted AND gone = 0",
            postgresql="rendered < wanted AND NOT gone",
        ),
    )

    id: int | None = _serial()
    proposal_id: str = Field(foreign_key="proposal.id")
    channel: str
    key: str
    ref: str
    wanted: int
    rendered: int
    gone: bool = False
    shown: str | None = None  # a digest of what was last posted or drawn there


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
        UniqueConstraint("channel", "event_id", name="event_once"),
    )

    id: int | None = _serial()
    channel: str
    event_id: str
    payload: dict[str, Any] = _json()
    received_at: datetime = Field(sa_type=UTCDateTime)
    handled_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class DialogueRow(Row, table=True):
    """What a channel is in the middle of asking a person, so that it survives a restart."""

    __tablename__ = "dialogue"

    channel: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    state: dict[str, Any] = _json()
    updated_at: datetime = Field(sa_type=UTCDateTime)


class AccountRow(Row, table=True):
    """An account linked to a Person; an account that is not here is a Person of its own."""

    __tablename__ = "account"

    actor: str = Field(primary_key=True)
    name: str
    person_id: str = Field(index=True)
    linked_at: datetime = Field(sa_type=UTCDateTime)


class NameRow(Row, table=True):
    """What a channel last called an account or a chat; ``key`` is its account or address."""

    __tablename__ = "name"

    key: str = Field(primary_key=True)
    name: str


class LinkCodeRow(Row, table=True):
    """A one-use code that joins another account to the Person of ``actor``; only its hash is kept.

    ``other`` is the account that gave it; ``wanted`` says that both agreed and an admin has to.
    """

    __tablename__ = "link_code"

    code_hash: str = Field(primary_key=True)
    actor: str
    name: str
    expires_at: datetime = Field(sa_type=UTCDateTime)
    other: str | None = None
    other_name: str = Field("", sa_column_kwargs={"server_default": ""})
    wanted: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class RuleRow(Row, table=True):
    """A rule an admin set; ended ones stay as the record of who set and ended what."""

    __tablename__ = "rule"

    id: int | None = _serial()
    subject: str
    scope: str
    pattern: str
    value: Any = _json()
    set_by: str
    set_at: datetime = Field(sa_type=UTCDateTime)
    ended_by: str | None = None
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class TokenRow(Row, table=True):
    """A token of the HTTP interface that was made with ``nod token new``; only its hash is kept."""

    __tablename__ = "token"

    label: str = Field(primary_key=True)  # the part of it that may be told
    name: str
    hash: str
    made_by: str
    made_at: datetime = Field(sa_type=UTCDateTime)
    revoked_by: str | None = None
    revoked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class SignInRow(Row, table=True):
    """A link that signs a browser in (``code``), or the session of one; only its secret's hash is kept."""

    __tablename__ = "sign_in"

    hash: str = Field(primary_key=True)
    account: str = Field(index=True)
    name: str
    code: bool
    expires_at: datetime = Field(sa_type=UTCDateTime)


class BookRow(Row, table=True):
    """The rulebook as a whole: one row. ``memory`` is what recurring tasks remember."""

    __tablename__ = "book"

    id: int = Field(primary_key=True)
    version: int
    paused_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    memory: dict[str, Any] | None = _json(nullable=True)


class GrantRow(Row, table=True):
    """Approve similar: a permission born from one decision."""

    __tablename__ = "grant_given"
    __table_args__ = (
        partial(
            "grant_of_tool",
            "tool_name",
            where="revoked_at IS NULL",
        ),
    )

    id: int | None = _serial()
    tool_name: str
    tool_version: str
    rung: str
    match: str
    words: str
    person_id: str
    person_name: str
    conversation_id: str
    only_there: bool
    requester: str | None = None  # an account: only this Person's calls
    place: str | None = None  # an address as text: only there
    proposal_id: str = Field(foreign_key="proposal.id")
    plan_digest: str | None = None
    uses: int = 0
    created_at: datetime = Field(sa_type=UTCDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_by: str | None = None
