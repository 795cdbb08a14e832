"""The pages that a browser opens on the way to a connection: of a link, of a sign-in, and after its return.

A connection is an account at another server, in whose name Nod makes calls there. A person opens a link
(`open_link`), presses its button (`use_link`), signs in at the server, and comes back (`return_from_server`).
Then the person confirms: by six digits in their chat, or with a button in the same browser if it is signed in
with the organisation's account (`confirm_here`). `ConnectFlow` does the work.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import RedirectResponse, Response

from bot.domain.people import Actor
from bot.errors import SignInError
from bot.features.connections import ending
from bot.features.connections.port import AccountConnections
from bot.features.connections.sign_in import pages
from bot.features.connections.sign_in.connecting import CALLBACK_PATH, LINK_OVER_TEXT, LINK_PATH, ConnectFlow
from bot.features.feature import PartsDep, RouteParts
from bot.web.sign_in.tokens import Forbidden, Unauthenticated
from bot.web.site import Site, SiteDep

_COOKIE_SECONDS = 600
# the cookie by which a browser is known when it comes back from the server's sign-in
_SECURE_COOKIE = "__Host-nod_connect"
_PLAIN_COOKIE = "nod_connect"  # for plain HTTP on this machine, where browsers drop the secure cookie
_ORGANISATION_PREFIXES = ("sso.", "sso-id.")  # of the accounts of people who sign in with the organisation

router = APIRouter(include_in_schema=False)

Code = Annotated[str, Path(min_length=20, max_length=100)]
Name = Annotated[str, Path(max_length=40)]


@router.get(f"{LINK_PATH}/{{code}}")
async def open_link(code: Code, site: SiteDep, parts: PartsDep) -> Response:
    """Show the page of a link, which asks if Nod may act as the person.

    Chats and scanners open links, too, so opening one changes nothing.
    """
    flow = _make_flow(parts)
    sign_in = await flow.find_link(code) if flow else None
    if flow is None or sign_in is None:
        return pages.show_text(LINK_OVER_TEXT, 410, site.base_path)
    return pages.ask_to_sign_in(sign_in, await flow.list_scopes(sign_in), site.base_path)


@router.post(f"{LINK_PATH}/confirm")
async def confirm_here(request: Request, site: SiteDep, parts: PartsDep) -> Response:
    """Connect the account of this browser's sign-in, if the person is signed in with the organisation."""
    flow = _make_flow(parts)
    # this check is enough here, unlike in `use_link`: only a form of this site comes with the cookies
    site.authenticate.check_origin(request)
    actor = await _find_organisation_account(request, site)
    if flow is None or actor is None:
        return pages.show_text(LINK_OVER_TEXT, 403, site.base_path)
    try:
        connected = await flow.confirm_in_browser(actor, _read_cookie(request, site))
    except SignInError as error:
        return pages.show_text(error.message, 409, site.base_path)
    await parts.wake(*connected.jobs)
    # plain text, unlike in chats: a page would show the signs of Markdown
    text = (
        f"Connected: {connected.connection.acts_as}. "
        f"/nod connections end {connected.connection.server} ends it.\nYou can close this page."
    )
    return pages.show_text(text, 200, site.base_path)


