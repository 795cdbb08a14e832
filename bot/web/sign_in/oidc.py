"""Signing in with an organisation's own accounts: OpenID Connect, by authorization code with PKCE.

The provider is the organisation's service that knows the accounts, such as Entra or Keycloak. `OidcSignIn`
sends a browser to it (`make_provider_url`); the browser comes back with a code, which Nod exchanges for an ID
token with claims about the person (`complete`). The routes are in ``sessions.py``. A sign-in in progress is a
row, which works once and for ten minutes; the browser has its key in a cookie. The tokens are checked in
``id_tokens.py``, and the accounts are made in ``accounts.py``.

"URL" is where a request or a browser goes, "email" the address of a person.
"""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx2

from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.text import replace_unstorable
from bot.errors import NodError
from bot.telemetry.logs import logger
from bot.tools.response_bounds import TooLarge, bound_response
from bot.web.sign_in.accounts import account_of, account_of_subject, is_allowed
from bot.web.sign_in.id_tokens import read_id_token, read_user_info_token

log = logger(__name__)

RETURN_PATH = "/api/session/back"
BUSY_TEXT = "Many people are signing in right now. Try again in a minute."
_CLIENT_ERRORS = ("invalid_client", "unauthorized_client")  # Keycloak sends the second for a wrong secret
_REQUEST_SECONDS = 10.0
_METADATA_LIFETIME = timedelta(hours=1)
_MAX_SIGN_INS = 20  # exchanges of a code at the same time
_MAX_REDIRECTS = 3
_SCOPES = ("openid", "email", "profile")
_TRUE_VALUES = (True, 1, "true", "True", "1")
"""The values that providers send for true: Apple and Cognito a text, Entra a number."""
_VERIFIED_CLAIMS = ("email_verified", "xms_edov")
"""The claims that an email is verified: the standard's, and that of Entra, which sends no other.

https://learn.microsoft.com/entra/identity-platform/migrate-off-email-claim-authorization
"""
_EMAIL_CLAIMS = ("email", *_VERIFIED_CLAIMS)
_NO_EMAIL_TEXT = "Your organisation's sign-in sends no address for you. Ask an admin to look at Nod's log."
_UNVERIFIED_TEXT = (
    "Your organisation's sign-in doesn't say that your address is verified. "
    "Ask an admin to look at Nod's log."
)
_NOT_ALLOWED_TEXT = "You can't sign in to this Nod. Ask an admin to add you."


class NotSignedIn(NodError):
    """Signing in failed. Try again, or ask an admin to look at Nod's log."""


class InvalidClient(NotSignedIn):
    """The provider does not accept the client's secret, or not in this form."""


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """The secrets of a sign-in in progress."""

    state: str  # its key: the provider sends it back with the browser
    nonce: str  # is in the ID token that belongs to this sign-in
    verifier: str  # the secret of PKCE: someone who has only the code can't exchange it

    @classmethod
    def new(cls) -> "PendingSignIn":
        return cls(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(32),
        )


