"""The web application: it puts together the parts of the API, the console and the OpenAPI page.

`create` builds the application. Each part of the API has its routes in a module of its own, such as
``chat.py``; features bring further routes. The bodies of responses are in ``schemas/``. The console is a page
with scripts and styles in ``static/``. Here are also the routes of the pages themselves, of health checks,
and `/api/me`.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Scope

from bot import __version__
from bot.channels.base import posters
from bot.domain.people import Actor, Role
from bot.domain.rulebook import Pause
from bot.settings import Network
from bot.telemetry.logs import logger
from bot.telemetry.outages import FileFault, describe_outage, may_open_files
from bot.web import audit, batches, changes, chat, conversations, mcp_logins, proposals, rules, status
from bot.web.answers import HANDLERS, HttpError
from bot.web.bundle import bundle
from bot.web.limits import BodyLimits, Capacity
from bot.web.methods import HeadAndOptions
from bot.web.safe_responses import SafeResponses
from bot.web.schemas.proposals import Problem
from bot.web.schemas.status import HealthBody, HeardView, McpHealthView, Me, ModelView, PauseView
from bot.web.server import cap_connections
from bot.web.sign_in import sessions
from bot.web.sign_in.agents import AgentPaths
from bot.web.sign_in.oidc import RETURN_PATH
from bot.web.sign_in.proxies import Forwarded
from bot.web.sign_in.tokens import COOKIE
from bot.web.site import Caller, Site, SiteDep, make_router

log = logger(__name__)

PARTS = (chat, conversations, proposals, changes, batches, sessions, rules, audit, status, mcp_logins)
_TAG_DESCRIPTIONS = {
    "conversations": "Say something, read what was said.",
    "proposals": "What waits for a decision, and deciding it.",
    "batches": "Several calls of one tool, decided as one table.",
    "rules": "Rules, grants and commands, mostly for admins.",
    "audit": "For admins: who did what, and whether that record is intact.",
    "mcp": "For admins: MCP servers, and signing in at them.",
    "status": "Who you are, what there is, what it cost, and whether Nod is up.",
}
_API_TEXT = """
Send a token as `Authorization: Bearer <token>`; `nod token new NAME` makes one. Without
`NOD_HTTP_TOKENS` this machine is answered without a token, too.
Every error is `{"ok": false, "error": "…"}`; if single fields are wrong, `fields` says which.

A stream is server-sent events, each one `data:` line of JSON with a `type`, whose schema says what it tells.
Losing a stream loses nothing: the turn continues, and its conversation has the answer.

