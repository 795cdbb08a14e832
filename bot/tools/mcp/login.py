"""Signing in at MCP servers: a person opens a page, agrees there, and comes back with a code.

The flow is the SDK's: discovery, registration where no client is configured, PKCE, the exchange. It waits in
the process where it began, and is kept only once the server has taken the token. The person may come back to
any process on the database: it leaves what they bring in a row for that one. A restart ends the sign-ins
under way, and so does `patience`; people begin again.
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
from bot.store.mcp import SignIn, find_token_end
from bot.telemetry.logs import logger
from bot.tools.intake import TooLarge
from bot.tools.mcp.authorization import (
    HELLO,
    HELLO_HEADERS,
    AskingAuth,
    explain_registration,
    find_configured_client,
    name_proof,
    set_scope,
    spell_issuer,
)
from bot.tools.mcp.base import OVER, UNKNOWN, ServerStatus, SignIns, no_server
from bot.tools.mcp.dialects import words_of
from bot.tools.mcp.server import Server
from bot.tools.mcp.signin import Discovered, Keys, Memory, metadata_of, sign_in_client

log = logger(__name__)

PATIENCE = 600.0  # seconds that a person has
_MOST = 20  # sign-ins under way; the oldest makes room
_KEPT = 100  # whose end can still be asked for
_LOOK_SECONDS = 0.5  # how often a sign-in of another process is looked at
_BROUGHT = ("code", "iss", "error", "error_description")
_MAX_BROUGHT_CHARS = 4000
_LONGEST_LOOK = 30.0  # seconds for that process to end it


@dataclass(eq=False)
class _Going:
    """A sign-in under way, or one whose end can still be asked for."""

    server: Server
    keys: Keys
    by: str
    ident: str
    page: asyncio.Future[str]
    answer: asyncio.Future[AuthorizationCodeResult]
    task: asyncio.Task[str] = field(init=False)
    state: str = ""
    words: str = ""
    """What the sign-in server said last, where that is a refusal."""

    def hear(self, words: str) -> None:
        """Keep what the sign-in server said last."""
        self.words = words

    @property
    def under_way(self) -> bool:
        return not (self.task.done() or self.task.cancelling())

    async def outcome(self) -> str:
        """Wait for the end of the sign-in, and return its text. Raises SignInError."""
        await asyncio.wait({self.task})
        if self.task.cancelled():
            raise SignInError("This sign-in was ended. Start it again.")
        return self.task.result()


@dataclass
class Logins(SignIns):
    """All sign-ins under way. ``back`` tells where people come back to, once Nod knows its port."""

    servers: Iterable[Server]
    database: Database
    clock: Clock
    back: Callable[[], str]
    patience: float = PATIENCE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _going: dict[str, _Going] = field(default_factory=dict)

    async def status(self) -> list[ServerStatus]:
        return [await server.status() for server in self.servers]

    def troubles(self) -> Mapping[str, str | None]:
        return {server.config.name: server.trouble for server in self.servers}

    def check(self, name: str) -> tuple[Server, Keys]:
        """Return the server of that name, where people can sign in. Raises SignInError."""
        for server in self.servers:
            if server.config.name == name and isinstance(server.keys, Keys):
                return server, server.keys
            if server.config.name == name:
                raise SignInError(f"No one signs in at {name}: its entry says how Nod gets in.")
        raise no_server(name)

    async def begin(self, name: str, by: str) -> tuple[str, str]:
        """Begin a sign-in, and return its name and the page that a person is to open. Raises SignInError."""
        loop = asyncio.get_running_loop()
        ident = secrets.token_urlsafe(12)
        going = _Going(*self.check(name), by, ident, loop.create_future(), loop.create_future())
        under_way = [each.task for each in self._going.values() if each.under_way]
        if len(under_way) >= _MOST:
            under_way[0].cancel()
        if len(self._going) >= _KEPT:
            self._going.pop(next(iter(self._going))).task.cancel()
        self._going[ident] = going
        going.task = asyncio.create_task(self._run(going), name=f"sign in at {name}")
        going.task.add_done_callback(_note_failure)
        await asyncio.wait({going.task, going.page}, return_when=asyncio.FIRST_COMPLETED)
        if not going.page.done():
            await going.outcome()  # raises what went wrong
        return ident, going.page.result()

    async def ended(self, ident: str) -> str:
        """Wait for the end of a sign-in, and return its text. Raises SignInError."""
        going = self._going.get(ident)
        if going is not None:
            return await going.outcome()
        return await self._elsewhere(hash_text(ident), UNKNOWN)

    async def came_back(self, said: Mapping[str, str]) -> str:
        """Take what the sign-in server sent the person back with; each state is good for once.

        Raises SignInError.
        """
        state = said.get("state", "")
        going = next((each for each in self._going.values() if state and each.state == state), None)
        if going is None:
            brought = {name: said[name][:_MAX_BROUGHT_CHARS] for name in _BROUGHT if name in said}
            key = await self.database.write(store.come_back, state, brought, self.clock())
            if key is None:
                raise SignInError(OVER)
            return await self._elsewhere(key, OVER)
        if not going.under_way or going.answer.done():
            raise SignInError(OVER)
        _answer(going, said)
        return await going.outcome()

    async def _elsewhere(self, key: str, unknown: str) -> str:
        """Wait for the end of a sign-in that another process runs. Raises SignInError."""
        last = self.clock() + timedelta(seconds=_LONGEST_LOOK)
        while (
            found := await self.database.read(store.find_sign_in, key)
        ) is not None and found.ended is None:
            if self.clock() >= last:
                break
            await self.sleep(_LOOK_SECONDS)
        if found is None or found.ended is None:
            raise SignInError(unknown)
        if not found.well:
            raise SignInError(found.ended)
        self.check(found.server)[0].signed_in()
        return found.ended

    async def sign_out(self, name: str) -> bool:
        """Forget the tokens; False where no one was signed in. Raises SignInError."""
        self.check(name)
        return await self.database.write(store.forget_sign_in, name)

    async def stop(self) -> None:
        """End those under way."""
        tasks = [each.task for each in self._going.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, going: _Going) -> str:
        """Run the sign-in, and store its outcome in its row."""
        try:
            words = await self._sign_in(going)
        except SignInError as error:
            await self.database.write(partial(store.end, well=False), going.ident, error.message)
            raise
        await self.database.write(partial(store.end, well=True), going.ident, words)
        return words

    async def _sign_in(self, going: _Going) -> str:
        name = going.server.config.name
        try:
            async with asyncio.timeout(self.patience):
                made = await self._run_flow(going)
        except TimeoutError:
            raise SignInError(f"No one signed in at {name} in time. Start the sign-in again.") from None
        except OAuthRegistrationError:
            raise SignInError(explain_registration(name, self.back(), going.words)) from None
        except (OAuthTokenError, ValidationError):
            why = f": {going.words}" if going.words else ""
            raise SignInError(f"{name} gave no token for this sign-in{why}. Start it again.") from None
        except OAuthFlowError as error:
            log.warning("a sign-in failed", server=name, why=str(error)[:500])
            raise SignInError(f"{name} describes its sign-in wrongly: {str(error)[:200]}") from None
        except (httpx2.HTTPError, httpx2.StreamError, TooLarge) as error:
            log.warning("a sign-in failed", server=name, why=type(error).__name__)
            raise SignInError(f"The sign-in of {name} can't be reached. Try again later.") from None
        await self.database.write(store.store_sign_in, made)
        going.server.signed_in()
        log.info("signed in at an mcp server", server=name, by=going.by)
        return f"You are signed in at {name}."

    async def _run_flow(self, going: _Going) -> SignIn:
        """Go through the flow. Raises what the SDK raises, and SignInError."""
        name, keys = going.server.config.name, going.keys
        launch, back = keys.launch, self.back()
        client = launch.client
        instead, more = " ".join(client.scopes), await keys.scopes() if keys.wanted else ""
        about, kept = metadata_of(back), Memory(find_configured_client(client, back))

        async def redirect(url: str) -> None:
            page = httpx2.URL(url)
            if page.scheme not in ("http", "https"):
                raise SignInError(f"{name} names no web page to sign in at.")
            about.scope = union_scopes(instead or about.scope, more)
            name_proof(kept.client, client, flow.context.oauth_metadata)
            going.state = page.params["state"]
            now = self.clock()
            until = now + timedelta(seconds=self.patience)
            await self.database.write(store.begin_sign_in, going.ident, going.state, name, now, until)
            going.page.set_result(str(set_scope(page, about.scope)))

        async def callback() -> AuthorizationCodeResult:
            while not going.answer.done():
                pause: asyncio.Future[Any] = asyncio.ensure_future(self.sleep(_LOOK_SECONDS))
                waits: set[asyncio.Future[Any]] = {pause, going.answer}
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    pause.cancel()
                if not await self.database.read(store.is_back, going.ident):
                    continue
                said = await self.database.write(store.take_back, going.ident)
                if said is not None and not going.answer.done():
                    _answer(going, said | {"state": going.state})
            return spell_issuer(going.answer.result(), flow.context.oauth_metadata)

        flow = OAuthClientProvider(launch.url, about, kept, redirect, callback)
        async with sign_in_client(launch.url, auth=AskingAuth(flow, keys.challenge, going.hear)) as http:
            async with http.stream(
                "POST", launch.url, json=HELLO, headers=dict(launch.headers) | HELLO_HEADERS
            ) as response:
                if response.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
                    raise SignInError(f"{name} does not accept the token of its own sign-in server.")
                session = response.headers.get("mcp-session-id")
            if session:
                await http.delete(launch.url, headers=dict(launch.headers) | {"mcp-session-id": session})
        tokens, info = kept.tokens, kept.client
        if tokens is None or info is None:
            raise OAuthTokenError("no token came")
        found = Discovered(
            resource=flow.context.protected_resource_metadata, server=flow.context.oauth_metadata
        )
        keys.wanted = ""
        now = self.clock()
        return SignIn(
            name,
            launch.url,
            info.model_dump_json(exclude_none=True),
            tokens.model_dump_json(exclude_none=True),
            found.model_dump_json(exclude_none=True),
            find_token_end(tokens.expires_in, now),
            going.by,
            now,
        )


def _answer(going: _Going, said: Mapping[str, str]) -> None:
    """Give it what the person came back with."""
    code = said.get("code")
    if code:
        found = AuthorizationCodeResult(code=code, state=said["state"], iss=said.get("iss"))
        going.answer.set_result(found)
    else:
        name = going.server.config.name
        words = words_of(dict(said))
        why = f": {words}" if words else ""
        error = SignInError(f"You were not let in at {name}{why}. Start the sign-in again.")
        going.answer.set_exception(error)


def _note_failure(task: asyncio.Task[str]) -> None:
    """Retrieve a task's error, so that asyncio does not log it; people are told elsewhere."""
    if not task.cancelled():
        task.exception()
