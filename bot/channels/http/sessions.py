"""Signing in to the console with a one-time link, and out: the session is a cookie that no script reads."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import JSONResponse

from bot.channels.http.auth import COOKIE
from bot.channels.http.body import Body
from bot.channels.http.errors import problem
from bot.channels.http.site import Caller, Here, api_routes, ok
from bot.channels.http.wire import DoneBody

router = api_routes("status", prefix="/api")

_LATE = "This link was used or is too old. Ask for a new one with /nod console in a chat."


class SigningIn(Body):
    """``code``: what the link that `/nod console` gives ends with."""

    code: Annotated[str, Field(min_length=20, max_length=100)]


@router.post("/session", summary="Sign in a browser with a one-time link", response_model=DoneBody)
async def enter(body: SigningIn, request: Request, site: Here) -> JSONResponse:
    """The answer sets a cookie that signs the browser in for 30 days. A link works once, for 10 minutes."""
    site.doorkeeper.check_origin(request)
    secret = await site.signed_in.enter(body.code)
    if secret is None:
        return problem(403, _LATE)
    answer = ok()
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(site.signed_in.life.total_seconds()),
        httponly=True,
        samesite="strict",
        path=site.base or "/",
        secure=site.secure or request.url.scheme == "https",
    )
    return answer


@router.delete("/session", summary="Sign this browser out, or all of yours", response_model=DoneBody)
async def leave(
    actor: Caller,
    request: Request,
    site: Here,
    *,
    everywhere: Annotated[bool, Query(description="every browser that is signed in as you")] = False,
) -> JSONResponse:
    """With a token it ends no session unless ``everywhere``."""
    secret = request.cookies.get(COOKIE, "")
    if everywhere or secret:
        await site.signed_in.leave(actor, "" if everywhere else secret)
        site.channel.bell.ring()
    answer = ok()
    answer.delete_cookie(COOKIE, path=site.base or "/", httponly=True, samesite="strict")
    return answer
