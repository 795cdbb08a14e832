"""Bodies about the state of Nod: who the caller is, what there is, what it cost, and if Nod is up."""

from typing import Annotated, Any, Literal

from pydantic import AliasPath, BeforeValidator, Field

from bot.domain.people import Role
from bot.web.schemas import DoneBody, Time, View


class HeardView(View):
    """The health of a chat platform."""

    name: str
    heard_seconds_ago: int | None = Field(description="since its last sign of life; null before the first")
    fault: str = Field(description="why it does not work; empty while it does")


class ModelView(View):
    """The health of a language model."""

    name: str = Field(description="its name here")
    fault: str = Field(description="says that it gives no answers; empty while it does")


class McpHealthView(View):
    """The health of an MCP server."""

    name: str = Field(description="its name here")
    fault: str = Field(description="says that it is unavailable; empty while it is up")


class HealthBody(DoneBody):
    model_fault: str = Field(description="says that a language model gives no answers; empty while all do")
    models: list[ModelView]
    channels: list[HeardView] = Field(description="the chat platforms")
    mcp_servers: list[McpHealthView]


class SignInWays(DoneBody):
    organisation: str | None = Field(description="with whose accounts people may sign in")


class PauseView(View):
    """A pause, in which nothing runs and no proposal expires."""

    since: Time
    by: str = Field(description="the name of the person who paused Nod")


class Me(DoneBody):
    """The caller, and the parts of Nod that are on here."""

    name: str
    account: str
    accounts: list[str] = Field(description="yours in all channels")
    roles: list[Role] = Field(description="those that you have everywhere")
    model: str = Field(description="the name of the language model that answers by default")
    demo: bool = Field(description="this Nod is a demo")
    admin: bool = Field(description="you are an admin")
    insights: bool = Field(description="insights are on")
    voice: bool = Field(description="recordings are transcribed")
    connections: bool = Field(description="accounts can be connected here")
    push: bool = Field(description="devices can be notified")
    notice: str = Field(
        description="a remark for everyone, such as that a demo model answers; empty for none"
    )
    paused: PauseView | None = Field(description="null while Nod is not paused")
    session: bool = Field(description="this browser brought the cookie of a sign-in, and no token")


class ToolView(View):
    """A tool as people and programs see it."""

    name: str
    group: str
    description: str
    risk: str = Field(
        validation_alias="risk_label",
        description="read, write, destructive, or *by its use* where that depends on the arguments",
    )
    offered: bool = Field(description="models are offered it; other tools are for parts of Nod alone")
    parameters: Annotated[dict[str, Any], Field(validation_alias="form")]
    untold: tuple[str, ...] = Field((), description="the parts of the tool that no model is told of")
    refused_by: tuple[str, ...] = Field(
        (), description="the models whose servers refuse the tool, each with the server's reason"
    )


class Tools(DoneBody):
    tools: list[ToolView]


class SettingView(View):
    name: str
    value: str | None = Field(description="as it is written in `.env`; null for a secret")
    secret: bool
    given: bool = Field(description="it was set")


class SettingList(DoneBody):
    settings: list[SettingView]


class ActiveLineView(View):
    """One thing that is on."""

    words: str = Field(validation_alias="text")
    set_by: str = Field(description="the person who set it, or the setting that did")
    set_at: Time | None = Field(description="null for a setting")
    rule: int | None = Field(description="its number, if it is a rule")


class ActivePartView(View):
    """A part of Nod, with the things of that part that are on."""

    name: str
    lines: list[ActiveLineView]
    left_out: int = Field(description="how many lines are not listed")


class ActiveParts(DoneBody):
    parts: list[ActivePartView]


class FindingView(View):
    """The result of one check."""

    name: str
    health: Annotated[Literal["ok", "warn", "fail"], BeforeValidator(str.lower)]
    fix: str = Field(description="what to do, or what is worth knowing where all is well")


class Findings(DoneBody):
    """The results of `nod doctor`."""

    at: Time
    findings: list[FindingView]
    fault: str = Field(description="why it couldn't look; else empty")


class Spent(View):
    """The cost of turns; tokens are as the model's server counts them."""

    turns: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = Field(description="null where no model has a price")


class UsageView(Spent):
    """The cost of one part of the usage: of one day, conversation, account, place or model."""

    key: str = Field(description="the part: a day, an id, an account, a place or a model")
    name: str = Field(description="what people call it; empty if it has no name")


class BudgetView(View):
    """The use of a budget, which a rule sets."""

    # made of a `BudgetInWords`: its field ``use`` has the rule, the limit and the amount spent
    rule: Annotated[int, Field(validation_alias=AliasPath("use", "rule", "id"))]
    words: Annotated[str, Field(validation_alias="description")]
    limit: Annotated[float, Field(validation_alias=AliasPath("use", "limit"))]
    spent: Annotated[float, Field(validation_alias=AliasPath("use", "spent"))]
    until: Time = Field(validation_alias=AliasPath("use", "until"), description="when its next period begins")


class Usages(DoneBody):
    since: Time
    everyone: bool = Field(description="it covers everyone's conversations, not only yours")
    currency: str
    total: Spent
    parts: list[UsageView]
    plots: dict[str, str] = Field(
        description="`cost` and `tokens` by part as SVG, of the largest parts or the newest days"
    )
    budgets: list[BudgetView]


class McpSignInView(View):
    """Nod's sign-in at an MCP server."""

    signed_in: bool
    by: str | None
    at: Time | None
    wanted: str = Field(description="scopes that the server asked for since; sign in again to allow them")


class McpServerView(View):
    name: str
    trouble: str | None = Field(description="why it is unavailable, or null")
    said: str = Field(description="its last words on stderr, if it is down")
    tools: int
    left_out: str = Field(description="which tools of its list are not offered, and why; empty for none")
    sign_in: McpSignInView | None = Field(description="null where people don't sign in")


class McpServers(DoneBody):
    servers: list[McpServerView]


class LoginBegun(DoneBody):
    id: str
    url: str


class LoginEnded(DoneBody):
    text: str | None = Field(description="the outcome in words; null while the sign-in has not ended")
