"""An agent's token over the real HTTP server: how tests make one and call with it."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx

from bot.domain.people import Actor
from bot.store import tokens
from bot.store.tokens import AgentTerms
from tests.web.conftest import ANA, BEN, TOKENS, Json, Served

SETTINGS = {
    "NOD_HTTP_TOKENS": TOKENS,
    "NOD_ADMINS": ("http:chief",),
    "NOD_APPROVERS": ("http:ben",),
    "token": ANA,
}
PERSON = Actor("http", "ana", "ana")


async def make_agent(nod: Served, name: str = "claude-code", **changes: Any) -> str:
    """Make the token of an agent whose person has said yes."""
    given: dict[str, Any] = {
        "person": PERSON,
        "tools": ("*",),
        "servers": (),
        "shown_tools": (),
        "agreed": True,
    }
    terms = AgentTerms(**{"until": nod.clock() + timedelta(days=90), **given, **changes})
    return await nod.app.database.write(tokens.issue_token, name, PERSON, nod.clock(), terms)


@contextlib.asynccontextmanager
async def agent_of(
    nod: Served, name: str = "claude-code", **changes: Any
) -> AsyncIterator[httpx.AsyncClient]:
    async with nod.caller(await make_agent(nod, name, **changes)) as client:
        yield client


async def call(
    agent: httpx.AsyncClient, tool: str, status: int = 201, key: str = "", wait: float = 0, **arguments: Any
) -> Json:
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/api/tools/{tool}/calls"
    answer = await agent.post(path, json={"arguments": arguments}, headers=headers, params={"wait": wait})
    assert answer.status_code == status, answer.text
    shown: Json = answer.json()
    return shown.get("call", shown)


async def look(agent: httpx.AsyncClient, made: Json) -> Json:
    answer = await agent.get(f"/api/calls/{made['id']}")
    assert answer.status_code == 200, answer.text
    shown: Json = answer.json()["call"]
    return shown


async def waiting(nod: Served, token: str = BEN) -> list[Json]:
    """The open proposals that someone may see."""
    async with nod.caller(token) as person:
        found = (await person.get("/api/proposals", params={"state": "proposed"})).json()["proposals"]
    return list(found)


async def press(nod: Served, verb: str, proposal: Json | None = None, token: str = BEN, **body: Any) -> Json:
    """Press on a proposal, the only open one where none is named; returns it as it is then."""
    if proposal is None:
        [proposal] = await waiting(nod, token)
    async with nod.caller(token) as person:
        answer = await nod.press(proposal, verb, person, **body)
    assert answer.status_code == 200, answer.text
    await nod.idle()
    return await nod.proposal(proposal["id"])
