"""Dependencies of routes: the parts of the running Nod, the caller, streams and long polls."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar, get_args
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from bot.agent.models import Models
from bot.approvals.lookup.people import SignedIn
from bot.approvals.lookup.settings import Doctor
from bot.channels.base import Channel, Lookup
from bot.domain.attachments import FileBounds
from bot.domain.chat import Incoming, Reply
from bot.domain.people import Actor
from bot.jobs.webhooks import Webhooks
from bot.tools.mcp.base import SignIns
from bot.tools.tool import Tool
from bot.web.answers import Fault
from bot.web.channel import HttpChannel
from bot.web.sign_in.oidc import OidcSignIn
from bot.web.sign_in.tokens import Authenticator, Forbidden, Unauthenticated
from bot.web.streams import EXPORTS, LONG_POLLS, STILL_THERE, STREAMS, EventStream, Places, streaming

T = TypeVar("T")

LONGEST_WAIT = 60  # seconds
LARGE_BODIES = 4  # held at the same time; others wait
_MOST_PARAMETERS = 50
_MEANT = "nod-account"
"""Header of the console: whose page sends this. A browser's cookie may be another person's by now."""
_ANOTHER = "This browser is signed in as someone else now. Load the page again."
_FAULTS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        # by its name, since a model given here would be built again for every route and status
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, words in (
        (400, "The body is not JSON"),
        (401, "No valid token"),
        (403, "Not for this caller"),
        (404, "There is no such thing, or none for this caller"),
        (409, "It has changed, or was taken in before"),
        (413, "The body is too large"),
        (422, "Something does not fit; ``fields`` says what"),
        (429, "Too much in a short time; Retry-After says when to come back"),
    )
}


@dataclass
class Site:
    """The parts that the web application works with; ``demo`` is told by ``/api/me``.

    ``secure``: people reach it over HTTPS; ``base``: the path where, as in ``/nod``. ``platforms`` are the
    other channels, whose health is told. ``organisation``: where its people sign in, if anywhere. ``fault``:
    what keeps this process from its work, if anything. ``tools_of``: those that an agent may call, by name.
    ``features``: the names of those that are turned on.
    """

    channel: HttpChannel
    doorkeeper: Authenticator
    callbacks: Webhooks
    logins: SignIns
    signed_in: SignedIn
    doctor: Doctor
    fault: Callable[[], str | None]
    models: Models
    secure: bool
    base: str
    organisation: OidcSignIn | None
    demo: bool
    platforms: Mapping[str, Channel]
    tools_of: Callable[[Actor], Awaitable[Sequence[Tool]]]
    features: frozenset[str] = frozenset()
    files: FileBounds = field(default_factory=FileBounds)
    reading: Places = field(default_factory=lambda: Places(STREAMS))
    waiting: Places = field(default_factory=lambda: Places(LONG_POLLS))
    exporting: Places = field(default_factory=lambda: Places(EXPORTS))
    describing: asyncio.Lock = field(default_factory=asyncio.Lock)
    large_bodies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_BODIES))
    up: bool = False  # from when the start has finished until the end begins

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """Say so from here to the end."""
        self.up = True
        yield
        self.up = False

    @property
    def lookup(self) -> Lookup:
        """The queries of the channel. Raises RuntimeError before the channel is started."""
        if self.channel.lookup is None:
            raise RuntimeError("the channel was not started")
        return self.channel.lookup

    async def take_in(self, incoming: Incoming) -> Reply:
        if self.channel.inbox is None:
            raise RuntimeError("the channel was not started")
        return await self.channel.inbox(incoming)


async def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(_site)]


async def _caller(
    request: Request, site: Here, _: Annotated[object, Depends(HTTPBearer(auto_error=False))]
) -> Actor:
    actor = await site.doorkeeper(request)
    meant = request.headers.get(_MEANT)
    if meant is not None and unquote(meant) != str(actor):
        raise Fault(409, _ANOTHER, account=str(actor))
    return actor


Caller = Annotated[Actor, Depends(_caller)]
"""Who calls; everybody else got 401 or 403."""


async def _guard_stream(
    request: Request, actor: Caller, site: Here
) -> AsyncIterator[Callable[[AsyncIterator[str]], EventStream]]:
    def stream(events: AsyncIterator[str]) -> EventStream:
        return streaming(_while_known(request, site, events))

    with site.reading.place(str(actor)):
        yield stream


async def _while_known(request: Request, site: Site, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the events, up to where the listener's token is revoked; the change notifier tells of that."""
    rings = site.channel.notifier.rings
    async for block in events:
        if site.channel.notifier.rings != rings or block == STILL_THERE:
            rings = site.channel.notifier.rings
            try:
                await site.doorkeeper(request)
            except Unauthenticated:
                return
        yield block


