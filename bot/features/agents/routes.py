"""The routes by which agents call tools. An agent is a program that calls the team's tools for one person.

An agent sends its own token. A call that does more than read becomes a proposal that people decide. The call
stays open until it has run or was refused, and the agent asks for its status.
"""

from base64 import b64encode
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Header, Path, Response
from pydantic import Field

from bot.approvals.agent_call_status import CallStatus
from bot.domain.chat import Press
from bot.domain.files import File
from bot.domain.people import AGENTS, Actor
from bot.domain.verbs import Verb
from bot.errors import (
    BadArguments,
    CallRefused,
    KeyTaken,
    LostRace,
    ToolError,
    TooManyCalls,
    UnknownTool,
)
from bot.features.feature import PartsDep, RouteParts
from bot.web.answers import HttpError, TooManyRequests, require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, Time, View
from bot.web.sign_in.tokens import Forbidden
from bot.web.site import Caller, SiteDep, Waiting, make_router

_NO_CALL_TEXT = "There is no such call."
_ONLY_AGENTS_TEXT = "This is for the token of an agent: nod token new NAME --tools 'issues_*'."

router = make_router("agents", prefix="/api")

Key = Annotated[str | None, Header(max_length=200)]
# the number of calls of agents that led to this one: too many end a chain of agents that call each other
Depth = Annotated[int, Header(alias="nod-depth", ge=0, le=1000)]
CallId = Annotated[str, Path(max_length=64)]


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
            waits_for = proposal.deciders.describe(proposal.requester.label)
        return cls(
            id=status.id,
            tool=status.tool_name,
            end=status.end,
            text=status.text,
            is_error=status.is_error,
            joined=status.joined,
            waits_for=waits_for,
            edited=[edit.description_for_model for edit in proposal.edits] if proposal else [],
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
