"""The HTTP interface of agents, which are programs that call the team's tools for one person.

The routes under ``/tools`` and ``/calls`` are for an agent, which sends its own token. A call that does more
than read becomes a proposal that people decide. The call stays open until it has run or was refused, and the
agent asks for its status. The routes under ``/agents`` are for people: they list, make and end tokens.
"""

from base64 import b64encode
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import Header, Path, Response
from pydantic import Field
from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.agent_call_status import CallStatus
from bot.approvals.agent_tokens import end_work_of_tokens
from bot.approvals.agent_tools import find_servers, list_matching
from bot.domain.agents import read_patterns
from bot.domain.chat import Press
from bot.domain.files import File
from bot.domain.jobs import Job
from bot.domain.people import AGENTS, Actor
from bot.domain.times import parse_duration
from bot.domain.verbs import Verb
from bot.errors import (
    BadArguments,
    CallRefused,
    KeyTaken,
    LostRace,
    NodError,
    ToolError,
    TooManyCalls,
    UnknownTool,
)
from bot.features.feature import PartsDep, RouteParts
from bot.store import tokens
from bot.store.tokens import AgentTerms, IssuedToken
from bot.web.answers import HttpError, TooManyRequests, require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, Time, View
from bot.web.sign_in.tokens import Forbidden
from bot.web.site import Caller, SiteDep, Waiting, make_router

_NO_CALL_TEXT = "There is no such call."
_ONLY_AGENTS_TEXT = "This is for the token of an agent: nod token new NAME --tools 'issues_*'."
_MAX_LIFE = timedelta(days=366)

router = make_router("agents", prefix="/api")

Key = Annotated[str | None, Header(max_length=200)]
# the number of calls of agents that led to this one: too many end a chain of agents that call each other
Depth = Annotated[int, Header(alias="nod-depth", ge=0, le=1000)]
CallId = Annotated[str, Path(max_length=64)]
Label = Annotated[str, Path(max_length=64)]


class CallBody(Body):
    """``reason`` is quoted on the card as the agent's own words."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    reason: Annotated[str, Field(max_length=2000)] = ""


class CallFileView(View):
    """A file that came with a tool's answer: either ``data``, in base64, or ``text``; the other is null."""

    name: str
    media_type: str
    data: str | None
    text: str | None

    @classmethod
    def of_file(cls, file: File) -> "CallFileView":
        if file.data is None:
            return cls(name=file.name, media_type="text/plain", data=None, text=file.text)
        media_type = file.kind or "application/octet-stream"
        return cls(name=file.name, media_type=media_type, data=b64encode(file.data).decode(), text=None)


class AgentCallView(View):
    """A call of an agent.

    - `id`: to ask for its status; empty for a call that only read, which has ended.
    - `end`: the status of the call: waiting, running, succeeded, failed, declined, expired, withdrawn,
      cancelled, undeliverable or outcome_unknown. `cancelled` is by the agent itself, `withdrawn` by people.
    - `text`: the tool's answer, or the status in words. `is_error`: the call has ended in another way than
      succeeded.
    - `joined`: this is an earlier call, which the agent made again.
    - `waits_for`: who may decide, in words; empty unless the call waits. `edited`: what people changed before
      it ran.
    - `arguments`: those with which it runs, or ran; null for a call that only read.
    - `files`: pictures and other files of the answer, at most 8 and 2 MB; `text` names those left out.
    - `pause`: the seconds after which to ask for the status again, from 2 to 60; 0 once the call has ended.
    """

    id: str
    tool: str
    end: str
    text: str
    is_error: bool
    joined: bool
    waits_for: str
    edited: list[str]
    arguments: dict[str, Any] | None
    files: list[CallFileView]
    decided_by: str | None
    created_at: Time | None
    updated_at: Time | None
    expires_at: Time | None
    pause: float

    @classmethod
    def of_status(cls, status: CallStatus) -> "AgentCallView":
        proposal = status.proposal
        waits_for = ""
        # ``end`` is the state of a call, also while the call is open
        if proposal is not None and status.end == "waiting":
            waits_for = proposal.deciders.in_words(proposal.requester.label)
        return cls(
            id=status.id,
            tool=status.tool_name,
            end=status.end,
            text=status.text,
            is_error=status.is_error,
            joined=status.joined,
            waits_for=waits_for,
            edited=[edit.words_for_model for edit in proposal.edits] if proposal else [],
            arguments=dict(proposal.arguments) if proposal else None,
            files=[CallFileView.of_file(each) for each in status.files],
            decided_by=proposal.decided_by if proposal else None,
            created_at=proposal.created_at if proposal else None,
            updated_at=proposal.updated_at if proposal else None,
            expires_at=proposal.expires_at if proposal else None,
            pause=status.pause,
        )


