"""The tables of how people read what they decide, kept where insights go by people."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, serial


class ShownCopyRow(Row, table=True):
    """A posted card, and since when it shows what it shows now. ``rounds``: the sum over its proposals."""

    __tablename__ = "shown_copy"
    __table_args__ = (UniqueConstraint("channel", "ref", name="shown_copy_once"),)

    id: int | None = serial()
    card_id: str = Field(index=True)
    channel: str
    key: str
    ref: str
    rounds: int
    at: datetime = Field(sa_type=UTCDateTime, index=True)


class OpenedCardRow(Row, table=True):
    """A card of which a person opened *View all*, or the trial's diff, for the first time in these rounds."""

    __tablename__ = "opened_card"
    __table_args__ = (UniqueConstraint("card_id", "account", "rounds", "part", name="opened_card_once"),)

    id: int | None = serial()
    card_id: str
    account: str
    rounds: int
    part: str
    at: datetime = Field(sa_type=UTCDateTime, index=True)


class ReadDecisionRow(Row, table=True):
    """A yes or a no: how many words were shown of the proposal, and since when; NULL: not known."""

    __tablename__ = "read_decision"
    __table_args__ = (UniqueConstraint("proposal_id", "account", "at", name="read_decision_once"),)

    id: int | None = serial()
    proposal_id: str
    account: str
    at: datetime = Field(sa_type=UTCDateTime, index=True)
    rounds: int
    words: int
    shown_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
