"""The table of remembered facts."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, make_audited, make_key_numbered_by_database, make_partial_index

FACT = "memory"
"""The name of a fact in the audit log; its key there is its number."""


class MemoryRow(Row, table=True):
    """A fact that people had Nod remember. A forgotten fact is deleted; the audit log has its hash.

    ``about`` says if the fact is about a person, a place or a team. ``scope`` is the account, the address of
    the chat, or the workspace of the team.
    """

    __tablename__ = "memory"
    __table_args__ = (
        Index("memory_of_scope", "about", "scope"),
        make_partial_index("memory_due", "until", where="until IS NOT NULL"),
        {
            "sqlite_autoincrement": True,
            **make_audited(FACT),
        },  # the number of a forgotten fact is never another's
    )

    id: int | None = make_key_numbered_by_database()
    about: str
    scope: str
    fact: str
    asked_by: str
    said_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
