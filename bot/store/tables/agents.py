"""The table of agents' calls: programs that call tools with a token, for one person.

``bot/store/agent_calls.py`` reads and writes it.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, make_json_column, name_id_column


class AgentCallRow(Row, table=True):
    """A call of an agent that became a proposal."""

    __tablename__ = "agent_call"
    __table_args__ = (Index("agent_call_same", "agent", "digest", "created_at"),)

    id: str = Field(primary_key=True)  # 128 random bits; its conversation has the same id
    agent: str  # `Agent.key`
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), unique=True)
    digest: str  # of the call, to find an equal one
    depth: int  # the number of agents' calls that led to it
    created_at: datetime = Field(sa_type=UTCDateTime, index=True)
    told_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # the agent was told of its end then
    # what the tool said, for the agent and its person alone; the proposal has none of it
    outcome: dict[str, Any] | None = make_json_column(nullable=True)
