"""The target of a request to a URL that a model or a setting names: it must be on the open Internet.

There are two steps. `parse_target` checks the URL before its name is resolved. `resolve_target` resolves the
name and checks each address, before anyone connects to one of them. Addresses of an internal network are
refused, except those of the hosts that the caller lists as internal. `http_fetch` and the POSTs of
``bot/jobs/outbound_post.py`` go through both.

The special ranges are listed at https://www.iana.org/assignments/iana-ipv4-special-registry and
https://www.iana.org/assignments/iana-ipv6-special-registry
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import quote, urlsplit

from bot.errors import ToolError

Address = IPv4Address | IPv6Address

# networks that are not public, although `is_global` calls some of them so in some versions of Python
_SPECIAL_V4 = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),  # shared by carriers, and private inside clouds
    IPv4Network("168.63.129.16/32"),  # Azure's host: public by number alone
    IPv4Network("192.0.0.0/24"),  # protocols
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("198.18.0.0/15"),  # benchmarks
    IPv4Network("224.0.0.0/3"),  # multicast, reserved, broadcast
)
_GLOBAL_V6 = IPv6Network("2000::/3")  # all public addresses, and the special networks in it
_SPECIAL_V6 = (
    IPv6Network("2001::/23"),  # protocols; Teredo is one
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4: addresses that contain any IPv4 address
    IPv6Network("3fff::/20"),  # documentation
)
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: IPv4 addresses on a network that has only IPv6
_IPV4_MASK = 0xFFFFFFFF  # the last 32 bits of an IPv6 address, where NAT64 and ISATAP put an IPv4 address
_ISATAP = 0x5EFE  # RFC 5214: ISATAP puts 0000:5efe or 0200:5efe before an IPv4 address
_ISATAP_MASK = 0xFDFFFFFF  # turns the second of these into the first: clears the bit in which they differ
_MAX_URL_CHARS = 4000
_PORTS = {"http": 80, "https": 443}
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"  # a part of a name between dots
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")  # "example.com", also with a dot at its end
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")  # the last label of an IPv4 address, also in "127.1" and "0x7f"
_INTERNAL_DOMAINS = (
    "localhost", "local", "internal", "intranet", "lan", "home", "corp", "localdomain", "home.arpa",
)  # fmt: skip


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name, as texts, for a port. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request."""

    scheme: str
    host: str  # a name in lower case, or an address without brackets
    port: int
    path: str  # the path with the query

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def parse_target(
    url: str, internal_hosts: Collection[str] = (), ports: Collection[int] | None = None
) -> Target:
    """Parse a URL. Raises ToolError unless it is plain http or https to a host that may be fetched.

    ``internal_hosts``: hosts of an internal network that may be reached all the same. ``ports``: the allowed
    ports; None: any port.
    """
    if len(url) > _MAX_URL_CHARS or not url.isprintable() or " " in url or "\\" in url:
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
    host = parts.hostname or ""
    if host not in internal_hosts:
        host = _normalise_host(host)
    path = _escape_non_ascii(parts.path or "/")
    if parts.query:
        path += f"?{_escape_non_ascii(parts.query)}"
    if port is None:
        port = _PORTS[parts.scheme]
    if ports is not None and port not in ports:
        raise ToolError(f"Port {port} is not allowed. An admin can add it to NOD_FETCH_PORTS.")
    return Target(parts.scheme, host, port, path)


async def resolve_target(target: Target, resolve: Resolve, internal_hosts: Collection[str] = ()) -> list[str]:
    """Return the addresses of the target's host. Raises ToolError if an address is not public.

    A host in ``internal_hosts`` may have any address.
    """
    try:
        addresses = [ipaddress.ip_address(target.host)]
    except ValueError:
        addresses = await _resolve_name(target, resolve)
    if target.host not in internal_hosts:
        for address in addresses:
            _check_address(address, target.host)
    return [str(address) for address in addresses]


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Resolve a host by the system's resolver. Implements `Resolve`."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    hosts = [str(socket_address[0]) for _, _, _, _, socket_address in infos]
    return list(dict.fromkeys(hosts))


def is_public(address: Address) -> bool:
    """Tell if an address belongs to the open Internet.

    IPv6 addresses that contain an IPv4 address are not public. The exceptions are those in NAT64's range:
    they are public if the IPv4 address is.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _SPECIAL_V4)
    if address.scope_id is not None:  # a link of this machine is named: fe80::1%eth0
        return False
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & _IPV4_MASK))
    is_isatap = (int(address) >> 32) & _ISATAP_MASK == _ISATAP
    is_special = is_isatap or any(address in network for network in _SPECIAL_V6)
    return address in _GLOBAL_V6 and address.is_global and not is_special


def _normalise_host(text: str) -> str:
    """Return the usual spelling of a host. Raises ToolError for an invalid or an internal name.

    Unusual spellings of an address (decimal, octal, hexadecimal, short) are refused as well.
    """
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
    host_without_dot = host.rstrip(".")
    last_label = host_without_dot.rpartition(".")[2]
    if _NUMBER.fullmatch(last_label):  # no name of the Internet ends in a number, but an address does
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ToolError(f"{host} is an unusual way to write an address. Those are refused.") from None
    if any(f".{host_without_dot}".endswith(f".{domain}") for domain in _INTERNAL_DOMAINS):
        raise ToolError(f"{host_without_dot} is an internal network name. Those are never fetched.")
    return host_without_dot


def _escape_non_ascii(text: str) -> str:
    """Return a part of a URL with each character that is not ASCII percent-encoded."""
    return "".join(char if char.isascii() else quote(char, safe="") for char in text)


async def _resolve_name(target: Target, resolve: Resolve) -> list[Address]:
    try:
        addresses = [ipaddress.ip_address(text) for text in await resolve(target.host, target.port)]
    except (OSError, UnicodeError, ValueError):
        raise ToolError(f"The name {target.host} has no address.") from None
    if not addresses:
        raise ToolError(f"The name {target.host} has no address.")
    return addresses


def _check_address(address: Address, host: str) -> None:
    """Raise ToolError for an address that is not public; ``host`` is the host that has it."""
    if not is_public(address):
        where = host if host == str(address) else f"{host} ({address})"
        raise ToolError(f"{where} is not on the open Internet. Such addresses are never fetched.")
