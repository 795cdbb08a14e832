"""The web application put together: conversations, proposals, the console's page and the OpenAPI page.

The routes are in ``chat.py`` and ``proposals.py``; what each event and field means is in ``guide.py`` and on
``/docs``.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot import __version__
from bot.channels.http import (
    approvals,
    audit,
    chat,
    commands,
    grants,
    guide,
    mcp_logins,
    people,
    proposals,
    rules,
    sessions,
    settings,
    tools,
    usage,
)
from bot.channels.http.auth import COOKIE, Doorkeeper
from bot.channels.http.channel import HttpChannel
from bot.channels.http.errors import install, problem
from bot.channels.http.limits import BodyLimits, Capacity
from bot.channels.http.organisation import Organisation
from bot.channels.http.proxies import Forwarded
from bot.channels.http.server import files_left, most_connections
from bot.channels.http.site import Caller, Here, LateRoutes, Site, api_routes, ok
from bot.channels.http.wire import HealthBody, Me
from bot.channels.seam import Channel, posters
from bot.domain.people import Actor, Role
from bot.domain.rules import Pause
from bot.logs import logger
from bot.lookup.settings import Doctor
from bot.lookup.signing_in import SignedIn
from bot.outages import FileFault, in_a_line
from bot.settings import Network
from bot.tools.mcp.seam import SignIns
from bot.upkeep.webhooks import Callbacks

log = logger(__name__)

_STATIC = Path(__file__).parent / "static"
_NO_ANSWERS = "The language model gives no answers."
_CACHED = {"Cache-Control": "no-cache"}  # an upgrade must be seen
_router = api_routes("status")


def create(
    channel: HttpChannel,
    doorkeeper: Doorkeeper,
    callbacks: Callbacks,
    logins: SignIns,
    signed_in: SignedIn,
    doctor: Doctor,
    *,
    fault: Callable[[], str | None],
    model_fails: Callable[[], bool],
    secure: bool,
    base: str,
    proxies: Sequence[Network],
    user_header: str,
    organisation: Organisation | None,
    model_name: str,
    demo: bool,
    platforms: Mapping[str, Channel],
    connections: int,
    more_routes: Sequence[BaseRoute] = (),
) -> Site:
    """Build the ASGI application over a channel that is started elsewhere.

    ``connections``: how many the server holds at a time.
    """
    site = Site(
        channel,
        doorkeeper,
        callbacks,
        logins,
        signed_in,
        doctor,
        fault=fault,
        model_fails=model_fails,
        secure=secure,
        base=base,
        organisation=organisation,
        model_name=model_name,
        demo=demo,
        platforms=platforms,
        servers=[{"url": base}] if base else None,
        title="Nod",
        version=__version__,
        openapi_tags=guide.TAGS,
        description=guide.TEXT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install(site)
    site.add_middleware(Capacity, most=most_connections(connections) * 3 // 4)  # the rest is for probes
    site.add_middleware(BodyLimits)
    site.add_middleware(Forwarded, networks=proxies, user_header=user_header)
    site.router.routes.extend(more_routes)
    # included, each would be built again for every application
    for part in (
        chat,
        proposals,
        approvals,
        rules,
        sessions,
        grants,
        people,
        commands,
        audit,
        tools,
        usage,
        settings,
        mcp_logins,
    ):
        site.router.routes.extend(part.router.routes)
    site.router.routes.append(Route("/agui", LateRoutes(_agui), include_in_schema=False))
    site.router.routes.extend(mcp_logins.back.routes)
    site.router.routes.extend(sessions.visits.routes)
    site.router.routes.extend(_router.routes)
    site.mount("/static", GZipMiddleware(_Files(directory=_STATIC)))
    return site


def _agui() -> Sequence[BaseRoute]:
    from bot.channels.http import agui  # its library takes a tenth of a start

    return agui.router.routes


@_router.get("/api/me", summary="Who you are here, and who answers", response_model=Me)
async def me(actor: Caller, request: Request, site: Here) -> JSONResponse:
    found = await site.channel.admin.who_is(actor)
    pause = found.pause
    paused = {"since": pause.since.isoformat(), "by": _named(pause, actor)} if pause else None
    about = {"model": site.model_name, "demo": site.demo, "notice": site.lookup.notice}
    return ok(
        name=actor.label,
        account=str(actor),
        accounts=sorted(found.person.accounts),
        roles=sorted(found.roles),
        **about,
        admin=Role.ADMIN in found.roles,
        paused=paused,
        session=COOKIE in request.cookies and "authorization" not in request.headers,
    )


class _Files(StaticFiles):
    """The console's files, with their ETag: kept by the browser, and asked for again each time."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = _CACHED["Cache-Control"]
        return response


def _named(pause: Pause, caller: Actor) -> str:
    """Who paused, as the caller knows them; empty where that would be no more than an ID."""
    return caller.label if pause.by == str(caller) else pause.name


@_router.get("/healthz", summary="The process is alive", response_model=HealthBody)
async def healthz(site: Here) -> JSONResponse:
    return _healthy(site)


@_router.get(
    "/readyz",
    summary="It can do its work: started, takes writes; tells whether the model and the platforms answer",
    response_model=HealthBody,
)
async def readyz(site: Here) -> JSONResponse:
    if not site.up:
        return problem(503, "starting or stopping")
    if not files_left():
        return problem(503, "no more files can be opened")
    try:
        await site.channel.admin.check()
    except (SQLAlchemyError, TimeoutError) as error:
        log.warning("the database can't be written", why=in_a_line(error) or type(error).__name__)
        return problem(503, error.words if isinstance(error, FileFault) else "the database can't be written")
    if fault := site.fault():
        return problem(503, fault)
    return _healthy(site)


def _healthy(site: Site) -> JSONResponse:
    found = {name: poster.hearing() for name, poster in posters(site.platforms).items()}
    return ok(
        model_fault=_NO_ANSWERS if site.model_fails() else "",
        channels=[
            {
                "name": name,
                "heard_seconds_ago": None if hearing.ago is None else round(hearing.ago),
                "fault": hearing.fault,
            }
            for name, hearing in found.items()
        ],
    )


@_router.get("/docs", include_in_schema=False)
async def docs() -> FileResponse:
    """Like the description it shows, it needs no token: it says what there is, and nothing that is in it."""
    return FileResponse(_STATIC / "docs.html")


@_router.get("/sw.js", include_in_schema=False)
async def offline_worker() -> FileResponse:
    """Here and not among the other files, or it could not stand in for the page at `/`."""
    return FileResponse(_STATIC / "sw.js", headers=_CACHED)


@_router.get("/", include_in_schema=False)
async def console() -> FileResponse:
    return FileResponse(_STATIC / "index.html", headers=_CACHED)
