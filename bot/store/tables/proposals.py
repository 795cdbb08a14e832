"""Tables of proposals: the proposals, their deciders, tool versions, inverse calls, cards and webhooks.

An *inverse* call undoes another one. Most indexes are partial: they hold the rows of some states alone, and a
query uses one only if it has the same condition.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, Index, UniqueConstraint
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.conversations import ConversationRow
from bot.store.tables.row import (
    IdType,
    Row,
    make_json_column,
    make_key_numbered_by_database,
    make_partial_index,
    name_id_column,
)

WAITS = "NOT state <> 'proposed'"
"""The condition of waiting proposals, in a form for which SQLite can only use the index of just these rows.

With ``state = 'proposed'`` SQLite would choose an index over all states, and read and sort all waiting
proposals. PostgreSQL treats both forms alike.
"""
OPEN_QUESTION = "kind = 'question' AND NOT (state <> 'proposed' AND state <> 'approved')"
"""The condition of questions that wait for an answer, or whose answer was not passed on yet."""
TIMED_ACTIONS = ("warn", "remind", "notify", "escalate")
"""The actions on a waiting proposal that have a time of their own, in the column ``ACTION_at``."""


class ProposalRow(Row, table=True):
    """A proposal; `bot.domain.proposals.Proposal` explains each column that has no comment here."""

    __tablename__ = "proposal"
    __table_args__ = (
        Index("proposal_of_conversation", "conversation_id", "message_id"),
        Index("proposal_of_message", "message_id"),
        make_partial_index(
            "proposal_moving",
            "state",
            where="state IN ('approved', 'executing')",
        ),
        make_partial_index(
            "proposal_open_in",
            "conversation_id",
            where="state = 'proposed'",
        ),
        make_partial_index("proposal_question", "owner", where=OPEN_QUESTION),
        make_partial_index("proposal_due", "expires_at", where=WAITS),
        make_partial_index("proposal_waiting", "id", where=WAITS),
        *(
            make_partial_index(
                f"proposal_{action}", f"{action}_at", where=f"{WAITS} AND {action}_at IS NOT NULL"
            )
            for action in TIMED_ACTIONS
        ),
        make_partial_index("proposal_of_agent", "agent", "state", where="agent IS NOT NULL"),
        make_partial_index("proposal_batch", "batch", where="batch IS NOT NULL"),
        make_partial_index("proposal_undo", "undo_until", where="undo_until IS NOT NULL"),
        Index("proposal_recent", "state", "updated_at", "id"),
        Index("proposal_made", "created_at", "id"),
        Index("proposal_made_by", "requester", "created_at", "id"),
        Index("proposal_asked", "requester", "state", "updated_at", "id"),
        make_partial_index("proposal_of_chat", "chat", "tool_name", "created_at", where="chat IS NOT NULL"),
        make_partial_index(
            "proposal_shared_by", "requester", "tool_name", "created_at", where="chat IS NOT NULL"
        ),
    )

    id: str = Field(primary_key=True)
    kind: str
    conversation_id: str = Field(foreign_key=name_id_column(ConversationRow))
    message_id: int = Field(sa_column=Column(IdType, nullable=False))
    call_id: str
    position: int
    tool_name: str
    tool_version: str
    arguments: dict[str, Any] = make_json_column()
    description: str
    preview: list[list[str | bool | None]] = make_json_column()
    level: str
    risk_reason: str
    reason: str
    requester: str
    requester_name: str
    deciders: dict[str, Any] = make_json_column()
    quorum: int
    rule: str
    declines: int = 1
    grant_id: int | None = None
    ttl_seconds: float = 86400.0  # the time that people have to decide
    warn_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    remind_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    remind_every: float | None = None
    escalate_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    escalate_to: str | None = None
    notify_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    steps: list[list[Any]] | None = make_json_column(nullable=True)
    teammate: str = ""
    state: str
    cause: str | None = None
    round: int  # grows with new contents and retries; a button is for one round
    version: int  # grows with each recorded change
    digest: str  # the hash of the call: the tool, its version, the arguments and the account
    idempotency_key: str = Field(unique=True)
    votes: list[list[str | None]] = make_json_column()
    decided_by: str | None = None
    decided_from: str | None = None
    decided_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    decline_reason: str | None = None
    edited_by: str | None = None
    edits: list[list[Any]] | None = make_json_column(nullable=True)
    changed: bool = False
    result: str | None = None
    told: str | None = None  # the result in one sentence for people
    ended_badly: str | None = None
    result_url: str | None = None
    error: str | None = None
    progress: str | None = None
    owner: str | None = None  # id of the process that runs it, or that waits for the answer to a question
    vouched: bool | None = None  # False: no one vouches that the risk is no higher than ``level``
    thing: str | None = None  # the digest of the name of the thing that it changes, once it runs
    trial: dict[str, Any] | None = make_json_column(nullable=True)
    for_real: bool | None = None  # True: people chose to run the call although it was tried
    read_again: list[list[str | bool | None]] | None = make_json_column(nullable=True)
    undo_seconds: float | None = None
    inverse: dict[str, Any] | None = make_json_column(nullable=True)
    undoes: str | None = None
    undone_by: str | None = None
    undone: str | None = None
    undo_until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    batch: str | None = None
    ticked: list[int] | None = make_json_column(nullable=True)  # the steps of a plan that are done
    schedule: str | None = None
    annotations: list[list[Any]] | None = make_json_column(nullable=True)  # lines of features on its card
    # the account under which it runs; NULL: Nod's
    connection: dict[str, Any] | None = make_json_column(nullable=True)
    chat: str | None = None  # the chat in which people see it; NULL: a private one
    agent: str | None = None  # name and label of the agent's token that asked on the requester's behalf
    created_at: datetime = Field(sa_type=UTCDateTime)
    updated_at: datetime = Field(sa_type=UTCDateTime)
    expires_at: datetime = Field(sa_type=UTCDateTime)


class DeciderRow(Row, table=True):
    """An account that a proposal names as a decider, or that voted on it: for searches, not for rights."""

    __tablename__ = "decider"

    account: str = Field(primary_key=True)
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)


class ToolVersionRow(Row, table=True):
    """A tool's JSON schema, kept since the first proposal of that version."""

    __tablename__ = "tool_version"

    name: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    parameters: dict[str, Any] = make_json_column()


