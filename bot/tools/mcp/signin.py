"""Authorization at an MCP server (OAuth 2.1): a token on each request, refreshed if expired or refused.

A *sign-in* is the row with the tokens that a person got for Nod at the server. `SignInTokens` reads that row,
and refreshes its tokens at the *sign-in server*, which issued them. `Bearer` puts the access token on each
HTTP request. The SDK's own provider is not used: it holds a lock during a request, forgets the metadata and
the time at which a token expires, and asks people in the middle of a call. ``login.py`` signs people in.
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
from bot.store.mcp import SignIn, compute_token_end
from bot.telemetry.logs import logger
from bot.tools.mcp.address import SIGN_IN_REFUSED_CODE
from bot.tools.mcp.config import Http
from bot.tools.mcp.dialects import fit_response
from bot.tools.response_bounds import TooLarge, bound_response

log = logger(__name__)

_REQUEST_SECONDS = 30.0  # for one request to a sign-in server
_EXPIRY_MARGIN = timedelta(seconds=30)  # a token is refreshed this long before it expires
_MAX_CHALLENGE_CHARS = 4000
_MAX_SCOPES_CHARS = 1000  # the scopes that the server asked for last
_REFRESH_LEASE = timedelta(seconds=60)  # the time in which no other process refreshes the same sign-in
_REFRESH_SECONDS = 45.0  # for a refresh; less than the lease, so that two never run at the same time
_POLL_SECONDS = 0.5  # between two reads of the row while another process refreshes its tokens
_REFUSED_FOR_GOOD_STATUSES = frozenset({400, 401, 403})  # of a refresh; 400 and 401 by RFC 6749, 5.2


class Discovered(BaseModel):
    """The metadata that a refresh needs: of an MCP server (``resource``) and of its sign-in server."""

    resource: ProtectedResourceMetadata | None = None
    server: OAuthMetadata | None = None


class _NoNewTokens(Exception):
    """A refresh brought no new tokens."""


class _RefusedForGood(_NoNewTokens):
    """The sign-in server refuses to refresh the tokens, now and later."""


class SignInRows(Protocol):
    """A module that stores sign-ins as rows. Each function is one short transaction.

    ``held`` is a sign-in as the caller read it. All functions but `find` return False if its row has changed
    since then.
    """

    def find(self, session: Session, key: str, url: str) -> SignIn | None:
        """Return the sign-in that is stored under ``key``; None if it is missing, or for another address."""

    def claim_refresh(self, session: Session, held: SignIn, now: datetime, until: datetime) -> bool:
        """Claim the refresh of the sign-in's tokens until a time."""

    def store_refreshed_tokens(
        self, session: Session, held: SignIn, tokens: str, expires_at: datetime | None
    ) -> bool:
        """Store new tokens, and release the claim."""

    def clear_refused_tokens(self, session: Session, held: SignIn) -> bool:
        """Remove the sign-in's tokens, which are refused for good."""

    def release_refresh(self, session: Session, held: SignIn) -> bool:
        """Release the claim without new tokens."""


