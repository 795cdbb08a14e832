"""Authentication of requests by bearer token or, where none is configured, as this machine's person."""

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from bot.domain.agents import TokenHolder
from bot.domain.people import LOCAL, Actor
from bot.web.answers import Fault
from bot.web.sign_in.agents import NOT_FOR_AGENTS, may_agent_ask
from bot.web.sign_in.oidc import account_of
from bot.web.sign_in.proxies import find_named_person, is_proxied

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_NAMED_BY_PROXY = "sso."
_BY_ORGANISATION = (_NAMED_BY_PROXY, "sso-id.")
COOKIE = "nod_session"
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Unauthenticated(Fault):
    """The caller is not known."""

    def __init__(self, error: str = "Send a valid token: Authorization: Bearer <token>.") -> None:
        super().__init__(401, error, {"WWW-Authenticate": "Bearer"})


class Forbidden(Fault):
    """This is not allowed from here."""

    def __init__(self, error: str) -> None:
        super().__init__(403, error)


@dataclass(frozen=True, slots=True)
class Authenticator:
    """The check of who calls. Without ``tokens``, loopback alone is let in, as ``http:local``.

    ``organised``: people sign in with their organisation's accounts, so no one is let in without.
    ``has_naming_proxy``: a proxy says who has signed in, so it alone knows who may.
    """

    tokens: Mapping[str, str]  # names by token
    issued: Callable[[str], Awaitable[TokenHolder | None]]  # returns the holder of a token from ``nod token``
    signed_in: Callable[[str], Awaitable[Actor | None]]  # returns the account of a browser's session
    named: Callable[[str], Awaitable[bool]]  # returns whether a token of that name works
    may: Callable[[Actor], bool]  # returns whether the organisation lets an account in
    organised: bool = False
    has_naming_proxy: bool = False

    async def __call__(self, request: HTTPConnection) -> Actor:
        """Raises Unauthenticated or Forbidden. A token that was revoked a moment ago is unknown."""
        self.check_origin(request)
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" and (named := find_named_person(request)) is not None:
            self._check_own(request)
            person = account_of(named)
            if person is None:
                raise Unauthenticated
            return person
        secret = request.cookies.get(COOKIE, "") if scheme.lower() != "bearer" else ""
        if secret and (actor := await self.signed_in(secret)) is not None:
            self._check_own(request)
            return actor
        if scheme.lower() != "bearer":
            if self.tokens or self.organised:
                raise Unauthenticated
            return self._local(request)
        offered = given.strip().encode("latin-1")  # the bytes as they came
        # every token is compared, so that the time taken tells nothing about any
        names = [name for token, name in self.tokens.items() if hmac.compare_digest(token.encode(), offered)]
        if names:
            return Actor("http", names[0], names[0])
        return await self._admit(request, await self.issued(offered.decode("latin-1")))

    async def _admit(self, request: HTTPConnection, holder: TokenHolder | None) -> Actor:
        """Return the holder of a token. An agent comes in where agents may, and while its person does."""
        if holder is None:
            raise Unauthenticated
        agent = holder.agent
        if agent is None:
            return holder.actor
        if holder.refusal:
            raise Forbidden(holder.refusal)
        if not may_agent_ask(request.scope):
            raise Forbidden(NOT_FOR_AGENTS)
        if agent.person.channel == LOCAL.channel and not await self.knows(agent.person):
            raise Forbidden(f"{agent.person.label} may not come in any longer, so this token opens nothing.")
        return holder.actor

    async def knows(self, actor: Actor) -> bool:
        """Return whether an account may still come in."""
        if actor == LOCAL:
            return not (self.tokens or self.organised)
        if self.has_naming_proxy and actor.key.startswith(_NAMED_BY_PROXY):
            return True
        if actor.key.startswith(_BY_ORGANISATION):
            return self.organised and self.may(actor)
        return actor.key in self.tokens.values() or await self.named(actor.key)

    @staticmethod
    def _local(request: HTTPConnection) -> Actor:
        # the Host header too: a page elsewhere may point its own name at this machine (DNS rebinding)
        client = request.client.host if request.client else ""
        host = _HOST.fullmatch(request.headers.get("host", ""))
        if client not in _LOOPBACK or host is None or host[1].strip("[]").lower() not in _LOOPBACK:
            raise Forbidden("Without NOD_HTTP_TOKENS only this machine may talk to Nod.")
        if is_proxied(request) or any(name in request.headers for name in _FORWARDED):
            raise Forbidden(
                "This came through a proxy, so it could be anyone. Set NOD_HTTP_TOKENS to tell people apart."
            )
        return LOCAL

    @staticmethod
    def _check_own(request: HTTPConnection) -> None:
        """Refuse a browser's request from another site's page: any page can make it send cookies."""
        method = request.scope.get("method", "GET")
        own = "origin" in request.headers or request.headers.get("sec-fetch-site") == "same-origin"
        if method not in _READS and not own:
            raise Forbidden("Requests from other websites are refused.")

    @staticmethod
    def check_origin(request: HTTPConnection) -> None:
        """Refuse a request of another site: it sends its own Origin, or is known to come from elsewhere."""
        origin = request.headers.get("origin")
        if origin is None:
            foreign = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        else:
            scheme, _, host = origin.partition("://")
            # a proxy may have taken the TLS off, but nothing puts it on
            schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
            foreign = scheme not in schemes or host != request.headers.get("host")
        if foreign:
            raise Forbidden("Requests from other websites are refused.")
