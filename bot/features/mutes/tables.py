"""Kinds of cards that people do not want to be told of for a while, as rows."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, make_audited, serial

MUTE = "mute"
"""The name of a mute in the audit log; its key there is its number."""


class MuteRow(Row, table=True):
    """A tool whose cards a person is not told of until a moment. One that has ended is deleted.

    ``account`` is the one that muted it; it counts for all that are linked with it.
    """

    __tablename__ = "mute"
    __table_args__ = (
        {
            "sqlite_autoincrement": True,
            **make_audited(MUTE),
        },  # the number of an ended one is never another's
    )

    id: int | None = serial()
    account: str = Field(index=True)
    tool_name: str
    set_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime = Field(sa_type=UTCDateTime)
