"""Hosts: names in Unicode or punycode, and IP addresses in any of their notations (UTS #46).

Two spellings are equal in their *strict form* if the standard says that they are the same, and in their
*loose form* if some program takes them for the same: ``127.0.0.1`` is the loose form of ``0x7f.1``, and
``bücher.de`` that of ``xn--bcher-kva.de``. `compare_host` is for the host in an address (a URL), which
programs may read differently; `compare_hosts` compares two bare hosts.
"""

import contextlib
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from bot.domain.spellings.names import decode_percent, fold
from bot.domain.spellings.terms import Answer, WantedText, agree
from bot.domain.text import host_of

# the start of an address in front of its host: a scheme, and any number of slashes
_SLASHES = re.compile(r"^\s*(?:(?:https?|wss?|ftp):)?[/\\]*", re.IGNORECASE)
_MAX_LABEL_CHARS = 63  # RFC 1035, 2.3.4
_IN_BRACKETS = re.compile(r"^[^/?#]*\[")  # an IPv6 address as host
_HOST_AFTER_LATE_USER = re.compile(r"^[^/?#]*[?#]@([^/?#:]+)")  # "b.example" in "a.example?@b.example"


def compare_host(address: str, wanted: WantedText) -> Answer:
    """Compare the host in an address with the host that a rule names.

    None also if programs read different hosts in the address, and these have different answers.
    """
    return agree(*(compare_hosts(host, wanted) for host in _list_hosts(address)))


def _list_hosts(address: str) -> Iterator[str]:
    """Yield the host of an address as different programs read it."""
    yield host_of(address).removesuffix(".")
    rest = _SLASHES.sub("", address)  # some programs accept any number of slashes
    if not _IN_BRACKETS.search(rest):
        front = re.split(r"[/?#\\]|%2f", rest, maxsplit=1, flags=re.IGNORECASE)[0]
        # in "user@a.example@b.example" the user's name may end at the first or at the last mark
        hosts = front.split("@")[1:] or [front]
        for host in (hosts[0], hosts[-1]):
            yield host.partition(":")[0].removesuffix(".")
    host_after_user = _HOST_AFTER_LATE_USER.search(rest)
    if host_after_user:  # for some programs a user's name also ends at "?@" or "#@"
        yield host_after_user[1]


def compare_hosts(found: str, wanted: WantedText) -> Answer:
    """Compare a bare host with the host that a rule names."""
    strict = wanted.fits(normalize_host(found), wanted.normalize_with(normalize_host))
    return agree(strict, wanted.fits(loosen_host(found), loosen_host(wanted.text)))


def normalize_host(text: str) -> str:
    """Return a host in its strict form: in lower case, without a dot at its end, an IP address shortened."""
    plain = text.strip("[]").lower().removesuffix(".")
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(plain))
    return plain


@lru_cache(maxsize=1024)
def loosen_host(text: str) -> str:
    """Return a host in its loose form: in Unicode, an IPv4 address in any notation as four numbers."""
    plain = unicodedata.normalize("NFKC", decode_percent(text.strip())).strip("[]").casefold()
    plain = re.sub(r"[\u3002\uff0e\uff61]", ".", plain).rstrip(".")  # the full stops of UTS #46
    if re.fullmatch(r"[0-9a-fx.]+", plain) and plain[:1].isdecimal():
        with contextlib.suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(plain))
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(plain)
        return str(getattr(address, "ipv4_mapped", None) or address)
    return ".".join(map(_decode_label, plain.split(".")))


def _decode_label(label: str) -> str:
    """Return one part of a host's name, decoded from punycode and in its loose form."""
    if label.startswith("xn--") and len(label) <= _MAX_LABEL_CHARS:
        with contextlib.suppress(UnicodeError):
            label = label[4:].encode().decode("punycode")
    return fold(label)