Streaming = Annotated[Callable[[AsyncIterator[str]], EventStream], Depends(_guard_stream)]
"""Makes an answer of events; it ends when the caller's token is revoked."""


@dataclass(frozen=True, slots=True)
class LongPoll:
    """A long poll, ``seconds`` at most, for as long as its caller's token counts."""

    request: Request
    site: Site
    seconds: float

    async def until(self, look: Callable[[], Awaitable[T | None]], ended: Callable[[T], bool]) -> T | None:
        """Return the view after the end, or as it is when the wait is over or the server stops.

        Raises Unauthenticated where the caller's token is revoked while it waits.
        """
        http = self.site.channel
        loop = asyncio.get_running_loop()
        last = loop.time() + self.seconds
        while True:
            rings = http.notifier.rings
            shown = await look()
            if self.seconds:  # after the look: what is shown may have happened since the token was revoked
                await self.site.doorkeeper(self.request)
            left = last - loop.time()
            if shown is None or ended(shown) or left <= 0 or http.hub.closed:
                return shown
            await http.notifier.wait(rings, min(left, http.pace.feed))

    def at_once(self) -> "LongPoll":
        """Return a poll that does not wait."""
        return replace(self, seconds=0)


async def _waiting(
    request: Request,
    actor: Caller,
    site: Here,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="seconds to wait for the end")] = 0,
) -> AsyncIterator[LongPoll]:
    poll = LongPoll(request, site, wait)
    if not wait:
        yield poll
        return
    with site.waiting.place(str(actor)):
        yield poll


Waiting = Annotated[LongPoll, Depends(_waiting)]
"""``?wait=``: how long the caller waits."""


async def _admin(actor: Caller, site: Here) -> Actor:
    if not await site.channel.admin.is_admin(actor):
        raise Forbidden("This is for admins.")
    return actor


Admin = Annotated[Actor, Depends(_admin)]
"""Who calls, an admin of all of Nod; everybody else got 401 or 403."""


async def _check_query_names(request: Request) -> None:  # else a thread does it, where others wait, too
    """Refuse a parameter that the route does not have: without a filter the answer is to another question."""
    route: APIRoute = request.scope["route"]
    known = list(_parameters(route.dependant))
    if known:
        said = f"There is no such parameter. There is {', '.join(known)}."
    else:
        said = "This takes no parameters."
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


def _parameters(needed: Any) -> Iterator[str]:
    yield from (field.alias for field in needed.query_params)
    for each in needed.dependencies:
        yield from _parameters(each)


def api_routes(tag: str, prefix: str = "", *, checks_query: bool = True) -> APIRouter:
    """Return a router for one part of the API, which describes the faults that it may answer with.

    An operation is called as in ``proposals_press``, for clients made from the description.
    ``checks_query``: a parameter that a route does not have is refused.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        responses=_FAULTS,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",
        dependencies=[Depends(_check_query_names)] if checks_query else [],
    )


def event_stream(events: Any) -> dict[str, Any]:
    """Return the decorator arguments of a route that streams these ``events``, each as JSON.

    ``x-itemSchema`` is for one event: OpenAPI 3.2 has the word without its ``x-``, and 3.1 has none. A stream
    as such has no schema: clients made from the document would try to read all of it as that.
    """
    named = [{"$ref": f"#/components/schemas/{each.__name__}"} for each in get_args(events) or (events,)]
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": {"anyOf": named}}
    event = {"type": "object", "properties": {"data": data, "id": {"type": "string"}}, "required": ["data"]}
    described = {200: {"content": {EventStream.media_type: {"x-itemSchema": event}}}}
    return {"response_class": Response, "response_model": events, "responses": described}