class SignInTokens:
    """The tokens of one sign-in at a server. They are read from the row each time: any process may change it.

    ``http_config``: the server's configured address. ``rows``: the module that stores the sign-in, under
    ``key``.
    ``sign_in_hint``: a sentence that tells people how to sign in again.
    """

    def __init__(
        self,
        name: str,
        http_config: Http,
        database: Database,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        rows: SignInRows = store,
        key: str = "",
        sign_in_hint: str = "",
    ) -> None:
        self.http_config = http_config
        self.wanted_scopes = ""
        """The scopes that the server has asked for since the sign-in, with spaces between them."""
        self.challenge = ""
        """The server's last ``WWW-Authenticate`` header, which says how to sign in."""
        self._name = name
        self._database = database
        self._clock = clock
        self._sleep = sleep
        self._rows = rows
        self._key = key or name
        self.sign_in_hint = sign_in_hint or f"Run: nod mcp login {name}"
        self._lock = asyncio.Lock()
        self._sign_in: SignIn | None = None
        self._trouble = ""

    @property
    def failure_reason(self) -> str:
        """The reason why the last request had no token or was refused, and what people can do."""
        if self._trouble:
            return self._trouble
        sign_in = self._sign_in
        if sign_in is not None and sign_in.is_lost:
            # its tokens are stored encrypted
            return f"no key of NOD_SECRET_KEY opens its sign-in. {self.sign_in_hint}"
        if sign_in is None or not sign_in.tokens:
            state = "no one is signed in there" if sign_in is None else "its sign-in has ended"
            return f"{state}. {self.sign_in_hint}"
        return f"it does not accept its sign-in. {self.sign_in_hint}"

    def note_challenge(self, challenge: str) -> None:
        """Remember the last ``WWW-Authenticate`` header of the server."""
        self.challenge = challenge[:_MAX_CHALLENGE_CHARS]

    def note_scope(self, scope: str) -> None:
        """Remember the scopes that the server asked for, with spaces between them."""
        self.wanted_scopes = f"{self.wanted_scopes} {scope}".strip()[-_MAX_SCOPES_CHARS:]

    async def find_scopes(self) -> str:
        """Return the scopes of the sign-in and those that the server has asked for since, with spaces."""
        sign_in = await self.read_sign_in()
        granted = None
        if sign_in and sign_in.tokens:
            granted = OAuthToken.model_validate_json(sign_in.tokens).scope
        return union_scopes(granted, self.wanted_scopes) or ""

    async def read_sign_in(self) -> SignIn | None:
        """Return the sign-in as it is stored right now; None if it is missing.

        Its tokens are hidden from now on in everything that the server says.
        """
        if not self._database.exists:
            return None  # a read would create the database
        try:
            sign_in = await self._database.read(self._rows.find, self._key, self.http_config.url)
        except DBAPIError:  # the database of an older release has no table of sign-ins
            return None
        if sign_in is not None and sign_in.tokens:
            tokens = OAuthToken.model_validate_json(sign_in.tokens)
            # `ServerConfig.scrub` hides the texts in this set
            self.http_config.sign_in_tokens.update(filter(None, (tokens.access_token, tokens.refresh_token)))
        return sign_in

    async def get_token(self, refused: str | None = None) -> str | None:
        """Return a token to send, refreshed if necessary; None if there is no token that may be accepted.

        ``refused``: the token that the server has just refused; None if it has refused none.
        """
        async with self._lock:
            sign_in = await self.read_sign_in()
            self._sign_in = sign_in
            if sign_in is None or not sign_in.tokens:
                self._trouble = ""
                return None
            tokens = OAuthToken.model_validate_json(sign_in.tokens)
            if tokens.access_token != refused and not self._has_expired(sign_in):
                self._trouble = ""
                return tokens.access_token
            if not tokens.refresh_token:
                if refused:
                    return None
                return tokens.access_token  # it has expired by our clock, but the server may still take it
            renewed = await self._refresh(sign_in)
            self._sign_in = renewed
            if renewed is None or not renewed.tokens:
                return None
            if renewed.version == sign_in.version:  # no new tokens came
                return None
            return OAuthToken.model_validate_json(renewed.tokens).access_token

    def _has_expired(self, sign_in: SignIn) -> bool:
        return sign_in.expires_at is not None and self._clock() >= sign_in.expires_at - _EXPIRY_MARGIN

    async def _refresh(self, sign_in: SignIn) -> SignIn | None:
        """Refresh the tokens, or wait until another process did, and return the stored sign-in.

        After a temporary failure the sign-in is as before. If its server refuses the refresh for good, the
        sign-in has no tokens.
        """
        while not await self._claim_refresh(sign_in):
            current = await self.read_sign_in()
            if current is None or current.version != sign_in.version:
                return current
            await self._sleep(_POLL_SECONDS)
        try:
            tokens = await self._request_tokens(sign_in)
        except _RefusedForGood:
            await self._database.write(self._rows.clear_refused_tokens, sign_in)
        except _NoNewTokens:
            await self._database.write(self._rows.release_refresh, sign_in)
        else:
            expires_at = compute_token_end(tokens.expires_in, self._clock())
            await self._database.write(
                self._rows.store_refreshed_tokens, sign_in, tokens.model_dump_json(), expires_at
            )
        return await self.read_sign_in()

    async def _claim_refresh(self, sign_in: SignIn) -> bool:
        now = self._clock()
        return await self._database.write(self._rows.claim_refresh, sign_in, now, now + _REFRESH_LEASE)

    async def _request_tokens(self, sign_in: SignIn) -> OAuthToken:
        """Request new tokens. Raises _RefusedForGood or, for a temporary failure, _NoNewTokens."""
        self._trouble = ""
        try:
            async with asyncio.timeout(_REFRESH_SECONDS), make_sign_in_client(self.http_config.url) as client:
                response = await client.send(_make_refresh_request(sign_in))
                response = fit_response(response, None)
                if response.status_code == httpx2.codes.OK:
                    return _read_new_tokens(response, sign_in)
                is_final = response.status_code in _REFUSED_FOR_GOOD_STATUSES
                why = f"HTTP {response.status_code}"
        except (httpx2.HTTPError, httpx2.StreamError, TooLarge, TimeoutError, ValidationError) as error:
            is_final = False
            why = type(error).__name__
        log.warning("an mcp server's sign-in was not renewed", server=self._name, why=why, final=is_final)
        if is_final:
            raise _RefusedForGood
        self._trouble = "its sign-in server gave no new token. Try again later"
        raise _NoNewTokens


