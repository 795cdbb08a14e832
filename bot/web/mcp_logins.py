"""Routes of MCP servers: admins list them and sign Nod in at them, and browsers come back from a sign-in.

An MCP server offers tools to Nod. Some want Nod to sign in by OAuth. `begin_sign_in` returns a page of the
server, where a person agrees. The page sends their browser back to `take_browser_back`, and
`wait_for_sign_in` returns the outcome. Paths and schemas call a sign-in a login. The names of the routes are
part of the API's operation ids, so they stay.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import HTMLResponse

from bot.errors import SignInError
from bot.web.answers import HttpError, NotFound, make_plain_page
from bot.web.schemas import SaidBody
from bot.web.schemas.status import LoginBegun, LoginEnded, McpServers
from bot.web.site import Admin, SiteDep, make_router

CALLBACK_PATH = "/oauth/callback"  # the address to which a server sends the browser
_WAIT_SECONDS = 20.0  # the time that `wait_for_sign_in` waits

router = make_router("mcp", prefix="/api/mcp")
back_router = APIRouter(include_in_schema=False)
"""The route at `CALLBACK_PATH`."""

Name = Annotated[str, Path(max_length=40)]


@router.get("", name="listed", summary="For admins: the MCP servers there are")
async def list_servers(_: Admin, site: SiteDep) -> McpServers:
    """``trouble``: why a server is unavailable, or null. ``sign_in`` is null where people don't sign in."""
    await site.channel.registry.load_tools()  # the servers start when tools are asked for
    return McpServers.of(servers=await site.logins.status())


@router.post("/{name}/login", name="begin", summary="Begin to sign in at an MCP server", status_code=201)
async def begin_sign_in(name: Name, actor: Admin, site: SiteDep) -> LoginBegun:
    """``url`` is the page where a person signs in; it leads back to Nod. 404 where no one can sign in."""
    try:
        site.logins.check(name)  # raises SignInError for a server where no one can sign in
    except SignInError as error:
        raise NotFound(error.message) from None
    try:
        begun = await site.logins.begin(name, str(actor))
    except SignInError as error:
        raise HttpError(409, error.message) from None
    return LoginBegun(id=begun.id, url=begun.page)


@router.delete("/{name}/login", name="end", summary="Forget the sign-in at an MCP server")
async def sign_out(name: Name, _: Admin, site: SiteDep) -> SaidBody:
    """The answer is 404 where no one can sign in."""
    try:
        was_signed_in = await site.logins.sign_out(name)
    except SignInError as error:
        raise NotFound(error.message) from None
    return SaidBody(text=f"Signed out of {name}." if was_signed_in else f"No one was signed in at {name}.")


@router.get("/logins/{login_id}", name="ended", summary="Wait for a sign-in to end")
async def wait_for_sign_in(
    login_id: Annotated[str, Path(max_length=40)], _: Admin, site: SiteDep
) -> LoginEnded:
    """``text`` is null while the person has not come back: ask again. 409 says why the sign-in failed."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            return LoginEnded(text=await site.logins.wait_for_end(login_id))
    except TimeoutError:
        return LoginEnded(text=None)
    except SignInError as error:
        raise HttpError(409, error.message) from None


@back_router.get(CALLBACK_PATH)
async def take_browser_back(request: Request, site: SiteDep) -> HTMLResponse:
    """Take a browser that comes back from a sign-in, and show its outcome.

    It needs no token: a browser that another site sends brings none. The parameters that it brings work once.
    """
    try:
        outcome = await site.logins.take_return(request.query_params)
    except SignInError as error:
        return make_plain_page(error.message.strip(), 400, site.base_path)
    return make_plain_page(f"{outcome}\nYou can close this page.", 200, site.base_path)