@router.post(f"{LINK_PATH}/{{code}}")
async def use_link(code: Code, request: Request, site: SiteDep, parts: PartsDep) -> Response:
    """Use a link up, and send the browser to the server's sign-in."""
    flow = _make_flow(parts)
    _check_own_form(request, site)
    sign_in = await flow.find_link(code) if flow else None
    if flow is None or sign_in is None:
        return pages.show_text(LINK_OVER_TEXT, 410, site.base_path)
    # if people sign in with their organisation's accounts, only a browser of the link's person continues
    is_organised = parts.settings.has_organisation_sign_in
    if is_organised:
        actor = await _find_organisation_account(request, site)
        if actor is None and site.organisation is not None:  # the person signs in there first
            sign_in_url = f"{site.base_path}/api/session/begin?then={LINK_PATH}/{code}"
            return RedirectResponse(sign_in_url, 303, headers=pages.HEADERS)
        if actor is None or not await parts.database.read(ending.is_same_person, actor, sign_in.person):
            return pages.show_text(_explain_other_person(sign_in.person_name, actor), 403, site.base_path)
    try:
        sign_in_page = await flow.open_sign_in(code, is_organised=is_organised)
    except SignInError as error:
        return pages.show_text(error.message, 409, site.base_path)
    answer = RedirectResponse(sign_in_page.url, 303, headers=pages.HEADERS)
    answer.set_cookie(
        _name_cookie(request, site),
        sign_in_page.browser_secret,
        _COOKIE_SECONDS,
        **_make_cookie_attributes(request, site),
    )
    return answer


@router.get(f"{CALLBACK_PATH}/{{server}}")
async def return_from_server(server: Name, request: Request, site: SiteDep, parts: PartsDep) -> Response:
    """Take the return of a browser from the server's sign-in, whose code is good once.

    The browser is known by its cookie and the ``state`` of the address; it needs no session of Nod.
    """
    flow = _make_flow(parts)
    if flow is None:
        return pages.show_text(LINK_OVER_TEXT, 404, site.base_path)
    try:
        returned = await flow.finish_sign_in(server, request.query_params, _read_cookie(request, site))
    except SignInError as error:
        return pages.show_text(error.message, 400, site.base_path)
    if returned.sign_in.is_organised:
        return pages.ask_to_confirm(returned.sign_in, site.base_path)
    return pages.show_digits(returned.sign_in, returned.digits, site.base_path)


def _make_flow(parts: RouteParts) -> ConnectFlow | None:
    """Return the service behind the pages; None if no server is called under people's accounts."""
    if not isinstance(parts.connections, AccountConnections):
        return None
    return ConnectFlow(parts.connections)


def _check_own_form(request: Request, site: Site) -> None:
    """Refuse a form from another site. A browser says from which page a form came, by one of two headers.

    A request with neither is refused as well, unlike by `check_origin` alone: a link needs no cookie,
    so nothing else shows that the form is Nod's own.
    """
    site.authenticate.check_origin(request)
    if "origin" not in request.headers and request.headers.get("sec-fetch-site") != "same-origin":
        raise Forbidden("Requests from other websites are refused.")


async def _find_organisation_account(request: Request, site: Site) -> Actor | None:
    """Return the person's account if this browser is signed in with the organisation, else None."""
    try:
        actor = await site.authenticate(request)
    except (Unauthenticated, Forbidden):
        return None
    return actor if actor.channel == "http" and actor.key.startswith(_ORGANISATION_PREFIXES) else None


def _explain_other_person(name: str, actor: Actor | None) -> str:
    """Return the refusal of a link that is for another person than the one of this browser.

    ``name``: the name of the person for whom the link is. ``actor``: the account of this browser, or None.
    """
    if actor is None:
        return f"Sign in with your organisation's account first. This link is for {name}."
    return (
        f"You are signed in as {actor.label}, and this link is for {name}. "
        "If that is you as well, link both accounts with /nod link, then ask for a new link."
    )


def _is_secure(request: Request, site: Site) -> bool:
    return site.is_https or request.url.scheme == "https"


def _name_cookie(request: Request, site: Site) -> str:
    return _SECURE_COOKIE if _is_secure(request, site) else _PLAIN_COOKIE


def _read_cookie(request: Request, site: Site) -> str:
    return request.cookies.get(_name_cookie(request, site), "")


def _make_cookie_attributes(request: Request, site: Site) -> dict[str, Any]:
    """Return the attributes of the cookie.

    ``lax``: browsers send it also with a link from another site, as on the way back from the sign-in.
    """
    return {"path": "/", "httponly": True, "samesite": "lax", "secure": _is_secure(request, site)}
