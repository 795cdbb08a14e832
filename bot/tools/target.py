"""A URL, checked before anything is resolved; then its addresses, checked before anything is connected.

Public addresses may be fetched, those of an internal network not. The special ranges:
https://www.iana.org/assignments/iana-ipv4-special-registry and the same with ipv6.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

from bot.errors import ToolError

Address = IPv4Address | IPv6Address

# `is_global` leaves these out in one version of Python or another
_NOT_V4 = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),  # shared by carriers, and private inside clouds
    IPv4Network("168.63.129.16/32"),  # Azure's host: public by number alone
    IPv4Network("192.0.0.0/24"),  # protocols
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("198.18.0.0/15"),  # benchmarks
    IPv4Network("224.0.0.0/3"),  # multicast, reserved, broadcast
)
_ALL_V6 = IPv6Network("2000::/3")
_NOT_V6 = (
    IPv6Network("2001::/23"),  # protocols; Teredo is one
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4: any IPv4 address stands inside
    IPv6Network("3fff::/20"),  # documentation
)
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64 (RFC 6052): on a network of IPv6 alone, every IPv4 name
_ISATAP = 0x5EFE  # RFC 5214: an IPv4 address behind these bits
_LONGEST = 4000
_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_NUMBER_LIKE = re.compile(r"(0x[0-9a-f]*|[0-9]+)\.?")
_OWN_ENDS = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "localdomain", "home.arpa")


def public(address: Address) -> bool:
    """Tell if an address belongs to the open Internet. Other spellings of an IPv4 address do not.

    The only exception is NAT64's, where the IPv4 address in it is public.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _NOT_V4)
    if address in _TRANSLATED and address.scope_id is None:
        return public(IPv4Address(int(address) & 0xFFFFFFFF))
    return (
        address in _ALL_V6
        and address.is_global
        and address.scope_id is None
        and int(address) >> 32 & 0xFDFFFFFF != _ISATAP
        and not any(address in network for network in _NOT_V6)
    )


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""A name and a port → the addresses it has, as text. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request: ``host`` is a lower-case name or a bare address.

    ``path`` includes the query.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def target(url: str, own: Collection[str] = (), ports: Collection[int] | None = None) -> Target:
    """Take the URL apart. Raises ToolError for what is not plain http or https to a plain host.

    ``own`` are hosts that may be reached although they are internal; ``ports`` are those that
    may be connected to, None: any.
    """
    if len(url) > _LONGEST or not url.isprintable() or " " in url or "\\" in url:
        raise ToolError("The URL is too long, or has spaces, backslashes or control characters.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ToolError(f"This is not a URL: {error}.") from None
    if parts.scheme not in _PORTS:
        raise ToolError("Only http and https are fetched.")
    if "@" in parts.netloc:
        raise ToolError("The URL must not carry a user name or password.")
    named = parts.hostname or ""
    host = named if named in own else _host(named)
    path = _ascii(parts.path or "/") + (f"?{_ascii(parts.query)}" if parts.query else "")
    port = port if port is not None else _PORTS[parts.scheme]
    if ports is not None and port not in ports:
        raise ToolError(f"Port {port} is not allowed. An admin can add it to NOD_FETCH_PORTS.")
    return Target(parts.scheme, host, port, path)


async def addresses(goal: Target, resolve: Resolve, own: Collection[str] = ()) -> list[str]:
    """Return the addresses of the host, every one of them public. Raises ToolError if a single one is not.

    A host in ``own`` may have any address.
    """
    try:
        found = [ipaddress.ip_address(goal.host)]
    except ValueError:
        found = await _resolve_target(goal, resolve)
    for address in found if goal.host not in own else ():
        check_address(address, goal.host)
    return [str(address) for address in found]


def check_address(address: Address, host: str) -> None:
    """Raise ToolError for an address that is not public."""
    if not public(address):
        where = host if host == str(address) else f"{host} ({address})"
        raise ToolError(f"{where} is not on the open Internet. Such addresses are never fetched.")


async def by_system(host: str, port: int) -> Sequence[str]:
    """Resolve a host by the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def _resolve_target(goal: Target, resolve: Resolve) -> list[Address]:
    try:
        found = [ipaddress.ip_address(each) for each in await resolve(goal.host, goal.port)]
    except (OSError, UnicodeError, ValueError):
        raise ToolError(f"The name {goal.host} has no address.") from None
    if not found:
        raise ToolError(f"The name {goal.host} has no address.")
    return found


def _host(text: str) -> str:
    """Return one spelling for each host; the odd ones (decimal, octal, hexadecimal, short) are refused."""
    if ":" in text:
        try:
            return str(ipaddress.IPv6Address(text))
        except ValueError:
            raise ToolError(f"{text} is not an address.") from None
    host = text
    if not text.isascii():
        try:
            host = text.encode("idna").decode().lower()
        except UnicodeError:
            raise ToolError("The host's name is not valid.") from None
    if not _NAME.fullmatch(host):
        raise ToolError("The host's name is not valid.")
    if _NUMBER_LIKE.fullmatch(host.rstrip(".").rpartition(".")[2]):  # a number at the end is an address
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ToolError(f"{host} is an unusual way to write an address. Those are refused.") from None
    bare = host.rstrip(".")
    if any(bare == end or bare.endswith(f".{end}") for end in _OWN_ENDS):
        raise ToolError(f"{bare} is an internal network name. Those are never fetched.")
    return bare


def _ascii(text: str) -> str:
    return "".join(each if each.isascii() else "".join(f"%{b:02X}" for b in each.encode()) for each in text)
