"""Authentication of requests: `Authenticator` finds the account of the caller, or refuses.

A caller is known by a bearer token; else by the header of a reverse proxy that signs people in; else by the
cookie of a browser's session. Without any of these, and only if no tokens and no sign-in are configured, a
caller on this machine is let in as ``http:local``. Where a browser sends the credentials by itself (cookie,
proxy), requests from other websites are refused.
"""

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from bot.domain.agents import TokenHolder
from bot.domain.people import LOCAL, Actor
from bot.web.answers import HttpError
from bot.web.sign_in.accounts import account_of
from bot.web.sign_in.agents import NOT_FOR_AGENTS, may_agent_ask
from bot.web.sign_in.proxies import find_named_person, is_proxied

_HOST_PATTERN = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")  # localhost:8080, [::1]
_PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_NAME_PREFIX = "sso."  # begins the key of an account by an email or name, from a proxy or the organisation
_ORGANISATION_PREFIXES = (_NAME_PREFIX, "sso-id.")  # begin the keys of the accounts of the organisation
COOKIE = "nod_session"
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class Unauthenticated(HttpError):
    """The caller is not known."""

    def __init__(self, error: str = "Send a valid token: Authorization: Bearer <token>.") -> None:
        super().__init__(401, error, {"WWW-Authenticate": "Bearer"})


class Forbidden(HttpError):
    """This is not allowed from here."""

    def __init__(self, error: str) -> None:
        super().__init__(403, error)


@dataclass(frozen=True, slots=True)
class Authenticator:
    """The check of who calls, called with each request."""

    names_by_token: Mapping[str, str]
    """The names of the tokens in the settings, by token."""
    find_holder: Callable[[str], Awaitable[TokenHolder | None]]
    """Returns the holder of a token from ``nod token``; None for an unknown token."""
    find_session_account: Callable[[str], Awaitable[Actor | None]]
    """Returns the account of a browser's session by its cookie; None without such a session."""
    has_token_named: Callable[[str], Awaitable[bool]]
    """Tells if a token of this name works."""
    is_allowed: Callable[[Actor], bool]
    """Tells if the settings let an account of the organisation in."""
    has_organisation: bool = False
    """True: people sign in with their organisation's accounts."""
    has_naming_proxy: bool = False
    """True: a reverse proxy signs people in, so it alone knows who may come in."""

    async def __call__(self, request: HTTPConnection) -> Actor:
        """Return the caller's account. Raises Unauthenticated or Forbidden."""
        self.check_origin(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._find_token_holder(request, token)
        person_name = find_named_person(request)
        if person_name is not None:
            self._check_own_page(request)
            person = account_of(person_name)
            if person is None:
                raise Unauthenticated
            return person
        secret = request.cookies.get(COOKIE, "")
        actor = await self.find_session_account(secret) if secret else None
        if actor is not None:
            self._check_own_page(request)
            return actor
        if self.names_by_token or self.has_organisation:
            raise Unauthenticated
        self._check_local(request)
        return LOCAL

    async def _find_token_holder(self, request: HTTPConnection, token: str) -> Actor:
        """Return the account of a token's holder. Raises Unauthenticated or Forbidden."""
        sent_token = token.strip().encode("latin-1")  # the bytes as they came
        # every token is compared, so that the time taken tells nothing about any
        names = [
            name
            for known, name in self.names_by_token.items()
            if hmac.compare_digest(known.encode(), sent_token)
        ]
        if names:
            return Actor("http", names[0], names[0])
        return await self._admit(request, await self.find_holder(sent_token.decode("latin-1")))

    async def _admit(self, request: HTTPConnection, holder: TokenHolder | None) -> Actor:
        """Return the account of the holder of a token from ``nod token``; None is an unknown token.

        An agent's token belongs to a program that works for a person. It is let in only at the addresses for
        agents, and only while that person may come in. Raises Unauthenticated or Forbidden.
        """
        if holder is None:
            raise Unauthenticated
        agent = holder.agent
        if agent is None:
            return holder.actor
        if holder.refusal:
            raise Forbidden(holder.refusal)
        if not may_agent_ask(request.scope):
            raise Forbidden(NOT_FOR_AGENTS)
        if agent.person.channel == LOCAL.channel and not await self.may_still_enter(agent.person):
            raise Forbidden(f"{agent.person.label} may not come in any longer, so this token opens nothing.")
        return holder.actor

    async def may_still_enter(self, actor: Actor) -> bool:
        """Tell if an account may still come in."""
        if actor == LOCAL:
            return not (self.names_by_token or self.has_organisation)
        if self.has_naming_proxy and actor.key.startswith(_NAME_PREFIX):
            return True
        if actor.key.startswith(_ORGANISATION_PREFIXES):
            return self.has_organisation and self.is_allowed(actor)
        return actor.key in self.names_by_token.values() or await self.has_token_named(actor.key)

    @staticmethod
    def _check_local(request: HTTPConnection) -> None:
        """Refuse a request that is not from this machine. Raises Forbidden."""
        # the Host header counts, too: a page elsewhere may point its own name at this machine (DNS rebinding)
        client = request.client.host if request.client else ""
        host = _HOST_PATTERN.fullmatch(request.headers.get("host", ""))
        if (
            client not in _LOOPBACK_HOSTS
            or host is None
            or host[1].strip("[]").lower() not in _LOOPBACK_HOSTS
        ):
            raise Forbidden("Without NOD_HTTP_TOKENS only this machine may talk to Nod.")
        if is_proxied(request) or any(name in request.headers for name in _PROXY_HEADERS):
            raise Forbidden(
                "This came through a proxy, so it could be anyone. Set NOD_HTTP_TOKENS to tell people apart."
            )

    @staticmethod
    def _check_own_page(request: HTTPConnection) -> None:
        """Refuse a request that is not only a read, unless the browser says it is from a page of Nod's.

        Any page can make a browser send cookies. An Origin that is there was checked by `check_origin`.
        """
        method = request.scope.get("method", "GET")
        is_own = "origin" in request.headers or request.headers.get("sec-fetch-site") == "same-origin"
        if method not in _READING_METHODS and not is_own:
            raise Forbidden("Requests from other websites are refused.")

    @staticmethod
    def check_origin(request: HTTPConnection) -> None:
        """Refuse a request from a page of another site, by its Origin or, without one, by Sec-Fetch-Site."""
        origin = request.headers.get("origin")
        if origin is None:
            is_foreign = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        else:
            scheme, _, host = origin.partition("://")
            # a proxy may have taken the TLS off, but nothing puts it on
            schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
            is_foreign = scheme not in schemes or host != request.headers.get("host")
        if is_foreign:
            raise Forbidden("Requests from other websites are refused.")
