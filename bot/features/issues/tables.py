"""The built-in issue tracker's tables."""

from datetime import datetime

from sqlalchemy import JSON
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row


class IssueRow(Row, table=True):
    """An issue; ``author`` is who asked for it (an Actor's text), ``assignee`` a plain name."""

    __tablename__ = "issue"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: int | None = Field(default=None, primary_key=True)
    title: str
    body: str
    state: str = Field(index=True)
    priority: str
    assignee: str | None = None
    labels: list[str] = Field(sa_type=JSON)
    author: str
    created_at: datetime = Field(sa_type=UTCDateTime)
    updated_at: datetime = Field(sa_type=UTCDateTime)
    idempotency_key: str | None = Field(default=None, unique=True)


class IssueCommentRow(Row, table=True):
    """Something said about an issue."""

    __tablename__ = "issue_comment"

    id: int | None = Field(default=None, primary_key=True)
    issue_number: int = Field(foreign_key="issue.number", index=True)
    body: str
    author: str
    created_at: datetime = Field(sa_type=UTCDateTime)
    idempotency_key: str | None = Field(default=None, unique=True)
