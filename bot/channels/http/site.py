"""The web application as an object, and what its routes ask it for: who calls, and the channel."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

from bot.channels.http.auth import Doorkeeper, Forbidden, Unauthenticated
from bot.channels.http.channel import HttpChannel
from bot.channels.http.organisation import Organisation
from bot.channels.http.streams import (
    EXPORTS,
    LONG_POLLS,
    STILL_THERE,
    STREAMS,
    EventStream,
    Places,
    streaming,
)
from bot.channels.http.wire import Problem
from bot.channels.seam import Channel, Lookup
from bot.domain.chat import Incoming, Reply
from bot.domain.people import Actor
from bot.lookup.settings import Doctor
from bot.lookup.signing_in import SignedIn
from bot.tools.mcp.seam import SignIns
from bot.upkeep.webhooks import Callbacks

_FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in (
        (401, "No valid token"),
        (403, "Not for this caller"),
        (404, "There is no such thing, or none for this caller"),
        (409, "It has changed, or was taken in before"),
        (413, "The body is too large"),
        (422, "Something does not fit; ``fields`` says what"),
        (429, "Too much in a short time; Retry-After says when to come back"),
    )
}


class Site(FastAPI):
    """One channel on the web; ``model_name`` and ``demo`` are what ``/api/me`` tells.

    ``secure``: people reach it over HTTPS; ``base``: the path where, as in ``/nod``. ``platforms`` are the
    other channels, whose health is told. ``organisation``: where its people sign in, if anywhere. ``fault``:
    what keeps this process from its work, if anything. ``model_fails``: whether the model gives no answers.
    """

    def __init__(
        self,
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
        organisation: Organisation | None,
        model_name: str,
        demo: bool,
        platforms: Mapping[str, Channel],
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.platforms = platforms
        self.channel = channel
        self.doorkeeper = doorkeeper
        self.callbacks = callbacks
        self.logins = logins
        self.signed_in = signed_in
        self.doctor = doctor
        self.fault = fault
        self.model_fails = model_fails
        self.secure = secure
        self.base = base
        self.organisation = organisation
        self.reading = Places(STREAMS)
        self.waiting = Places(LONG_POLLS)
        self.exporting = Places(EXPORTS)
        self._describing = asyncio.Lock()
        self._description: bytes | memoryview | None = None
        self.up = False  # from when the start has finished until the end begins
        self.model_name = model_name
        self.demo = demo

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Say so from here to the end."""
        self.up = True
        yield
        self.up = False

    @property
    def lookup(self) -> Lookup:
        """What may be looked up. Raises RuntimeError before the channel is started."""
        if self.channel.lookup is None:
            raise RuntimeError("the channel was not started")
        return self.channel.lookup

    def setup(self) -> None:
        """With the description made once, in a thread: that loads libraries and takes seconds."""
        self.add_route("/openapi.json", self._tell, include_in_schema=False)

    async def _tell(self, _: Request) -> Response:
        async with self._describing:
            if self._description is None:
                self._description = await asyncio.to_thread(lambda: JSONResponse(self.openapi()).body)
        return Response(self._description, media_type="application/json")

    def openapi(self) -> dict[str, Any]:
        """The description of all routes.

        FastAPI gives faults the media type of the route, and calls every stream a string: both are put right.
        OpenAPI 3.1 has no place for the schema of a stream, so it is that of one event.
        """
        known = self.router.routes
        known[:] = [there for each in known for there in _there(each)]
        for route in known:
            if isinstance(route, _Route):
                route.describe()
        document = super().openapi()
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    if status >= "400":
                        response["content"] = {"application/json": next(iter(response["content"].values()))}
                    stream = response.get("content", {}).get("text/event-stream", {})
                    if "schema" in stream and "properties" not in stream["schema"]:
                        stream["schema"] = _event(stream["schema"])
        return document

    async def take_in(self, incoming: Incoming) -> Reply:
        if self.channel.inbox is None:
            raise RuntimeError("the channel was not started")
        return await self.channel.inbox(incoming)


def _event(payload: dict[str, Any]) -> dict[str, Any]:
    """The schema of a server-sent event whose ``data`` is JSON of this schema."""
    inside = {name: value for name, value in payload.items() if name != "type"}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": inside}
    return {"type": "object", "properties": {"data": data, "id": {"type": "string"}}, "required": ["data"]}


