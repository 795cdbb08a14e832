"""Facts that Nod remembers, as rows."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, make_audited, partial, serial

FACT = "memory"
"""The name of a fact in the audit log; its key there is its number."""


class MemoryRow(Row, table=True):
    """A fact that people had Nod remember; ``scope`` is the account, chat or workspace that it is for.

    One that is forgotten is deleted, and the audit log keeps its hash.
    """

    __tablename__ = "memory"
    __table_args__ = (
        Index("memory_of_scope", "about", "scope"),
        partial("memory_due", "until", where="until IS NOT NULL"),
        {
            "sqlite_autoincrement": True,
            **make_audited(FACT),
        },  # the number of a forgotten fact is never another's
    )

    id: int | None = serial()
    about: str
    scope: str
    fact: str
    asked_by: str
    said_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
