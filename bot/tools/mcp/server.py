"""One MCP server: started at its first use, called by any task, restarted when it dies.

A *line* (`ServerLine`) is one connection to the server. ("Connection" itself means something else in Nod: the
account under which calls are made.) A line has a *session*: an id from the server, which the server may
forget. A *lost* line takes no new calls, but calls in progress stay on it. A line is *over* when it is lost
and its calls have ended. (`ServerLine.lose` marks it as lost, `ServerLine.end` as lost and over.)

One task of the server, `Server._run_lines`, makes one line after the other. An SDK client must be entered and
left by the same task, so each line has a task that owns its client. Calls of other tasks use that client.

A call is sent a second time, on a new line, only if the server refused the session of the first line. Then it
is certain that nothing was done. A call that only reads is also repeated if the server *may* have refused the
session.

Nothing here knows risk or approval: see ``bot/tools/mcp/tools.py``.
"""

import asyncio
import contextvars
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

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
from bot.tools.call import CallContext
from bot.tools.mcp.address import SESSION_LOST_TEXT, SESSION_REFUSED_CODE, SIGN_IN_REFUSED_CODE
from bot.tools.mcp.call_errors import (
    SessionLostError,
    SessionMayBeLostError,
    explain_error,
    explain_unreadable,
    make_unavailable,
)
from bot.tools.mcp.catalogue import Catalogue, Sleep, describe_error, find_first_error
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.interface import AskPerson, ServerStatus, SignInStatus
from bot.tools.mcp.line import ServerLine
from bot.tools.mcp.questions import answer_question
from bot.tools.mcp.restarts import plan_restart
from bot.tools.mcp.running_calls import RunningCalls
from bot.tools.mcp.signin import SignInTokens
from bot.tools.mcp.transport import open_streams

log = logger(__name__)

T = TypeVar("T")

_MAX_PROGRESS_CHARS = 500  # a server's message about its progress
READABLE_CAPABILITIES = ("resources", "prompts")
"""The capabilities of a server that `ReadingTools` reads."""
QUICK_REQUEST_SECONDS = 10.0  # the time to read the list of tools before a write, or for a ping
_PING_SECONDS = 20.0  # between two pings of a server over HTTP
_RENEWAL_SECONDS = 20.0  # the time that a call waits for a new session
_KEPT_STDERR_LINES = 3  # the last lines, for the status
_MAX_STDERR_CHARS = 300  # of each of them
_MAX_REMARKS_CHARS = 500  # the remarks on the tools that are left out
_NEW_SESSION_REFUSED_TEXT = "it refuses the session that it has just given"
_SLOW_START_SECONDS = 5  # a slower start is reported with its time


