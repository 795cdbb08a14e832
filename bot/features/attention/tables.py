"""The tables of cards that reached people in the last hour, and of those that are held back from them."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, id_of, partial


class ReachedRow(Row, table=True):
    """A card that reached an account, for as long as that counts. Only of people whom a rule names."""

    __tablename__ = "reached"
    __table_args__ = (Index("reached_lately", "reached_at"),)

    account: str = Field(primary_key=True)
    proposal_id: str = Field(foreign_key=id_of(ProposalRow), primary_key=True)
    reached_at: datetime = Field(sa_type=UTCDateTime)


class HeldRow(Row, table=True):
    """A card that is held back from an account until a moment, or was.

    ``place``: a shared chat that has the card, empty without one. ``released_at``: when the account was told.
    ``recorded``: the release is in the proposal's history.
    """

    __tablename__ = "held"
    __table_args__ = (
        Index("held_of_card", "proposal_id"),
        partial("held_now", "account", "until", where="released_at IS NULL"),
        partial("held_unrecorded", "released_at", where="recorded = 0", postgresql="NOT recorded"),
        partial("held_recorded", "released_at", where="recorded = 1", postgresql="recorded"),
    )

    account: str = Field(primary_key=True)
    proposal_id: str = Field(foreign_key=id_of(ProposalRow), primary_key=True)
    place: str = ""
    held_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime = Field(sa_type=UTCDateTime)
    released_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    recorded: bool = False
