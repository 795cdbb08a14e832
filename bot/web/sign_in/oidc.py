"""Signing in with an organisation's own accounts: OpenID Connect, by authorization code with PKCE.

What a browser began is in the database, good once and for ten minutes; the browser holds its key in a cookie.
An answer of the provider counts only if everything about it fits (OpenID Connect Core 1.0, 3.1.3.7).
"""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, quote_plus, urlencode, urlsplit

import httpx2

from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.domain.text import storable
from bot.errors import NodError
from bot.telemetry.logs import logger
from bot.tools.intake import TooLarge, bound_response

log = logger(__name__)

BACK = "/api/session/back"
MANY = "Many people are signing in right now. Try again in a minute."
_SIGNED = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}  # by how an algorithm's name begins
_NEEDED = ("exp", "iat", "iss", "aud", "sub", "nonce")
_NEEDED_APART = ("iss", "aud", "sub")  # of what is told of a person apart from the ID token
_WRONG_CLIENT = ("invalid_client", "unauthorized_client")  # Keycloak says the second for a wrong secret
_LEEWAY = 60  # seconds that two clocks may differ
_PATIENCE = 10.0  # seconds
_KEPT = timedelta(hours=1)
_TOGETHER = 20
_REDIRECTS = 3
_SCOPES = ("openid", "email", "profile")
_TRUE = (True, 1, "true", "True", "1")
"""The ways in which providers say yes: Apple and Cognito by a text, Entra by a number."""
_VERIFIED = ("email_verified", "xms_edov")
"""Claims that vouch for the address: the standard's, and that of Entra, which sends no other.

https://learn.microsoft.com/entra/identity-platform/migrate-off-email-claim-authorization
"""
_ADDRESS = ("email", *_VERIFIED)
_NO_ADDRESS = "Your organisation's sign-in sends no address for you. Ask an admin to look at Nod's log."
_UNVERIFIED = (
    "Your organisation's sign-in doesn't say that your address is verified. "
    "Ask an admin to look at Nod's log."
)
_NOT_ALLOWED = "You can't sign in to this Nod. Ask an admin to add you."
_NAME = re.compile(r"[a-z0-9][a-z0-9._%+@-]{0,199}")


_LONGEST_SUBJECT = 255  # OpenID Connect Core 1.0, 2


class NotSignedIn(NodError):
    """Signing in failed. Try again, or ask an admin to look at Nod's log."""


class InvalidClient(NotSignedIn):
    """The provider does not take the client's secret, or not in this way."""


def account_of(name: str, said: str = "") -> Actor | None:
    """Return the account of someone whom the organisation calls this; None for what is no name or address."""
    name = name.strip()
    key = name.lower() if name.isascii() else ""  # some other letters become ASCII in lower case
    if _NAME.fullmatch(key):
        return Actor("http", f"sso.{key}", said or name)
    return None


def account_of_subject(subject: str, said: str = "") -> Actor | None:
    """Return the account of someone whom the provider names by an ID of its own, letter for letter."""
    key = quote(subject, safe="|@+", errors="replace")
    if 0 < len(key) <= _LONGEST_SUBJECT:
        return Actor("http", f"sso-id.{key}", said or subject)
    return None


def _tells_of_address(claims: Mapping[str, Any]) -> bool:
    return "email" in claims and any(name in claims for name in _VERIFIED)


def lets_in(allowed: Sequence[str], actor: Actor) -> bool:
    """Return whether someone who signed in with an organisation's account still may; everybody else may."""
    way, _, key = actor.key.partition(".") if actor.channel == "http" else ("", "", "")
    if way == "sso-id":
        return "*" in allowed or actor.key in allowed  # an ID counts letter for letter
    return way != "sso" or _lets_in(allowed, key)


def _lets_in(allowed: Sequence[str], address: str) -> bool:
    name = address.lower()
    names = {"*", *((name, name.rpartition("@")[2]) if "@" in name else ())}
    return not names.isdisjoint(each.lower() for each in allowed)


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in under way; ``state`` is its key, the rest never leaves Nod."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> "Begun":
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))


