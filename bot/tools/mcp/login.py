"""Signing in at MCP servers that all people call under one account: an admin opens a page and comes back.

The flow is the SDK's. It discovers the sign-in server, registers Nod there if no client is configured, and
sends the person to a page. They come back with a code, which it exchanges for tokens.

The flow runs as a task of the process where it began (`_SignInRun`), and waits there for the code. The person
may come back to another process on the same database, which passes the code on through a row. Once the server
has accepted the tokens, they are stored as a `SignIn`, and `SignInTokens` (``signin.py``) sends them.

A restart, or the end of the person's time (`SIGN_IN_SECONDS`), ends a sign-in in progress; people begin
again. The sign-ins of single people (``authorization.py``) run in steps instead, and survive a restart.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import AuthorizationCodeResult
from pydantic import ValidationError

from bot.domain.chat import Clock
from bot.domain.text import hash_text
from bot.errors import SignInError
from bot.store import mcp as store
from bot.store.database import Database
from bot.store.mcp import SignIn, compute_token_end
from bot.telemetry.logs import logger
from bot.tools.mcp.authorization import (
    INITIALIZE_HEADERS,
    INITIALIZE_REQUEST,
    SignInFlowAuth,
    explain_registration,
    find_configured_client,
    set_auth_method,
    spell_issuer,
    with_scope,
)
from bot.tools.mcp.dialects import words_of
from bot.tools.mcp.interface import (
    SIGN_IN_OVER_TEXT,
    UNKNOWN_SIGN_IN_TEXT,
    BegunSignIn,
    ServerStatus,
    SignIns,
    make_no_server_error,
)
from bot.tools.mcp.server import Server
from bot.tools.mcp.signin import (
    Discovered,
    MemoryStorage,
    SignInTokens,
    make_client_metadata,
    make_sign_in_client,
)
from bot.tools.response_bounds import TooLarge

log = logger(__name__)

SIGN_IN_SECONDS = 600.0  # the seconds that a person has to sign in
_MAX_ACTIVE_RUNS = 20  # a further sign-in ends the oldest
_MAX_RUNS = 100  # the active sign-ins, and ended sign-ins whose outcome can still be asked for
_POLL_SECONDS = 0.5  # between two reads of a sign-in's row
_RETURN_KEYS = ("code", "iss", "error", "error_description")  # parameters of the address of return
_MAX_PARAMETER_CHARS = 4000
_MAX_REMOTE_SECONDS = 30.0  # the wait for another process to end a sign-in that runs there


@dataclass(eq=False)
class _SignInRun:
    """A sign-in that runs in this process, or has ended while its outcome can still be asked for."""

    server: Server
    tokens: SignInTokens
    """The tokens that the server has so far."""
    account: str
    """The account of the person who signs in."""
    sign_in_id: str
    page: asyncio.Future[str]
    """The page that the person is to open."""
    answer: asyncio.Future[AuthorizationCodeResult]
    """The code with which the person came back, or the error."""
    task: asyncio.Task[str] = field(init=False)
    """Runs the flow to its end; its result is the outcome in words."""
    state: str = ""
    """The random text by which the return of the person is matched to this sign-in."""
    server_words: str = ""
    """The last words of the sign-in server, if it refused."""

    def note_words(self, text: str) -> None:
        self.server_words = text

    @property
    def is_active(self) -> bool:
        return not (self.task.done() or self.task.cancelling())

    async def wait_for_outcome(self) -> str:
        """Wait for the end of the sign-in, and return its outcome in words. Raises SignInError."""
        await asyncio.wait({self.task})
        if self.task.cancelled():
            raise SignInError("This sign-in was ended. Start it again.")
        return self.task.result()


@dataclass
class SharedSignIns(SignIns):
    """All sign-ins of this process.

    ``get_return_address`` returns the address to which people are sent back. ``sign_in_seconds``: the seconds
    that they have to sign in.
    """

    servers: Iterable[Server]
    database: Database
    clock: Clock
    get_return_address: Callable[[], str]
    sign_in_seconds: float = SIGN_IN_SECONDS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _runs: dict[str, _SignInRun] = field(default_factory=dict)

    async def status(self) -> list[ServerStatus]:
        return [await server.status() for server in self.servers]

    def troubles(self) -> Mapping[str, str | None]:
        return {server.config.name: server.trouble for server in self.servers}

    def check(self, name: str) -> None:
        self._find_server(name)

    def _find_server(self, name: str) -> tuple[Server, SignInTokens]:
        """Return the server of that name and its tokens.

        Raises SignInError if people can't sign in there.
        """
        for server in self.servers:
            if server.config.name == name and isinstance(server.tokens, SignInTokens):
                return server, server.tokens
            if server.config.name == name:
                raise SignInError(f"No one signs in at {name}: its entry says how Nod gets in.")
        raise make_no_server_error(name)

    async def begin(self, name: str, by: str) -> BegunSignIn:
        """Begin a sign-in, and wait for its page; of too many the oldest ends. Raises SignInError."""
        loop = asyncio.get_running_loop()
        sign_in_id = secrets.token_urlsafe(12)
        server, tokens = self._find_server(name)
        run = _SignInRun(
            server, tokens, by, sign_in_id, page=loop.create_future(), answer=loop.create_future()
        )
        active_tasks = [other.task for other in self._runs.values() if other.is_active]
        if len(active_tasks) >= _MAX_ACTIVE_RUNS:
            active_tasks[0].cancel()
        if len(self._runs) >= _MAX_RUNS:
            oldest_id = next(iter(self._runs))
            self._runs.pop(oldest_id).task.cancel()
        self._runs[sign_in_id] = run
        run.task = asyncio.create_task(self._run_to_end(run), name=f"sign in at {name}")
        run.task.add_done_callback(_retrieve_error)
        await asyncio.wait({run.task, run.page}, return_when=asyncio.FIRST_COMPLETED)
        if not run.page.done():
            await run.wait_for_outcome()  # raises: a run that ends before its page has failed
        return BegunSignIn(sign_in_id, run.page.result())

    async def wait_for_end(self, ident: str) -> str:
        """Wait for the end of a sign-in, and return its outcome in words. Raises SignInError."""
        run = self._runs.get(ident)
        if run is not None:
            return await run.wait_for_outcome()
        return await self._wait_for_remote(hash_text(ident), UNKNOWN_SIGN_IN_TEXT)

    async def take_return(self, parameters: Mapping[str, str]) -> str:
        """Take the parameters with which a person came back, and return the outcome in words.

        Each ``state`` works once. Raises SignInError.
        """
        state = parameters.get("state", "")
        run = self._find_run(state)
        if run is not None:
            if not run.is_active or run.answer.done():
                raise SignInError(SIGN_IN_OVER_TEXT)
            _set_answer(run, parameters)
            return await run.wait_for_outcome()
        # the sign-in may run in another process, which reads the parameters from its row
        return_parameters = {
            key: parameters[key][:_MAX_PARAMETER_CHARS] for key in _RETURN_KEYS if key in parameters
        }
        row_key = await self.database.write(store.store_return, state, return_parameters, self.clock())
        if row_key is None:
            raise SignInError(SIGN_IN_OVER_TEXT)
        return await self._wait_for_remote(row_key, SIGN_IN_OVER_TEXT)

    def _find_run(self, state: str) -> _SignInRun | None:
        """Return the sign-in of this process with this ``state``; None if it has no such sign-in."""
        for run in self._runs.values():
            if state and run.state == state:
                return run
        return None

    async def _wait_for_remote(self, key: str, error_text: str) -> str:
        """Wait for the end of a sign-in that another process runs, and return its outcome in words.

        ``key``: of the sign-in's row. Raises SignInError, with the text ``error_text`` if there is no such
        sign-in or it does not end in time.
        """
        deadline = self.clock() + timedelta(seconds=_MAX_REMOTE_SECONDS)
        row = await self.database.read(store.find_sign_in, key)
        while row is not None and row.ended is None and self.clock() < deadline:
            await self.sleep(_POLL_SECONDS)
            row = await self.database.read(store.find_sign_in, key)
        if row is None or row.ended is None:
            raise SignInError(error_text)
        if not row.well:  # it failed, and `ended` says why
            raise SignInError(row.ended)
        server, _ = self._find_server(row.server)
        server.retry_after_sign_in()
        return row.ended

    async def sign_out(self, name: str) -> bool:
        """Delete the tokens. Return False if no one was signed in. Raises SignInError."""
        self.check(name)
        return await self.database.write(store.forget_sign_in, name)

    async def stop(self) -> None:
        """End all sign-ins."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_to_end(self, run: _SignInRun) -> str:
        """Run the sign-in, and store its outcome in its row."""
        try:
            words = await self._sign_in(run)
        except SignInError as error:
            await self.database.write(partial(store.end_sign_in, well=False), run.sign_in_id, error.message)
            raise
        await self.database.write(partial(store.end_sign_in, well=True), run.sign_in_id, words)
        return words

    async def _sign_in(self, run: _SignInRun) -> str:
        """Run the flow, store the tokens, and return the outcome in words. Raises SignInError."""
        name = run.server.config.name
        try:
            async with asyncio.timeout(self.sign_in_seconds):
                sign_in = await self._run_flow(run)
        except TimeoutError:
            raise SignInError(f"No one signed in at {name} in time. Start the sign-in again.") from None
        except OAuthRegistrationError:
            raise SignInError(
                explain_registration(name, self.get_return_address(), run.server_words)
            ) from None
        except (OAuthTokenError, ValidationError):
            why = f": {run.server_words}" if run.server_words else ""
            raise SignInError(f"{name} gave no token for this sign-in{why}. Start it again.") from None
        except OAuthFlowError as error:
            log.warning("a sign-in failed", server=name, why=str(error)[:500])
            raise SignInError(f"{name} describes its sign-in wrongly: {str(error)[:200]}") from None
        except (httpx2.HTTPError, httpx2.StreamError, TooLarge) as error:
            log.warning("a sign-in failed", server=name, why=type(error).__name__)
            raise SignInError(f"The sign-in of {name} can't be reached. Try again later.") from None
        await self.database.write(store.store_sign_in, sign_in)
        run.server.retry_after_sign_in()
        log.info("signed in at an mcp server", server=name, by=run.account)
        return f"You are signed in at {name}."

    async def _run_flow(self, run: _SignInRun) -> SignIn:
        """Run the SDK's flow, and return the new sign-in. Raises the SDK's errors and SignInError."""
        name = run.server.config.name
        http_config = run.tokens.http_config
        client = http_config.client
        back = self.get_return_address()
        configured_scopes = " ".join(client.scopes)
        # if the server has asked for more scopes since the last sign-in, ask for them and all granted ones
        more_scopes = await run.tokens.find_scopes() if run.tokens.wanted_scopes else ""
        metadata = make_client_metadata(back)
        # where the SDK's flow puts the tokens and the client
        storage = MemoryStorage(find_configured_client(client, back))

        # the SDK calls this with the page, before it asks for the code
        async def redirect(url: str) -> None:
            page = httpx2.URL(url)
            if page.scheme not in ("http", "https"):
                raise SignInError(f"{name} names no web page to sign in at.")
            metadata.scope = union_scopes(configured_scopes or metadata.scope, more_scopes)
            # writes into the client's registration how it proves itself when it exchanges the code
            set_auth_method(storage.client, client, flow.context.oauth_metadata)
            await self._store_state(run, page.params["state"])
            run.page.set_result(str(with_scope(page, metadata.scope)))

        # the SDK calls this after the page, and waits for the code
        async def wait_for_code() -> AuthorizationCodeResult:
            result = await self._wait_for_answer(run)
            # the SDK compares the issuer with its server's own spelling, where a final slash may differ
            return spell_issuer(result, flow.context.oauth_metadata)

        flow = OAuthClientProvider(http_config.url, metadata, storage, redirect, wait_for_code)
        # starts the flow even if the server lets anyone send `INITIALIZE_REQUEST`
        auth = SignInFlowAuth(flow, run.tokens.challenge, run.note_words)
        async with make_sign_in_client(http_config.url, auth=auth) as http:
            # The flow runs inside this request. At its end the SDK repeats the request with the new token.
            async with http.stream(
                "POST",
                http_config.url,
                json=INITIALIZE_REQUEST,
                headers=dict(http_config.headers) | INITIALIZE_HEADERS,
            ) as response:
                if response.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
                    raise SignInError(f"{name} does not accept the token of its own sign-in server.")
                session = response.headers.get("mcp-session-id")
            if session:
                await http.delete(
                    http_config.url, headers=dict(http_config.headers) | {"mcp-session-id": session}
                )
        discovered = Discovered(
            resource=flow.context.protected_resource_metadata, server=flow.context.oauth_metadata
        )
        return self._make_sign_in(run, storage, discovered)

    def _make_sign_in(self, run: _SignInRun, storage: MemoryStorage, discovered: Discovered) -> SignIn:
        """Return the sign-in with the tokens that the flow has put into ``storage``.

        Raises OAuthTokenError if it has put none there.
        """
        tokens = storage.tokens
        client_info = storage.client
        if tokens is None or client_info is None:
            raise OAuthTokenError("no token came")
        run.tokens.wanted_scopes = ""  # these scopes have now been asked for
        now = self.clock()
        return SignIn(
            server=run.server.config.name,
            url=run.tokens.http_config.url,
            client=client_info.model_dump_json(exclude_none=True),
            tokens=tokens.model_dump_json(exclude_none=True),
            found=discovered.model_dump_json(exclude_none=True),
            expires_at=compute_token_end(tokens.expires_in, now),
            signed_in_by=run.account,
            signed_in_at=now,
        )

    async def _store_state(self, run: _SignInRun, state: str) -> None:
        """Store a row with the ``state``. By it the code reaches this process if another one receives it."""
        run.state = state
        now = self.clock()
        until = now + timedelta(seconds=self.sign_in_seconds)
        name = run.server.config.name
        await self.database.write(store.begin_sign_in, run.sign_in_id, state, name, now, until)

    async def _wait_for_answer(self, run: _SignInRun) -> AuthorizationCodeResult:
        """Wait until the person has come back: to this process (`take_return`), or to another one."""
        while not run.answer.done():
            pause: asyncio.Future[Any] = asyncio.ensure_future(self.sleep(_POLL_SECONDS))
            futures: set[asyncio.Future[Any]] = {pause, run.answer}
            try:
                await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            finally:
                pause.cancel()
            # a read comes first, since a write every half second would be too much
            if not await self.database.read(store.has_returned, run.sign_in_id):
                continue
            parameters = await self.database.write(store.pop_return, run.sign_in_id)
            if parameters is not None and not run.answer.done():
                _set_answer(run, parameters | {"state": run.state})
        return run.answer.result()


def _set_answer(run: _SignInRun, parameters: Mapping[str, str]) -> None:
    """Give the code or the error with which a person came back to the flow that waits for it."""
    code = parameters.get("code")
    if code:
        result = AuthorizationCodeResult(code=code, state=parameters["state"], iss=parameters.get("iss"))
        run.answer.set_result(result)
    else:
        name = run.server.config.name
        words = words_of(dict(parameters))
        why = f": {words}" if words else ""
        error = SignInError(f"You were not let in at {name}{why}. Start the sign-in again.")
        run.answer.set_exception(error)


def _retrieve_error(task: asyncio.Task[str]) -> None:
    """Retrieve a task's error, so that asyncio does not log it. `_SignInRun.outcome` raises it for people."""
    if not task.cancelled():
        task.exception()
