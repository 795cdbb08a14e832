"""The table of pages, which are alerts about cards for the people on call."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, make_partial_index, name_id_column


class PageRow(Row, table=True):
    """The page of a card, with the event that is to be sent next, or was sent last.

    ``proposal_id`` is the card's id. ``event`` is a `PageEvent`, ``more`` the number of further proposals on
    the card. ``attempts`` counts the attempts to send the event. ``paged_at``: when the page was opened.
    ``sending_until``: a process is sending the event, until then at the latest. ``is_over``: the event was
    delivered, or given up, and then ``fault`` says why.
    """

    __tablename__ = "page"
    __table_args__ = (
        make_partial_index("page_open", "next_at", where="is_over = 0", postgresql="NOT is_over"),
    )

    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    event: str
    more: int
    attempts: int = 0
    paged_at: datetime = Field(sa_type=UTCDateTime)
    next_at: datetime = Field(sa_type=UTCDateTime)
    sending_until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    is_over: bool = False
    fault: str = ""