class OneCall(DoneBody):
    call: AgentCallView


class AgentView(View):
    """A token of an agent, without its secret.

    - `label`: the public part of the token, which names the token; `name`: the name of the agent.
    - `person`: the person for whom the agent calls tools. `agreed`: this person agreed to the token.
    - `tools`: patterns of the names of tools. `servers`: where the agent acts with this person's sign-in.
    - `mine`: the agent calls tools for the caller of this route.
    """

    label: str
    name: str
    person: str
    person_name: str
    tools: list[str]
    servers: list[str]
    agreed: bool
    made_by: str
    made_at: Time
    until: Time | None
    last_used_at: Time | None
    mine: bool


class AgentList(DoneBody):
    """``everyone``: the list has the agents of all people, for an admin of all of Nod."""

    everyone: bool
    agents: list[AgentView]


class NewAgent(Body):
    """``tools``: patterns of names, as in ``issues_*``. ``lasts``: for how long, as in ``90d``.

    ``dry_run``: make no token, only list the tools that match the patterns now.
    """

    name: Annotated[str, Field(max_length=64)]
    tools: Annotated[list[str], Field(max_length=20)]
    lasts: Annotated[str, Field(max_length=20)] = "90d"
    dry_run: bool = False


class MadeAgent(DoneBody):
    """``token`` is shown only now; null for a dry run. ``tools``: the tools that the token may call now."""

    token: str | None
    label: str | None
    tools: list[str]
    servers: list[str]
    until: Time


def _require_agent(actor: Actor) -> None:
    if actor.channel != AGENTS:
        raise Forbidden(_ONLY_AGENTS_TEXT)


@router.post("/tools/{name}/calls", summary="An agent calls a tool", status_code=201)
async def call_tool(
    name: Annotated[str, Path(max_length=200)],
    body: CallBody,
    actor: Caller,
    parts: PartsDep,
    poll: Waiting,
    answer: Response,
    idempotency_key: Key = None,
    nod_depth: Depth = 0,
) -> OneCall:
    """Make a call. One that only reads is answered immediately, any other waits for people.

    With ``wait`` (at most 60 seconds) the answer comes later, with the end of the call if it ends by then. A
    second call with the same ``Idempotency-Key`` makes no new call: the answer is the first call, with status
    200. The same holds for an equal call without a key, while the first one waits or runs.
    """
    _require_agent(actor)
    try:
        status = await parts.agents.make_call(
            actor, name, body.arguments, reason=body.reason, key=idempotency_key, depth=nod_depth
        )
    except ToolError as error:
        raise _make_http_error(error) from None
    except LostRace:
        raise HttpError(409, "Two calls came at the same time. Make it again.") from None
    if status.joined:
        answer.status_code = 200
    if status.is_open and poll.seconds:
        latest = await _wait(parts, actor, status.id, poll) or status
        status = replace(latest, joined=status.joined)
    return OneCall(call=AgentCallView.of_status(status))


@router.get("/calls/{call_id}", summary="A call of this agent; `wait` for its end")
async def show_call(call_id: CallId, actor: Caller, parts: PartsDep, poll: Waiting) -> OneCall:
    """Return a call of this token after ``wait`` seconds (60 at most), or as soon as it has ended.

    No other token sees the call. A client that asks without ``wait`` keeps to ``pause``; more than 20
    requests a second are refused with 429.
    """
    _require_agent(actor)
    _limit_polling(parts, actor)
    status = require_or_404(await _wait(parts, actor, call_id, poll), _NO_CALL_TEXT)
    return OneCall(call=AgentCallView.of_status(status))


@router.post("/calls/{call_id}/cancel", summary="An agent withdraws its call")
async def withdraw_call(call_id: CallId, actor: Caller, site: SiteDep, parts: PartsDep) -> OneCall:
    """Withdraw a call that waits. A call that was decided already stays as it is; the answer has its end."""
    _require_agent(actor)
    before = require_or_404(await parts.agents.find_call(actor, call_id), _NO_CALL_TEXT)
    if before.proposal is not None and before.end == "waiting":
        await site.submit(Press(actor, Verb.CANCEL, before.proposal.id, by_api=True))
    after = require_or_404(await parts.agents.find_call(actor, call_id), _NO_CALL_TEXT)
    return OneCall(call=AgentCallView.of_status(after))


async def _wait(parts: RouteParts, actor: Actor, call_id: str, poll: Waiting) -> CallStatus | None:
    """Return a call once it has ended, or as it is after the wait; None if the agent has no such call."""

    async def find_call() -> CallStatus | None:
        return await parts.agents.find_call(actor, call_id)

    return await poll.poll(find_call, lambda status: not status.is_open)


