"""The tables of attention: the cards that reached people in the last hour, and those held back from people.

In both, ``proposal_id`` is the id of the card: of its only proposal, or of the first of its batch.
"""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, make_partial_index, name_id_column


class ReachedRow(Row, table=True):
    """A card that reached an account in the last hour. Only people named by a rule of attention have rows."""

    __tablename__ = "reached"
    __table_args__ = (Index("reached_lately", "reached_at"),)

    account: str = Field(primary_key=True)
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    reached_at: datetime = Field(sa_type=UTCDateTime)


class HeldRow(Row, table=True):
    """A card that is held back from an account, or was.

    ``place``: a shared chat that has the card, empty without one. ``until``: when the hold ends.
    ``released_at``: when the account was told, NULL while the card is held. ``recorded``: the release is in
    the proposal's history.
    """

    __tablename__ = "held"
    __table_args__ = (
        Index("held_of_card", "proposal_id"),
        make_partial_index("held_now", "account", "until", where="released_at IS NULL"),
        make_partial_index("held_unrecorded", "released_at", where="recorded = 0", postgresql="NOT recorded"),
        make_partial_index("held_recorded", "released_at", where="recorded = 1", postgresql="recorded"),
    )

    account: str = Field(primary_key=True)
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    place: str = ""
    held_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime = Field(sa_type=UTCDateTime)
    released_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    recorded: bool = False
