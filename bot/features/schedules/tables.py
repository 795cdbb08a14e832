"""The table of schedules, which are tasks that the agent does at set times."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.conversations import ConversationRow
from bot.store.tables.row import Row, make_audited, make_partial_index, name_id_column

SCHEDULE = "schedule"
"""The name of a schedule in the audit log; its key there is its id."""
LIVE = "ended_at IS NULL AND paused_at IS NULL"
"""The condition for schedules that are neither paused nor ended, as the partial indexes have it."""


class ScheduleRow(Row, table=True):
    """A schedule; see `schedule.Schedule` for the columns. ``id`` is the id of the proposal that made it.

    ``repeats`` is `Times.every`. The rows of ended schedules stay, as a record.
    """

    __tablename__ = "schedule"
    __table_args__ = (
        make_partial_index("schedule_due", "due_at", where=f"{LIVE} AND due_at IS NOT NULL"),
        make_partial_index(
            "schedule_follows", "follows", where=f"{LIVE} AND follows IS NOT NULL AND runs = 0"
        ),
        make_partial_index("schedule_of_person", "person", where="ended_at IS NULL"),
        make_partial_index("schedule_last", "last_at", where="ended_at IS NULL"),
        make_partial_index("schedule_in", "conversation_id", where="ended_at IS NULL"),
        # ``unrecorded`` columns change without a row in the audit log: the conversation records the runs
        make_audited(SCHEDULE, unrecorded=frozenset({"due_at", "runs", "ran_for", "last_at", "spent"})),
    )

    id: str = Field(primary_key=True)
    conversation_id: str = Field(foreign_key=name_id_column(ConversationRow))
    person: str
    name: str
    task: str
    start: datetime | None = Field(default=None, sa_type=UTCDateTime)
    repeats: str
    zone: str
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    follows: str | None = None
    created_at: datetime = Field(sa_type=UTCDateTime)
    due_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    runs: int = 0
    ran_for: datetime | None = Field(default=None, sa_type=UTCDateTime)
    last_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    spent: int = 0
    paused_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    ended_by: str = ""
    why: str = ""