def _limit_polling(parts: RouteParts, actor: Actor) -> None:
    try:
        parts.agents.count_look(actor)
    except TooManyCalls as error:
        raise TooManyRequests(error.message) from None


def _make_http_error(error: ToolError) -> HttpError:
    match error:
        case TooManyCalls():
            return TooManyRequests(error.message)
        case CallRefused():
            return HttpError(403, error.message)
        case UnknownTool():
            return HttpError(404, error.message)
        case KeyTaken():
            return HttpError(409, error.message)
        case BadArguments():
            return HttpError(422, error.message, fields=error.fields)
        case _:
            return HttpError(422, error.message)


@router.get("/agents", summary="The agents that call tools for you")
async def list_agents(actor: Caller, parts: PartsDep) -> AgentList:
    """Return your agents; to an admin of all of Nod everyone's."""
    visible = await parts.database.read(_list_visible, parts, actor)
    agents = [_make_view(token, visible.own_accounts) for token in visible.tokens]
    return AgentList(everyone=visible.everyone, agents=agents)


class _VisibleAgents(NamedTuple):
    """The tokens of agents that a person may see."""

    everyone: bool  # the tokens are those of all people, for an admin of all of Nod
    own_accounts: frozenset[str]  # the accounts of the person
    tokens: list[IssuedToken]


def _list_visible(session: Session, parts: RouteParts, actor: Actor) -> _VisibleAgents:
    accounts = rights.find_visible_accounts(session, parts.policies, actor)  # None: everyone's
    return _VisibleAgents(
        everyone=accounts is None,
        own_accounts=rights.list_accounts(session, actor),
        tokens=tokens.list_agents(session, accounts, parts.clock()),
    )


def _make_view(token: IssuedToken, own_accounts: frozenset[str]) -> AgentView:
    """Return a token as the person with these accounts sees it."""
    return AgentView(
        label=token.label,
        name=token.name,
        person=token.person or "",
        person_name=token.person_name or token.person or "",
        tools=list(token.tools or ()),
        servers=list(token.servers or ()),
        agreed=token.agreed_at is not None,
        made_by=token.made_by,
        made_at=token.made_at,
        until=token.until,
        last_used_at=token.last_used_at,
        mine=token.person in own_accounts,
    )


@router.post("/agents", summary="Make a token for an agent of yours", status_code=201)
async def make_agent(body: NewAgent, actor: Caller, site: SiteDep, parts: PartsDep) -> MadeAgent:
    """Make a token for an agent that calls tools for you.

    An agent of another person needs this person's consent: ``nod token new NAME --as`` asks for it.
    """
    try:
        patterns = read_patterns(body.tools)
        lasts = parse_duration(body.lasts)
    except ValueError as error:
        raise HttpError(422, str(error)) from None
    if lasts > _MAX_LIFE:
        raise HttpError(422, "A token lasts for 366 days at most.")
    until = parts.clock() + lasts
    matching_tools = await list_matching(site.channel.registry, actor, patterns)
    servers = find_servers(matching_tools)
    names = sorted(tool.name for tool in matching_tools)
    token = label = None
    if not body.dry_run:
        terms = AgentTerms(
            person=actor, tools=patterns, servers=servers, shown_tools=names, until=until, agreed=True
        )
        token = await _issue(parts, body.name, actor, parts.clock(), terms)
        label = token.split("_")[1]  # a token is its prefix, its label and its secret
    return MadeAgent(token=token, label=label, tools=names, servers=servers, until=until)


async def _issue(parts: RouteParts, name: str, actor: Actor, now: datetime, terms: AgentTerms) -> str:
    try:
        return await parts.database.write(tokens.issue_token, name, actor, now, terms)
    except NodError as error:
        raise HttpError(422, error.message) from None


@router.delete("/agents/{label}", summary="End an agent's token")
async def end_agent(label: Label, actor: Caller, parts: PartsDep) -> DoneBody:
    """End a token of yours; an admin of all of Nod ends anyone's.

    The grants given to the agent end with it, and its open calls are withdrawn.
    """

    def end_token(session: Session) -> tuple[int, tuple[Job, ...]]:
        now = parts.clock()
        if rights.is_global_admin(session, parts.policies, actor):
            ended = tokens.revoke_agent_for_admin(session, label, actor, now)
        else:
            ended = tokens.revoke_own_agent(session, label, actor, now)
        return len(ended), end_work_of_tokens(session, ended, now)

    ended_count, jobs = await parts.database.write(end_token)
    if not ended_count:
        raise HttpError(404, "There is no such token of yours.")
    await parts.wake(*jobs)
    return DoneBody()
