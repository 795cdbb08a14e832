"""Bodies about rules, grants, people and the audit log.

A rule can be tried on earlier changes (`TriedBody`). A *spared* change is one about which people would not
have been asked under the rule. The *price* of a rule is the list of the spared changes that people in fact
declined, edited or undid (`PricedView`).

A row of the audit log is about a proposal, or about another thing, such as a rule. `AuditView` has the
columns of both sorts; the columns of the other sort are null.
"""

from typing import Annotated, Any

from pydantic import AliasPath, BeforeValidator, Field

from bot.approvals.lookup.rule_simulation import Effect
from bot.domain.people import Role
from bot.domain.proposal_states import State
from bot.web.body import format_cursor
from bot.web.schemas import DoneBody, Time, View


class RuleView(View):
    id: int
    words: str
    set_by: str
    set_at: Time
    until: Time | None = Field(description="when it ends by itself")
    trouble: str | None = Field(description="why its condition no longer fits a tool, in words")


class GrantView(View):
    """A grant: a permission for similar calls, given with the approval of a proposal."""

    label: Annotated[str, Field(validation_alias=AliasPath("grant", "label"))]
    tool_name: Annotated[str, Field(validation_alias=AliasPath("grant", "scope", "tool_name"))]
    words: str
    given_by: Annotated[str, Field(validation_alias=AliasPath("grant", "person_name"))]
    given_at: Annotated[Time, Field(validation_alias=AliasPath("grant", "created_at"))]
    expires_at: Annotated[Time | None, Field(validation_alias=AliasPath("grant", "expires_at"))]
    uses: Annotated[int, Field(validation_alias=AliasPath("grant", "uses"))]
    proposal_id: str = Field(
        validation_alias=AliasPath("grant", "proposal_id"),
        description="the id of the proposal with whose approval it was given",
    )


class Grants(DoneBody):
    grants: list[GrantView]


class Rules(DoneBody):
    everything: bool = Field(description="false: only the rules and roles that concern you are listed")
    policy: str
    ttl_seconds: float
    paused: bool
    roles: dict[str, list[str]] = Field(description="accounts by role")
    rules: list[RuleView]
    grants: list[GrantView]


class RuleSet(DoneBody):
    id: int | None
    text: str


class PricedView(View):
    """A call that a rule would have spared people, although they declined, edited or undid it."""

    id: str
    tool_name: str
    title: str
    at: Time
    price: str = Field(description="declined, edited or undone")
    by: str | None = Field(description="who declined, edited or undid it")
    reason: str | None


class TriedBody(DoneBody):
    """The effect that a rule would have had on earlier changes.

    - `spared`: people would not have been asked
    - `asked`: people would have been asked in addition
    - `refused`: it could not have been proposed
    - `otherwise`: other people, or another number, would have been asked, or it would have run instead of
      being refused
    """

    rule: str
    looked: int = Field(description="the number of changes that were looked at")
    back_to: Time | None = Field(description="when the oldest of the changes looked at was proposed")
    effects: dict[Effect, int] = Field(description="the number of changes by effect")
    priced: int = Field(description="the number of spared changes that were declined, edited or undone")
    price: list[PricedView] = Field(description="the newest of the changes that `priced` counts")
    next: Annotated[str | None, BeforeValidator(format_cursor)] = Field(
        validation_alias="before", description="the `before` of the next page; null on the last"
    )
    text: str = Field(validation_alias="words", description="the effect of the rule in words")


class RoleView(View):
    role: Role
    since: Time | None = Field(description="null for a role that the settings give")


class AccountView(View):
    account: str
    name: str
    linked_at: Time | None = Field(description="null for an account that is linked with no other")
    roles: list[RoleView]


class AwayView(View):
    """Someone who is away, and who may decide in their place."""

    account: Annotated[str, BeforeValidator(str)] = Field(
        validation_alias="who", description="the account that is away"
    )
    until: Time
    stand_in: Annotated[str, BeforeValidator(str)] = Field(description="the account that may decide")
    name: str = Field(validation_alias=AliasPath("stand_in", "label"), description="the stand-in's name")


class PersonView(View):
    """One person: all their accounts together have one vote, and the roles of each."""

    id: str
    you: bool
    accounts: list[AccountView]
    away: AwayView | None = Field(description="null while they are not away")


class People(DoneBody):
    everyone: bool
    people: list[PersonView]


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
