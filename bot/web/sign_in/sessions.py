"""Routes for signing a browser in to the console, by a one-time link or with the organisation, and out.

A session is a cookie that no script can read. With the organisation, `send_to_provider` sends the browser to
the provider of ``oidc.py``, and `return_from_provider` takes it when it comes back. The sign-in in progress
is a row, whose key is in a second cookie.
"""

import hmac
import re
from dataclasses import asdict
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlencode

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from bot.domain.people import Actor
from bot.telemetry.logs import logger
from bot.web.answers import HttpError, NotFound, make_plain_page
from bot.web.body import Body
from bot.web.schemas import DoneBody
from bot.web.schemas.status import SignInWays
from bot.web.sign_in.oidc import BUSY_TEXT, RETURN_PATH, NotSignedIn, PendingSignIn
from bot.web.sign_in.tokens import COOKIE
from bot.web.site import Caller, Site, SiteDep, make_router

log = logger(__name__)

router = make_router("status", prefix="/api")
visit_router = APIRouter(include_in_schema=False)
"""The addresses that a browser visits itself: to the organisation's sign-in, and back."""

_STATE_COOKIE = "nod_away"  # while the browser is at the provider
_MAX_ERROR_CHARS = 200
# the path of a page of the console, such as /proposals/3f9c
_PAGE_PATTERN = re.compile(r"/[a-z]+/[\w-]{1,100}", re.ASCII)
_USED_LINK_TEXT = "This link was used or is too old. Ask for a new one with /nod console in a chat."


class SigningIn(Body):
    """``code``: the end of the link that `/nod console` gives."""

    code: Annotated[str, Field(min_length=20, max_length=100)]


@router.post("/session", summary="Sign in a browser with a one-time link")
async def enter(body: SigningIn, request: Request, site: SiteDep, response: Response) -> DoneBody:
    """The answer sets a cookie that signs the browser in for 30 days. A link works once, for 10 minutes."""
    site.authenticate.check_origin(request)
    secret = await site.sessions.sign_in_by_code(body.code)
    if secret is None:
        raise HttpError(403, _USED_LINK_TEXT)
    lifetime = int(site.sessions.session_life.total_seconds())
    response.set_cookie(COOKIE, secret, lifetime, **_make_cookie_attributes(request, site))
    return DoneBody()


@visit_router.get("/api/session")
async def show_sign_in_ways(site: SiteDep) -> SignInWays:
    """Return how people can sign in here: the organisation whose accounts count. Needs no token."""
    return SignInWays(organisation=site.organisation.name if site.organisation else None)


@visit_router.get("/api/session/begin")
async def send_to_provider(request: Request, site: SiteDep, then: str = "") -> Response:
    """Send a browser to the organisation's sign-in. ``then``: the page of the console to open afterwards."""
    if site.organisation is None:
        raise NotFound("This Nod has no sign-in of an organisation.")
    pending = PendingSignIn.new()
    try:
        provider_url = await site.organisation.make_provider_url(pending)
    except NotSignedIn as error:
        return make_plain_page(error.message, 502, site.base_path)
    stored = asdict(pending) | {"then": _check_page(then)}
    if not await site.sessions.begin_organisation_sign_in(pending.state, stored):
        return make_plain_page(BUSY_TEXT, 503, site.base_path)
    response = RedirectResponse(provider_url, 303, headers={"Cache-Control": "no-store"})
    # the time that the browser may spend at the provider
    lifetime = int(site.sessions.max_organisation_sign_in.total_seconds())
    response.set_cookie(
        _STATE_COOKIE, pending.state, lifetime, **_make_cookie_attributes(request, site, "lax")
    )
    return response


@visit_router.post(RETURN_PATH)
async def return_by_form(request: Request, site: SiteDep) -> Response:
    """Take a browser that comes back with a form, as from Apple, and send it on to the same address by GET.

    A form from another site brings no cookie; the second request does.
    """
    form = parse_qs((await request.body()).decode(errors="replace"))
    parameters = [(name, form[name][0]) for name in ("state", "code", "error") if name in form]
    address = f"{site.base_path}{RETURN_PATH}?{urlencode(parameters)}"
    return RedirectResponse(address, 303, headers={"Cache-Control": "no-store"})


@visit_router.get(RETURN_PATH)
async def return_from_provider(
    request: Request, site: SiteDep, state: str = "", code: str = "", error: str = ""
) -> Response:
    """Take a browser that comes back from the provider, and sign it in.

    Needs no token: another site sent the browser here. The parameters that it brings work once, in that
    browser.
    """
    if error:
        log.warning("the sign-in provider refused a sign-in", why=error[:_MAX_ERROR_CHARS])
    is_same_browser = hmac.compare_digest(request.cookies.get(_STATE_COOKIE, "").encode(), state.encode())
    stored: dict[str, str] = {}
    if state and is_same_browser:
        stored.update(await site.sessions.take_begun_sign_in(state) or {})
    then = stored.pop("then", "")
    try:
        actor = await _complete(site, stored, code)
    except NotSignedIn as fault:
        response: Response = make_plain_page(fault.message, 403, site.base_path)
    else:
        response = RedirectResponse(
            f"{site.base_path}{then or '/'}", 303, headers={"Cache-Control": "no-store"}
        )
        secret = await site.sessions.sign_in_as(actor)
        lifetime = int(site.sessions.organisation_session_life.total_seconds())
        response.set_cookie(COOKIE, secret, lifetime, **_make_cookie_attributes(request, site))
    response.delete_cookie(_STATE_COOKIE, **_make_cookie_attributes(request, site, "lax"))
    return response


async def _complete(site: Site, stored: dict[str, str], code: str) -> Actor:
    """Return the account of a sign-in. ``stored``: its row; empty without one. Raises NotSignedIn."""
    if site.organisation is None or not stored or not code:
        raise NotSignedIn
    return await site.organisation.complete(PendingSignIn(**stored), code)


def _check_page(path: str) -> str:
    """Return the path if it is of a page of the console; empty for anything else."""
    return path if _PAGE_PATTERN.fullmatch(path) else ""


def _make_cookie_attributes(
    request: Request, site: Site, samesite: Literal["lax", "strict"] = "strict"
) -> dict[str, Any]:
    """Return the attributes of Nod's cookies: no script reads them, and no other path gets them."""
    secure = site.is_https or request.url.scheme == "https"
    return {"path": site.base_path or "/", "httponly": True, "samesite": samesite, "secure": secure}


@router.delete("/session", summary="Sign this browser out, or all of yours")
async def leave(
    actor: Caller,
    request: Request,
    site: SiteDep,
    response: Response,
    *,
    everywhere: Annotated[bool, Query(description="every browser that is signed in as you")] = False,
) -> DoneBody:
    """With a token it ends no session unless ``everywhere``."""
    secret = request.cookies.get(COOKIE, "")
    if everywhere:
        await site.sessions.sign_out_everywhere(actor)
        site.channel.notifier.notify()
    elif secret:
        await site.sessions.sign_out(actor, secret)
        site.channel.notifier.notify()
    response.delete_cookie(COOKIE, **_make_cookie_attributes(request, site))
    return DoneBody()
