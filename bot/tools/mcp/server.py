"""One MCP server: started when first needed, called by any task, started again when it dies.

An SDK client must be entered and left by the same task, so each server has one owner task; calls of other
tasks go through the client it holds. Nothing here knows risk or approval: see ``bot/tools/mcp/tools.py``.
"""

import asyncio
import contextvars
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
from mcp import Client, MCPError, types
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT

from bot.domain.chat import Clock
from bot.domain.text import one_line, shortened
from bot.errors import ToolError, ToolTimedOut
from bot.telemetry.logs import logger
from bot.tools.mcp.base import Action, Ask, Question, ServerStatus, SignInStatus
from bot.tools.mcp.catalogue import LONGEST_PAUSE, Catalogue, Sleep, cause, told
from bot.tools.mcp.config import ServerConfig
from bot.tools.mcp.signin import REFUSED, Keys
from bot.tools.mcp.transport import opened
from bot.tools.tool import CallContext

log = logger(__name__)

T = TypeVar("T")

_MOST_PROGRESS = 500  # characters of what a server says on the way
_MOST_ASKED = 2000  # characters of a server's question that a person is shown
READABLE = ("resources", "prompts")
LOOK_SECONDS = 10.0  # for a look at the list before a write
_STEADY = timedelta(
    minutes=1
)  # a server that was up for this long is restarted immediately, whatever happened before

