"""Addresses (URLs), compared as RFC 3986 (6.2) normalises them, and as the most tolerant program reads them.

Two spellings are equal in their *strict form* if the standard says that they are the same, and in their
*loose form* if some program takes them for the same. ``HTTP://Example.org:80/a/../b`` and
``http://example.org/b`` have the same strict form. The loose form is also without the scheme, the user, the
usual port, the fragment, capitals and doubled slashes.
"""

import contextlib
import re
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from bot.domain.spellings.hosts import compare_hosts, loosen_host, normalize_host
from bot.domain.spellings.names import decode_percent
from bot.domain.spellings.terms import MAX_CHARS, Answer, WantedText

_USUAL_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNCLEAR = re.compile(r"[\s\\\x00-\x1f\x7f]")  # with these in it, programs disagree where an address leads
# the beginning of an address, also in short or with backslashes: "https://", "//", "https:"
_BEGINNING = re.compile(r"[\s<>\"']*(?:(?:[a-z][a-z0-9+.-]*:)?[/\\]{2}|(?:https?|wss?|ftp):)", re.IGNORECASE)
# the schemes and slashes in front; the group is all after them up to the next slash, also after a "?": in
# "https://ana@example.org?to=ben/x" it is "ana@example.org?to=ben"
_FRONT = re.compile(r"[<>\"']*(?:[A-Za-z*][A-Za-z0-9+.*-]*:){0,3}[/\\]*([^/]*)")
_MARKS_BELOW = "/?;!"  # an address that continues with one of these is below the address in front of it
# percent-escapes of letters, digits, "-", ".", "_" and "~", which are never necessary (RFC 3986, 2.3)
_UNRESERVED = re.compile(r"%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])")


def compare_addresses(found: str, wanted: WantedText) -> Answer:
    """Compare an argument with an address that a rule names.

    True if it fits in both forms, False if in neither. None

    - if it has more than `MAX_CHARS` characters,
    - if it can't be parsed or it is unclear where it leads, but it begins like an address, fits in its loose
      form, or is below the address that the rule names,
    - if it fits in only one of the two forms, or only as some program reads it (`_list_readings`),
    - if it is below the address that the rule names,
    - if it fits and has an ``@``: programs disagree on where a user's name ends.
    """
    if len(found) > MAX_CHARS:
        return None
    strict = _normalize_address(found)
    loose_wanted = _loosen_address(wanted.text)
    loose_forms = [_loosen_address(reading) for reading in _list_readings(found)]
    fits_loosely = any(wanted.fits(form, loose_wanted) for form in loose_forms)
    is_below = not wanted.is_pattern and any(_is_below(form, loose_wanted) for form in loose_forms)

    is_unclear = _UNCLEAR.search(found) is not None and found != wanted.text
    if strict is None or is_unclear:
        begins_like_address = _BEGINNING.match(found)
        return None if fits_loosely or is_below or begins_like_address else False

    fits_strictly = wanted.fits(strict, wanted.normalize_with(_normalize_address))
    if wanted.is_pattern and not fits_strictly:
        # a pattern has no strict form. It may lack the "/" that is the path of a bare host, or it may fit the
        # argument as written
        bare = strict.removesuffix("/")
        fits_strictly = fnmatchcase(bare, wanted.text) or fnmatchcase(found, wanted.text)
    if fits_strictly != fits_loosely:
        return None
    if fits_strictly:
        return None if "@" in found else True
    return None if is_below else False


def _is_below(form: str, loose_wanted: str) -> bool:
    """Tell if an address lies below the one that a rule names, both in their loose form."""
    beginnings = tuple(f"{loose_wanted}{mark}" for mark in _MARKS_BELOW)
    return bool(loose_wanted) and form.startswith(beginnings)


def _list_readings(address: str) -> Iterator[str]:
    """Yield an address as it is, and without the user's name as different programs read it.

    Some end the name at the first ``@``, some at the last, even after ``?``, ``#`` or an escaped slash:
    ``http://a@b@c/d`` -> ``b/d`` and ``c/d``.
    """
    yield address
    plain = "".join(address.split())
    front = _FRONT.match(plain)
    hosts = front[1].split("@")[1:] if front else []
    if front and hosts:
        rest = plain[front.end() :]
        yield f"{hosts[0]}{rest}"
        yield f"{hosts[-1]}{rest}"


