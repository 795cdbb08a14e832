"""Authorization at an MCP server in steps (OAuth 2.1), for the connections of people and chats.

1. `request_authorization` finds the server's sign-in server, registers Nod there, and returns the page that a
   person opens.
2. The person agrees there, and is sent back to Nod with a code. `exchange_code` exchanges it for tokens.
3. `revoke_tokens` revokes them once the connection has ended.

An `AuthorizationRequest` has all that the later steps need, so it may be stored as a row. Discovery and
registration are left to the SDK. PKCE, the state and the exchange are done here, because the SDK has them in
one coroutine, which a restart would end. The sign-ins of ``login.py`` may be lost by a restart, so they use
that coroutine.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field

import httpx2
from mcp import types
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
    PKCEParameters,
)
from mcp.client.auth.utils import union_scopes, validate_authorization_response_iss
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from bot.errors import SignInError
from bot.telemetry.logs import logger
from bot.tools.mcp.config import Http, OAuthClient
from bot.tools.mcp.dialects import fit_response, is_same_issuer, read_answer, words_of
from bot.tools.mcp.signin import (
    Discovered,
    MemoryStorage,
    make_client_metadata,
    make_context,
    make_sign_in_client,
)
from bot.tools.response_bounds import TooLarge

log = logger(__name__)

# the request by which a sign-in begins: most servers refuse it without a token, and say how to sign in
INITIALIZE_REQUEST = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": types.LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "nod", "version": "1"},
    },
}
INITIALIZE_HEADERS = {"Accept": "application/json, text/event-stream"}
_STEP_SECONDS = 60.0  # one step with all of its requests
# statuses that refuse a revocation for good, so that it is not tried again
_FINAL_STATUSES = frozenset({400, 401, 403, 404, 405, 501})
_LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A page at which a person signs in, and the values that check and exchange their code afterwards.

    Some of its fields are stored in columns of the same names.
    """

    page: str
    """The address that the person opens."""
    state: str
    """A random text that comes back with the code, by which the caller finds this request again."""
    back: str
    """The address to which the sign-in server sends the person back."""
    scope: str
    """The scopes that are asked for, with spaces between them."""
    issuer: str
    """The address by which the sign-in server is named (RFC 8414)."""
    found: str
    """The metadata of the server (`Discovered`), as JSON."""
    client: str = field(repr=False)
    """The SDK's ``OAuthClientInformationFull``, as JSON; a secret."""
    verifier: str = field(repr=False)
    """The code verifier of PKCE; a secret."""


