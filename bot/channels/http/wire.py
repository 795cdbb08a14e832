"""What the HTTP interface answers, as types: `views` makes them, and the OpenAPI page describes them.

Times are ISO 8601 in UTC. What each field of a proposal and each event means is in ``guide.py``.
"""

from collections.abc import Mapping
from typing import Any, Literal

from typing_extensions import TypedDict  # pydantic reads this one, before Python 3.12

from bot.domain.forms import Shape
from bot.domain.people import Role
from bot.domain.proposals import Cause, Kind, State
from bot.domain.risk import Level
from bot.domain.similarity import Lasting, Rung, Whose
from bot.domain.verbs import Look, Needs, Verb

Yes = Literal[True]


class Problem(TypedDict, total=False):
    """Every fault. ``fields`` says which is wrong and why; ``proposal`` how it stands after a press."""

    ok: Literal[False]
    error: str
    fields: dict[str, str]
    proposal: "ProposalView | None"
    conversation_id: str | None


class DoneBody(TypedDict):
    ok: Yes


class HeardView(TypedDict):
    """``heard_seconds_ago`` is null before the first word. ``fault`` is empty while all is well."""

    name: str
    heard_seconds_ago: int | None
    fault: str


class HealthBody(TypedDict):
    """``channels`` are the chat platforms. ``model_fault``: that the language model gives no answers."""

    ok: Yes
    model_fault: str
    channels: list[HeardView]


class SaidBody(TypedDict):
    """``text`` is for the person who asked."""

    ok: Yes
    text: str


class PauseView(TypedDict):
    since: str
    by: str


class Me(TypedDict):
    """``accounts``: yours in all channels. ``roles``: those that you have everywhere.

    ``session``: this browser brought the cookie of a sign-in, and no token.
    """

    ok: Yes
    name: str
    account: str
    accounts: list[str]
    roles: list[Role]
    model: str
    demo: bool
    admin: bool
    notice: str
    paused: PauseView | None
    session: bool


class RoleView(TypedDict):
    """``since`` is null for a role that the settings give."""

    role: Role
    since: str | None


class AccountView(TypedDict):
    """``linked_at`` is null for an account that is linked with no other."""

    account: str
    name: str
    linked_at: str | None
    roles: list[RoleView]


class PersonView(TypedDict):
    """One person: all of these accounts have one vote, and the roles of each."""

    id: str
    you: bool
    accounts: list[AccountView]


class People(TypedDict):
    ok: Yes
    everyone: bool
    people: list[PersonView]


class ChangeBody(TypedDict):
    """``in_title``: the title quotes all of it. ``diff``: what changes in texts of several lines.

    Its lines begin with ``-``, ``+`` or a blank; those with ``…`` count what stays the same.
    """

    field: str
    old_value: str | None
    new_value: str | None
    in_title: bool
    diff: str | None


class GroupView(TypedDict):
    size: int
    open: int
    round: int


class FieldView(TypedDict):
    """One argument in the edit form: ``shape`` says how it is asked for."""

    name: str
    label: str
    shape: Shape
    description: str
    required: bool
    nullable: bool
    value: Any
    default: Any
    options: list[Any]
    multiline: bool
    secret: bool


class SureView(TypedDict):
    """The question before what can't be undone, and the labels of its two answers."""

    question: str
    yes: str
    no: str


class ButtonView(TypedDict):
    """``doing`` is what it says while it works; ``needs`` what it asks for first.

    ``sure``: asked before what can't be undone, else null.
    ``question`` asks for words, where it needs any, and ``hint`` says what becomes of them; else null.
    """

    verb: Verb
    label: str
    doing: str
    needs: Needs
    question: str | None
    hint: str | None
    look: Look
    sure: SureView | None
    rare: bool


class ResultField(TypedDict):
    """One field of a result that is a JSON object, as people read it."""

    label: str
    value: str


class PlanLineView(TypedDict):
    """``number``: of a step. ``mark``: how it differs from the version before."""

    text: str
    number: int | None
    label: str
    tools: list[str]
    mark: str