A script asks people with `POST /api/approvals`; `GET /api/approvals/{id}?wait=60` answers when they have.
"""
_STATIC_FOLDER = Path(__file__).parent / "static"
_SCRIPT_PATH = _STATIC_FOLDER / "console.js"
_NO_ANSWERS_TEXT = "The language model gives no answers."
_UNAVAILABLE_TEXT = "It is unavailable. The console and the log say why."
_REVALIDATED_HEADERS = {"Cache-Control": "no-cache"}  # so that an upgrade is seen
_IMMUTABLE_HEADERS = {"Cache-Control": "public, max-age=31536000, immutable"}
_VERSION_PATTERN = re.compile(r"[0-9a-f]{16}")  # as `_hash_files` returns it
_ASSET_PATTERN = re.compile(r'((?:href|src)=")static/([^"]+\.(?:js|css)")')  # src="static/console.js"
router = make_router("status")
pages = make_router("status", checks_query=False)
"""The pages for browsers and probes. Mail programs, proxies and monitors may add parameters to them."""


def create(
    site: Site,
    *,
    proxies: Sequence[Network],
    user_header: str,
    connections: int,
    more_routes: Sequence[BaseRoute] = (),
    more_parts: Sequence[APIRouter] = (),
    more_tags: Mapping[str, str] = MappingProxyType({}),
) -> FastAPI:
    """Build the ASGI application over a channel that is started elsewhere.

    ``proxies``: the networks of trusted reverse proxies; ``user_header``: the header in which they name the
    person. ``connections``: the wanted number of open connections; the limit of open files may allow fewer.
    ``more_parts`` and ``more_tags``: the routes of features, and the descriptions of their tags;
    ``more_routes``: routes that are not in the API's document, such as those of channels.
    """
    tags = {**_TAG_DESCRIPTIONS, **more_tags}
    app = FastAPI(
        title="Nod",
        version=__version__,
        description=_API_TEXT,
        openapi_tags=[{"name": name, "description": description} for name, description in tags.items()],
        servers=[{"url": site.base_path}] if site.base_path else None,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=HANDLERS,
    )
    app.state.site = site
    one_time_paths = (mcp_logins.CALLBACK_PATH, RETURN_PATH)
    app.add_middleware(HeadAndOptions, routes=app.router.routes, one_time_paths=one_time_paths)
    app.add_middleware(AgentPaths)
    max_requests = cap_connections(connections) * 3 // 4  # the rest is for probes
    app.add_middleware(Capacity, max_requests=max_requests)
    app.add_middleware(
        BodyLimits, pace=lambda: site.channel.pace, max_file_bytes=site.file_bounds.max_message_bytes
    )
    app.add_middleware(SafeResponses)
    app.add_middleware(Forwarded, networks=proxies, user_header=user_header)
    app.router.routes += [*more_routes, Route("/agui", _load_agui, methods=["POST"], include_in_schema=False)]
    # not by ``include_router``, which builds all routes again at the first request: that costs 90 ms of the
    # start (`python -m benchmarks --only start`)
    part_routers = [part.router for part in PARTS]
    for part_router in (
        *part_routers,
        *more_parts,
        router,
        pages,
        mcp_logins.back_router,
        sessions.visit_router,
    ):
        app.router.routes += part_router.routes
    app.mount("/static", GZipMiddleware(_ConsoleFiles(directory=_STATIC_FOLDER)))
    return app


async def _load_agui(_: Request) -> ASGIApp:
    """Load the AG-UI routes at their first request: importing their library takes a tenth of a start.

    Starlette calls what an endpoint returns as an ASGI app, so the loaded routes answer this request.
    """
    routes = await asyncio.to_thread(import_module, "bot.web.ag_ui.routes")
    application: ASGIApp = routes.app
    return application


@pages.get("/openapi.json", include_in_schema=False)
async def description(request: Request, site: SiteDep) -> JSONResponse:
    """Return the OpenAPI description, which is made once and in a thread: that takes half a second."""
    app: FastAPI = request.app
    async with site.openapi_lock:
        if app.openapi_schema is None:
            app.openapi_schema = await asyncio.to_thread(_describe_api, app)
    return JSONResponse(app.openapi_schema)


def _describe_api(app: FastAPI) -> dict[str, Any]:
    from bot.web.ag_ui import routes

    return get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        tags=app.openapi_tags,
        servers=app.servers,
        routes=[*routes.router.routes, *app.routes],
    )


@router.get("/api/me", summary="Who you are here, and who answers")
async def me(actor: Caller, request: Request, site: SiteDep) -> Me:
    caller = await site.channel.admin.who_is(actor)
    pause = caller.pause
    return Me(
        name=actor.label,
        account=str(actor),
        accounts=sorted(caller.person.accounts),
        roles=sorted(caller.roles),
        model=site.models.default.name,
        demo=site.demo,
        notice=site.lookup.notice,
        admin=Role.ADMIN in caller.roles,
        connections=request.app.state.features.connections is not None,
        insights="insights" in site.feature_names,
        push="push" in site.feature_names,
        voice="voice" in site.feature_names,
        paused=PauseView(since=pause.since, by=_name_of_pauser(pause, actor)) if pause else None,
        session=COOKIE in request.cookies and "authorization" not in request.headers,
    )


class _ConsoleFiles(StaticFiles):
    """The console's files, each under its name and also under ``VERSION/NAME``, see `_hash_files`.

    Browsers keep a file under the current version without asking again, so a new tab requests the page alone.
    A file under its name alone, or under another version, is revalidated each time. The page's script is sent
    together with all that it imports.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        version, _, rest = path.partition("/")
        name = rest if _VERSION_PATTERN.fullmatch(version) else path
        response = await super().get_response(name, scope)
        if name == _SCRIPT_PATH.name:
            response = Response(_load_script(), media_type="text/javascript")
        is_current = version == _hash_files()
        response.headers.update(_IMMUTABLE_HEADERS if is_current else _REVALIDATED_HEADERS)
        return response


