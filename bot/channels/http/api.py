"""The web application put together: conversations, proposals, the console's page and the OpenAPI page.

The routes are in ``chat.py`` and ``actions.py``; what each event and field means is in ``guide.py`` and on
``/docs``.
"""

from collections.abc import Sequence
from pathlib import Path

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute
from swagger_ui_bundle import swagger_ui_path

from bot.callbacks import Callbacks
from bot.channels.http import actions, approvals, chat, commands, guide, rules
from bot.channels.http.auth import Doorkeeper
from bot.channels.http.channel import HttpChannel
from bot.channels.http.errors import install, problem
from bot.channels.http.limits import Limits
from bot.channels.http.site import Caller, Here, Site, ok
from bot.store import audit
from bot.telemetry import logger

log = logger(__name__)

_STATIC = Path(__file__).parent / "static"
_router = APIRouter()


def create(
    channel: HttpChannel,
    doorkeeper: Doorkeeper,
    callbacks: Callbacks,
    *,
    model_name: str,
    demo: bool,
    more_routes: Sequence[BaseRoute] = (),
) -> Site:
    """Build the ASGI application over a channel that is started elsewhere."""
    site = Site(
        channel,
        doorkeeper,
        callbacks,
        model_name=model_name,
        demo=demo,
        title="Nod",
        version="1",
        description=guide.TEXT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install(site)
    site.add_middleware(Limits)
    site.router.routes.extend(more_routes)
    for router in (chat.router, actions.router, approvals.router, commands.router, rules.router, _router):
        site.include_router(router)
    site.mount("/docs/static", StaticFiles(directory=swagger_ui_path))
    site.mount("/static", StaticFiles(directory=_STATIC))
    return site


@_router.get("/api/me", summary="Who you are here, and who answers")
async def me(actor: Caller, site: Here) -> JSONResponse:
    http = site.channel
    admin = await http.database.read(http.views.policies.is_admin, actor)
    return ok(name=actor.label, model=site.model_name, demo=site.demo, admin=admin)


@_router.get("/healthz", summary="The process is alive")
async def healthz() -> JSONResponse:
    return ok()


@_router.get("/readyz", summary="It can do its work: started, and the database answers")
async def readyz(site: Here) -> JSONResponse:
    if site.channel.inbox is None:
        return problem(503, "starting")
    try:
        await site.channel.database.read(audit.last_id)
    except SQLAlchemyError as error:
        log.error("the database does not answer", exc_info=error)
        return problem(503, "the database does not answer")
    return ok()


@_router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Nod: the HTTP interface",
        swagger_js_url="/docs/static/swagger-ui-bundle.js",
        swagger_css_url="/docs/static/swagger-ui.css",
        swagger_favicon_url="/docs/static/favicon-32x32.png",
    )


@_router.get("/", include_in_schema=False)
async def console() -> FileResponse:
    return FileResponse(_STATIC / "index.html")
