"""The table of codes by which accounts become one Person."""

from datetime import datetime

from sqlalchemy import false
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row


class LinkCodeRow(Row, table=True):
    """A one-use code that joins another account to the Person of ``actor``; only its hash is kept.

    ``other`` is the account that gave it; ``wanted`` says that both agreed and an admin has to.
    """

    __tablename__ = "link_code"

    code_hash: str = Field(primary_key=True)
    actor: str
    name: str
    expires_at: datetime = Field(sa_type=UTCDateTime)
    other: str | None = None
    other_name: str = Field("", sa_column_kwargs={"server_default": ""})
    wanted: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
