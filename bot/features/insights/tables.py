"""The tables of notes on how people read the cards that they decide (`reading_notes.py`).

They are filled only if NOD_INSIGHTS is ``people``. A proposal's round is a number that grows when its
contents change, or when it is tried again. ``rounds`` is the sum of the rounds of a card's proposals, so a
note belongs to one state of the card.
"""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import Row, make_key_numbered_by_database


class ShownCopyRow(Row, table=True):
    """A posted copy of a card, at the address ``channel`` and ``key``.

    ``ref`` is the platform's reference to the copy. ``at``: the time from which the copy shows these rounds.
    """

    __tablename__ = "shown_copy"
    __table_args__ = (UniqueConstraint("channel", "ref", name="shown_copy_once"),)

    id: int | None = make_key_numbered_by_database()
    card_id: str = Field(index=True)
    channel: str
    key: str
    ref: str
    rounds: int
    at: datetime = Field(sa_type=UTCDateTime, index=True)


class OpenedCardRow(Row, table=True):
    """A part of a card that an account opened, and the first time it did so in these rounds.

    ``part``: a `CardPart` of ``reading_notes.py``, the full contents or the diff of a trial.
    """

    __tablename__ = "opened_card"
    __table_args__ = (UniqueConstraint("card_id", "account", "rounds", "part", name="opened_card_once"),)

    id: int | None = make_key_numbered_by_database()
    card_id: str
    account: str
    rounds: int
    part: str
    at: datetime = Field(sa_type=UTCDateTime, index=True)


class ReadDecisionRow(Row, table=True):
    """A yes or a no of an account on a proposal, at the time ``at``.

    ``words``: the number of words on its card. ``shown_at``: the time from which the card showed these words
    to the account; NULL: unknown.
    """

    __tablename__ = "read_decision"
    __table_args__ = (UniqueConstraint("proposal_id", "account", "at", name="read_decision_once"),)

    id: int | None = make_key_numbered_by_database()
    proposal_id: str
    account: str
    at: datetime = Field(sa_type=UTCDateTime, index=True)
    rounds: int
    words: int
    shown_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
