"""Authorization at an MCP server (OAuth 2.1): a token on each request, refreshed where it is refused.

The SDK's own provider holds a lock while a request is under way, forgets what it discovered and when a token
ends, and asks people in the middle of a call. So requests go through `Bearer`, and the provider does what
needs no person here (refreshing) and what does in ``bot/tools/mcp/login.py`` (signing in).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urljoin

import httpx2
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    union_scopes,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.connections import TokenSource
from bot.store import mcp as store
from bot.store.database import Database
from bot.store.mcp import SignIn, find_token_end
from bot.telemetry.logs import logger
from bot.tools.intake import TooLarge, bound_response
from bot.tools.mcp.address import REFUSED
from bot.tools.mcp.config import Http
from bot.tools.mcp.dialects import fit_response

log = logger(__name__)

_SECONDS = 30.0  # for one request to a sign-in server
_LEEWAY = timedelta(seconds=30)  # a token that ends this soon is not sent any longer
_MOST_CHALLENGE = 4000  # characters
_LEASE = timedelta(seconds=60)
_LONGEST_SECONDS = 45.0  # for a refresh: less than the lease, so that no two are under way
_LOOK_SECONDS = 0.5  # how often another process's refreshing is looked at


class Discovered(BaseModel):
    """The metadata of a sign-in server that refreshing needs."""

    resource: ProtectedResourceMetadata | None = None
    server: OAuthMetadata | None = None


class SignInRows(Protocol):
    """The functions of a module that keeps sign-ins as rows, each one short transaction."""

    def find(self, session: Session, key: str, url: str) -> SignIn | None: ...

    def claim(self, session: Session, held: SignIn, now: datetime, until: datetime) -> bool: ...

    def renew(self, session: Session, held: SignIn, tokens: str, expires_at: datetime | None) -> bool: ...

    def spoil(self, session: Session, held: SignIn) -> bool: ...

    def release(self, session: Session, held: SignIn) -> bool: ...


class Keys:
    """The tokens of one sign-in at a server. ``wanted`` are scopes that the server asked for since.

    ``rows`` keep it under ``key``; ``again`` says how to sign in again.
    """

    def __init__(
        self,
        name: str,
        launch: Http,
        database: Database,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        rows: SignInRows = store,
        key: str = "",
        again: str = "",
    ) -> None:
        self.launch = launch
        self.wanted = ""
        self.challenge = ""
        """The server's last word on how to sign in there (``WWW-Authenticate``)."""
        self._name = name
        self._database = database
        self._clock = clock
        self._sleep = sleep
        self._rows = rows
        self._key = key or name
        self.again = again or f"Run: nod mcp login {name}"
        self._lock = asyncio.Lock()
        self._held: SignIn | None = None
        self._trouble = ""

    @property
    def why(self) -> str:
        """The reason why a request was refused, and what to do."""
        if self._trouble:
            return self._trouble
        held = self._held
        if held is not None and held.is_lost:
            return f"no key of NOD_SECRET_KEY opens its sign-in. {self.again}"
        if held is None or not held.tokens:
            done = "no one is signed in there" if held is None else "its sign-in has ended"
            return f"{done}. {self.again}"
        return f"it does not accept its sign-in. {self.again}"

    def note_challenge(self, challenge: str) -> None:
        """Keep the server's last word on how to sign in there."""
        self.challenge = challenge[:_MOST_CHALLENGE]

    def note_scope(self, scope: str) -> None:
        """Keep scopes that the server asked for."""
        self.wanted = f"{self.wanted} {scope}".strip()[-1000:]

    async def scopes(self) -> str:
        """Return the scopes allowed before, and those that the server has asked for since."""
        held = await self.look()
        if held and held.tokens:
            before = OAuthToken.model_validate_json(held.tokens).scope
        else:
            before = None
        return union_scopes(before, self.wanted) or ""

    async def look(self) -> SignIn | None:
        """Return the sign-in as it is kept right now."""
        if not self._database.there:
            return None  # to look would make it
        try:
            held = await self._database.read(self._rows.find, self._key, self.launch.url)
        except DBAPIError:  # of an older release, which knows no sign-ins
            return None
        if held is not None and held.tokens:
            tokens = OAuthToken.model_validate_json(held.tokens)
            self.launch.learned.update(filter(None, (tokens.access_token, tokens.refresh_token)))
        return held

    async def token(self, refused: str | None = None) -> str | None:
        """Return a token to send; another one than ``refused``. None where no way leads to one.

        Of the row as it is now: people sign in and out at any process.
        """
        async with self._lock:
            self._held = held = await self.look()
            if held is None or not held.tokens:
                self._trouble = ""
                return None
            tokens = OAuthToken.model_validate_json(held.tokens)
            over = held.expires_at is not None and self._clock() >= held.expires_at - _LEEWAY
            if tokens.access_token != refused and not over:
                self._trouble = ""
                return tokens.access_token
            if not tokens.refresh_token:
                if refused:
                    return None
                return tokens.access_token
            self._held = await self._refresh(held)
            if self._held is None or not self._held.tokens or self._held.version == held.version:
                return None
            return OAuthToken.model_validate_json(self._held.tokens).access_token

    async def _refresh(self, held: SignIn) -> SignIn | None:
        """Return the sign-in with new tokens, by us or by another process; or as it was, or without any."""
        while not await self._database.write(self._rows.claim, held, self._clock(), self._clock() + _LEASE):
            now = await self.look()
            if now is None or now.version != held.version:
                return now
            await self._sleep(_LOOK_SECONDS)
        tokens, final = await self._ask_for_tokens(held)
        if tokens is not None:
            until = find_token_end(tokens.expires_in, self._clock())
            await self._database.write(self._rows.renew, held, tokens.model_dump_json(), until)
        else:
            await self._database.write(self._rows.spoil if final else self._rows.release, held)
        return await self.look()

    async def _ask_for_tokens(self, held: SignIn) -> tuple[OAuthToken | None, bool]:
        """Request new tokens. Return them, or None and True if the refusal is final."""
        self._trouble = ""
        try:
            async with asyncio.timeout(_LONGEST_SECONDS), sign_in_client(self.launch.url) as client:
                response = await client.send(_renewal(held))
                response = fit_response(response, None)
                if response.status_code == httpx2.codes.OK:
                    fresh = OAuthToken.model_validate_json(response.content)
                    before = OAuthToken.model_validate_json(held.tokens)
                    kept = {"refresh_token": before.refresh_token, "scope": before.scope}
                    given = fresh.model_dump(exclude_none=True)
                    return OAuthToken.model_validate(kept | given), False
                final = response.status_code in (400, 401, 403)
                why = f"HTTP {response.status_code}"
        except (httpx2.HTTPError, httpx2.StreamError, TooLarge, TimeoutError, ValidationError) as error:
            final, why = False, type(error).__name__
        log.warning("an mcp server's sign-in was not renewed", server=self._name, why=why, final=final)
        if not final:
            self._trouble = "its sign-in server gave no new token. Try again later"
        return None, final