class Server:
    """A server that is up, is down and restarts, or has not been used yet."""

    def __init__(
        self,
        config: ServerConfig,
        ask: AskPerson,
        *,
        clock: Clock,
        answer_seconds: float,
        tokens: TokenSource | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """``ask`` asks people what the server wants to know; they have ``answer_seconds`` to answer."""
        self.config = config
        self.tokens = tokens
        """The tokens of the sign-in or of a person's connection; None if people don't sign in there."""
        self.first_attempt_ended = asyncio.Event()
        """Set once the first attempt to start the server has succeeded or failed."""
        self._ask_person = ask
        self._answer_seconds = answer_seconds
        self._clock = clock
        self._sleep = sleep
        self._line: ServerLine | None = None
        self._created_at = clock()
        self._loss_reason = ""
        """The reason why the last line was lost; empty while the server is up."""
        self._task: asyncio.Task[None] | None = None  # runs `_run_lines`
        self._scope: anyio.CancelScope | None = None  # cancels the task; made in an event loop
        self._stopped = False
        self._retry_now = asyncio.Event()
        self.readable: tuple[str, ...] = ()
        """The server's capabilities among `READABLE_CAPABILITIES`; they stay while it is down."""
        self.left_out: dict[str, str] = {}
        """The reason why a tool is not offered, by its name; without the server's secrets."""
        self._catalogue = Catalogue(config, sleep, clock)
        self._calls = RunningCalls()
        self._stderr_lines: deque[str] = deque(maxlen=_KEPT_STDERR_LINES)
        self._signed_out = False

    @property
    def trouble(self) -> str | None:
        """The reason why the server is unavailable now; None while it is up."""
        if self._line is not None and self._line.client is not None:
            return None
        if self._loss_reason:
            return self._loss_reason
        if self._line is None:
            return "it is still starting"
        waited = round((self._clock() - self._created_at).total_seconds())
        since = f", for {waited} s now" if waited >= _SLOW_START_SECONDS else ""
        return f"it is still starting{since}"

    @property
    def signed_out(self) -> bool:
        """True if the server is down because no one is signed in at it."""
        return self.trouble is not None and self._signed_out

    @property
    def is_busy(self) -> bool:
        """True while calls are under way."""
        return bool(self._calls)

    @property
    def group(self) -> str:
        """The group of the server's tools."""
        return f"mcp:{self.config.name}"

    @property
    def tool_list(self) -> tuple[types.Tool, ...]:
        """The last list of tools the server gave; it stays while the server is down."""
        return self._catalogue.tool_list

    async def status(self) -> ServerStatus:
        sign_in = None
        if isinstance(self.tokens, SignInTokens):
            entry = await self.tokens.read_sign_in()
            signed_in = entry is not None and bool(entry.tokens)
            by, at = (entry.signed_in_by, entry.signed_in_at) if entry else (None, None)
            sign_in = SignInStatus(signed_in, by, at, self.tokens.wanted_scopes)
        return ServerStatus(
            name=self.config.name,
            group=self.group,
            trouble=self.trouble,
            tools=len(self.tool_list),
            left_out=self.describe_left_out(),
            sign_in=sign_in,
            signed_out=self.signed_out,
            said=" / ".join(self._stderr_lines) if self.trouble else "",
            is_starting=self.trouble is not None and not self.first_attempt_ended.is_set(),
        )

    def describe_left_out(self) -> str:
        """Return a text that names the tools that are not offered, with reasons; empty if all are offered."""
        remarks = [f"{tool} is left out: {why}" for tool, why in dict(self.left_out).items()]
        if self._catalogue.fault:
            remarks.insert(0, self._catalogue.fault)
        return shorten(one_line("; ".join(remarks)), _MAX_REMARKS_CHARS)

    def start(self) -> None:
        """Start the task that runs the server, once; the server comes up later."""
        if self._task is None and not self._stopped:
            self._scope = anyio.CancelScope()
            # in a separate context: the server outlives the turn that used it first
            self._task = asyncio.create_task(self._run_lines(self._scope), context=contextvars.Context())

    def retry_after_sign_in(self) -> None:
        """End the pause before the next attempt to start the server, since someone has signed in at it."""
        self._retry_now.set()

    async def stop(self) -> None:
        """End the process or close the connection permanently. Calls in progress fail."""
        self._stopped = True
        self.first_attempt_ended.set()
        if self._task is not None and self._scope is not None:
            self._scope.cancel()
            await asyncio.wait([self._task])

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        context: CallContext,
        *,
        is_unchanged: Callable[[types.Tool | None], bool] | None = None,
    ) -> types.CallToolResult:
        """Call a tool by the server's own name for it.

        ``is_unchanged`` is given for a tool that writes. It judges the tool as the server lists it right
        before the call, or None if the tool is gone. Raises ToolError if it is certain that nothing happened
        or the server said what went wrong, and ToolTimedOut if a write may have happened.
        """
        # a backstop for the call's own limit, which is suspended while a person answers
        max_seconds = self.config.timeout + self._answer_seconds + QUICK_REQUEST_SECONDS

        def call_tool(client: Client) -> Awaitable[types.CallToolResult]:
            # the server gets the number of agents' calls that led to this one
            meta = cast("types.RequestParamsMeta", {DEPTH_META: context.depth + 1})
            report = self._report_progress(context)
            return client.call_tool(
                name, dict(arguments), read_timeout_seconds=max_seconds, progress_callback=report, meta=meta
            )

        async def check_unchanged(client: Client) -> None:
            with anyio.fail_after(QUICK_REQUEST_SECONDS):
                listed = await self._catalogue.read(client)
            current = next((tool for tool in listed if tool.name == name), None)
            if is_unchanged is not None and not is_unchanged(current):
                words = f"{self.config.name} changed {name} after it was shown. Nothing was done."
                raise ToolError(words)

        write_check = check_unchanged if is_unchanged is not None else None
        return await self.send_request(call_tool, context, write_check=write_check)

    async def send_request(
        self,
        send: Callable[[Client], Awaitable[T]],
        context: CallContext,
        *,
        write_check: Callable[[Client], Awaitable[None]] | None = None,
    ) -> T:
        """Send a request to the server, a second time if its session was refused. Raises as `call` does.

        ``write_check``: for a request that writes, a check that runs before it; None for one that only reads.
        """
        line, client = await self._find_line()
        try:
            return await self._send_on(line, client, send, context, write_check)
        except SessionLostError:
            line, client = await self._wait_for_line(line)

        # the second time, on a line with a new session
        try:
            return await self._send_on(line, client, send, context, write_check)
        except SessionMayBeLostError as error:  # the same error in a new session is not about the session
            raise ToolError(error.text) from None
        except SessionLostError:
            raise make_unavailable(self.config, SESSION_LOST_TEXT) from None

    async def _send_on(
        self,
        line: ServerLine,
        client: Client,
        send: Callable[[Client], Awaitable[T]],
        context: CallContext,
        write_check: Callable[[Client], Awaitable[None]] | None,
    ) -> T:
        """Send a request on one line. Raises SessionLostError if it is to be sent again, else as `call` does.

        A request writes if it has a ``write_check``: see `send_request`.
        """
        writes = write_check is not None
        with self._calls.track(context, line, self.config.timeout) as call:
            if write_check is not None:
                await self._run_write_check(client, write_check)
            try:
                async with call.limit:
                    answer = await send(client)
                    line.has_answered = True
                    return answer
            except TimeoutError:
                words = f"{self.config.name} did not answer within {self.config.timeout:g} s."
                raise ToolTimedOut(words) from None
            except MCPError as error:
                raise explain_error(self.config, error, line, writes=writes) from None
            except Exception as error:  # noqa: BLE001 - an answer that cannot be read
                words = describe_error(self.config, error)
                raise explain_unreadable(self.config, words, writes=writes) from None

    async def _run_write_check(self, client: Client, check: Callable[[Client], Awaitable[None]]) -> None:
        """Run the check before a write. Whatever fails in it, the write was not sent.

        Raises ToolError, or SessionLostError if the session was refused.
        """
        try:
            await check(client)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - of the SDK, or of what the server sends
            first = find_first_error(error)
            if isinstance(first, MCPError) and first.code == SESSION_REFUSED_CODE:
                raise SessionLostError from None
            raise make_unavailable(self.config, describe_error(self.config, error)) from None

    async def _find_line(self) -> tuple[ServerLine, Client]:
        """Return the line that takes calls, and its client. Waits for a new line after a lost session."""
        line = self._line
        if line is not None and line.client is not None:
            return line, line.client
        if line is not None and (line.has_lost_session or line.replaces_lost_session):
            return await self._wait_for_line(line)
        raise make_unavailable(self.config, self.trouble or "it is still starting")

    async def _wait_for_line(self, line: ServerLine) -> tuple[ServerLine, Client]:
        """Wait until ``line`` is up, or the line after it if it is lost; return that line and its client.

        Raises ToolError if that line does not come up soon.
        """
        try:
            async with asyncio.timeout(_RENEWAL_SECONDS):
                if line.lost.is_set():
                    await line.next_set.wait()
                    line = line.next or line  # there is no next one if Nod is stopping
                await line.start_ended.wait()
        except TimeoutError:
            raise make_unavailable(self.config, self.trouble or SESSION_LOST_TEXT) from None
        if line.client is None:
            raise make_unavailable(self.config, line.reason or SESSION_LOST_TEXT)
        return line, line.client

    def _report_progress(self, context: CallContext) -> ProgressFnT:
        """Return a callback that passes on the server's progress: the share of the total, and a message."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            share = ""
            if total is not None and 0 <= progress < math.inf and 0 < total < math.inf:
                share = f"{min(progress / total, 1):.0%}"
            words = self.config.scrub((message or "")[:_MAX_PROGRESS_CHARS])
            await context.progress(", ".join(filter(None, (share, words))))

        return report

    async def _answer_question(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK gives it by this name
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        """Answer a question of the server. The call's time limit is suspended while a person answers."""
        call = self._calls.find_asking_call()
        if call is not None:
            call.set_deadline(None)
        try:
            context_of_call = call.context if call else None
            return await answer_question(
                self.config.name, self._ask_person, self._answer_seconds, context_of_call, params
            )
        finally:
            if call is not None:
                call.set_deadline(asyncio.get_running_loop().time() + self.config.timeout)

    async def _run_lines(self, scope: anyio.CancelScope) -> None:
        """Keep the server up: run one line after the other, until ``scope`` is cancelled."""
        line = ServerLine()
        with scope:
            try:
                async with anyio.create_task_group() as line_tasks:
                    failures = 0  # in a row
                    while True:
                        self._line = line
                        line_tasks.start_soon(self._run_line, line)
                        await line.lost.wait()
                        self._store_loss(line)
                        restart = plan_restart(line, failures, self._clock())
                        failures = restart.failures
                        if not restart.renews_session:
                            await self._pause(restart.pause_seconds)
                        next_line = ServerLine(replaces_lost_session=restart.renews_session)
                        line.set_next(next_line)
                        line = next_line
            finally:
                self._loss_reason = "Nod is stopping"
                line.lose(self._loss_reason)
                line.set_next(None)

    def _store_loss(self, line: ServerLine) -> None:
        """Store why the server is down, and log it. The same failure of starts in a row is logged once."""
        name = self.config.name
        # a start failed again, for the same reason
        is_same_failure = line.reason == self._loss_reason and line.up_since is None
        self._loss_reason = line.reason
        self._signed_out = line.is_signed_out
        self.first_attempt_ended.set()
        if line.has_lost_session:
            log.info("an mcp server forgot its session", server=name)
        elif not is_same_failure:
            log.warning(
                "mcp server is down", server=name, why=line.reason, said=" / ".join(self._stderr_lines)
            )

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt to start the server; a new sign-in ends the wait."""
        self._retry_now.clear()
        tasks = [asyncio.ensure_future(self._sleep(seconds)), asyncio.create_task(self._retry_now.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _run_line(self, line: ServerLine) -> None:
        """Start the server on this line, and own its client until the line is over."""
        startup = self.config.startup_seconds
        try:
            # the client lives inside this scope, whose deadline is for the start alone
            with anyio.CancelScope(deadline=anyio.current_time() + startup) as attempt:
                async with self._make_client(line) as client:
                    await self._catalogue.read(client)
                    capabilities = client.server_capabilities
                    self.readable = tuple(
                        name for name in READABLE_CAPABILITIES if getattr(capabilities, name) is not None
                    )
                    attempt.deadline = math.inf
                    line.come_up(client, self._clock())
                    self.first_attempt_ended.set()
                    self._loss_reason = ""
                    log.info("mcp server is up", server=self.config.name, tools=len(self.tool_list))
                    await self._maintain(client, line)
            if attempt.cancelled_caught:
                line.end(f"it did not start within {startup:g} s")
        except Exception as error:  # noqa: BLE001 - any failure of a start; nothing was called yet
            first = find_first_error(error)
            code = first.code if isinstance(first, MCPError) else None
            line.is_signed_out = self.tokens is not None and code == SIGN_IN_REFUSED_CODE
            if code == SESSION_REFUSED_CODE:
                line.end(_NEW_SESSION_REFUSED_TEXT)
            else:
                line.end(describe_error(self.config, error))
        line.end()  # if it was ended above, the reason given there stays

    def _make_client(self, line: ServerLine) -> Client:
        return Client(
            open_streams(self.config, line, self._note_stderr, self.tokens),
            read_timeout_seconds=max(self.config.startup_seconds, self.config.timeout, QUICK_REQUEST_SECONDS),
            message_handler=self._catalogue.take_notification,
            elicitation_callback=self._answer_question,
            client_info=types.Implementation(name="nod", version="1"),
            cache=None,
        )

    async def _maintain(self, client: Client, line: ServerLine) -> None:
        """Keep the list of tools current and the connection checked until the line is over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._catalogue.subscribe, client)
            tasks.start_soon(self._catalogue.reread_when_stale, client)
            # a process is not pinged, since its end is noticed without
            if isinstance(self.config.transport, Http):
                tasks.start_soon(self._ping, client, line)
            await line.over.wait()
            tasks.cancel_scope.cancel()

    async def _ping(self, client: Client, line: ServerLine) -> None:
        """Ping a server over HTTP now and then, since no one notices that an unused connection is broken."""
        while True:
            await self._sleep(_PING_SECONDS)
            try:
                with anyio.fail_after(QUICK_REQUEST_SECONDS):
                    if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                        await client.session.send_discover(client.protocol_version)
                    else:
                        await client.session.send_ping()
                line.has_answered = True
            except TimeoutError:
                if not line.is_busy:  # a server may be too busy with a call to answer a ping
                    line.lose("it did not answer in time")
            except Exception as error:  # noqa: BLE001 - an error is an answer, too; a lost line is noticed elsewhere
                why = describe_error(self.config, error)
                log.debug("an mcp server refused to be asked", server=self.config.name, why=why)

    def _note_stderr(self, text: str) -> None:
        words = self.config.scrub(text)
        self._stderr_lines.append(shorten(words, _MAX_STDERR_CHARS))
        log.debug("mcp server said", server=self.config.name, line=words)
