"""Tables of rules that admins set, and of grants that people gave with a decision."""

from datetime import datetime
from typing import Any

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import (
    Row,
    make_audited,
    make_json_column,
    make_key_finder,
    make_key_numbered_by_database,
    make_partial_index,
    name_id_column,
)


class RuleRow(Row, table=True):
    """A rule that an admin set (`bot.domain.rules.Rule`). Ended rules stay, with their authors and times."""

    __tablename__ = "rule"
    __table_args__ = make_audited("rule", find_keys=make_key_finder("rule"))

    id: int | None = make_key_numbered_by_database()
    subject: str
    scope: str
    pattern: str
    value: Any = make_json_column()
    condition: str | None = None  # the condition on the arguments of a call, as an admin wrote it
    who: str | None = None  # an account: the rule is only for requests of its Person
    # the limits on the time, such as 09:00, 17:00 and weekdays: two times of day in the team's time zone, or
    # none, and then a text with the weekdays, if they are limited
    hours: list[str] | None = make_json_column(nullable=True)
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    set_by: str
    set_at: datetime = Field(sa_type=UTCDateTime)
    ended_by: str | None = None
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)

    @property
    def clock(self) -> list[str]:
        """The two times of day between which the rule counts, as ``09:00``; empty for all of the day."""
        return [part for part in self.hours or () if ":" in part]

    @property
    def days(self) -> str:
        """The days of the week on which the rule counts; empty for every day."""
        return "".join(part for part in self.hours or () if ":" not in part)


class BookRow(Row, table=True):
    """The rulebook as one row: its version, which each change of a rule raises, and the pause of Nod."""

    __tablename__ = "book"
    __table_args__ = make_audited(
        "pause",
        unrecorded=frozenset({"version", "memory"}),  # columns of a cache and of recurring tasks
        find_keys=lambda *_: [1],  # the only row
        needs_record=lambda row: row["paused_at"] is not None,
    )

    id: int = Field(primary_key=True)
    version: int
    paused_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    memory: dict[str, Any] | None = make_json_column(nullable=True)  # the state of recurring tasks


class GrantRow(Row, table=True):
    """A grant: a permission for similar calls, which someone gave with the decision of a proposal."""

    __tablename__ = "grant_given"
    __table_args__ = (
        make_partial_index("grant_of_tool", "tool_name", where="revoked_at IS NULL"),
        make_audited(
            "grant",
            unrecorded=frozenset({"uses"}),  # checked by the number of proposals that it approved
            find_keys=lambda label, _: [label.removeprefix("G-")],
        ),
    )

    id: int | None = make_key_numbered_by_database()
    tool_name: str
    tool_version: str
    rung: str  # the `GrantScope`: how similar a call must be
    match: str  # the arguments, or their pattern, that a call must match
    words: str  # the allowed calls in words for people
    person_id: str  # the id of the Person who gave it
    person_name: str
    conversation_id: str  # the conversation in which it was given
    only_there: bool  # it counts only in that conversation
    requester: str | None = None  # an account: it counts only for calls of its Person
    place: str | None = None  # an address as text: it counts only there
    proposal_id: str = Field(foreign_key=name_id_column(ProposalRow))
    plan_digest: str | None = None  # the digest of the plan that gave it: it counts while the plan is current
    schedule: str | None = None  # the id of the schedule whose calls alone it lets run
    connection: str | None = None  # the key of the connection whose calls alone it lets run
    uses: int = 0
    created_at: datetime = Field(sa_type=UTCDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_by: str | None = None
