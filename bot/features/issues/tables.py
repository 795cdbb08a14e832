"""The tables of the built-in issue tracker: issues and their comments."""

from datetime import datetime

from sqlalchemy import JSON
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row


class IssueRow(Row, table=True):
    """An issue. ``author`` is the account of the person who asked for it, ``assignee`` is plain text."""

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
    """A comment on an issue. ``author`` is the account of the person who asked for it."""

    __tablename__ = "issue_comment"

    id: int | None = Field(default=None, primary_key=True)
    issue_number: int = Field(foreign_key="issue.number", index=True)
    body: str
    author: str
    created_at: datetime = Field(sa_type=UTCDateTime)
    idempotency_key: str | None = Field(default=None, unique=True)