@cache
def _hash_files() -> str:
    """Return the version of the console: a hash of all its files."""
    version = hashlib.sha256()
    for file in sorted(_STATIC_FOLDER.rglob("*")):
        if file.is_file():
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            version.update(f"{file.relative_to(_STATIC_FOLDER)} {digest}\n".encode())
    return version.hexdigest()[:16]


@cache
def _load_script() -> str:
    """Return the page's script with all that it imports."""
    return bundle(_SCRIPT_PATH)


@cache
def _load_page() -> str:
    """Return the page of the console, with the version in the addresses of its files."""
    text = (_STATIC_FOLDER / "index.html").read_text(encoding="utf-8")
    return _ASSET_PATTERN.sub(rf"\1static/{_hash_files()}/\2", text)


def _name_of_pauser(pause: Pause, caller: Actor) -> str:
    if pause.by == str(caller):
        return caller.label
    return pause.name


@pages.get("/healthz", summary="The process is alive")
async def healthz(site: SiteDep) -> HealthBody:
    return _describe_health(site)


@pages.get(
    "/readyz",
    summary="It can do its work: started, takes writes; tells whether the model and the platforms answer",
    responses={503: {"model": Problem, "description": "Not now; ``error`` says why"}},
)
async def readyz(site: SiteDep) -> HealthBody:
    if not site.is_up:
        raise HttpError(503, "starting or stopping")
    if not may_open_files():
        raise HttpError(503, "no more files can be opened")
    try:
        await site.channel.admin.check()
    except (SQLAlchemyError, TimeoutError) as error:
        log.warning("the database can't be written", why=describe_outage(error) or type(error).__name__)
        words = error.advice if isinstance(error, FileFault) else "the database can't be written"
        raise HttpError(503, words) from None
    fault = site.find_fault()
    if fault:
        raise HttpError(503, fault)
    return _describe_health(site)


def _describe_health(site: Site) -> HealthBody:
    """Return the health of the models, the chat platforms and the MCP servers, without a request to any."""
    faulty = site.models.faults
    models = [
        ModelView(name=name, fault=_NO_ANSWERS_TEXT if name in faulty else "") for name in site.models.by_name
    ]
    channels = []
    for name, poster in posters(site.platforms).items():
        hearing = poster.hearing()
        seconds_ago = None if hearing.ago is None else round(hearing.ago)
        channels.append(HeardView(name=name, heard_seconds_ago=seconds_ago, fault=hearing.fault))
    mcp_servers = [
        McpHealthView(name=name, fault=_UNAVAILABLE_TEXT if trouble else "")
        for name, trouble in site.logins.troubles().items()
    ]
    return HealthBody(
        model_fault=_NO_ANSWERS_TEXT if faulty else "",
        models=models,
        channels=channels,
        mcp_servers=mcp_servers,
    )


@pages.get("/docs", include_in_schema=False)
async def docs() -> FileResponse:
    """Return the page about the API. It needs no token, since it shows no data."""
    return FileResponse(_STATIC_FOLDER / "docs.html")


@pages.get("/sw.js", include_in_schema=False)
async def offline_worker() -> FileResponse:
    """Return the service worker. Browsers let it handle requests below `/` only if it comes from there."""
    return FileResponse(_STATIC_FOLDER / "sw.js", headers=_REVALIDATED_HEADERS)


@pages.get("/", include_in_schema=False)
async def console() -> HTMLResponse:
    return HTMLResponse(_load_page(), headers=_REVALIDATED_HEADERS)
