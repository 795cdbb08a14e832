"""Responses on status: who you are, what there is, what it cost, and if Nod is up."""

from typing import Annotated, Any, Literal

from pydantic import AliasPath, BeforeValidator, Field

from bot.domain.people import Role
from bot.web.schemas import DoneBody, Time, View


class HeardView(View):
    """A chat platform. ``heard_seconds_ago`` is null before it was first heard; ``fault`` may be empty."""

    name: str
    heard_seconds_ago: int | None
    fault: str


class ModelView(View):
    """A language model, by its name here. ``fault`` is empty while it answers."""

    name: str
    fault: str


class McpHealthView(View):
    """An MCP server, by its name here. ``fault`` is empty while it is up."""

    name: str
    fault: str


class HealthBody(DoneBody):
    """``channels`` are the chat platforms. ``model_fault``: that a language model gives no answers."""

    model_fault: str
    models: list[ModelView]
    channels: list[HeardView]
    mcp_servers: list[McpHealthView]


class SignInWays(DoneBody):
    """``organisation``: whose accounts people may sign in with."""

    organisation: str | None


class PauseView(View):
    since: Time
    by: str


class Me(DoneBody):
    """``accounts``: yours in all channels. ``roles``: those that you have everywhere.

    ``connections``: accounts can be connected here. ``insights``: they are on. ``push``: devices can be
    notified. ``voice``: recordings are heard. ``session``: this browser brought the cookie of a sign-in, and
    no token.
    """

    name: str
    account: str
    accounts: list[str]
    roles: list[Role]
    model: str
    demo: bool
    admin: bool
    insights: bool
    voice: bool
    connections: bool
    push: bool
    notice: str
    paused: PauseView | None
    session: bool


class ToolView(View):
    """A tool as people and programs see it.

    ``risk``: read, write, destructive, or *by its use* where that depends on the arguments. ``untold``: what
    of it no model is told. ``refused_by``: models that do without it, since their server refuses it, and why.
    """

    name: str
    group: str
    description: str
    risk: Annotated[str, Field(validation_alias="harm")]
    offered: bool
    parameters: Annotated[dict[str, Any], Field(validation_alias="form")]
    untold: tuple[str, ...] = ()
    refused_by: tuple[str, ...] = ()


class Tools(DoneBody):
    tools: list[ToolView]


class SettingView(View):
    """A setting. ``value``: as it is written in `.env`, null for a secret. ``given``: it was set."""

    name: str
    value: str | None
    secret: bool
    given: bool


class SettingList(DoneBody):
    settings: list[SettingView]


class ActiveLineView(View):
    """One thing that is on. ``set_by``: who set it, or the setting that did; then ``set_at`` is null.

    ``rule``: the number of the rule that it is, or null.
    """

    words: str
    set_by: str
    set_at: Time | None
    rule: int | None


class ActivePartView(View):
    """A part of Nod with what of it is on. ``left_out``: how many lines are not listed."""

    name: str
    lines: list[ActiveLineView]
    left_out: int


class ActiveParts(DoneBody):
    parts: list[ActivePartView]


class FindingView(View):
    """What was found about one thing. ``fix``: what to do, or what is worth knowing where all is well."""

    name: str
    health: Annotated[Literal["ok", "warn", "fail"], BeforeValidator(str.lower)]
    fix: str


class Findings(DoneBody):
    """What `nod doctor` found. ``fault``: why it couldn't look; else it is empty."""

    at: Time
    findings: list[FindingView]
    fault: str


class Spent(View):
    """The cost of turns; tokens as the model server told them. ``cost``: null where no model has a price."""

    turns: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class UsageView(Spent):
    """``key``: a day, an id, an account, a place or a model; ``name`` what people call it, if they do."""

    key: str
    name: str


class BudgetView(View):
    """The use of a budget. ``until``: when its next period begins."""

    rule: Annotated[int, Field(validation_alias=AliasPath("use", "rule", "id"))]
    words: str
    limit: Annotated[float, Field(validation_alias=AliasPath("use", "limit"))]
    spent: Annotated[float, Field(validation_alias=AliasPath("use", "spent"))]
    until: Annotated[Time, Field(validation_alias=AliasPath("use", "until"))]


class Usages(DoneBody):
    """``plots``: ``cost`` and ``tokens`` by part as SVG, of the largest parts or the newest days."""

    since: Time
    everyone: bool
    currency: str
    total: Spent
    parts: list[UsageView]
    plots: dict[str, str]
    budgets: list[BudgetView]


class McpSignInView(View):
    """``wanted``: scopes that the server asked for since; sign in again to allow them."""

    signed_in: bool
    by: str | None
    at: Time | None
    wanted: str


class McpServerView(View):
    """``trouble``: why it is unavailable, or null. ``said``: its last words on stderr, if it is down.

    ``left_out``: what of its list is not offered, and why. ``sign_in`` is null where people don't sign in.
    """

    name: str
    trouble: str | None
    said: str
    tools: int
    left_out: str
    sign_in: McpSignInView | None


class McpServers(DoneBody):
    servers: list[McpServerView]


class LoginBegun(DoneBody):
    id: str
    url: str


class LoginEnded(DoneBody):
    text: str | None