def _read_new_tokens(response: httpx2.Response, sign_in: SignIn) -> OAuthToken:
    """Return the tokens of a response. If it has no refresh token or no scope, the previous one stays."""
    previous = OAuthToken.model_validate_json(sign_in.tokens)
    defaults = {"refresh_token": previous.refresh_token, "scope": previous.scope}
    received = OAuthToken.model_validate_json(response.content).model_dump(exclude_none=True)
    return OAuthToken.model_validate(defaults | received)


def _make_refresh_request(sign_in: SignIn) -> httpx2.Request:
    """Return the request for new tokens (RFC 6749, section 6; RFC 8707 for the resource)."""
    discovered = Discovered.model_validate_json(sign_in.found)
    client = OAuthClientInformationFull.model_validate_json(sign_in.client)
    context = make_context(sign_in.url, client, discovered)
    tokens = OAuthToken.model_validate_json(sign_in.tokens)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": tokens.refresh_token or "",
        "client_id": client.client_id or "",
    }
    if discovered.resource is not None:
        form["resource"] = context.get_resource_url()
    form, headers = context.prepare_token_auth(form, {"Accept": "application/json"})
    endpoint = discovered.server.token_endpoint if discovered.server else urljoin(sign_in.url, "/token")
    return httpx2.Request("POST", str(endpoint), data=form, headers=headers)


def make_context(url: str, client: OAuthClientInformationFull, found: Discovered) -> OAuthContext:
    """Return the SDK's context of a sign-in, for requests that need no person."""
    # the return address and the storage are placeholders: only a person's sign-in uses them
    return OAuthContext(
        url, make_client_metadata("http://127.0.0.1/"), MemoryStorage(), None, None,
        client_info=client, protected_resource_metadata=found.resource,
    )  # fmt: skip