# after these the call may have been carried out: no answer came, or one that says nothing
_UNKNOWN_END = frozenset({
    types.REQUEST_TIMEOUT,
    types.CONNECTION_CLOSED,
    types.INTERNAL_ERROR,
    types.PARSE_ERROR,
    types.INVALID_REQUEST,
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call under way, and its time limit."""

    context: CallContext
    limit: asyncio.Timeout

    def wait_until(self, when: float | None) -> None:
        """Move the limit, in the loop's time; None takes it away. One that is over stays so."""
        with suppress(RuntimeError):
            self.limit.reschedule(when)


_caller: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("mcp_caller", default=None)


class Server:
    """A server that answers, that is down and will be back, or that no one has needed yet."""

    def __init__(
        self,
        config: ServerConfig,
        ask: Ask,
        *,
        clock: Clock,
        patience: float,
        keys: Keys | None = None,
        sleep: Sleep = asyncio.sleep,
        start_seconds: float = 60.0,
    ) -> None:
        self.config = config
        self.keys = keys
        """The sign-in there; None where people do not sign in."""
        self.tried = asyncio.Event()
        """Set once the first attempt to start it has ended, well or not."""
        self._ask = ask
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._start_seconds = start_seconds
        self._client: Client | None = None
        self._why = "it is still starting"
        self._owner: asyncio.Task[None] | None = None
        self._scope: anyio.CancelScope | None = None  # made where there is an event loop
        self._stopped = False
        self._again = asyncio.Event()
        self.signed_out = False
        """Whether it is down because no one is signed in there."""
        self.readable: tuple[str, ...] = ()
        """What it said that it has besides tools; it stays while the server is down."""
        self.left_out: dict[str, str] = {}
        """Why a tool of its list is not offered, by its name; without the server's secrets."""
        self._catalogue = Catalogue(config, sleep)
        self._calls: set[_Call] = set()
        self._last_words = ""

    @property
    def trouble(self) -> str | None:
        """Why it is unavailable right now; None while it is up."""
        return None if self._client else self._why

    @property
    def group(self) -> str:
        """The group of its tools."""
        return f"mcp:{self.config.name}"

    @property
    def known(self) -> tuple[types.Tool, ...]:
        """The last list of tools the server gave; it stays while the server is down."""
        return self._catalogue.known

    async def status(self) -> ServerStatus:
        sign_in = None
        if self.keys is not None:
            held = await self.keys.look()
            signed_in = held is not None and bool(held.tokens)
            by, at = (held.signed_in_by, held.signed_in_at) if held else (None, None)
            sign_in = SignInStatus(signed_in, by, at, self.keys.wanted)
        name = self.config.name
        said = "; ".join(f"{tool} is left out: {why}" for tool, why in dict(self.left_out).items())
        left_out, many = shortened(one_line(said), 500), len(self.known)
        return ServerStatus(name, self.group, self.trouble, many, left_out, sign_in, self.signed_out)

    def start(self) -> None:
        """Begin to own the server, once; it comes up by and by."""
        if self._owner is None and not self._stopped:
            self._scope = anyio.CancelScope()
            # in a context of its own, for the turn that needed it first is not what it belongs to
            self._owner = asyncio.create_task(self._own(self._scope), context=contextvars.Context())

    def signed_in(self) -> None:
        """Take the new sign-in, without waiting for the next attempt to start it."""
        self._again.set()

    async def stop(self) -> None:
        """End the process or close the connection, for good. Calls under way break off."""
        self._stopped = True
        self.tried.set()
        if self._owner is not None and self._scope is not None:
            self._scope.cancel()
            await asyncio.wait([self._owner])

    async def look(self, name: str) -> types.Tool | None:
        """Ask the server for the tool as it is right now; None when it is gone. Raises ToolError."""
        client = self._live()
        try:
            with anyio.fail_after(LOOK_SECONDS):
                found = await self._catalogue.read(client)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing was asked for yet
            raise self._unavailable(told(self.config, error)) from None
        return next((tool for tool in found if tool.name == name), None)

    async def call(
        self, name: str, arguments: Mapping[str, Any], context: CallContext, *, writes: bool
    ) -> types.CallToolResult:
        """Call a tool by the server's own name for it.

        Raises ToolError when it is certain that nothing happened or the server said what went wrong, and
        ToolTimedOut when a write may have happened.
        """
        longest = self.config.timeout + self._patience + LOOK_SECONDS

        def ask(client: Client) -> Awaitable[types.CallToolResult]:
            return client.call_tool(name, dict(arguments), longest, self._telling(context))

        return await self.ask(ask, context, writes=writes)

    async def ask(
        self, ask: Callable[[Client], Awaitable[T]], context: CallContext, *, writes: bool = False
    ) -> T:
        """Ask the server for something. Raises as `call` does."""
        client = self._live()
        timed_out = ToolTimedOut(f"{self.config.name} did not answer within {self.config.timeout:g} s.")
        with self._calling(context) as call:
            try:
                async with call.limit:
                    return await ask(client)
            except TimeoutError:
                raise timed_out from None
            except MCPError as error:
                if error.code == types.REQUEST_TIMEOUT:
                    raise timed_out from None
                words = told(self.config, error)
                if error.code == REFUSED:
                    raise self._unavailable(words) from None
                if error.code not in _UNKNOWN_END:
                    raise ToolError(f"{self.config.name} says: {words}") from None
            except Exception as error:  # noqa: BLE001 - an answer that cannot be read
                words = told(self.config, error)
                log.warning("an mcp server answered badly", server=self.config.name, why=words)
        if writes:
            raise ToolTimedOut(f"{self.config.name} ended before it answered ({words}).")
        raise self._unavailable(words)

    def _telling(self, context: CallContext) -> ProgressFnT:
        """Hands on how far the server says it is: a share where it names the total, and its words."""

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            counted = total is not None and 0 <= progress < math.inf and 0 < total < math.inf
            share = f"{min(progress / (total or 1), 1):.0%}" if counted else ""
            said = self.config.scrub((message or "")[:_MOST_PROGRESS])
            await context.progress(", ".join(filter(None, (share, said))))

        return tell

    def _live(self) -> Client:
        if self._client is None:
            raise self._unavailable(self._why)
        return self._client

    def _unavailable(self, why: str) -> ToolError:
        return ToolError(f"{self.config.name} is unavailable right now ({why}). Nothing was done; try later.")

    @contextmanager
    def _calling(self, context: CallContext) -> Iterator["_Call"]:
        call = _Call(context, asyncio.timeout(self.config.timeout))
        self._calls.add(call)
        token = _caller.set(call)
        try:
            yield call
        finally:
            _caller.reset(token)
            self._calls.discard(call)

    def _asking(self) -> "_Call | None":
        """The call in which the server asks; older protocols do not say, so then there must be but one."""
        if call := _caller.get():
            return call
        return next(iter(self._calls)) if len(self._calls) == 1 else None

    async def _answer(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK gives it by this name
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        """Answer a question of the server; the time a person takes is not the server's."""
        call = self._asking()
        if call is not None:
            call.wait_until(None)
        try:
            whose = call.context if call else None
            return await answered(self.config.name, self._ask, self._patience, whose, params)
        finally:
            if call is not None:
                call.wait_until(asyncio.get_running_loop().time() + self.config.timeout)

    # the owner

    async def _own(self, scope: anyio.CancelScope) -> None:
        with scope:
            failures = 0
            while True:
                up_since = await self._live_through()
                if up_since is not None and self._clock() - up_since >= _STEADY:
                    failures = 0
                await self._pause(min(2.0**failures, LONGEST_PAUSE))
                failures = min(failures + 1, 10)
        self._why = "Nod is stopping"

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; not after a sign-in."""
        self._again.clear()
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.create_task(self._again.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _live_through(self) -> datetime | None:
        """Start it, stay with it to its end, and tell since when it was up."""
        since, ended = None, asyncio.Event()
        why = "it ended"
        try:
            # the SDK's client lives inside this scope, which therefore loses its deadline, not its place
            with anyio.CancelScope(deadline=anyio.current_time() + self._start_seconds) as attempt:
                async with self._client_of(ended) as client:
                    await self._catalogue.read(client)
                    self.readable = tuple(
                        what for what in READABLE if getattr(client.server_capabilities, what) is not None
                    )
                    attempt.deadline = math.inf
                    since, self._client, self.signed_out = self._clock(), client, False
                    self.tried.set()
                    log.info("mcp server is up", server=self.config.name, tools=len(self.known))
                    try:
                        await self._stay(client, ended)
                    finally:
                        self._client = None
            if attempt.cancelled_caught:
                why = f"it did not start within {self._start_seconds:g} s"
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing was asked for yet
            why = told(self.config, error)
            first = cause(error)
            self.signed_out = self.keys is not None and isinstance(first, MCPError) and first.code == REFUSED
        self._why = why
        self.tried.set()
        log.warning("mcp server is down", server=self.config.name, why=why, said=self._last_words)
        return since

    def _client_of(self, ended: asyncio.Event) -> Client:
        return Client(
            opened(self.config, ended, self._heard, self.keys),
            read_timeout_seconds=max(self.config.timeout, LOOK_SECONDS),
            message_handler=self._catalogue.notified,
            elicitation_callback=self._answer,
            client_info=types.Implementation(name="nod", version="1"),
            cache=None,
        )

    async def _stay(self, client: Client, ended: asyncio.Event) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._catalogue.subscribe, client)
            tasks.start_soon(self._catalogue.keep_up, client)
            await ended.wait()
            tasks.cancel_scope.cancel()

    def _heard(self, line: str) -> None:
        self._last_words = self.config.scrub(line)
        log.debug("mcp server said", server=self.config.name, line=self._last_words)


async def answered(
    server: str, ask: Ask, patience: float, call: CallContext | None, params: types.ElicitRequestParams
) -> types.ElicitResult:
    """What ``server`` is told where it asks within ``call``; a person has ``patience`` seconds.

    Where it can't be known for whose call it asks, no one is bothered.
    """
    url = params.url if isinstance(params, types.ElicitRequestURLParams) else None
    if call is None or (url is not None and urlsplit(url).scheme not in ("http", "https")):
        return types.ElicitResult(action="decline")
    question = Question(
        server=server,
        message=params.message[:_MOST_ASKED],
        conversation_id=call.conversation_id,
        requested_by=call.requested_by,
        schema={} if isinstance(params, types.ElicitRequestURLParams) else params.requested_schema,
        url=url,
    )
    try:
        said = await asyncio.wait_for(ask(question), patience)
    except Exception as error:  # noqa: BLE001 - a channel's own code; the server is told no one answered
        log.warning("a server's question found no answer", server=server, why=type(error).__name__)
        return types.ElicitResult(action="cancel")
    if said.action is not Action.ACCEPT:
        return types.ElicitResult(action="decline" if said.action is Action.DECLINE else "cancel")
    if problems := await asyncio.to_thread(question.problems, said.content):
        log.warning("an answer does not fit a server's question", server=server, fields=list(problems))
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=None if url else dict(said.content))
