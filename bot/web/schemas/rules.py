"""Rules, grants, people and the audit log."""

from typing import Annotated, Any

from pydantic import AliasPath, BeforeValidator, Field

from bot.approvals.lookup.past import Effect
from bot.domain.people import Role
from bot.domain.proposals import State
from bot.web.body import cursor
from bot.web.schemas import DoneBody, Time, View


class RuleView(View):
    """``until``: when it ends by itself. ``trouble``: why its condition fits a tool no longer, in words."""

    id: int
    words: str
    set_by: str
    set_at: Time
    until: Time | None
    trouble: str | None


class GrantView(View):
    """``proposal_id``: the decision it was born from."""

    label: Annotated[str, Field(validation_alias=AliasPath("grant", "label"))]
    tool_name: Annotated[str, Field(validation_alias=AliasPath("grant", "scope", "tool_name"))]
    words: str
    given_by: Annotated[str, Field(validation_alias=AliasPath("grant", "person_name"))]
    given_at: Annotated[Time, Field(validation_alias=AliasPath("grant", "created_at"))]
    expires_at: Annotated[Time | None, Field(validation_alias=AliasPath("grant", "expires_at"))]
    uses: Annotated[int, Field(validation_alias=AliasPath("grant", "uses"))]
    proposal_id: Annotated[str, Field(validation_alias=AliasPath("grant", "proposal_id"))]


class Grants(DoneBody):
    grants: list[GrantView]


class Rules(DoneBody):
    """``roles`` are accounts. Only yours, and the rules that concern you, unless it is ``everything``."""

    everything: bool
    policy: str
    ttl_seconds: float
    paused: bool
    roles: dict[str, list[str]]
    rules: list[RuleView]
    grants: list[GrantView]


class RuleSet(DoneBody):
    id: int | None
    text: str


class PricedView(View):
    """A call of which people would not have been asked. ``price``: declined, edited or undone; by whom."""

    id: str
    tool_name: str
    title: str
    at: Time
    price: str
    by: str | None
    reason: str | None


class TriedBody(DoneBody):
    """``looked``: at how many changes; ``back_to``: when the oldest of them was proposed.

    ``effects``: for how many of them people would not have been asked (``spared``), would have been in
    addition (``asked``), could not have been (``refused``), or others would have been (``otherwise``).
    ``priced`` of the spared were declined, edited or undone; ``price`` names the newest. ``next`` is the
    ``before`` of the next page, null on the last. ``text`` says it.
    """

    rule: str
    looked: int
    back_to: Time | None
    effects: dict[Effect, int]
    priced: int
    price: list[PricedView]
    next: Annotated[str | None, Field(validation_alias="before"), BeforeValidator(cursor)]
    text: Annotated[str, Field(validation_alias="words")]


class RoleView(View):
    """``since`` is null for a role that the settings give."""

    role: Role
    since: Time | None


class AccountView(View):
    """``linked_at`` is null for an account that is linked with no other."""

    account: str
    name: str
    linked_at: Time | None
    roles: list[RoleView]


class AwayView(View):
    """Which account is away until when, and the one that may decide in its place, with its name."""

    account: Annotated[str, BeforeValidator(str), Field(validation_alias="who")]
    until: Time
    stand_in: Annotated[str, BeforeValidator(str)]
    name: Annotated[str, Field(validation_alias=AliasPath("stand_in", "label"))]


class PersonView(View):
    """One person: all of these accounts have one vote, and the roles of each.

    ``away``: null while they aren't.
    """

    id: str
    you: bool
    accounts: list[AccountView]
    away: AwayView | None


class People(DoneBody):
    everyone: bool
    people: list[PersonView]


class AuditView(View):
    """One row, about a proposal or about a ``thing`` with its ``key``: what it was and what it is.

    ``previous`` is the hash of the row before it. ``hidden`` names the columns in which a secret is hidden.
    """

    id: int
    at: str
    verb: str
    actor: str
    person: str
    channel: str
    previous: str
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
    content: str | None
    thing: str | None
    key: str | None
    tool: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    holds: dict[str, str | None] | None
    hidden: list[str] | None


class AuditPage(DoneBody):
    rows: list[AuditView]
    next: int | None


class Verified(DoneBody):
    """``anchor``: number and hash of the newest row, to keep outside the database."""

    intact: bool
    faults: list[str]
    anchor: str | None