async def _site(request: Request) -> Site:
    site: Site = request.app
    return site


Here = Annotated[Site, Depends(_site)]


async def _caller(
    request: Request, site: Here, _: Annotated[object, Depends(HTTPBearer(auto_error=False))]
) -> Actor:
    return await site.doorkeeper(request)


Caller = Annotated[Actor, Depends(_caller)]
"""Who calls; everybody else got 401 or 403."""


async def _guarded(
    request: Request, actor: Caller, site: Here
) -> AsyncIterator[Callable[[AsyncIterator[str]], EventStream]]:
    def stream(events: AsyncIterator[str]) -> EventStream:
        return streaming(_while_known(request, site, events))

    with site.reading.place(str(actor)):
        yield stream


async def _while_known(request: Request, site: Site, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """The events up to where the token of who listens is revoked: that rings the bell."""
    rings = site.channel.bell.rings
    async for block in events:
        if site.channel.bell.rings != rings or block == STILL_THERE:
            rings = site.channel.bell.rings
            try:
                await site.doorkeeper(request)
            except Unauthenticated:
                return
        yield block


Streaming = Annotated[Callable[[AsyncIterator[str]], EventStream], Depends(_guarded)]
"""Makes an answer of events; it ends when the caller's token is revoked."""


async def _admin(actor: Caller, site: Here) -> Actor:
    if not await site.channel.admin.is_admin(actor):
        raise Forbidden("This is for admins.")
    return actor


Admin = Annotated[Actor, Depends(_admin)]
"""Who calls, an admin of all of Nod; everybody else got 401 or 403."""


def ok(**more: Any) -> JSONResponse:
    return JSONResponse({"ok": True, **more})


class _Route(APIRoute):
    """Builds the models of its answers, of which only the description tells, when that is asked for.

    They took most of the start: a route has up to eight.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        response_model: Any = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(path, endpoint, response_model=None, **given)
        self._described = {"response_model": response_model, "responses": responses}
        self._given = given

    @cached_property
    def query(self) -> list[str]:
        """The names of its parameters."""
        fields = get_flat_params(self.dependant)
        return [field.alias for field in fields if isinstance(field.field_info, Query)]

    def describe(self) -> None:
        if self._described:
            told = APIRoute(self.path, self.endpoint, **self._described, **self._given)
            self.response_model, self.responses = told.response_model, told.responses
            self.response_field, self.response_fields = told.response_field, told.response_fields
            self._described = {}


_MOST_PARAMETERS = 50


async def _known_query(request: Request) -> None:  # else a thread does it, where others wait, too
    """Refuse a parameter that the route does not have: without a filter the answer is to another question."""
    known: list[str] = request.scope["route"].query
    said = (
        f"There is no such parameter. There is {', '.join(known)}." if known else "This takes no parameters."
    )
    many = len(request.query_params.multi_items())
    if many > _MOST_PARAMETERS:
        said = f"At most {_MOST_PARAMETERS} parameters in one request."
        raise RequestValidationError([{"type": "parameters", "loc": ("query",), "msg": said, "input": many}])
    faults = [
        {"type": "parameter", "loc": ("query", name), "msg": said, "input": value}
        for name, value in request.query_params.items()
        if name not in known
    ]
    if faults:
        raise RequestValidationError(faults)


class LateRoutes:
    """An ASGI application of routes whose library is loaded when one or the description is asked for."""

    def __init__(self, load: Callable[[], Sequence[BaseRoute]]) -> None:
        self.load = load
        self._router: Router | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._router is None:
            self._router = Router(await asyncio.to_thread(self.load), redirect_slashes=False)
        await self._router(scope, receive, send)


def _there(route: BaseRoute) -> Sequence[BaseRoute]:
    late = route.endpoint if isinstance(route, Route) else None
    return late.load() if isinstance(late, LateRoutes) else [route]


def api_routes(tag: str, prefix: str = "") -> APIRouter:
    """Routes for one part of the API, each described with the faults it may answer with."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        responses=_FAULTS,
        generate_unique_id_function=_operation,
        route_class=_Route,
        dependencies=[Depends(_known_query)],
    )


def _operation(route: APIRoute) -> str:
    """For clients made from the description: ``proposals_press``."""
    return f"{route.tags[0]}_{route.name}" if route.tags else route.name