@dataclass
class MemoryStorage:
    """The SDK's ``TokenStorage`` for one sign-in, which becomes a row once it is complete."""

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
    """Puts the token on each request, and tries again with a new one if the server refuses it.

    If no token is accepted, the response becomes a JSON-RPC error.
    """

    def __init__(self, tokens: TokenSource | None, url: str) -> None:
        """Take the tokens, or None if the configuration has its own header: then no token is added.

        A token is only sent to the origin of ``url``.
        """
        self._tokens = tokens
        self._origin = _origin_of(httpx2.URL(url))

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if _origin_of(request.url) != self._origin:
            yield request
            return
        sent_token = await self._tokens.get_token() if self._tokens else None
        if sent_token is not None:
            request.headers["Authorization"] = f"Bearer {sent_token}"
        response = yield request
        if response.status_code == httpx2.codes.UNAUTHORIZED and self._tokens is not None:
            self._tokens.note_challenge(response.headers.get("WWW-Authenticate", ""))
            new_token = await self._tokens.get_token(refused=sent_token)
            if new_token is not None:
                request.headers["Authorization"] = f"Bearer {new_token}"
                response = yield request
        refusal = self._explain_refusal(response)
        if refusal:
            _replace_by_error(response, refusal)

    def _explain_refusal(self, response: httpx2.Response) -> str:
        """Return why a request was refused (401 or 403); empty if it was not."""
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            if self._tokens:
                return self._tokens.failure_reason
            return 'it does not accept the "headers" of its entry (401)'
        if response.status_code != httpx2.codes.FORBIDDEN:
            return ""
        if self._tokens is None or extract_field_from_www_auth(response, "error") != "insufficient_scope":
            return "it forbids this (403)"
        scope = (extract_scope_from_www_auth(response) or "")[:200]
        self._tokens.note_scope(scope)
        return f"its sign-in does not allow this ({scope or 'no scope named'}). {self._tokens.sign_in_hint}"


def _origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _replace_by_error(response: httpx2.Response, why: str) -> None:
    """Replace a response by a JSON-RPC error, which the SDK passes on unchanged.

    Its code is `SIGN_IN_REFUSED_CODE`.
    """
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": SIGN_IN_REFUSED_CODE, "message": why}}
    response.headers["Content-Type"] = "application/json"
    response.stream = _ReplacedBody(json.dumps(error).encode(), response.stream)


class _ReplacedBody(httpx2.AsyncByteStream):
    """A body in place of a response's own body. Closing it closes the original, too."""

    def __init__(self, body: bytes, original: Any) -> None:
        self._body = body
        self._original = original

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        await self._original.aclose()


def make_sign_in_client(url: str, **options: Any) -> httpx2.AsyncClient:
    """Return a client for the sign-in of an MCP server at ``url``; its responses are bounded.

    A request to an address without TLS raises UnsafeAddress, unless that is the MCP server itself, or both
    are on this machine.
    """
    server_url = httpx2.URL(url)

    async def check_address(request: httpx2.Request) -> None:
        are_both_local = _is_local(server_url) and _is_local(request.url)
        is_server = (request.url.scheme, request.url.netloc) == (server_url.scheme, server_url.netloc)
        if request.url.scheme != "https" and not are_both_local and not is_server:
            raise UnsafeAddress(f"{request.url.host} is asked without TLS")

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity"},
        timeout=_REQUEST_SECONDS,
        follow_redirects=False,
        event_hooks={"request": [check_address], "response": [bound_response]},
        **options,
    )


class UnsafeAddress(httpx2.RequestError):
    """A request would go to a sign-in server without TLS."""


def _is_local(url: httpx2.URL) -> bool:
    return url.host in ("127.0.0.1", "::1", "localhost")


def make_client_metadata(return_address: str, scope: str | None = None) -> OAuthClientMetadata:
    """Return Nod's client metadata for a sign-in server, which sends people back to ``return_address``."""
    is_local = _is_local(httpx2.URL(return_address))
    return OAuthClientMetadata(
        redirect_uris=[AnyUrl(return_address)],
        client_name="Nod",
        scope=scope,
        application_type="native" if is_local else "web",
    )