@dataclass(slots=True)
class OidcSignIn:
    """The sign-in of an organisation.

    ``name``: what people call it. ``allowed``: addresses, domains, or ``*`` for everyone it knows.
    """

    name: str
    issuer: str
    client_id: str
    client_secret: str
    allowed: Sequence[str]
    back: Callable[[], str]
    clock: Clock
    _client: httpx2.AsyncClient | None = None  # to make one takes long
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_TOGETHER))
    _asked: "asyncio.Task[Mapping[str, Any]] | None" = None  # for what the provider says about itself
    _asked_at: datetime = datetime.min  # noqa: DTZ901 - read only after `_asked`

    async def address(self, begun: Begun) -> str:
        """Return the address to which the browser goes to sign in. Raises NotSignedIn."""
        digest = hashlib.sha256(begun.verifier.encode()).digest()
        about = await self._about()
        scopes = about.get("scopes_supported")
        known = scopes if isinstance(scopes, list) else _SCOPES
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.back(),
            "scope": " ".join(scope for scope in _SCOPES if scope == "openid" or scope in known),
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        if "name" in known and "profile" not in known:
            # Apple answers by a form where more than the ID is asked for:
            # https://developer.apple.com/documentation/signinwithapple/request-an-authorization-to-the-sign-in-with-apple-server.
            asked["response_mode"] = "form_post"
        at = about["authorization_endpoint"]
        return f"{at}{'&' if urlsplit(at).query else '?'}{urlencode(asked)}"

    async def enter(self, begun: Begun, code: str) -> Actor:
        """Exchange the code, and return the account. Raises NotSignedIn."""
        import jwt  # and cryptography with it, which few need

        if self._free.locked():
            raise NotSignedIn(MANY)
        async with self._free:
            about = await self._about()
            given = await self._exchange_code(about, begun, code)
            keys = await self._json("GET", about["jwks_uri"])
            try:
                claims = self._check_token(str(given.get("id_token", "")), keys, about["issuer"], begun)
            except (jwt.PyJWTError, ValueError, TypeError) as error:
                log.warning("a sign-in was refused", why=str(error))
                raise NotSignedIn from None
            if not _tells_of_address(claims):
                found = await self._user_info(about, keys, given, claims)
                if "email" in found:  # an address and what vouches for it come from one place
                    own = {name: value for name, value in claims.items() if name not in _ADDRESS}
                    claims = own | {name: found[name] for name in _ADDRESS if name in found}
        return self._account(claims)

    async def _user_info(
        self,
        about: Mapping[str, Any],
        keys: Mapping[str, Any],
        given: Mapping[str, Any],
        claims: Mapping[str, Any],
    ) -> Mapping[str, Any]:
        """Return the provider's data on the person apart from the token; empty for none.

        Some send the address there alone, and some sign it. It counts for the same subject only (OpenID
        Connect Core 1.0, 5.3.2).
        """
        import jwt

        at, token = about.get("userinfo_endpoint"), given.get("access_token")
        schemes = ("https", urlsplit(self.issuer).scheme)
        if not isinstance(at, str) or urlsplit(at).scheme not in schemes or not isinstance(token, str):
            return {}
        if not (token.isascii() and token.isprintable()):
            return {}
        try:
            answer = await self._request("GET", at, headers={"Authorization": f"Bearer {token}"})
            if answer.headers.get("content-type", "").startswith("application/jwt"):
                found = self._read_token(answer.text.strip(), keys, about["issuer"], _NEEDED_APART)
            else:
                found = _parse(answer)
        except NotSignedIn:
            return {}  # the log has it; what the token says may do
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            log.warning("what the sign-in provider tells of a person was refused", why=str(error))
            return {}
        if found.get("sub") == claims["sub"]:
            return found
        return {}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _about(self) -> Mapping[str, Any]:
        """Return the provider's metadata, requested once for all who wait and cached for an hour."""
        asked, now = self._asked, self.clock()
        if asked is None or (
            asked.done() and (asked.exception() or not self._asked_at <= now < self._asked_at + _KEPT)
        ):
            asked = self._asked = asyncio.create_task(self._load_description())
            self._asked_at = now
        return await asyncio.shield(asked)

    async def _load_description(self) -> Mapping[str, Any]:
        about = await self._json("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        ends = [about.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        schemes = ("https", urlsplit(self.issuer).scheme)
        fits = all(isinstance(end, str) and urlsplit(end).scheme in schemes for end in ends)
        if str(about.get("issuer")).rstrip("/") != self.issuer.rstrip("/") or not fits:
            log.warning("the sign-in provider describes another one", issuer=str(about.get("issuer")))
            raise NotSignedIn
        return about

    async def _exchange_code(self, about: Mapping[str, Any], begun: Begun, code: str) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.back(),
            "client_id": self.client_id,
            "code_verifier": begun.verifier,
        }
        if not self.client_secret:
            return await self._json("POST", about["token_endpoint"], data=form)
        # both parts are encoded as in a form (RFC 6749, 2.3.1)
        basic = (quote_plus(self.client_id), quote_plus(self.client_secret))
        posted = {**form, "client_secret": self.client_secret}
        ways = about.get("token_endpoint_auth_methods_supported")
        listed = ways if isinstance(ways, list) else ["client_secret_basic"]
        by_form = "client_secret_post" in listed
        if by_form and "client_secret_basic" not in listed:
            return await self._json("POST", about["token_endpoint"], data=posted)
        try:
            return await self._json("POST", about["token_endpoint"], data=form, auth=basic)
        except InvalidClient:
            if not by_form:
                raise
        return await self._json("POST", about["token_endpoint"], data=posted)

    def _check_token(
        self, token: str, keys: Mapping[str, Any], issuer: str, begun: Begun
    ) -> Mapping[str, Any]:
        """Return the claims of an ID token, once its signature, sender, audience, time and nonce fit."""
        claims = self._read_token(token, keys, issuer, _NEEDED)
        if not hmac.compare_digest(str(claims["nonce"]).encode(), begun.nonce.encode()):
            raise ValueError("it answers another sign-in")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1  # then it has to say for which
        if claims.get("azp", "" if several else self.client_id) != self.client_id:
            raise ValueError("it was made for another client")
        return claims

    def _read_token(
        self, token: str, keys: Mapping[str, Any], issuer: str, needed: Sequence[str]
    ) -> Mapping[str, Any]:
        """Return the claims of a token, once its signature, sender, audience and time fit."""
        import jwt

        header = jwt.get_unverified_header(token)
        if header.get("alg") not in _SIGNED:
            raise ValueError("it is not signed with a key pair")
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK.from_dict(_choose_key(keys, header), header["alg"]),
            algorithms=[header["alg"]],
            audience=self.client_id,
            issuer=issuer,
            leeway=_LEEWAY,
            options={"require": list(needed)},
        )
        return claims

    def _account(self, claims: Mapping[str, Any]) -> Actor:
        """Return the account of a verified address, or of the provider's own id where all are let in."""
        email = claims.get("email")
        given = email if isinstance(email, str) else ""
        is_verified = any(claims.get(name) in _TRUE for name in _VERIFIED)
        address = given if is_verified else ""
        said = storable(str(claims.get("name") or ""))[:80]
        by_id = account_of_subject(str(claims["sub"]), said)
        found = account_of(address, said) if "@" in address else by_id
        if found is None:
            log.warning("a sign-in was refused", why="the address or the ID can't be an account's name")
            raise NotSignedIn
        if lets_in(self.allowed, found):
            return found
        account = str(by_id)
        if "@" in address:
            log.warning("a sign-in was refused", why="not in NOD_OIDC_ALLOWED", account=account)
            raise NotSignedIn(_NOT_ALLOWED)
        missing = "email" if not given else " or ".join(_VERIFIED)
        log.warning(
            "a sign-in was refused",
            why="without this claim only * or the account in NOD_OIDC_ALLOWED lets them in",
            missing=missing,
            account=account,
        )
        raise NotSignedIn(_UNVERIFIED if given else _NO_ADDRESS)

    async def _json(self, method: str, url: str, **sent: Any) -> Mapping[str, Any]:
        """Return the JSON object that the provider answers with; raises NotSignedIn."""
        return _parse(await self._request(method, url, **sent))

    async def _request(self, method: str, url: str, **sent: Any) -> httpx2.Response:
        """Return the provider's answer, bounded in size and in time; raises NotSignedIn."""
        if self._client is None:
            headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
            hooks = {"response": [bound_response]}
            self._client = httpx2.AsyncClient(
                timeout=_PATIENCE, headers=headers, event_hooks=hooks, max_redirects=_REDIRECTS
            )
        try:
            async with asyncio.timeout(_PATIENCE):
                follows = method == "GET" and "headers" not in sent  # no token goes to another address
                answer = await self._client.request(method, url, follow_redirects=follows, **sent)
            if any(urlsplit(str(each.url)).scheme != urlsplit(url).scheme for each in answer.history):
                raise httpx2.UnsupportedProtocol("it leads to an address without TLS")
            if method == "POST" and _refuses_client(answer):
                log.warning("the sign-in provider does not take NOD_OIDC_CLIENT_SECRET", url=url)
                raise InvalidClient
            answer.raise_for_status()
        except (httpx2.HTTPError, httpx2.InvalidURL, TooLarge, TimeoutError) as error:
            raise _refuse(url, error) from None
        return answer