class _PageReached(Exception):
    """The SDK's flow has reached the page of the sign-in server."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page


async def request_authorization(
    name: str, http_config: Http, back: str, *, client: str = "", challenge: str = "", more_scopes: str = ""
) -> AuthorizationRequest:
    """Discover the sign-in server, register there if need be, and return the page. Raises SignInError.

    ``name``: the server's name, for messages. ``back``: the address to which the person is sent back.
    ``client``: Nod's earlier registration there, as JSON. ``challenge``: the server's last
    ``WWW-Authenticate`` header, which says how to sign in. ``more_scopes`` are asked for in addition.
    """
    registered: OAuthClientInformationFull | None
    if client:
        registered = OAuthClientInformationFull.model_validate_json(client)
    else:
        registered = find_configured_client(http_config.client, back)
    metadata = make_client_metadata(back)
    storage = MemoryStorage(registered)
    flow = OAuthClientProvider(http_config.url, metadata, storage, _stop_at_page, _refuse_code)
    page = await _reach_page(name, http_config, flow, back, challenge)

    # the context has what the SDK found out on its way to the page
    context = flow.context
    found = Discovered(resource=context.protected_resource_metadata, server=context.oauth_metadata)
    metadata.scope = union_scopes(" ".join(http_config.client.scopes) or metadata.scope, more_scopes)
    set_auth_method(storage.client, http_config.client, found.server)
    # the page gets our own proof (PKCE) and state in place of the SDK's
    proof = PKCEParameters.generate()
    state = secrets.token_urlsafe(32)
    page = with_scope(page, metadata.scope).copy_merge_params(
        {"state": state, "code_challenge": proof.code_challenge, "code_challenge_method": "S256"}
    )
    if found.server:
        issuer = str(found.server.issuer)
    else:
        issuer = context.auth_server_url or _origin(http_config.url)
    return AuthorizationRequest(
        page=str(page),
        state=state,
        back=back,
        scope=metadata.scope or "",
        issuer=issuer,
        found=found.model_dump_json(exclude_none=True),
        client=storage.client.model_dump_json(exclude_none=True) if storage.client else "",
        verifier=proof.code_verifier,
    )


async def exchange_code(
    name: str, url: str, request: AuthorizationRequest, return_query: Mapping[str, str]
) -> OAuthToken:
    """Exchange the code that a person brought back for tokens. Raises SignInError.

    ``name`` and ``url`` are those of the MCP server. ``return_query``: the query with which the person came
    back. The caller has checked its ``state``.
    """
    found = Discovered.model_validate_json(request.found)
    client = OAuthClientInformationFull.model_validate_json(request.client)
    context = make_context(url, client, found)
    server_words: list[str] = []
    with _explain_errors(name, request.back, server_words):
        code = return_query.get("code")
        if not code:
            words = words_of(dict(return_query))
            why = f": {words}" if words else ""
            raise SignInError(f"You were not let in at {name}{why}. Start again.")
        result = AuthorizationCodeResult(code=code, state=request.state, iss=return_query.get("iss"))
        validate_authorization_response_iss(spell_issuer(result, found.server).iss, found.server)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.back,
            "client_id": client.client_id or "",
            "code_verifier": request.verifier,
        }
        if found.resource is not None:
            form["resource"] = context.get_resource_url()
        form, headers = context.prepare_token_auth(form, {"Accept": "application/json"})
        async with asyncio.timeout(_STEP_SECONDS), make_sign_in_client(url) as http:
            response = await http.post(_find_token_endpoint(url, found), data=form, headers=headers)
        server_words.append(words_of(read_answer(response)))
        response = fit_response(response, None)
        if response.status_code not in (httpx2.codes.OK, httpx2.codes.CREATED):
            raise OAuthTokenError(f"HTTP {response.status_code}")
        tokens = OAuthToken.model_validate_json(response.content)
    return tokens.model_copy(update={"scope": tokens.scope or request.scope or None})


async def revoke_tokens(url: str, client_json: str, tokens_json: str, found_json: str) -> bool:
    """Revoke tokens at their sign-in server (RFC 7009).

    Return True if that is done, or no further attempt would help; False if another attempt may succeed.
    """
    found = Discovered.model_validate_json(found_json)
    if found.server is None or found.server.revocation_endpoint is None:
        return True
    client = OAuthClientInformationFull.model_validate_json(client_json)
    tokens = OAuthToken.model_validate_json(tokens_json)
    context = make_context(url, client, found)
    is_done = True
    for hint, token in (("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token)):
        if not token:
            continue
        form = {"token": token, "token_type_hint": hint, "client_id": client.client_id or ""}
        try:
            form, headers = context.prepare_token_auth(form, {"Accept": "application/json"})
            async with asyncio.timeout(_STEP_SECONDS), make_sign_in_client(url) as http:
                endpoint = str(found.server.revocation_endpoint)
                status = (await http.post(endpoint, data=form, headers=headers)).status_code
            if status >= httpx2.codes.BAD_REQUEST and status not in _FINAL_STATUSES:
                is_done = False
        except OAuthTokenError:
            return True  # the SDK can't authenticate the client, so no attempt would succeed
        except (httpx2.HTTPError, httpx2.StreamError, TooLarge, TimeoutError) as error:
            log.info("a sign-in server was not told of an end", why=type(error).__name__)
            is_done = False
    return is_done


async def _stop_at_page(page: str) -> None:
    """Leave the SDK's flow. The SDK calls this with the page, before it asks for the code."""
    raise _PageReached(page)


async def _refuse_code() -> AuthorizationCodeResult:
    """Raise an error. The SDK asks for a code only after the page, where its flow was left."""
    raise OAuthFlowError("it led nowhere")


async def _reach_page(
    name: str, http_config: Http, flow: OAuthClientProvider, back: str, challenge: str
) -> httpx2.URL:
    """Run the SDK's flow up to the page at which a person signs in, and return it. Raises SignInError."""
    server_words: list[str] = []
    with _explain_errors(name, back, server_words):
        try:
            async with (
                asyncio.timeout(_STEP_SECONDS),
                make_sign_in_client(
                    http_config.url, auth=SignInFlowAuth(flow, challenge, server_words.append)
                ) as http,
            ):
                await http.post(
                    http_config.url,
                    json=INITIALIZE_REQUEST,
                    headers=dict(http_config.headers) | INITIALIZE_HEADERS,
                )
        except _PageReached as reached:
            page = httpx2.URL(reached.page)
        else:
            raise SignInError(f"{name} does not ask people to sign in.")
    is_local = page.scheme == "http" and page.host in _LOCAL_HOSTS
    if page.scheme != "https" and not is_local:
        raise SignInError(f"{name} names no web page to sign in at that is safe to open.")
    return page


@contextlib.contextmanager
def _explain_errors(name: str, back: str, server_words: list[str]) -> Iterator[None]:
    """Turn the errors in the block, of the SDK and of a sign-in server, into SignInError.

    ``server_words``: the words of the sign-in server's responses, which the block adds; the newest come last.
    """
    try:
        yield
    except OAuthRegistrationError:
        words = server_words[-1] if server_words else ""
        raise SignInError(explain_registration(name, back, words)) from None
    except (OAuthTokenError, ValidationError):
        words = server_words[-1] if server_words else ""
        why = f": {words}" if words else ""
        raise SignInError(f"{name} gave no token for this sign-in{why}. Start again.") from None
    except OAuthFlowError as error:
        log.warning("a sign-in failed", server=name, why=str(error)[:500])
        raise SignInError(f"{name} describes its sign-in wrongly: {str(error)[:200]}") from None
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TooLarge, TimeoutError) as error:
        log.warning("a sign-in failed", server=name, why=type(error).__name__)
        raise SignInError(f"The sign-in of {name} can't be reached. Try again later.") from None


