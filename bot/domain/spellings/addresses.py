"""Addresses: as RFC 3986 (6.2) writes them, and as the least particular program takes them."""

import contextlib
import re
import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import SplitResult, quote, unquote, urlsplit

from bot.domain.spellings.hosts import compare_hosts, loosen_host, normalize_host
from bot.domain.spellings.names import decode_percent
from bot.domain.spellings.terms import MAX_CHARS, Answer, NamedText

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNCLEAR = re.compile(r"[\s\\\x00-\x1f\x7f]")  # in an address: programs disagree on where it leads
_UNRESERVED = re.compile(r"%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])")


def compare_addresses(found: str, wanted: NamedText) -> Answer:
    """Compare addresses: as RFC 3986 writes them, and as the least particular program takes them."""
    if len(found) > MAX_CHARS:
        return None
    strict = _normalize_address(found)
    loose, theirs = _loosen_address(found), _loosen_address(wanted.text)
    taken = wanted.fits(loose, theirs)
    inside = (
        bool(theirs) and not wanted.pattern and loose.startswith(tuple(f"{theirs}{mark}" for mark in "/?;!"))
    )
    if strict is None or (_UNCLEAR.search(found) and found != wanted.text):
        if taken or inside or SCHEME.match(found.strip()):
            return None
        return False
    first = wanted.fits(strict, wanted.normal(_normalize_address))
    if wanted.pattern:  # which may have no path, or be written as the argument is
        first = first or any(fnmatchcase(each, wanted.text) for each in (strict.removesuffix("/"), found))
    if first != taken or (first and "@" in strict):
        return None  # programs disagree on where a user's name ends
    if first:
        return True
    return None if inside else False


def _split_address(text: str) -> tuple[SplitResult, str, int | None] | None:
    with contextlib.suppress(ValueError):
        parts = urlsplit(text if SCHEME.match(text) else f"//{text}")
        return parts, parts.hostname or "", parts.port
    return None


def _normalize_address(text: str) -> str | None:
    """Return an address in its normal form, the fragment left out; None where it has none."""
    found = _split_address(text)
    if found is None or not found[1]:
        return None
    parts, host, port = found
    usual = _PORTS.get(parts.scheme.lower())
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    at = "" if port in (None, usual) else f":{port}"
    scheme = f"{parts.scheme.lower()}://" if parts.scheme else ""
    query = f"?{_escape_reserved(parts.query)}" if parts.query else ""
    return (
        f"{scheme}{user}{normalize_host(host)}{at}{_without_dots(_escape_reserved(parts.path)) or '/'}{query}"
    )


def _escape_reserved(text: str) -> str:
    """Normalise percent-escapes: only necessary ones, in capitals."""
    plain = _UNRESERVED.sub(lambda found: unquote(found[0]), text)
    escaped = re.sub(r"%[0-9a-fA-F]{2}", lambda found: found[0].upper(), plain)
    return quote(escaped, safe="!#$%&'()*+,/:;=?@[]~{}|^`\"<>")


def _without_dots(path: str) -> str:
    """Return the path of an address without dot segments (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    names = path.split("/")
    for at, name in enumerate(names):
        if name == "..":
            if len(kept) > 1:
                kept.pop()
        elif name != ".":
            kept.append(name)
        if name in (".", "..") and at == len(names) - 1:
            kept.append("")
    return "/".join(kept)


@lru_cache(maxsize=1024)
def _loosen_address(text: str) -> str:
    """Return an address without scheme, user, usual port, fragment, doubled slashes and case."""
    plain = decode_percent(text.strip().strip("<>\"'"))
    plain = unicodedata.normalize("NFKC", "".join(plain.split())).replace("\\", "/")
    plain = re.sub(r"^(?:[A-Za-z*][A-Za-z0-9+.*-]*:){0,3}/{2,}", "", plain)
    plain = re.sub(r"^(?:https?|wss?|ftp):/?", "", plain, flags=re.IGNORECASE).partition("#")[0]
    cut = re.search(r"[/?]", plain)
    host, path = (plain[: cut.start()], plain[cut.start() :]) if cut else (plain, "")
    if not host.endswith("]"):
        host = re.sub(r":(?:80|443|21)?$", "", host.rpartition("@")[2])
    way, mark, query = path.partition("?")
    way = re.sub(r"/{2,}", "/", _without_dots(way)).rstrip("/")
    return f"{loosen_host(host)}{way.casefold()}{mark if query else ''}{query.casefold()}"


def compare_host_or_address(found: str, wanted: NamedText) -> Answer:
    """Compare what may be a bare host, or an address that has one."""
    if "/" in found or "@" in found or "/" in wanted.text:
        return compare_addresses(found, wanted)
    port = re.compile(r":[0-9]{1,5}$")
    bare = found if ":" in port.sub("", found) else port.sub("", found)
    if bare != found and compare_hosts(bare, wanted) is not False:
        return None  # on a port of its own
    return compare_hosts(found, wanted)
