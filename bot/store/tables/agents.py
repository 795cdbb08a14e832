"""The calls of agents: what each asked for, and the contents of how it ended, which no one else reads."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, as_json, id_of


class AgentCallRow(Row, table=True):
    """A call of an agent that people decide. Its id is 128 random bits, and that of its conversation.

    ``outcome`` holds what the tool answered: the proposal has none of it.
    """

    __tablename__ = "agent_call"
    __table_args__ = (Index("agent_call_same", "agent", "digest", "created_at"),)

    id: str = Field(primary_key=True)
    agent: str
    proposal_id: str = Field(foreign_key=id_of(ProposalRow), unique=True)
    digest: str
    depth: int
    created_at: datetime = Field(sa_type=UTCDateTime, index=True)
    told_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    outcome: dict[str, Any] | None = as_json(nullable=True)
