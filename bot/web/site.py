"""Dependencies of routes, which FastAPI passes to each: the parts of the running Nod, the caller, and waits.

A route names a dependency by the type of a parameter:

- `SiteDep`: the `Site` with all parts
- `Caller`: the authenticated account
- `Admin`: a caller who is an admin
- `Streaming`: a function that makes a response of events
- `Waiting`: a long poll, a request that waits for a change

`make_router` makes the router of each part of the API, `make_stream_options` describes a route that streams.
"""

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
from bot.approvals.lookup.console_sessions import ConsoleSessions
from bot.approvals.lookup.settings import Doctor
from bot.channels.base import Channel, Lookup
from bot.domain.attachments import FileBounds
from bot.domain.chat import Incoming, Reply
from bot.domain.people import Actor
from bot.jobs.webhooks import Webhooks
from bot.tools.mcp.interface import SignIns
from bot.tools.tool import Tool
from bot.web.answers import HttpError
from bot.web.channel import HttpChannel
from bot.web.sign_in.oidc import OidcSignIn
from bot.web.sign_in.tokens import Authenticator, Forbidden, Unauthenticated
from bot.web.streams import (
    KEEP_ALIVE,
    MAX_EXPORTS,
    MAX_LONG_POLLS,
    MAX_STREAMS,
    ConcurrencyLimit,
    EventStream,
    make_event_stream,
)

T = TypeVar("T")

LONGEST_WAIT = 60  # seconds
LARGE_BODIES = 4  # the large request bodies in memory at the same time; others wait
_MAX_PARAMETERS = 50
_ACCOUNT_HEADER = "nod-account"
"""Header of the console: the account of its page. The browser's cookie may be another person's by now."""
_OTHER_ACCOUNT_TEXT = "This browser is signed in as someone else now. Load the page again."
_FAULT_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        # the model `Problem`, by its name: FastAPI would build a given model again for every route and status
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
    """The parts of the running Nod that the routes work with."""

    channel: HttpChannel
    authenticate: Authenticator  # finds the caller of a request
    webhooks: Webhooks  # tell scripts the outcomes of their requests
    logins: SignIns  # Nod's sign-ins at MCP servers
    sessions: ConsoleSessions  # the sessions of browsers
    doctor: Doctor  # runs the checks of ``nod doctor``
    find_fault: Callable[[], str | None]  # returns what keeps this process from its work, if anything
    models: Models
    is_https: bool  # people reach Nod over HTTPS
    base_path: str  # the path under which people reach Nod, such as ``/nod``; empty for none
    organisation: OidcSignIn | None  # the sign-in of the organisation, if there is one
    demo: bool
    platforms: Mapping[str, Channel]  # the other channels by name, for their health
    tools_of: Callable[[Actor], Awaitable[Sequence[Tool]]]
    """Returns the tools that an agent may call, sorted by name. The actor is the agent's account."""
    feature_names: frozenset[str] = frozenset()  # the names of the features that are turned on
    file_bounds: FileBounds = field(default_factory=FileBounds)

    # the open requests of each person
    stream_limit: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(MAX_STREAMS))
    poll_limit: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(MAX_LONG_POLLS))
    export_limit: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(MAX_EXPORTS))

    # the state of the server
    openapi_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while the OpenAPI page is made
    large_bodies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_BODIES))
    is_up: bool = False  # True from the end of the start to the beginning of the stop

    @contextlib.contextmanager
    def mark_serving(self) -> Iterator[None]:
        """Set ``is_up`` within the context: the server has started, and does not stop yet."""
        self.is_up = True
        try:
            yield
        finally:
            self.is_up = False

    @property
    def lookup(self) -> Lookup:
        """The queries of the channel. Raises RuntimeError before the channel is started."""
        if self.channel.lookup is None:
            raise RuntimeError("the channel was not started")
        return self.channel.lookup

    async def submit(self, incoming: Incoming) -> Reply:
        """Hand a message, a press or a command to the core. Raises RuntimeError before the start."""
        if self.channel.inbox is None:
            raise RuntimeError("the channel was not started")
        return await self.channel.inbox(incoming)


async def _get_site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


SiteDep = Annotated[Site, Depends(_get_site)]


async def _authenticate(
    request: Request, site: SiteDep, _: Annotated[object, Depends(HTTPBearer(auto_error=False))]
) -> Actor:
    actor = await site.authenticate(request)
    expected = request.headers.get(_ACCOUNT_HEADER)
    if expected is not None and unquote(expected) != str(actor):
        raise HttpError(409, _OTHER_ACCOUNT_TEXT, account=str(actor))
    return actor


Caller = Annotated[Actor, Depends(_authenticate)]
"""The authenticated caller; others get 401 or 403."""


async def _guard_stream(
    request: Request, actor: Caller, site: SiteDep
) -> AsyncIterator[Callable[[AsyncIterator[str]], EventStream]]:
    """Yield a function that makes the response, and count the request as open until it has ended.

    Raises TooManyRequests if the caller has too many open.
    """

    def make_response(events: AsyncIterator[str]) -> EventStream:
        return make_event_stream(_until_revoked(request, site, events))

    with site.stream_limit.hold(str(actor)):
        yield make_response


