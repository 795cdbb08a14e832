"""The table of codes by which two accounts become one Person (`codes.py`)."""

from datetime import datetime

from sqlalchemy import false
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row


class LinkCodeRow(Row, table=True):
    """A code that is good once, and links another account to the Person of ``actor``; stored as a hash.

    ``other`` is the account that gave the code. ``wanted``: both accounts agreed, and an admin must allow the
    link.
    """

    __tablename__ = "link_code"

    code_hash: str = Field(primary_key=True)
    actor: str
    name: str
    expires_at: datetime = Field(sa_type=UTCDateTime)
    other: str | None = None
    other_name: str = Field("", sa_column_kwargs={"server_default": ""})
    wanted: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
