"""Trusted reverse proxies: they may say who called, under which host, and over TLS.

A proxy is trusted if its address is in one of the networks that the settings list. It says these things by
the headers ``X-Forwarded-For``, ``-Host`` and ``-Proto``, and by a header with the person whom it has signed
in. The middleware `Forwarded` reads the headers; of any other sender, they change nothing.
"""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.settings import Network

# keys of an ASGI scope
_PROXIED_KEY = "nod.proxied"
_PERSON_KEY = "nod.user"


def is_proxied(request: HTTPConnection) -> bool:
    """Tell if a trusted proxy forwarded this request, so that its headers on the caller can be trusted."""
    return bool(request.scope.get(_PROXIED_KEY))


def find_named_person(request: HTTPConnection) -> str | None:
    """Return the person whom a trusted proxy has signed in, as its header says.

    None if the proxy names no one; empty if it names several, since then none can be trusted.
    """
    person_name: str | None = request.scope.get(_PERSON_KEY)
    return person_name


class Forwarded:
    """ASGI middleware that restores the caller's address, host and scheme, which trusted proxies replaced."""

    def __init__(self, app: ASGIApp, networks: Iterable[Network], user_header: str = "") -> None:
        """``user_header``: a trusted proxy's header on who has signed in; empty for none.

        The header is removed from every request, so that no route reads it.
        """
        self._app = app
        self._networks = tuple(networks)
        self._user_header = user_header.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        person_names: list[str] = []
        if self._user_header and "headers" in scope:
            person_names = self._take_person_names(scope)
        if self._networks and peer is not None and self._is_trusted(peer[0]):
            if person_names:
                scope[_PERSON_KEY] = person_names[0] if len(person_names) == 1 else ""
            self._restore(scope)
        await self._app(scope, receive, send)

    def _take_person_names(self, scope: Scope) -> list[str]:
        """Remove the headers that name a person, and return their values."""
        values = [value.decode("latin-1") for name, value in scope["headers"] if name == self._user_header]
        if values:
            scope["headers"] = [
                (name, value) for name, value in scope["headers"] if name != self._user_header
            ]
        return values

    def _is_trusted(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped:  # a socket on :: shows IPv4 like this
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)

    def _restore(self, scope: Scope) -> None:
        """Set the scheme and the host that the nearest proxy was called with, and the caller's address."""
        scope[_PROXIED_KEY] = True
        scheme = _last(scope, b"x-forwarded-proto")
        if scheme in ("http", "https"):
            scope["scheme"] = scheme
        host = _last(scope, b"x-forwarded-host")
        if host:
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [*others, (b"host", host.encode("latin-1"))]
        hops = [_without_port(word) for word in _list_words(scope, b"x-forwarded-for")]
        # each proxy adds its own caller at the end, so the last hop that is no trusted proxy is the caller;
        # the hops before it can be forged
        callers = [hop for hop in hops if not self._is_trusted(hop)]
        if hops:
            scope["client"] = (callers[-1] if callers else hops[0], 0)


def _without_port(hop: str) -> str:
    """Return the address of a hop: ``1.2.3.4:567`` -> ``1.2.3.4``, ``[::1]:567`` -> ``::1``."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    if hop.count(":") == 1:  # an IPv6 address has more
        return hop.partition(":")[0]
    return hop


def _list_words(scope: Scope, header: bytes) -> list[str]:
    """Return the entries of a header, which may be sent several times: ``a, b`` -> ``["a", "b"]``."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == header]
    return [word.strip() for line in lines for word in line.split(",") if word.strip()]


def _last(scope: Scope, header: bytes) -> str:
    """Return the nearest proxy's value, which comes after what its caller sent; empty for none."""
    words = _list_words(scope, header)
    return words[-1] if words else ""