class ProposalView(TypedDict):
    """``why``: the reason, unless it is only what was said. ``outline``: of a plan, line by line."""

    id: str
    kind: Kind
    teammate: str
    conversation_id: str
    channel: str
    message_id: int
    call_id: str
    tool_name: str
    tool_arguments: Mapping[str, Any]
    schema: Mapping[str, Any]
    fields: list[FieldView]
    description: str
    preview: list[ChangeBody]
    risk: Level
    risk_reason: str
    reason: str
    why: str
    outline: list[PlanLineView]
    requester: str
    requester_account: str
    deciders: str
    may_decide: bool
    quorum: int
    votes: list[str]
    state: State
    outcome: str
    notes: list[str]
    verbs: list[Verb]
    buttons: list[ButtonView]
    headline: str
    warning: str
    asker_decides: bool
    group: GroupView | None
    idempotency_key: str
    printed: str
    result: str | None
    result_fields: list[ResultField]
    ended_badly: str | None
    result_url: str | None
    error: str | None
    cause: Cause | None
    created_at: str
    updated_at: str
    expires_at: str
    decided_at: str | None
    decided_by: str | None
    decided_from: str | None
    decline_reason: str | None
    edited_by: str | None
    grant: str | None
    digest: str
    seen: str
    version: int
    round: int


class CallbackView(TypedDict):
    """How far telling the end has come."""

    url: str
    attempts: int
    told_at: str | None
    given_up: bool
    error: str | None


class _Asked(TypedDict, total=False):
    arguments: dict[str, Any]


class RequestView(ProposalView, _Asked):
    """A script's request; ``arguments`` unredacted, for the requester. The guide has the words of ``end``."""

    end: str
    callback: CallbackView | None


class OneRequest(TypedDict):
    ok: Yes
    proposal: RequestView


class OneProposal(TypedDict):
    ok: Yes
    proposal: ProposalView


class PressedBody(TypedDict):
    ok: Yes
    proposal: ProposalView
    text: str
    answer: Literal["accepted", "already", "duplicate", "later"]


class Proposals(TypedDict):
    ok: Yes
    proposals: list[ProposalView]


class ProposalPage(Proposals):
    next: str | None


class RungView(TypedDict):
    rung: Rung
    words: str


class ReachView(TypedDict):
    reach: Whose
    words: str


class LadderBody(TypedDict):
    ok: Yes
    ladder: list[RungView]
    reaches: list[ReachView]
    lasting: list[Lasting]


class QuestionView(TypedDict):
    asker: str
    question: str
    answer: str | None  # none yet: null


class AskedQuestions(TypedDict):
    ok: Yes
    questions: list[QuestionView]


class FileView(TypedDict):
    id: str
    name: str


class Files(TypedDict):
    ok: Yes
    files: list[FileView]


class KeptFileView(FileView):
    """``size`` in characters. It is read at ``/api/conversations/{conversation_id}/files/{id}``."""

    size: int
    made_at: str
    conversation_id: str
    title: str


class KeptFiles(TypedDict):
    ok: Yes
    files: list[KeptFileView]


class ConversationView(TypedDict):
    id: str
    title: str
    created_at: str
    open_proposals: int


class ConversationPage(TypedDict):
    ok: Yes
    conversations: list[ConversationView]
    next: str | None


class CallView(TypedDict):
    call_id: str
    tool_name: str
    summary: str
    result: str
    ok: bool


class MessageView(TypedDict):
    """``proposals`` are ids."""

    id: int
    role: str
    text: str
    name: str
    created_at: str
    proposals: list[str]
    calls: list[CallView]


class Messages(TypedDict):
    ok: Yes
    messages: list[MessageView]


class Export(ConversationView):
    messages: list[MessageView]
    proposals: list[ProposalView]


class TeammateView(TypedDict):
    id: str
    name: str
    role: str
    task: str
    standing: str
    state: str
    plan: str | None
    locked: bool
    about: str
    proposals: list[str]
    tokens: int
    started_at: str | None
    ended_at: str | None


class TeamView(TypedDict):
    title: str
    at_work: int
    teammates: list[TeammateView]


class Team(TypedDict):
    ok: Yes
    team: TeamView


class RuleView(TypedDict):
    id: int
    words: str
    set_by: str
    set_at: str


class GrantView(TypedDict):
    """``proposal_id``: the decision it was born from."""

    label: str
    tool_name: str
    words: str
    given_by: str
    given_at: str
    expires_at: str | None
    uses: int
    proposal_id: str


class Grants(TypedDict):
    ok: Yes
    grants: list[GrantView]


class Rules(TypedDict):
    """``roles`` are accounts. Only yours, and the rules that concern you, unless it is ``everything``."""

    ok: Yes
    everything: bool
    policy: str
    ttl_seconds: float
    paused: bool
    roles: dict[str, list[str]]
    rules: list[RuleView]
    grants: list[GrantView]


