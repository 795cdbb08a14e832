"""The table of second opinions that are wanted, or were."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.rule_values import OpinionEffect
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, make_partial_index, name_id_column


class OpinionRow(Row, table=True):
    """A second opinion on one round of a proposal, which counts the proposal's contents.

    ``model`` gives the opinion. ``waits``: the opinion has not come yet, and is not missing either.
    ``due_at``: the time from which it counts as missing. ``taken_until``: a process is asking for it, until
    then at the latest.
    """

    __tablename__ = "opinion"
    __table_args__ = (
        make_partial_index("opinion_waiting", "asked_at", where="waits = 1", postgresql="waits"),
    )

    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    round: int = Field(primary_key=True)
    model: str
    raising: str  # the `effect`
    waits: bool = True
    asked_at: datetime = Field(sa_type=UTCDateTime)
    due_at: datetime = Field(sa_type=UTCDateTime)
    taken_until: datetime | None = Field(default=None, sa_type=UTCDateTime)

    @property
    def effect(self) -> OpinionEffect:
        """The opinions after which one more approval is needed."""
        return OpinionEffect(self.raising)