def _refuses_client(answer: httpx2.Response) -> bool:
    return answer.status_code in (400, 401) and any(error in answer.text for error in _WRONG_CLIENT)


def _parse(answer: httpx2.Response) -> Mapping[str, Any]:
    """Return the JSON object of an answer; raises NotSignedIn."""
    try:
        found = answer.json()
    except (ValueError, RecursionError) as error:
        raise _refuse(str(answer.url), error) from None
    if not isinstance(found, dict):
        raise _refuse(str(answer.url), TypeError())
    return found


def _refuse(url: str, error: Exception) -> NotSignedIn:
    """Log why the provider's answer is of no use; the fault to raise."""
    log.warning("the sign-in provider refused, or can't be reached", why=type(error).__name__, url=url)
    return NotSignedIn()


def _choose_key(keys: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key that a token names among the provider's, or the only one that can be meant.

    Only keys for signatures of its algorithm count. Raises ValueError without one.
    """
    algorithm, name = header["alg"], header.get("kid")
    listed = keys.get("keys")
    fitting = [
        key
        for key in (listed if isinstance(listed, list) else [])
        if isinstance(key, dict)
        and key.get("kty") == _KEY_TYPES[algorithm[:2]]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    ]
    if name is not None:
        fitting = [key for key in fitting if key.get("kid") == name]
    if not fitting or (name is None and len(fitting) > 1):
        raise ValueError("the provider has no such key")
    found: dict[str, Any] = fitting[0]
    return found