def _renewal(held: SignIn) -> httpx2.Request:
    """Return the request for new tokens (RFC 6749, section 6; RFC 8707 for the resource)."""
    found = Discovered.model_validate_json(held.found)
    client = OAuthClientInformationFull.model_validate_json(held.client)
    context = make_context(held.url, client, found)
    tokens = OAuthToken.model_validate_json(held.tokens)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": tokens.refresh_token or "",
        "client_id": client.client_id or "",
    }
    if found.resource is not None:
        form["resource"] = context.get_resource_url()
    form, headers = context.prepare_token_auth(form, {"Accept": "application/json"})
    if found.server:
        address = str(found.server.token_endpoint)
    else:
        address = urljoin(held.url, "/token")
    return httpx2.Request("POST", address, data=form, headers=headers)


def make_context(url: str, client: OAuthClientInformationFull, found: Discovered) -> OAuthContext:
    """Return the SDK's view of a sign-in, for requests that need no person."""
    return OAuthContext(
        url, metadata_of("http://127.0.0.1/"), Memory(), None, None,
        client_info=client, protected_resource_metadata=found.resource,
    )  # fmt: skip


@dataclass
class Memory:
    """The SDK's ``TokenStorage``, for one sign-in: that becomes one row, written when all is known."""

    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Bearer(httpx2.Auth):
    """Puts the token on each request. What stays refused is answered in words, as a JSON-RPC error."""

    def __init__(self, keys: TokenSource | None, url: str) -> None:
        """``keys`` None: the configuration has its own header, so there is nothing to renew.

        The token goes to the origin of ``url`` alone.
        """
        self._keys = keys
        self._origin = _origin_of(httpx2.URL(url))

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if _origin_of(request.url) != self._origin:
            yield request
            return
        sent = await self._keys.token() if self._keys else None
        if sent is not None:
            request.headers["Authorization"] = f"Bearer {sent}"
        response = yield request
        if response.status_code == httpx2.codes.UNAUTHORIZED and self._keys is not None:
            self._keys.note_challenge(response.headers.get("WWW-Authenticate", ""))
            token = await self._keys.token(refused=sent or "")
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
                response = yield request
        why = self._why(response)
        if why:
            _say(response, why)

    def _why(self, response: httpx2.Response) -> str:
        """Return why it was refused; empty where it was not. HTTP's 401 and 403 say that nothing was done."""
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            if self._keys:
                return self._keys.why
            return 'it does not accept the "headers" of its entry (401)'
        if response.status_code != httpx2.codes.FORBIDDEN:
            return ""
        if self._keys is None or extract_field_from_www_auth(response, "error") != "insufficient_scope":
            return "it forbids this (403)"
        scope = (extract_scope_from_www_auth(response) or "")[:200]
        self._keys.note_scope(scope)
        return f"its sign-in does not allow this ({scope or 'no scope named'}). {self._keys.again}"


