"""Tables of the audit log: its append-only rows, and its end."""

from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, UniqueConstraint, event, insert
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Id, Row, as_json, id_of, make_numbered_key, partial, table_of


class AuditRow(Row, table=True):
    """Append-only: one row per change of a proposal, a link of the chain in ``bot/store/audit/chain.py``.

    ``content`` is the hash of the proposal as the change left it. ``about`` says who asked for what and
    where, on the first row and where the arguments change.
    """

    __tablename__ = "audit"
    __table_args__ = (UniqueConstraint("proposal_id", "version", name="audit_once"),)

    id: int | None = make_numbered_key()
    proposal_id: str = Field(foreign_key=id_of(ProposalRow))
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
    about: dict[str, Any] | None = as_json(nullable=True)
    content: str = Field("", sa_column_kwargs={"server_default": ""})
    previous: str
    hash: str


class LedgerRow(Row, table=True):
    """Append-only: who changed what besides proposals; see ``bot/store/audit/admin_changes.py``.

    ``holds`` has the hash of each row that the change concerned, as the change left it.
    """

    __tablename__ = "ledger"
    __table_args__ = (
        partial("ledger_trial", "actor", "at", where="thing = 'trial'"),
        partial("ledger_context", "key", "person", where="thing = 'context'"),
    )

    id: int | None = make_numbered_key()
    at: datetime = Field(sa_type=UTCDateTime)
    thing: str
    key: str
    tool: str
    verb: str
    actor: str
    person: str
    channel: str
    before: dict[str, Any] | None = as_json(nullable=True)
    after: dict[str, Any] | None = as_json(nullable=True)
    holds: dict[str, str | None] | None = as_json(nullable=True)
    previous: str = Field(unique=True)
    hash: str


class ChainEndRow(Row, table=True):
    """The end of the audit log: the number and hash of its newest row, and the key that sealed it.

    One row.
    """

    __tablename__ = "chain_end"

    id: int = Field(primary_key=True)
    number: int = Field(sa_column=Column(Id, nullable=False))
    hash: str
    key: str
    mark: str


@event.listens_for(table_of(ChainEndRow), "after_create")
def _begin_the_chain(table: Any, connection: Connection, **_: Any) -> None:
    """Insert the end of an empty log, as the migration does."""
    connection.execute(insert(table), {"id": 1, "number": 0, "hash": "", "key": "", "mark": ""})