async def _until_revoked(request: Request, site: Site, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the events until the caller is no longer let in, for example since their token was revoked.

    The caller is checked before an event if the notifier has reported a change since the last check, and
    before each keep-alive.
    """
    generation = site.channel.notifier.generation
    async for block in events:
        if site.channel.notifier.generation != generation or block == KEEP_ALIVE:
            generation = site.channel.notifier.generation
            try:
                await site.authenticate(request)
            except (Unauthenticated, Forbidden):
                return
        yield block


Streaming = Annotated[Callable[[AsyncIterator[str]], EventStream], Depends(_guard_stream)]
"""A function that makes a response of events; it ends when the caller's token is revoked."""


@dataclass(frozen=True, slots=True)
class LongPoll:
    """A long poll of at most ``seconds``, while the caller's token is valid."""

    request: Request
    site: Site
    seconds: float

    async def poll(self, read: Callable[[], Awaitable[T | None]], is_final: Callable[[T], bool]) -> T | None:
        """Call ``read`` again and again, until ``is_final`` is true of its result, and return that result.

        Between two calls it waits for a change in the database, at most `Pace.poll_seconds`. It also
        returns when the result is None, when the time is over, and when the server stops. Raises
        Unauthenticated if the caller's token is revoked in the meantime.
        """
        channel = self.site.channel
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.seconds
        while True:
            generation = channel.notifier.generation  # read first, so that `wait` misses no later change
            result = await read()
            # a token may be revoked during a wait; checked after the read, so that its caller gets no result
            if self.seconds:
                await self.site.authenticate(self.request)
            seconds_left = deadline - loop.time()
            if result is None or is_final(result) or seconds_left <= 0 or channel.broadcaster.closed:
                return result
            await channel.notifier.wait(generation, min(seconds_left, channel.pace.poll_seconds))

    def without_wait(self) -> "LongPoll":
        """Return a poll that does not wait."""
        return replace(self, seconds=0)


async def _make_long_poll(
    request: Request,
    actor: Caller,
    site: SiteDep,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="seconds to wait for the end")] = 0,
) -> AsyncIterator[LongPoll]:
    poll = LongPoll(request, site, wait)
    if not wait:
        yield poll
        return
    with site.poll_limit.hold(str(actor)):
        yield poll


Waiting = Annotated[LongPoll, Depends(_make_long_poll)]
"""The long poll of the caller, by ``?wait=``."""


async def _require_admin(actor: Caller, site: SiteDep) -> Actor:
    if not await site.channel.admin.is_admin(actor):
        raise Forbidden("This is for admins.")
    return actor


Admin = Annotated[Actor, Depends(_require_admin)]
"""The authenticated caller, an admin of all of Nod; others get 401 or 403."""


async def _check_query_names(request: Request) -> None:  # async, so that it needs no thread
    """Refuse unknown and too many query parameters. A misspelled filter would give a misleading answer."""
    _check_query_count(request)
    route: APIRoute = request.scope["route"]
    known = list(_list_parameters(route.dependant))
    explanation = "This takes no parameters."
    if known:
        explanation = f"There is no such parameter. There is {', '.join(known)}."
    faults = [
        {"type": "parameter", "loc": ("query", name), "msg": explanation, "input": value}
        for name, value in request.query_params.items()
        if name not in known
    ]
    if faults:
        raise RequestValidationError(faults)


def _check_query_count(request: Request) -> None:
    count = len(request.query_params.multi_items())
    if count > _MAX_PARAMETERS:
        explanation = f"At most {_MAX_PARAMETERS} parameters in one request."
        fault = {"type": "parameters", "loc": ("query",), "msg": explanation, "input": count}
        raise RequestValidationError([fault])


def _list_parameters(dependant: Any) -> Iterator[str]:
    """Yield the names of the query parameters of a route and of all its dependencies."""
    yield from (field.alias for field in dependant.query_params)
    for dependency in dependant.dependencies:
        yield from _list_parameters(dependency)


def make_router(tag: str, prefix: str = "", *, checks_query: bool = True) -> APIRouter:
    """Return a router for one part of the API, whose document lists the possible faults.

    Operation ids are like ``proposals_press``, for generated clients. ``checks_query``: unknown parameters
    are refused.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        responses=_FAULT_RESPONSES,
        generate_unique_id_function=lambda route: f"{tag}_{route.name}",
        dependencies=[Depends(_check_query_names)] if checks_query else [],
    )


def make_stream_options(events: Any) -> dict[str, Any]:
    """Return the decorator arguments of a route that streams these ``events``, each as JSON.

    ``x-itemSchema`` is the schema of one event, like OpenAPI 3.2's field without ``x-``. The stream itself
    gets no schema: generated clients would try to parse the complete stream by it.
    """
    schemas = [
        {"$ref": f"#/components/schemas/{event_type.__name__}"}
        for event_type in get_args(events) or (events,)
    ]
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": {"anyOf": schemas}}
    event = {"type": "object", "properties": {"data": data, "id": {"type": "string"}}, "required": ["data"]}
    content = {EventStream.media_type: {"x-itemSchema": event}}
    return {"response_class": Response, "response_model": events, "responses": {200: {"content": content}}}
