"""Tables of the audit log: its append-only rows, and its end."""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, UniqueConstraint, event, insert
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import (
    IdType,
    Row,
    make_json_column,
    make_key_numbered_by_nod,
    make_partial_index,
    name_id_column,
    table_of,
)


class AuditRow(Row, table=True):
    """Append-only: one row per change of a proposal, a link of the chain in ``bot/store/audit/chain.py``."""

    __tablename__ = "audit"
    __table_args__ = (UniqueConstraint("proposal_id", "version", name="audit_once"),)

    id: int | None = make_key_numbered_by_nod()
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow))
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
    # the request: on the first row, and where the arguments change
    about: dict[str, Any] | None = make_json_column(nullable=True)
    # the hash of the proposal's row as the change left it
    content: str = Field("", sa_column_kwargs={"server_default": ""})
    previous: str  # the hash of the row before in the chain
    hash: str


class LedgerRow(Row, table=True):
    """Append-only: a row per change of anything but a proposal; see ``bot/store/audit/admin_changes.py``."""

    __tablename__ = "ledger"
    __table_args__ = (
        make_partial_index("ledger_trial", "actor", "at", where="thing = 'trial'"),
        make_partial_index("ledger_context", "key", "person", where="thing = 'context'"),
    )

    id: int | None = make_key_numbered_by_nod()
    at: datetime = Field(sa_type=UTCDateTime)
    thing: str  # the kind of the changed thing: a `Thing`, or a kind of a feature's
    key: str  # the key of the thing within its kind
    tool: str  # the pattern of the tools that the thing is about; empty for none
    verb: str
    actor: str
    person: str
    channel: str
    before: dict[str, Any] | None = make_json_column(nullable=True)
    after: dict[str, Any] | None = make_json_column(nullable=True)
    # the hash of each table row that the change was about, as the change left it
    holds: dict[str, str | None] | None = make_json_column(nullable=True)
    previous: str = Field(unique=True)
    hash: str


class ChainEndRow(Row, table=True):
    """The end of the audit log, in one row, which the next row follows."""

    __tablename__ = "chain_end"

    id: int = Field(primary_key=True)
    number: int = Field(sa_column=Column(IdType, nullable=False))  # the number of the newest row
    hash: str  # the hash of the newest row
    key: str  # the name of the key that sealed the newest row; empty without a key
    mark: str  # a seal over number and hash


@event.listens_for(table_of(ChainEndRow), "after_create")
def _insert_empty_end(table: Any, connection: Connection, **_: Any) -> None:
    """Insert the end of an empty log, as the migration does."""
    connection.execute(insert(table), {"id": 1, "number": 0, "hash": "", "key": "", "mark": ""})