class AuditView(TypedDict):
    """One row, about a proposal or about a ``thing`` with its ``key``: what it was and what it is."""

    id: int
    at: str
    verb: str
    actor: str
    person: str
    channel: str
    hash: str
    proposal_id: str | None
    version: int | None
    state: State | None
    reason: str | None
    digest: str | None
    rule: str | None
    grant_id: int | None
    tool_name: str | None
    description: str | None
    requester: str | None
    requester_name: str | None
    place: str | None
    arguments: dict[str, Any] | None
    thing: str | None
    key: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(TypedDict):
    ok: Yes
    rows: list[AuditView]
    next: int | None


class Verified(TypedDict):
    """``anchor``: number and hash of the newest row, to keep outside the database."""

    ok: Yes
    intact: bool
    faults: list[str]
    anchor: str | None


class ToolView(TypedDict):
    """``risk``: read, write, destructive, or *by its use* where that depends on the arguments."""

    name: str
    group: str
    description: str
    risk: str
    offered: bool
    parameters: dict[str, Any]


class Tools(TypedDict):
    ok: Yes
    tools: list[ToolView]


class SettingView(TypedDict):
    """``value`` applies, as one writes it; null for a secret. ``given``: it is set, or else the default."""

    name: str
    value: str | None
    secret: bool
    given: bool


class SettingList(TypedDict):
    ok: Yes
    settings: list[SettingView]


class FindingView(TypedDict):
    """``fix`` says what to do; where all is well, what is worth knowing."""

    name: str
    health: Literal["ok", "warn", "fail"]
    fix: str


class Findings(TypedDict):
    """``fault`` says why nothing was found; else it is empty."""

    ok: Yes
    at: str
    findings: list[FindingView]
    fault: str


class Spent(TypedDict):
    """What turns cost; tokens as the model server told them."""

    turns: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int


class UsageView(Spent):
    """``key``: a day, a conversation's id or an account; ``name`` its title where it has one."""

    key: str
    name: str


class Usages(TypedDict):
    ok: Yes
    since: str
    everyone: bool
    total: Spent
    parts: list[UsageView]


class RuleSet(TypedDict):
    ok: Yes
    id: int | None
    text: str


# What a stream says: each is one ``data:`` line


class AcceptedBody(TypedDict):
    type: Literal["accepted"]
    conversation_id: str
    message_id: int


class Delta(TypedDict):
    type: Literal["delta"]
    content: str
    text: str


class ThoughtSaid(TypedDict):
    type: Literal["thought"]
    text: str


class Restart(TypedDict):
    type: Literal["restart"]


class CallStarted(TypedDict):
    type: Literal["tool_call_start"]
    call_id: str
    tool_name: str
    summary: str
    arguments: dict[str, Any]


class CallProgress(TypedDict):
    type: Literal["tool_call_progress"]
    call_id: str
    tool_name: str
    text: str


class CallEnded(TypedDict):
    type: Literal["tool_call_result"]
    call_id: str
    tool_name: str
    ok: bool
    result: str


class ProposalEvent(TypedDict):
    type: Literal["proposal_opened", "proposal_update"]
    proposal: ProposalView


class QuestionAnswered(TypedDict):
    """``questions``: all that were asked about it within a day."""

    type: Literal["question_answered"]
    proposal_id: str
    questions: list[QuestionView]


class Reload(TypedDict):
    """More has changed than is told one by one: read the lists again."""

    type: Literal["reload"]


class TeamEvent(TypedDict):
    type: Literal["team_update"]
    team: TeamView


class TurnDone(TypedDict):
    type: Literal["done"]
    conversation_id: str
    message_id: int | None
    ending: Literal["done", "waiting", "stopped"]


class TurnBroke(TypedDict):
    type: Literal["error"]
    conversation_id: str
    error: str


class AguiEvent(TypedDict):
    """An event of AG-UI 1.0: what else it has depends on its type, as docs.ag-ui.com says."""

    type: str


TurnEvents = (
    AcceptedBody
    | Delta
    | ThoughtSaid
    | Restart
    | CallStarted
    | CallProgress
    | CallEnded
    | ProposalEvent
    | TeamEvent
    | TurnDone
    | TurnBroke
)


class McpSignInView(TypedDict):
    """``wanted``: scopes that the server asked for since; sign in again to allow them."""

    signed_in: bool
    by: str | None
    at: str | None
    wanted: str


class McpServerView(TypedDict):
    name: str
    trouble: str | None
    tools: int
    sign_in: McpSignInView | None


class McpServers(TypedDict):
    ok: Yes
    servers: list[McpServerView]


class LoginBegun(TypedDict):
    ok: Yes
    id: str
    url: str


class LoginEnded(TypedDict):
    ok: Yes
    text: str | None