class _SplitAddress(NamedTuple):
    """An address in parts. Reading its host or its port may raise, so both are read in one place."""

    parts: SplitResult
    host: str
    port: int | None


def _split_address(text: str) -> _SplitAddress | None:
    with contextlib.suppress(ValueError):
        parts = urlsplit(text if SCHEME.match(text) else f"//{text}")
        return _SplitAddress(parts, parts.hostname or "", parts.port)
    return None


def _normalize_address(text: str) -> str | None:
    """Return an address in its strict form, without its fragment; None for a text that is no address."""
    address = _split_address(text)
    if address is None or not address.host:
        return None
    parts = address.parts
    scheme = parts.scheme.lower()
    normal = f"{scheme}://" if scheme else ""
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        normal += f"{user}@"
    normal += normalize_host(address.host)
    if address.port not in (None, _USUAL_PORTS.get(scheme)):
        normal += f":{address.port}"
    normal += _without_dots(_normalize_escapes(parts.path)) or "/"
    if parts.query:
        normal += f"?{_normalize_escapes(parts.query)}"
    return normal


def _normalize_escapes(text: str) -> str:
    """Return a text with only the necessary percent-escapes, in capitals: ``%7ea%2fb`` -> ``~a%2Fb``."""
    plain = _UNRESERVED.sub(lambda escape: unquote(escape[0]), text)
    escaped = re.sub(r"%[0-9a-fA-F]{2}", lambda escape: escape[0].upper(), plain)
    return quote(escaped, safe="!#$%&'()*+,/:;=?@[]~{}|^`\"<>")


def _without_dots(path: str) -> str:
    """Return the path of an address without dot segments (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    names = path.split("/")
    for name in names:
        if name == "..":
            if len(kept) > 1:
                kept.pop()
        elif name != ".":
            kept.append(name)
    if names[-1] in (".", ".."):
        kept.append("")  # the path of a folder ends with a slash
    return "/".join(kept)


@lru_cache(maxsize=1024)
def _loosen_address(text: str) -> str:
    """Return an address in its loose form."""
    plain = decode_percent(text.strip().strip("<>\"'"))
    plain = unicodedata.normalize("NFKC", "".join(plain.split())).replace("\\", "/")
    # up to three schemes with their slashes, as in "view-source:http://", or one with too few slashes
    plain = re.sub(r"^(?:[A-Za-z*][A-Za-z0-9+.*-]*:){0,3}/{2,}", "", plain)
    plain = re.sub(r"^(?:https?|wss?|ftp):/?", "", plain, flags=re.IGNORECASE)
    plain = plain.partition("#")[0]

    end_of_host = re.search(r"[/?]|$", plain)
    host_chars = end_of_host.start() if end_of_host else len(plain)
    authority, rest = plain[:host_chars], plain[host_chars:]
    host = authority.rpartition("@")[2]
    if not host.endswith("]"):  # the colons of an IPv6 address, "[::1]", do not begin a port
        host = re.sub(r":(?:80|443|21)?$", "", host)
    path, _, query = rest.partition("?")
    path = re.sub(r"/{2,}", "/", _without_dots(path)).rstrip("/")
    loose = f"{loosen_host(host)}{path.casefold()}"
    return f"{loose}?{query.casefold()}" if query else loose


def compare_host_or_address(found: str, wanted: WantedText) -> Answer:
    """Compare an argument that is a bare host, perhaps with a port, or a full address.

    None if a bare host fits, and the argument has a port.
    """
    if "/" in found or "@" in found or "/" in wanted.text:
        return compare_addresses(found, wanted)
    without_port = re.sub(r":[0-9]{1,5}$", "", found)
    has_port = without_port != found and ":" not in without_port  # IPv6 addresses have several colons
    if has_port and compare_hosts(without_port, wanted) is not False:
        return None  # the host, but on another port
    return compare_hosts(found, wanted)
