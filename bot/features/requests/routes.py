"""The routes of requests: a script or another agent asks people for approval, and learns how it ended.

A request is a proposal of the tool `request_approval` or `permit_tool_use`. Nod never runs these tools: the
requester acts on the approval. The requester asks for the end (`look`), or is told at its ``callback_url``.
"""

import json
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Header, Response
from pydantic import Field

from bot.domain.agents import Agent
from bot.domain.chat import Address, Answer, Request
from bot.domain.people import AGENTS, Actor
from bot.errors import CallRefused, TooManyCalls
from bot.features.feature import PartsDep, RouteParts
from bot.features.requests.tools import PERMISSION, REQUEST
from bot.web.answers import HttpError, TooManyRequests, require_or_404
from bot.web.body import Body
from bot.web.channel import CHANNEL_NAME, HttpChannel, make_address_key
from bot.web.schemas.requests import OneRequest, RequestView
from bot.web.site import Caller, Site, SiteDep, Waiting, make_router

router = make_router("requests", prefix="/api")

_STATUS_OF_REFUSAL = {Answer.REFUSED: 403, Answer.STALE: 409, Answer.INVALID: 422}

Seconds = Annotated[int, Field(ge=1, le=10 * 366 * 86400)]
Key = Annotated[str | None, Header(max_length=200)]


class Asking(Body):
    """``fields`` are shown line by line on the card.

    ``ttl_seconds``: the longest time to wait for people, if it is less than the rules say. ``callback_url``:
    the address that is told the end by a signed webhook (needs NOD_WEBHOOK_SECRET).
    """

    summary: str
    details: str = ""
    fields: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    ttl_seconds: Seconds | None = None
    callback_url: Annotated[str, Field(max_length=4000)] | None = None


class Permission(Body):
    """``input``: the arguments that an agent wants to give to its own tool ``tool_name``.

    ``summary``: the heading of the card. ``tool_use_id``: the agent's own id of this use.
    """

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str | None = None
    summary: str | None = None
    ttl_seconds: Seconds | None = None


@router.post("/approvals", summary="Ask people to approve what you are about to do", status_code=201)
async def ask(
    body: Asking, actor: Caller, site: SiteDep, parts: PartsDep, answer: Response, idempotency_key: Key = None
) -> OneRequest:
    """Open a request.

    A second one with the same ``Idempotency-Key`` opens nothing: the answer is the first, with status 200.
    """
    if body.callback_url is not None:
        why = await site.webhooks.find_url_objection(body.callback_url)
        if why:
            raise HttpError(422, f"callback_url: {why}", fields={"callback_url": why})
    arguments: dict[str, Any] = {"summary": body.summary}
    if body.details:
        arguments["details"] = body.details
    if body.fields:
        arguments["fields"] = {name: _format_value(value) for name, value in body.fields.items()}
    text = f"{_name_asker(actor)} asks for approval: {body.summary}"
    return await _open(
        site,
        parts,
        actor,
        tool_name=REQUEST,
        arguments=arguments,
        text=text,
        body=body,
        key=idempotency_key,
        answer=answer,
    )


@router.post("/permissions", summary="Ask people whether an agent may use a tool of its own", status_code=201)
async def permit(
    body: Permission,
    actor: Caller,
    site: SiteDep,
    parts: PartsDep,
    answer: Response,
    idempotency_key: Key = None,
) -> OneRequest:
    """Open a request; ``GET /api/approvals/ID`` waits for its end.

    Once it is approved, ``arguments.input`` has the arguments that people approved, maybe after an edit.
    """
    arguments = body.model_dump(exclude={"ttl_seconds"}, exclude_none=True)
    text = f"{_name_asker(actor)} asks whether an agent may use {body.tool_name}."
    return await _open(
        site,
        parts,
        actor,
        tool_name=PERMISSION,
        arguments=arguments,
        text=text,
        body=body,
        key=idempotency_key,
        answer=answer,
    )


@router.get("/approvals/{proposal_id}", summary="The status of a request; `wait` for its end")
async def look(proposal_id: str, actor: Caller, site: SiteDep, parts: PartsDep, poll: Waiting) -> OneRequest:
    """Return a request after ``wait`` seconds (60 at most), or as soon as it has ended.

    ``end`` is waiting, approved, declined, expired, cancelled, undeliverable, failed or outcome_unknown.
    """
    try:
        parts.agents.count_look(actor)
    except TooManyCalls as error:
        raise TooManyRequests(error.message) from None

    async def find_request() -> RequestView | None:
        return await _view_request(site.channel, proposal_id, actor)

    request = await poll.poll(find_request, lambda current: current.end != "waiting")
    return OneRequest(proposal=require_or_404(request, "There is no such request."))


async def _open(
    site: Site,
    parts: RouteParts,
    actor: Actor,
    *,
    tool_name: str,
    arguments: Mapping[str, Any],
    text: str,
    body: Asking | Permission,
    key: str | None,
    answer: Response,
) -> OneRequest:
    """Open a request in a conversation of its own, and return it. Raises HttpError with the refusal.

    ``text``: the request in words, for the conversation. ``key``: the idempotency key. ``answer``: gets the
    status 200 if an earlier request has this key.
    """
    conversation_id = secrets.token_hex(8)
    agent_key = None
    if actor.channel == AGENTS:
        agent = await _find_agent(parts, actor)
        agent_key = agent.key
        address = agent.address_of(conversation_id)
        asker = agent.person  # the person of an agent counts as the one who asks
    else:
        address = Address(CHANNEL_NAME, make_address_key(actor, conversation_id))  # of the HTTP channel
        asker = actor
    # the id by which a second request with the same idempotency key is taken for the first
    event_id = None
    if key or agent_key:
        event_id = f"{actor.key}/approval/{key or conversation_id}"
    reply = await site.submit(
        Request(
            asker,
            tool_name,
            arguments,
            address,
            text,
            new_conversation_id=conversation_id,
            event_id=event_id,
            ttl=timedelta(seconds=body.ttl_seconds) if body.ttl_seconds else None,
            callback_url=body.callback_url if isinstance(body, Asking) else None,
            agent=agent_key,
        )
    )
    if reply.answer is Answer.LATER:
        raise TooManyRequests(reply.text)
    if reply.answer in _STATUS_OF_REFUSAL:
        details = {"fields": dict(reply.fields)} if reply.fields else {}
        raise HttpError(_STATUS_OF_REFUSAL[reply.answer], reply.text, **details)
    if reply.answer is Answer.DUPLICATE:
        answer.status_code = 200
    return OneRequest.of(proposal=await _view_request(site.channel, reply.proposals[0].id, actor))


async def _find_agent(parts: RouteParts, actor: Actor) -> Agent:
    """Return the agent with this account, and count a call of it. Raises HttpError."""
    try:
        return await parts.agents.admit_agent(actor)
    except CallRefused as error:
        raise HttpError(403, error.message) from None
    except TooManyCalls as error:
        raise TooManyRequests(error.message) from None


def _name_asker(actor: Actor) -> str:
    if actor.channel == AGENTS:
        return actor.key.partition("/")[0]  # the agent's name; the key continues with its token's label
    return actor.label


async def _view_request(http: HttpChannel, proposal_id: str, actor: Actor) -> RequestView | None:
    request = await http.proposals.request(proposal_id, actor)
    return RequestView.of_request(request, actor) if request else None


def _format_value(value: str | float | bool | None) -> str:  # noqa: FBT001 - JSON has flags
    """Return a JSON value as text for a card, a string as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value)
