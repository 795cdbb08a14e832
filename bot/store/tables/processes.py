"""Which processes work on this database, and what one of them does alone."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row


class ProcessRow(Row, table=True):
    """A process that works on this database. One whose row is gone owns nothing: others take it over."""

    __tablename__ = "process"

    id: str = Field(primary_key=True)
    host: str
    pid: int
    began_at: datetime = Field(sa_type=UTCDateTime)
    beats: int = 0


class HoldRow(Row, table=True):
    """What one process at a time may do, by name, such as polling Telegram."""

    __tablename__ = "hold"

    name: str = Field(primary_key=True)
    owner: str