@dataclass(slots=True)
class OidcSignIn:
    """The sign-in of an organisation."""

    name: str  # of the organisation, for people
    issuer: str  # the URL of the provider
    client_id: str
    client_secret: str  # empty for a client without a secret
    allowed: Sequence[str]  # emails, domains, accounts by ID, or ``*`` for everyone
    return_url: Callable[[], str]  # returns the URL to which the provider sends browsers
    clock: Clock
    _client: httpx2.AsyncClient | None = None  # made at the first use, since that takes long
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_SIGN_INS))
    _metadata_request: "asyncio.Task[Mapping[str, Any]] | None" = None
    """The last request of the metadata. It keeps its result, so it also serves as the cache."""
    _requested_at: datetime = datetime.min  # noqa: DTZ901 - read only with `_metadata_request`

    async def make_provider_url(self, pending: PendingSignIn) -> str:
        """Return the URL at which the browser signs in. Raises NotSignedIn."""
        digest = hashlib.sha256(pending.verifier.encode()).digest()
        metadata = await self._load_metadata()
        scopes = metadata.get("scopes_supported")
        supported = scopes if isinstance(scopes, list) else _SCOPES
        requested = [scope for scope in _SCOPES if scope == "openid" or scope in supported]
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.return_url(),
            "scope": " ".join(requested),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        if "name" in supported and "profile" not in supported:  # only Apple has these scopes
            # Apple answers by a form if more than the ID is requested:
            # https://developer.apple.com/documentation/signinwithapple/request-an-authorization-to-the-sign-in-with-apple-server.
            parameters["response_mode"] = "form_post"
        endpoint = metadata["authorization_endpoint"]
        separator = "&" if urlsplit(endpoint).query else "?"
        return f"{endpoint}{separator}{urlencode(parameters)}"

    async def complete(self, pending: PendingSignIn, code: str) -> Actor:
        """Exchange the code for an ID token, check the token, and return the account. Raises NotSignedIn."""
        import jwt  # only here: it imports cryptography

        if self._slots.locked():
            raise NotSignedIn(BUSY_TEXT)
        async with self._slots:
            metadata = await self._load_metadata()
            tokens = await self._exchange_code(metadata, pending, code)
            keys = await self._fetch_json("GET", metadata["jwks_uri"])
            try:
                claims = read_id_token(
                    str(tokens.get("id_token", "")), keys, metadata["issuer"], self.client_id, pending.nonce
                )
            except (jwt.PyJWTError, ValueError, TypeError) as error:
                log.warning("a sign-in was refused", why=str(error))
                raise NotSignedIn from None
            if not _states_verification(claims):
                user_info = await self._fetch_user_info(metadata, keys, tokens, claims)
                if "email" in user_info:  # an email and its verification must come from one source
                    claims = _replace_email_claims(claims, user_info)
        return self._find_account(claims)

    async def _fetch_user_info(
        self,
        metadata: Mapping[str, Any],
        keys: Mapping[str, Any],
        tokens: Mapping[str, Any],
        claims: Mapping[str, Any],
    ) -> Mapping[str, Any]:
        """Return the provider's user info, its claims about a person; empty without it, or if a check fails.

        Some providers send the email only in the user info, and some sign the user info. It must be of the
        same person as the ID token: of the same subject (OpenID Connect Core 1.0, 5.3.2). ``claims``: those
        of the ID token.
        """
        import jwt

        endpoint = metadata.get("userinfo_endpoint")
        token = tokens.get("access_token")
        if not isinstance(endpoint, str) or not self._is_safe_endpoint(endpoint):
            return {}
        if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
            return {}
        try:
            answer = await self._request("GET", endpoint, headers={"Authorization": f"Bearer {token}"})
            if answer.headers.get("content-type", "").startswith("application/jwt"):
                user_info = read_user_info_token(
                    answer.text.strip(), keys, metadata["issuer"], self.client_id
                )
            else:
                user_info = _parse_json_object(answer)
        except NotSignedIn:
            return {}  # the refusal is logged; the ID token may be enough
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            log.warning("what the sign-in provider tells of a person was refused", why=str(error))
            return {}
        if user_info.get("sub") == claims["sub"]:
            return user_info
        return {}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _load_metadata(self) -> Mapping[str, Any]:
        """Return the provider's metadata: the URLs of its endpoints, and what it supports.

        They are requested once for all who wait, and cached for an hour.
        """
        request = self._metadata_request
        now = self.clock()
        if request is None or not self._is_usable(request, now):
            request = self._metadata_request = asyncio.create_task(self._fetch_metadata())
            self._requested_at = now
        return await asyncio.shield(request)

    def _is_usable(self, request: "asyncio.Task[Mapping[str, Any]]", now: datetime) -> bool:
        """Tell if a request is in progress, or has a result that is young enough."""
        if not request.done():
            return True
        has_failed = request.exception() is not None
        is_current = self._requested_at <= now < self._requested_at + _METADATA_LIFETIME
        return is_current and not has_failed

    async def _fetch_metadata(self) -> Mapping[str, Any]:
        metadata = await self._fetch_json(
            "GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        )
        endpoints = [metadata.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        has_endpoints = all(
            isinstance(endpoint, str) and self._is_safe_endpoint(endpoint) for endpoint in endpoints
        )
        is_of_issuer = str(metadata.get("issuer")).rstrip("/") == self.issuer.rstrip("/")
        if not (has_endpoints and is_of_issuer):
            log.warning("the sign-in provider describes another one", issuer=str(metadata.get("issuer")))
            raise NotSignedIn
        return metadata

    def _is_safe_endpoint(self, url: str) -> bool:
        """Tell if a URL of the provider has TLS, or at least the scheme of the issuer's own URL."""
        return urlsplit(url).scheme in ("https", urlsplit(self.issuer).scheme)

    async def _exchange_code(
        self, metadata: Mapping[str, Any], pending: PendingSignIn, code: str
    ) -> Mapping[str, Any]:
        """Return the provider's tokens for a code.

        The client's secret is sent in the header (``client_secret_basic``) or in the form, as the provider's
        metadata say. If they list both, the header is tried first, and the form if the header is refused.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.return_url(),
            "client_id": self.client_id,
            "code_verifier": pending.verifier,
        }
        if not self.client_secret:
            return await self._fetch_json("POST", metadata["token_endpoint"], data=form)
        # both parts are encoded as in a form (RFC 6749, 2.3.1)
        credentials = (quote_plus(self.client_id), quote_plus(self.client_secret))
        form_with_secret = {**form, "client_secret": self.client_secret}
        methods = metadata.get("token_endpoint_auth_methods_supported")
        supported = methods if isinstance(methods, list) else ["client_secret_basic"]
        takes_form = "client_secret_post" in supported
        if takes_form and "client_secret_basic" not in supported:
            return await self._fetch_json("POST", metadata["token_endpoint"], data=form_with_secret)
        try:
            return await self._fetch_json("POST", metadata["token_endpoint"], data=form, auth=credentials)
        except InvalidClient:
            if not takes_form:
                raise
        return await self._fetch_json("POST", metadata["token_endpoint"], data=form_with_secret)

    def _find_account(self, claims: Mapping[str, Any]) -> Actor:
        """Return the account of a verified email, or else the account of the provider's own ID.

        Raises NotSignedIn if the account is not allowed.
        """
        email = claims.get("email")
        claimed_email = email if isinstance(email, str) else ""
        is_verified = any(claims.get(claim) in _TRUE_VALUES for claim in _VERIFIED_CLAIMS)
        has_verified_email = is_verified and "@" in claimed_email
        display_name = replace_unstorable(str(claims.get("name") or ""))[:80]
        id_account = account_of_subject(str(claims["sub"]), display_name)
        account = account_of(claimed_email, display_name) if has_verified_email else id_account
        if account is None:
            log.warning("a sign-in was refused", why="the address or the ID can't be an account's name")
            raise NotSignedIn
        if is_allowed(self.allowed, account):
            return account
        if has_verified_email:
            log.warning("a sign-in was refused", why="not in NOD_OIDC_ALLOWED", account=str(id_account))
            raise NotSignedIn(_NOT_ALLOWED_TEXT)
        log.warning(
            "a sign-in was refused",
            why="without this claim only * or the account in NOD_OIDC_ALLOWED lets them in",
            missing=" or ".join(_VERIFIED_CLAIMS) if claimed_email else "email",
            account=str(id_account),
        )
        raise NotSignedIn(_UNVERIFIED_TEXT if claimed_email else _NO_EMAIL_TEXT)

    async def _fetch_json(self, method: str, url: str, **options: Any) -> Mapping[str, Any]:
        """Return the JSON object of the provider's answer. Raises NotSignedIn."""
        return _parse_json_object(await self._request(method, url, **options))

    async def _request(self, method: str, url: str, **options: Any) -> httpx2.Response:
        """Return the provider's answer, bounded in size and time. Raises NotSignedIn."""
        if self._client is None:
            headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
            hooks = {"response": [bound_response]}
            self._client = httpx2.AsyncClient(
                timeout=_REQUEST_SECONDS, headers=headers, event_hooks=hooks, max_redirects=_MAX_REDIRECTS
            )
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                # a token is sent to no other URL
                follows_redirects = method == "GET" and "headers" not in options
                answer = await self._client.request(
                    method, url, follow_redirects=follows_redirects, **options
                )
            if any(urlsplit(str(redirect.url)).scheme != urlsplit(url).scheme for redirect in answer.history):
                raise httpx2.UnsupportedProtocol("it leads to an address without TLS")
            if method == "POST" and _refuses_client(answer):
                log.warning("the sign-in provider does not take NOD_OIDC_CLIENT_SECRET", url=url)
                raise InvalidClient
            answer.raise_for_status()
        except (httpx2.HTTPError, httpx2.InvalidURL, TooLarge, TimeoutError) as error:
            raise _log_unusable(url, error) from None
        return answer


def _states_verification(claims: Mapping[str, Any]) -> bool:
    """Tell if the claims have an email and state that it is verified, or that it isn't."""
    return "email" in claims and any(name in claims for name in _VERIFIED_CLAIMS)


def _replace_email_claims(claims: Mapping[str, Any], user_info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the claims with the email and its verification from the user info alone."""
    others = {name: value for name, value in claims.items() if name not in _EMAIL_CLAIMS}
    return others | {name: user_info[name] for name in _EMAIL_CLAIMS if name in user_info}


def _refuses_client(answer: httpx2.Response) -> bool:
    return answer.status_code in (400, 401) and any(error in answer.text for error in _CLIENT_ERRORS)


def _parse_json_object(answer: httpx2.Response) -> Mapping[str, Any]:
    """Return the JSON object of an answer; raises NotSignedIn."""
    try:
        parsed = answer.json()
    except (ValueError, RecursionError) as error:
        raise _log_unusable(str(answer.url), error) from None
    if not isinstance(parsed, dict):
        raise _log_unusable(str(answer.url), TypeError())  # only the error's type is logged
    return parsed


def _log_unusable(url: str, error: Exception) -> NotSignedIn:
    """Log why the provider's answer is unusable, and return the error to raise."""
    log.warning("the sign-in provider refused, or can't be reached", why=type(error).__name__, url=url)
    return NotSignedIn()
