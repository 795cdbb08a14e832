"""Rules that admins set, and grants."""

from datetime import datetime
from typing import Any

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, as_json, id_of, keys_in_states, make_audited, partial, serial


class RuleRow(Row, table=True):
    """A rule an admin set; ended ones stay as the record of who set and ended what."""

    __tablename__ = "rule"
    __table_args__ = make_audited("rule", find_keys=keys_in_states("rule"))

    id: int | None = serial()
    subject: str
    scope: str
    pattern: str
    value: Any = as_json()
    condition: str | None = None  # on the arguments of a call, as it was said
    who: str | None = None  # an account: only what this Person asks for
    hours: list[str] | None = as_json(nullable=True)  # in the team's time zone, and days of the week
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    set_by: str
    set_at: datetime = Field(sa_type=UTCDateTime)
    ended_by: str | None = None
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)

    @property
    def clock(self) -> list[str]:
        """From when to when it holds on a day; empty for all of it."""
        return [each for each in self.hours or () if ":" in each]

    @property
    def days(self) -> str:
        """On which days of the week it holds; empty for all of them."""
        return "".join(each for each in self.hours or () if ":" not in each)


class BookRow(Row, table=True):
    """The rulebook as a whole: one row. ``memory`` is what recurring tasks remember."""

    __tablename__ = "book"
    __table_args__ = make_audited(
        "pause",
        uncounted=frozenset({"version", "memory"}),  # of a cache, and of recurring tasks
        find_keys=lambda *_: [1],
        counts=lambda row: row["paused_at"] is not None,
    )

    id: int = Field(primary_key=True)
    version: int
    paused_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    memory: dict[str, Any] | None = as_json(nullable=True)


class GrantRow(Row, table=True):
    """Approve similar: a permission born from one decision."""

    __tablename__ = "grant_given"
    __table_args__ = (
        partial(
            "grant_of_tool",
            "tool_name",
            where="revoked_at IS NULL",
        ),
        # how often it was used is counted in the proposals
        make_audited(
            "grant",
            uncounted=frozenset({"uses"}),
            find_keys=lambda label, _: [label.removeprefix("G-")],
        ),
    )

    id: int | None = serial()
    tool_name: str
    tool_version: str
    rung: str
    match: str
    words: str
    person_id: str
    person_name: str
    conversation_id: str
    only_there: bool
    requester: str | None = None  # an account: only this Person's calls
    place: str | None = None  # an address as text: only there
    proposal_id: str = Field(foreign_key=id_of(ProposalRow))
    plan_digest: str | None = None
    schedule: str | None = None
    connection: str | None = None  # the key of the only connection whose calls it lets run
    uses: int = 0
    created_at: datetime = Field(sa_type=UTCDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_by: str | None = None