class InverseRow(Row, table=True):
    """The arguments of the call that undoes a proposal. They are deleted earlier than the proposal."""

    __tablename__ = "inverse"

    id: str = Field(primary_key=True, foreign_key=name_id_column(ProposalRow))
    conversation_id: str = Field(index=True)
    arguments: dict[str, Any] = make_json_column()
    created_at: datetime = Field(sa_type=UTCDateTime, index=True)


class CopyRow(Row, table=True):
    """A copy of a card: one posted message. It is outdated while ``rendered < wanted``."""

    __tablename__ = "copy"
    __table_args__ = (
        UniqueConstraint("channel", "key", "ref", name="copy_once"),
        Index("copy_of_proposal", "proposal_id"),
        make_partial_index(
            "copy_behind",
            "proposal_id",
            where="rendered < wanted AND gone = 0",
            postgresql="rendered < wanted AND NOT gone",
        ),
    )

    id: int | None = make_key_numbered_by_database()
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow))
    channel: str
    key: str
    ref: str  # the platform's reference to the message
    wanted: int  # counts the changes to show
    rendered: int  # the value of ``wanted`` that was drawn last
    gone: bool = False  # the message can't be edited any longer
    shown: str | None = None  # a digest of the card that was last posted or drawn there


class CallbackRow(Row, table=True):
    """The webhook of a request, to be called when it has ended, and the state of its delivery."""

    __tablename__ = "callback"
    __table_args__ = (
        make_partial_index(
            "callback_open",
            "next_at",
            where="over = 0",
            postgresql="NOT over",
        ),
    )

    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    url: str
    attempts: int = 0
    next_at: datetime = Field(sa_type=UTCDateTime)
    told_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # the time of the delivery
    over: bool = False  # delivered, or given up
    fault: str = ""  # why the last attempt failed

    @property
    def given_up(self) -> bool:
        """True if no one tries again, although the webhook was not delivered."""
        return self.over and self.told_at is None