def _origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _say(response: httpx2.Response, why: str) -> None:
    """Replace a response by a JSON-RPC error with our code: the SDK would blur its meaning."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": REFUSED, "message": why}}
    response.headers["Content-Type"] = "application/json"
    response.stream = _Words(json.dumps(error).encode(), response.stream)


class _Words(httpx2.AsyncByteStream):
    def __init__(self, words: bytes, instead_of: Any) -> None:
        self._words = words
        self._instead_of = instead_of

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._words

    async def aclose(self) -> None:
        await self._instead_of.aclose()


def sign_in_client(url: str, **given: Any) -> httpx2.AsyncClient:
    """Return a client for what an MCP server at ``url`` says about signing in: bounded, and over TLS.

    It raises UnsafeAddress for an address without TLS, unless the server is on this machine and so is that.
    """

    async def safe(request: httpx2.Request) -> None:
        here = _is_here(httpx2.URL(url)) and _is_here(request.url)
        same = (request.url.scheme, request.url.netloc) == (httpx2.URL(url).scheme, httpx2.URL(url).netloc)
        if request.url.scheme != "https" and not here and not same:
            raise UnsafeAddress(f"{request.url.host} is asked without TLS")

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity"},
        timeout=_SECONDS,
        follow_redirects=False,
        event_hooks={"request": [safe], "response": [bound_response]},
        **given,
    )


class UnsafeAddress(httpx2.RequestError):
    """A sign-in server is to be asked without TLS."""


def _is_here(url: httpx2.URL) -> bool:
    return url.host in ("127.0.0.1", "::1", "localhost")


def metadata_of(back: str, scope: str | None = None) -> OAuthClientMetadata:
    """Return Nod's client metadata for a sign-in server; ``back`` is the address of return."""
    here = _is_here(httpx2.URL(back))
    return OAuthClientMetadata(
        redirect_uris=[AnyUrl(back)],
        client_name="Nod",
        scope=scope,
        application_type="native" if here else "web",
    )
