"""The table of mutes: the tools of whose cards people do not want to be told for a while."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, make_audited, make_key_numbered_by_database

MUTE = "mute"
"""The name of a mute in the audit log; its key there is its number."""


class MuteRow(Row, table=True):
    """A mute: a person is not told of the cards of a tool until a time. A mute that has ended is deleted.

    ``account`` is the account that muted the tool; the mute counts for all accounts that are linked with it.
    """

    __tablename__ = "mute"
    __table_args__ = (
        {
            "sqlite_autoincrement": True,
            **make_audited(MUTE),
        },  # no other mute gets the number of an ended one
    )

    id: int | None = make_key_numbered_by_database()
    account: str = Field(index=True)
    tool_name: str
    set_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime = Field(sa_type=UTCDateTime)
