"""For admins: the MCP servers there are, and signing in at them. For browsers: coming back from there."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import HTMLResponse, JSONResponse

from bot.channels.http.errors import problem
from bot.channels.http.plain import plain_page
from bot.channels.http.site import Admin, Here, api_routes, ok
from bot.channels.http.wire import LoginBegun, LoginEnded, McpServers, SaidBody
from bot.errors import SignInError

BACK = "/oauth/callback"
_WAIT_SECONDS = 20.0

router = api_routes("mcp", prefix="/api/mcp")
back = APIRouter(include_in_schema=False)

Name = Annotated[str, Path(max_length=40)]


@router.get("", summary="For admins: the MCP servers there are", response_model=McpServers)
async def listed(_: Admin, site: Here) -> JSONResponse:
    """``trouble``: why it is unavailable, or null. ``sign_in`` is null where people don't sign in."""
    await site.channel.registry.shelf()  # they start when tools are asked for
    found = []
    for server in site.logins.servers:
        keys = server.keys
        held = await keys.look() if keys else None
        signed = held is not None and bool(held.tokens)
        found.append(
            {
                "name": server.config.name,
                "trouble": server.trouble,
                "tools": len(server.known),
                "sign_in": None
                if keys is None
                else {
                    "signed_in": signed,
                    "by": held.signed_in_by if held else None,
                    "at": held.signed_in_at.isoformat() if held else None,
                    "wanted": keys.wanted,
                },
            }
        )
    return ok(servers=found)


@router.post(
    "/{name}/login", summary="Begin to sign in at an MCP server", status_code=201, response_model=LoginBegun
)
async def begin(name: Name, actor: Admin, site: Here) -> JSONResponse:
    """``url`` is the page where a person signs in; it leads back to Nod. 404 where no one can sign in."""
    try:
        site.logins.server(name)
    except SignInError as error:
        return problem(404, error.message)
    try:
        ident, url = await site.logins.begin(name, str(actor))
    except SignInError as error:
        return problem(409, error.message)
    answer = ok(id=ident, url=url)
    answer.status_code = 201
    return answer


@router.delete("/{name}/login", summary="Forget the sign-in at an MCP server", response_model=SaidBody)
async def end(name: Name, _: Admin, site: Here) -> JSONResponse:
    """404 where no one can sign in."""
    try:
        gone = await site.logins.sign_out(name)
    except SignInError as error:
        return problem(404, error.message)
    return ok(text=f"Signed out of {name}." if gone else f"No one was signed in at {name}.")


@router.get("/logins/{login_id}", summary="Wait for a sign-in to end", response_model=LoginEnded)
async def ended(login_id: Annotated[str, Path(max_length=40)], _: Admin, site: Here) -> JSONResponse:
    """``text`` is null while the person is away: ask again. 409 says why it failed."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            return ok(text=await site.logins.ended(login_id))
    except TimeoutError:
        return ok(text=None)
    except SignInError as error:
        return problem(409, error.message)


@back.get(BACK)
async def came_back(request: Request, site: Here) -> HTMLResponse:
    """Needs no token: a browser sent here by another site brings none. What it brings is good once."""
    try:
        words, status = await site.logins.came_back(request.query_params), 200
    except SignInError as error:
        words, status = error.message, 400
    then = "You can close this page." if status == 200 else ""  # noqa: PLR2004 - HTTP's own
    return plain_page(f"{words}\n{then}".strip(), status, site.base)
