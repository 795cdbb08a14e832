"""Which network addresses are public: what may be fetched, and what belongs to somebody's own network."""

import ipaddress
from ipaddress import IPv4Address, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_CARRIER = ipaddress.IPv4Network(
    "100.64.0.0/10"
)  # shared by carriers (RFC 6598); inside clouds it is private
_OLD_RELAY = ipaddress.IPv4Network("192.88.99.0/24")  # 6to4 relays (RFC 7526)
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
_PLATFORM = ipaddress.IPv4Network("168.63.129.16/32")  # Azure's host, public by number alone
_GLOBAL_V6 = IPv6Network("2000::/3")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))  # NAT64 (RFC 6052, RFC 8215)
_COMPATIBLE = IPv6Network("::/96")


def public(address: Address) -> bool:
    """Whether the address, and any IPv4 address inside it, belongs to the open Internet."""
    if isinstance(address, IPv4Address):
        return _public_v4(address)
    if address.scope_id is not None:
        return False
    inner = _inside(address)
    if inner is not None:
        # such forms are another spelling of an IPv4 address; no honest name has one
        return False
    return (
        address in _GLOBAL_V6
        and address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_site_local
    )


def _public_v4(address: IPv4Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and all(address not in network for network in (_CARRIER, _OLD_RELAY, _PROTOCOLS, _PLATFORM))
    )


def _inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a mapped, compatible, 6to4, Teredo, NAT64 or ISATAP address carries."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    if address in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if address in _TEREDO:
        return IPv4Address(~number & 0xFFFFFFFF)
    isatap = number >> 32 & 0xFDFFFFFF == 0x5EFE  # noqa: PLR2004 - RFC 5214
    if address in _COMPATIBLE or isatap or any(address in network for network in _TRANSLATED):
        return IPv4Address(number & 0xFFFFFFFF)
    return None
