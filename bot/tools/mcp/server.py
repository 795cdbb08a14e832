"""One MCP server: started when first needed, called by any task, started again when it dies.

An SDK client must be entered and left by the same task, so each line has one; calls of other tasks go through
the client it holds. A call of which it is certain that nothing was done, because the server refused its
session, is made once more in a new one; any other is never sent twice. Nothing here knows risk or approval:
see ``bot/tools/mcp/tools.py``.
"""

import asyncio
import contextvars
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import anyio
from mcp import Client, MCPError, types
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from bot.domain.agents import DEPTH_META
from bot.domain.chat import Clock
from bot.domain.connections import TokenSource
from bot.domain.text import one_line, shorten
from bot.errors import ToolError, ToolTimedOut
from bot.telemetry.logs import logger
from bot.tools.mcp.address import BROKEN, FORGOTTEN, REFUSED, SESSION_LOST, UNREACHED
from bot.tools.mcp.answers import UNREAD
from bot.tools.mcp.base import Action, Ask, Question, ServerStatus, SignInStatus
from bot.tools.mcp.catalogue import LONGEST_PAUSE, Catalogue, Sleep, cause, is_line_closed, tell_cause
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.line import ServerLine
from bot.tools.mcp.signin import Keys
from bot.tools.mcp.transport import open_streams
from bot.tools.tool import CallContext

log = logger(__name__)

T = TypeVar("T")

_MOST_PROGRESS = 500  # characters of what a server says on the way
_MOST_ASKED = 2000  # characters of a server's question that a person is shown
READABLE = ("resources", "prompts")
LOOK_SECONDS = 10.0  # for a look at the list before a write
_WATCH_SECONDS = 20.0  # between two looks at an address that no one uses
_RENEWAL_SECONDS = 20.0  # that a call waits for a new session
_LAST_LINES = 3  # of what it wrote on stderr
_MAX_LINE_CHARS = 300
_NO_SESSION = "it refuses the session that it has just given"
_SLOW_SECONDS = 5  # of a start, before its time is told
_STEADY = timedelta(
    minutes=1
)  # a server that was up for this long is restarted immediately, whatever happened before

# after these the call may have been carried out: they are used for all that goes wrong, before and after it
_UNKNOWN_END = frozenset({
    types.CONNECTION_CLOSED,  # in many SDKs any error of a server
    types.REQUEST_TIMEOUT,
    types.INTERNAL_ERROR,
    types.PARSE_ERROR,
    types.INVALID_REQUEST,
})  # fmt: skip
_NOT_BEGUN = frozenset({REFUSED, FORGOTTEN, UNREACHED})


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


class _SessionLost(Exception):
    """The server refused the session, and the call with it. Of a read it is enough that it may have."""


