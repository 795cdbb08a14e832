"""Bodies about the audit log.

A row is about a proposal, or about another thing, such as a rule. `AuditView` has the columns of both sorts;
the columns of the other sort are null.
"""

from typing import Any

from pydantic import Field

from bot.domain.proposal_states import State
from bot.web.schemas import DoneBody, View


class AuditView(View):
    """A row of the audit log, about a proposal, or about a `thing` such as a rule."""

    id: int
    at: str
    verb: str = Field(description="what was done")
    actor: str = Field(description="the account of the person who did it, or the part of Nod")
    person: str
    channel: str
    previous: str = Field(description="the hash of the row before it")
    hash: str
    proposal_id: str | None
    version: int | None
    state: State | None
    reason: str | None
    digest: str | None
    rule: str | None
    grant_id: int | None
    tool_name: str | None
    tool_version: str | None
    description: str | None
    requester: str | None
    requester_name: str | None
    place: str | None
    arguments: dict[str, Any] | None
    about: dict[str, Any] | None
    content: str | None = Field(description="the hash of the proposal as the change left it")
    thing: str | None = Field(description="the kind of the thing")
    key: str | None = Field(description="the key of the thing within its kind")
    tool: str | None = Field(description="the tools that the thing is about; may have * and ?")
    before: dict[str, Any] | None = Field(description="the thing as it was")
    after: dict[str, Any] | None = Field(description="the thing as it is")
    holds: dict[str, str | None] | None = Field(
        description="the hash of each stored row of the thing, as the change left it"
    )
    hidden: list[str] | None = Field(description="the columns in which a secret is hidden")


class AuditPage(DoneBody):
    rows: list[AuditView]
    next: int | None


class Verified(DoneBody):
    intact: bool
    faults: list[str]
    anchor: str | None = Field(
        description="the number and the hash of the newest row, to keep outside the database"
    )
