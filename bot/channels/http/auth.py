"""Who calls: a bearer token's owner, or, where no token is configured, whoever sits at this machine."""

import hmac
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from starlette.requests import HTTPConnection

from bot.domain.people import Actor
from bot.errors import NodError

LOCAL = Actor("http", "local", "you")
"""Who sits at this machine, where no tokens are configured."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Unauthenticated(NodError):
    """Send a valid token: Authorization: Bearer <token>."""


class Forbidden(NodError):
    """This is not allowed from here."""


class Doorkeeper:
    """``tokens`` maps token to name. Without tokens, only loopback is let in, as ``http:local``."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = {token.encode(): name for token, name in tokens.items()}

    def __call__(self, request: HTTPConnection) -> Actor:
        """Raises Unauthenticated or Forbidden."""
        self._check_origin(request)
        if not self._tokens:
            return self._local(request)
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        offered = given.strip().encode("latin-1")  # the bytes as they came
        # every token is compared, so that the time taken tells nothing about any
        names = [name for token, name in self._tokens.items() if hmac.compare_digest(token, offered)]
        if scheme.lower() != "bearer" or not names:
            raise Unauthenticated
        return Actor("http", names[0], names[0])

    @staticmethod
    def _local(request: HTTPConnection) -> Actor:
        # the Host header too: a page elsewhere may point its own name at this machine (DNS rebinding)
        client = request.client.host if request.client else ""
        if (
            client not in _LOOPBACK
            or _split(f"//{request.headers.get('host', '')}").hostname not in _LOOPBACK
        ):
            raise Forbidden("Without NOD_HTTP_TOKENS only this machine may talk to Nod.")
        return LOCAL

    @staticmethod
    def _check_origin(request: HTTPConnection) -> None:
        origin = request.headers.get("origin")
        if origin and _split(origin).netloc != request.headers.get("host"):
            raise Forbidden("Requests from other web sites are not taken.")


def _split(address: str) -> SplitResult:
    """Its parts; none where it is not an address at all."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