def explain_registration(name: str, back: str, text: str) -> str:
    """Return a text for people: why a sign-in server did not register Nod, and what to do.

    ``text``: the server's own words.
    """
    said = f" It says: {text}." if text else ""
    if "redirect" in text.lower() or "callback" in text.lower():
        return (
            f"{name} does not let people come back to {back}.{said} "
            "Set NOD_PUBLIC_URL to an address that it takes, or register Nod there."
        )
    return (
        f"{name} takes no clients that it does not know.{said} "
        'Register Nod there and add "oauth": {"clientId": …} to its entry.'
    )


def _find_token_endpoint(url: str, found: Discovered) -> str:
    return str(found.server.token_endpoint) if found.server else str(httpx2.URL(url).join("/token"))


def _origin(url: str) -> str:
    parts = httpx2.URL(url)
    return f"{parts.scheme}://{parts.netloc.decode()}"


class SignInFlowAuth(httpx2.Auth):
    """Runs the SDK's sign-in flow, even if the server accepts `INITIALIZE_REQUEST` without a token.

    The flow starts when the server refuses a request with 401. Some servers refuse only the first call of a
    tool, so an accepted `INITIALIZE_REQUEST` is passed to the flow as if it had been refused. What the flow
    then requests is sent to the sign-in server, and the responses are fitted to what the SDK reads
    (``dialects.py``). Last, the flow repeats the first request, with the new token.
    """

    requires_response_body = True

    def __init__(self, flow: OAuthClientProvider, challenge: str, on_words: Callable[[str], None]) -> None:
        """``challenge``: the MCP server's last ``WWW-Authenticate`` header, which says how to sign in.

        ``on_words`` is called with the words of each response of the sign-in server.
        """
        self._flow = flow
        self._on_words = on_words
        self._challenge = {"WWW-Authenticate": challenge} if challenge else {}

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        signed_in = self._flow.context.current_tokens is not None
        async with contextlib.aclosing(self._flow.async_auth_flow(request)) as flow:
            response = yield await anext(flow)  # the first request
            if not signed_in and response.status_code not in (401, 403):
                response = httpx2.Response(401, headers=self._challenge, request=request)
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    next_request = await flow.asend(response)
                    if next_request is not request:
                        next_request.headers["Accept"] = "application/json"
                    response = yield next_request
                    if next_request is not request:
                        await response.aread()
                        self._on_words(words_of(read_answer(response)))
                        response = fit_response(response, self._flow.context.auth_server_url)


def find_configured_client(client: OAuthClient, back: str) -> OAuthClientInformationFull | None:
    """Return the client that the configuration names; None if Nod is to register itself."""
    if not client.id:
        return None
    return OAuthClientInformationFull(
        client_id=client.id, client_secret=client.secret or None, redirect_uris=[AnyUrl(back)]
    )


def with_scope(page: httpx2.URL, scope: str | None) -> httpx2.URL:
    """Return the address of a sign-in page with the scope that it is to ask for.

    OpenID Connect grants offline access only with a consent prompt.
    """
    if not scope:
        return page
    page = page.copy_set_param("scope", scope).copy_remove_param("prompt")
    if "offline_access" in scope.split():
        return page.copy_set_param("prompt", "consent")
    return page


def set_auth_method(
    client: OAuthClientInformationFull | None, configured: OAuthClient, server: OAuthMetadata | None
) -> None:
    """Set how a client authenticates, if it was configured or its registration does not say it."""
    if client is None:
        return
    if configured.id:
        client.token_endpoint_auth_method = _choose_auth_method(configured.secret, server)
    elif not client.token_endpoint_auth_method:
        client.token_endpoint_auth_method = _choose_auth_method(client.client_secret, server)


def spell_issuer(result: AuthorizationCodeResult, server: OAuthMetadata | None) -> AuthorizationCodeResult:
    """Return the answer with its issuer spelled as in the server's metadata, if only a slash differs."""
    if result.iss and server is not None and is_same_issuer(result.iss, str(server.issuer)):
        return result.model_copy(update={"iss": str(server.issuer)})
    return result


def _choose_auth_method(client_secret: str | None, server: OAuthMetadata | None) -> str:
    """Return the authentication method of a client with this secret, which may be empty.

    "Basic" is taken unless the server offers only others: by RFC 8414 it is the default of a server that
    names none.
    """
    if not client_secret:
        return "none"
    offered = server.token_endpoint_auth_methods_supported if server else None
    if not offered or "client_secret_basic" in offered:
        return "client_secret_basic"
    return "client_secret_post"