class Server:
    """A server: up, or down and to be restarted, or not needed so far."""

    def __init__(
        self,
        config: ServerConfig,
        ask: Ask,
        *,
        clock: Clock,
        patience: float,
        keys: TokenSource | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.config = config
        self.keys = keys
        """The sign-in there, or the connection under which it is asked; None where people do not sign in."""
        self.tried = asyncio.Event()
        """Set once the first attempt to start it has ended, well or not."""
        self._ask = ask
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._line: ServerLine | None = None
        self._begun = clock()
        self._why = ""  # of the last line that was lost
        self._owner: asyncio.Task[None] | None = None
        self._scope: anyio.CancelScope | None = None  # made where there is an event loop
        self._stopped = False
        self._again = asyncio.Event()
        self.readable: tuple[str, ...] = ()
        """What it said that it has besides tools; it stays while the server is down."""
        self.left_out: dict[str, str] = {}
        """Why a tool of its list is not offered, by its name; without the server's secrets."""
        self._catalogue = Catalogue(config, sleep)
        self._calls: set[_Call] = set()
        self._last_words: deque[str] = deque(maxlen=_LAST_LINES)
        self._signed_out = False

    @property
    def trouble(self) -> str | None:
        """The reason why it is unavailable now; None while it is up."""
        if self._line is not None and self._line.client is not None:
            return None
        if self._why or self._line is None:
            return self._why or "it is still starting"
        waited = round((self._clock() - self._begun).total_seconds())
        since = f", for {waited} s now" if waited >= _SLOW_SECONDS else ""
        return f"it is still starting{since}"

    @property
    def signed_out(self) -> bool:
        """True if it is down because no one is signed in there."""
        return self.trouble is not None and self._signed_out

    @property
    def is_busy(self) -> bool:
        """True while calls are under way."""
        return bool(self._calls)

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
        if isinstance(self.keys, Keys):
            held = await self.keys.look()
            signed_in = held is not None and bool(held.tokens)
            by, at = (held.signed_in_by, held.signed_in_at) if held else (None, None)
            sign_in = SignInStatus(signed_in, by, at, self.keys.wanted)
        name = self.config.name
        said = [f"{tool} is left out: {why}" for tool, why in dict(self.left_out).items()]
        said[:0] = [self._catalogue.fault] if self._catalogue.fault else []
        left_out, many = shorten(one_line("; ".join(said)), 500), len(self.known)
        return ServerStatus(
            name,
            self.group,
            self.trouble,
            many,
            left_out,
            sign_in,
            self.signed_out,
            said=" / ".join(self._last_words) if self.trouble else "",
            is_starting=self.trouble is not None and not self.tried.is_set(),
        )

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

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        context: CallContext,
        *,
        is_unchanged: Callable[[types.Tool | None], bool] | None = None,
    ) -> types.CallToolResult:
        """Call a tool by the server's own name for it.

        ``is_unchanged`` says that it writes: it judges the tool as the server lists it right before the
        call, None where it is gone. Raises ToolError when it is certain that nothing happened or the server
        said what went wrong, and ToolTimedOut when a write may have happened.
        """
        longest = self.config.timeout + self._patience + LOOK_SECONDS

        def ask(client: Client) -> Awaitable[types.CallToolResult]:
            meta = cast("types.RequestParamsMeta", {DEPTH_META: context.depth + 1})
            return client.call_tool(name, dict(arguments), longest, self._telling(context), meta=meta)

        async def look(client: Client) -> None:
            with anyio.fail_after(LOOK_SECONDS):
                found = await self._catalogue.read(client)
            now = next((tool for tool in found if tool.name == name), None)
            if is_unchanged is not None and not is_unchanged(now):
                words = f"{self.config.name} changed {name} after it was shown. Nothing was done."
                raise ToolError(words)

        return await self.ask(ask, context, before=look if is_unchanged else None)

    async def ask(
        self,
        ask: Callable[[Client], Awaitable[T]],
        context: CallContext,
        *,
        before: Callable[[Client], Awaitable[None]] | None = None,
    ) -> T:
        """Ask the server for something; ``before`` comes first where it writes. Raises as `call` does."""
        line, client = await self._find_line()
        try:
            return await self._ask_on(line, client, ask, context, before)
        except _SessionLost:
            line, client = await self._follow(line)
        try:
            return await self._ask_on(line, client, ask, context, before)
        except _SessionLost as lost:
            said = str(lost)  # the same words in a new session are the tool's
            raise (ToolError(said) if said else self._unavailable(SESSION_LOST)) from None

    async def _ask_on(
        self,
        line: ServerLine,
        client: Client,
        ask: Callable[[Client], Awaitable[T]],
        context: CallContext,
        before: Callable[[Client], Awaitable[None]] | None,
    ) -> T:
        """Ask on one line. Raises _SessionLost where nothing was done because of that."""
        with self._calling(context, line) as call:
            if before is not None:
                await self._prepare(client, before)
            try:
                async with call.limit:
                    answer = await ask(client)
                    line.has_answered = True
                    return answer
            except TimeoutError:
                words = f"{self.config.name} did not answer within {self.config.timeout:g} s."
                raise ToolTimedOut(words) from None
            except MCPError as error:
                raise self._explain_error(error, line, writes=before is not None) from None
            except Exception as error:  # noqa: BLE001 - an answer that cannot be read
                words = tell_cause(self.config, error)
                raise self._tell_unread(words, writes=before is not None) from None

    async def _prepare(self, client: Client, before: Callable[[Client], Awaitable[None]]) -> None:
        """Look at what is to be called; whatever goes wrong here, nothing was asked for yet."""
        try:
            await before(client)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - of the SDK, or of what the server sends
            first = cause(error)
            if isinstance(first, MCPError) and first.code == FORGOTTEN:
                raise _SessionLost from None
            raise self._unavailable(tell_cause(self.config, error)) from None

    def _explain_error(self, error: MCPError, line: ServerLine, *, writes: bool) -> Exception:
        """Return the error to raise for a call that the server answered with an error."""
        name, words = self.config.name, tell_cause(self.config, error)
        if error.code == FORGOTTEN:
            return _SessionLost()
        if not writes and line.why == SESSION_LOST:
            return _SessionLost(f"{name} says: {words}")
        if error.code in _NOT_BEGUN:
            return self._unavailable(words)
        if error.code == BROKEN or is_line_closed(error):
            log.warning("an mcp server gave no answer", server=name, why=words, code=error.code)
            ended = ToolTimedOut(f"{name} ended before it answered ({words}).")
            if writes:
                return ended
            return self._unavailable(words)
        if error.code == UNREAD:
            return self._tell_unread(words, writes=writes)
        if not writes or error.code not in _UNKNOWN_END:
            return ToolError(f"{name} says: {words}")
        log.warning("an mcp server does not say what was done", server=name, why=words, code=error.code)
        return ToolTimedOut(f"{name} says: {words}. It does not say what was done.")

    def _tell_unread(self, words: str, *, writes: bool) -> ToolError:
        """Return the error for an answer that no one can read: a write may have been carried out."""
        log.warning("an mcp server answered badly", server=self.config.name, why=words)
        told = f"{self.config.name} gave an answer that can't be read ({words})."
        if writes:
            return ToolTimedOut(told)
        return ToolError(told)

    async def _find_line(self) -> tuple[ServerLine, Client]:
        """Return the line that takes calls; one that is renewed after a lost session is waited for."""
        line = self._line
        if line is not None and line.client is not None:
            return line, line.client
        if line is not None and (line.why == SESSION_LOST or line.renews):
            return await self._follow(line)
        raise self._unavailable(self.trouble or "it is still starting")

    async def _follow(self, line: ServerLine) -> tuple[ServerLine, Client]:
        """Return the next line that is up, after this one was lost.

        Raises ToolError where none comes soon.
        """
        try:
            async with asyncio.timeout(_RENEWAL_SECONDS):
                if line.lost.is_set():
                    await line.followed.wait()
                    line = line.next or line
                await line.decided.wait()
        except TimeoutError:
            raise self._unavailable(self.trouble or SESSION_LOST) from None
        if line.client is None:
            raise self._unavailable(line.why or SESSION_LOST)
        return line, line.client

    def _telling(self, context: CallContext) -> ProgressFnT:
        """Return a callback that passes on the server's progress: a share of a known total, and its words."""

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            counted = total is not None and 0 <= progress < math.inf and 0 < total < math.inf
            share = f"{min(progress / (total or 1), 1):.0%}" if counted else ""
            said = self.config.scrub((message or "")[:_MOST_PROGRESS])
            await context.progress(", ".join(filter(None, (share, said))))

        return tell

    def _unavailable(self, why: str) -> ToolError:
        return ToolError(f"{self.config.name} is unavailable right now ({why}). Nothing was done; try later.")

    @contextmanager
    def _calling(self, context: CallContext, line: ServerLine) -> Iterator["_Call"]:
        call = _Call(context, asyncio.timeout(self.config.timeout))
        self._calls.add(call)
        line.add(call)
        token = _caller.set(call)
        try:
            yield call
        finally:
            _caller.reset(token)
            self._calls.discard(call)
            line.remove(call)

    def _asking(self) -> "_Call | None":
        """Return the call in which the server asks.

        Older protocols don't say, so then there must be but one.
        """
        call = _caller.get()
        if call:
            return call
        if len(self._calls) == 1:
            return next(iter(self._calls))
        return None

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
            return await answer_question(self.config.name, self._ask, self._patience, whose, params)
        finally:
            if call is not None:
                call.wait_until(asyncio.get_running_loop().time() + self.config.timeout)

    # the owner

    async def _own(self, scope: anyio.CancelScope) -> None:
        line = ServerLine()
        with scope:
            try:
                async with anyio.create_task_group() as lines:
                    failures = 0
                    while True:
                        self._line = line
                        lines.start_soon(self._live_through, line)
                        await line.lost.wait()
                        self._tell_loss(line)
                        renews = line.why == SESSION_LOST and (line.has_answered or not failures)
                        if line.since is not None and self._clock() - line.since >= _STEADY:
                            failures = 0
                        if not renews:
                            await self._pause(min(2.0**failures, LONGEST_PAUSE))
                        failures = 0 if renews and line.has_answered else min(failures + 1, 10)
                        before, line = line, ServerLine(renews=renews)
                        before.follow(line)
            finally:
                self._why = "Nod is stopping"
                line.lose(self._why)
                line.follow(None)

    def _tell_loss(self, line: ServerLine) -> None:
        """Log why it is down: once for each reason, not at each attempt."""
        name, known = self.config.name, line.why == self._why and line.since is None
        self._why, self._signed_out = line.why, line.is_signed_out
        self.tried.set()
        if line.why == SESSION_LOST:
            log.info("an mcp server forgot its session", server=name)
        elif not known:
            log.warning("mcp server is down", server=name, why=line.why, said=" / ".join(self._last_words))

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; not after a sign-in."""
        self._again.clear()
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.create_task(self._again.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _live_through(self, line: ServerLine) -> None:
        """Start it, and stay with it to its end."""
        startup = self.config.startup_seconds
        try:
            # the SDK's client lives inside this scope, which therefore loses its deadline, not its place
            with anyio.CancelScope(deadline=anyio.current_time() + startup) as attempt:
                async with self._client_of(line) as client:
                    await self._catalogue.read(client)
                    self.readable = tuple(
                        what for what in READABLE if getattr(client.server_capabilities, what) is not None
                    )
                    attempt.deadline = math.inf
                    line.raise_up(client, self._clock())
                    self.tried.set()
                    self._why = ""
                    log.info("mcp server is up", server=self.config.name, tools=len(self.known))
                    await self._stay(client, line)
            if attempt.cancelled_caught:
                line.end(f"it did not start within {startup:g} s")
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing was asked for yet
            first = cause(error)
            refused = isinstance(first, MCPError) and first.code == REFUSED
            line.is_signed_out = self.keys is not None and refused
            again = isinstance(first, MCPError) and first.code == FORGOTTEN
            line.end(_NO_SESSION if again else tell_cause(self.config, error))
        line.end()

    def _client_of(self, line: ServerLine) -> Client:
        return Client(
            open_streams(self.config, line, self._heard, self.keys),
            read_timeout_seconds=max(self.config.startup_seconds, self.config.timeout, LOOK_SECONDS),
            message_handler=self._catalogue.take_notification,
            elicitation_callback=self._answer,
            client_info=types.Implementation(name="nod", version="1"),
            cache=None,
        )

    async def _stay(self, client: Client, line: ServerLine) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._catalogue.subscribe, client)
            tasks.start_soon(self._catalogue.keep_up, client)
            if isinstance(self.config.launch, Http):
                tasks.start_soon(self._watch, client, line)
            await line.over.wait()
            tasks.cancel_scope.cancel()

    async def _watch(self, client: Client, line: ServerLine) -> None:
        """Ask an address for a sign of life now and then: a line that no one uses does not break."""
        while True:
            await self._sleep(_WATCH_SECONDS)
            try:
                with anyio.fail_after(LOOK_SECONDS):
                    if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                        await client.session.send_discover(client.protocol_version)
                    else:
                        await client.session.send_ping()
                line.has_answered = True
            except TimeoutError:
                if not line.is_busy:
                    line.lose("it did not answer in time")
            except Exception as error:  # noqa: BLE001 - any answer is one, and a lost line tells by itself
                why = tell_cause(self.config, error)
                log.debug("an mcp server refused to be asked", server=self.config.name, why=why)

    def _heard(self, line: str) -> None:
        words = self.config.scrub(line)
        self._last_words.append(shorten(words, _MAX_LINE_CHARS))
        log.debug("mcp server said", server=self.config.name, line=words)


async def answer_question(
    server: str, ask: Ask, patience: float, call: CallContext | None, params: types.ElicitRequestParams
) -> types.ElicitResult:
    """Answer the server's question within ``call``; a person has ``patience`` seconds.

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
    problems = await asyncio.to_thread(question.problems, said.content)
    if problems:
        log.warning("an answer does not fit a server's question", server=server, fields=list(problems))
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content=None if url else dict(said.content))
