"""Which network addresses are public: what may be fetched, and what belongs to an internal network.

The special ranges: https://www.iana.org/assignments/iana-ipv4-special-registry and the same with ipv6.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

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


def public(address: Address) -> bool:
    """Whether the address belongs to the open Internet; other spellings of an IPv4 address do not count.

    The one taken is NAT64's, and only where the IPv4 address in it is public.
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
