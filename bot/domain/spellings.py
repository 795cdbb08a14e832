"""The spellings of one thing: a path, an address, a mail address or a name, compared as tools use them.

`compare` answers True where a text is what a rule names, False where it is not, and None where the spellings
disagree: then one program may take it for the same and another may not. A rule that makes a call stricter
counts for None, one that makes it looser does not (``bot/domain/rules.py``).

Sources: RFC 3986 (6.2, normalisation), UTS #46 (host names), RFC 5321 (mail addresses),
https://learn.microsoft.com/windows/win32/fileio/naming-a-file (case, trailing dots and spaces, streams).
"""

import contextlib
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from email.utils import getaddresses
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from bot.domain.text import host_of

Answer = bool | None

KEYWORD = "x-names"
"""Of a field's JSON schema: what it names, as a `Referent`."""
_MAX_CHARS = 8_000  # of a text that is taken apart; a longer one can't be told
_MAX_DECODED = 3  # times that a text is percent-decoded
_SURELY_TEXT = 300  # characters of one line, from which a text without a mark of its own is no name
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ON_DRIVE = re.compile(r"[A-Za-z]:(?![/\\])")
_DRIVE = re.compile(r"[A-Za-z]:")
_HOME = re.compile(r"~[^/]*|\$\{?\w+\}?|%\w+%")  # at the beginning of a path: a folder that is not known here
_PATH_MARKS = re.compile(r"[/\\%]|^[.~]|\.\w{1,8}$")
_LIKE_A_HOST = re.compile(r"[^\s/:@]+(\.[^\s/:@]+)+(:[0-9]+)?([/?#]|$)|localhost\b")
_LIKE_MAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_UNCLEAR = re.compile(r"[\s\\\x00-\x1f\x7f]")  # in an address: programs disagree on where it leads
_UNRESERVED = re.compile(r"%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])")
_TAG = re.compile(r"\+[^@]*@")
_DOTLESS = frozenset({"gmail.com", "googlemail.com"})  # one mailbox, with or without dots in the name
_SLASHES = re.compile(r"^\s*(?:(?:https?|wss?|ftp):)?[/\\]*", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"^[^/?#]*\[")
_LATE_USER = re.compile(r"^[^/?#]*[?#]@([^/?#:]+)")
_WILD = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[[^\]/]*\]?")
_BRACED = re.compile(r"\{[^{}]*\}")
_EXTENDED = re.compile(r"[@+!?*]\([^()]*\)")  # as shells write alternatives
_ANY_FOLDERS = re.compile(r"\*\*+/")
_SHORT_NAME = re.compile(r"([^/~]{1,6})~[0-9]{1,6}(\.[^/.]{1,3})?(?=/|$)")  # of Windows: PROGRA~1
_MAX_WILD_CHARS = 500  # of a path with wildcards that is taken apart; a longer one can't be told
_ID = re.compile(r"[0-9a-fA-F]{12,}")
_REFS = re.compile(r"^\+?(refs/)?(heads|tags|remotes)/")


class Referent(StrEnum):
    """The kind of thing that a text argument names."""

    PATH = "path"  # one file or folder, itself
    TREE = "tree"  # a file, or a folder with all that is below it
    FOLDER = "folder"  # a folder with all that is below it
    ADDRESS = "address"  # a URL, with or without its scheme
    HOST = "host"
    EMAIL = "email"
    NAME = "name"  # of an account, a branch, a channel
    NAME_OR_ID = "name or id"  # of a container: an id may be that of what a rule names


class NamedText(NamedTuple):
    """The text in a rule; with ``pattern`` it may hold * and ?."""

    text: str
    pattern: bool

    def fits(self, found: str, named: str) -> bool:
        """Return whether a text is it; both are in one form."""
        if self.pattern:
            return fnmatchcase(found, named)
        return found == named

    def normal(self, form: Callable[[str], str | None]) -> str:
        """Return the text in its normal form; a pattern stays as it is written."""
        if self.pattern:
            return self.text
        return form(self.text) or self.text


PATHS = frozenset({Referent.PATH, Referent.TREE, Referent.FOLDER})
_FORMATS = {
    **dict.fromkeys(("uri", "uri-reference", "iri", "iri-reference", "url"), Referent.ADDRESS),
    **dict.fromkeys(("hostname", "idn-hostname", "ipv4", "ipv6"), Referent.HOST),
    **dict.fromkeys(("email", "idn-email"), Referent.EMAIL),
    **dict.fromkeys(("path", "file-path", "directory-path"), Referent.TREE),
}
_KEYS = {
    Referent.FOLDER: r"folders?|dirs?|director(y|ies)|cwd|root|workdir",
    Referent.TREE: r"paths?|files?|filenames?|filepaths?|sources?|src|destinations?|dest|dst",
    Referent.ADDRESS: r"ur[lis]s?|uris?|links?|href|endpoint|webhook|site|website|webpage|address(es)?",
    Referent.HOST: r"hosts?|hostnames?|domains?|server|ips?",
    Referent.EMAIL: r"e?mails?|recipients?|cc|bcc|sender|mailbox",
}
_KEY_PARTS = {kind: re.compile(rf"(^|[_-])({words})([_-]|$)") for kind, words in _KEYS.items()}


def find_declared(schema: Mapping[str, Any]) -> Referent | None:
    """Return the kind of thing that a field's schema declares, or None."""
    said = schema.get(KEYWORD)
    if said in list(Referent):
        return Referent(said)
    return _FORMATS.get(str(schema.get("format")))


def guess_referent(key: str) -> Referent | None:
    """Guess the kind of thing that a field holds by its name, or return None."""
    plain = _HUMP.sub("_", key).lower()
    return next((kind for kind, pattern in _KEY_PARTS.items() if pattern.search(plain)), None)


def is_path_like(text: str) -> bool:
    """Return whether a text has a mark of a path: a slash, an ending, a dot in front."""
    return bool(_PATH_MARKS.search(text))


def compare(found: str, wanted: NamedText, referent: Referent | None, key: str = "") -> Answer:
    """Compare an argument with what a rule names.

    ``referent`` is what the tool declares of the argument. Where it declares nothing, every sort of name
    that the text, the rule or the field's name (``key``) suggests is tried, and all must agree.
    """
    if found == wanted.text and not wanted.pattern:
        return True
    if referent is not None:
        return _COMPARISONS[referent](found, wanted)
    kinds = _suggest_referents(found, wanted.text, key)
    answers = {_text(found, wanted), *(_COMPARISONS[each](found, wanted) for each in kinds)}
    if len(answers) == 1:
        return answers.pop()
    return None


def compare_host(address: str, wanted: NamedText) -> Answer:
    """Compare the host of an address with the one that a rule names; None where programs read another."""
    return _agree(*(_host(each, wanted) for each in _list_hosts(address)))


def _list_hosts(address: str) -> Iterator[str]:
    """Yield the host of an address as programs read it: with fewer slashes, or after a late at sign."""
    yield host_of(address).removesuffix(".")
    rest = _SLASHES.sub("", address)
    if not _IN_BRACKETS.search(rest):  # an IPv6 address
        front = re.split(r"[/?#\\]|%2f", rest, maxsplit=1, flags=re.IGNORECASE)[0]
        yield front.rpartition("@")[2].partition(":")[0].removesuffix(".")
    late = _LATE_USER.search(rest)
    if late:
        yield late[1]


def _suggest_referents(found: str, named: str, key: str) -> set[Referent]:
    """Return the sorts of name that an argument may be, of which its tool says nothing."""
    kind = guess_referent(key)
    kinds = {kind} if kind else set()
    both = (found.strip(), named.strip())
    if len(both[0]) > _SURELY_TEXT and any(each in both[0] for each in " \n"):
        return kinds
    schemes = any(map(_SCHEME.match, both))
    if schemes or (kind not in PATHS and any(map(_LIKE_A_HOST.match, both))):
        kinds.add(Referent.ADDRESS)
    if kind not in PATHS and any(_PATH_MARKS.search(each) for each in both):
        about_paths = "/" in named and not found.startswith("/")
        kinds.add(Referent.TREE if about_paths and not schemes else Referent.PATH)
    if any(map(_LIKE_MAIL.search, both)):
        kinds.add(Referent.EMAIL)
    return kinds


def _agree(*answers: Answer) -> Answer:
    if len(set(answers)) == 1:
        return answers[0]
    return None


def _text(found: str, wanted: NamedText) -> Answer:
    """Compare names and free text.

    Differences in case, width, unseen characters and white space are unclear.
    """
    strict = wanted.fits(found, wanted.text)
    if len(found) > _MAX_CHARS:
        return strict
    return _agree(strict, any(wanted.fits(each, _fold(wanted.text)) for each in _names(found)))


def _name_or_id(found: str, wanted: NamedText) -> Answer:
    answer = _text(found, wanted)
    if answer is False and _ID.fullmatch(found):
        return None
    return answer


def _names(text: str) -> Iterator[str]:
    """Yield the spellings of a name: as it is, without a mark in front, without a git reference's prefix."""
    plain = _fold(text)
    yield plain
    yield plain.lstrip("@#/")
    yield _REFS.sub("", plain)


@lru_cache(maxsize=1024)
def _fold(text: str) -> str:
    """Return a text without the differences that some programs ignore."""
    seen = "".join(each for each in text if unicodedata.category(each) not in ("Cf", "Cc") or each in "\t\n")
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold()).split())


def _decode_percent(text: str) -> str:
    """Return a text percent-decoded until nothing changes."""
    for _ in range(_MAX_DECODED):
        plain = unquote(text)
        if plain == text:
            break
        text = plain
    return text


# Paths


def _path(found: str, wanted: NamedText, *, below: Referent | None = None) -> Answer:
    """Compare paths. ``below``: the call reaches what is below the folder, too."""
    if len(found) > _MAX_CHARS:
        return None
    strict = [_steps(found), _steps(wanted.text)]
    if any(".." in each for each in strict):
        return None  # it depends on links
    loose = [_loose_steps(found), _loose_steps(wanted.text)]
    if any(".." in each for each in loose):
        return None
    answers = [wanted.fits(_join_steps(f), _join_steps(w)) for f, w in (strict, loose)]
    if answers[0] != answers[1]:
        return None
    if answers[0]:
        return None if _has_other_expansions(found, wanted) else True
    unescaped = found.replace("\\", "")
    if unescaped != found and _path(unescaped, wanted, below=below) is not False:
        return None  # a backslash before a letter is nothing to a program that expands wildcards
    if _ON_DRIVE.match(found.strip()) or _may_expand_to(loose[0], loose[1], wanted):
        return None  # it depends on the folder of that drive, or on who expands it
    if _is_near(loose[0], loose[1], wanted, below):
        return None
    return False


def _may_expand_to(found: tuple[str, ...], named: tuple[str, ...], wanted: NamedText) -> bool:
    """Return whether a path with wildcards, or a short name of Windows, may stand for what a rule names."""
    text = _to_wildcards(_join_steps(found))
    if not _WILD.search(text):
        return False
    if len(text) > _MAX_WILD_CHARS:
        return True
    theirs = tuple(_CLASS.sub("?", each) for each in named) if wanted.pattern else named
    aligned = _place_in_one_folder(tuple(text.split("/")), theirs)
    return any(_overlap(_join_steps(here), _join_steps(there)) for here, there in aligned)


def _to_wildcards(path: str) -> str:
    """Return a path in which * and ? stand for all that programs may expand, for as much as they may."""
    plain = _EXTENDED.sub("*", path)
    while _BRACED.search(plain):
        plain = _BRACED.sub("*", plain)
    plain = _SHORT_NAME.sub(r"\1*\2*", _CLASS.sub("*", plain))
    return _ANY_FOLDERS.sub("*", re.sub(r"[{}]", "*", plain))


def _overlap(one: str, other: str) -> bool:
    """Return whether a text exists that both patterns fit, of * and ?.

    The places of ``other`` that a part of ``one`` may lead to are the bits of a number.
    """
    other = re.sub(r"\*+", "*", other)
    stars = _mark(other, "*")
    everything = (1 << (len(other) + 1)) - 1
    reached = 1 | ((1 & stars) << 1)
    for character in one:
        if character == "*":
            lowest = reached & -reached
            reached = everything & ~(lowest - 1)
        else:
            fits = everything >> 1 & ~stars if character == "?" else _mark(other, f"?{character}")
            moved = ((reached & fits) << 1) | (reached & stars)
            reached = moved | ((moved & stars) << 1)
    return bool(reached >> len(other) & 1)


def _mark(text: str, characters: str) -> int:
    """Return a number whose bits are the places of these characters."""
    return sum(1 << at for at, character in enumerate(text) if character in characters)


def _has_other_expansions(found: str, wanted: NamedText) -> bool:
    """Return whether wildcards in a path, which fits a rule's pattern as text, may stand for more than it."""
    if not (_WILD.search(found) or _BRACED.search(found)):
        return False
    return ".." in found or bool(wanted.pattern and re.search(r"[?\[]", wanted.text))


def _tree(found: str, wanted: NamedText) -> Answer:
    return _path(found, wanted, below=Referent.TREE)


def _folder(found: str, wanted: NamedText) -> Answer:
    return _path(found, wanted, below=Referent.FOLDER)


def _steps(text: str) -> tuple[str, ...]:
    """Split a path into names; an absolute path begins with an empty one."""
    names = tuple(name for name in text.split("/") if name not in ("", "."))
    if text.startswith("/"):
        return ("", *names)
    return names


@lru_cache(maxsize=1024)
def _loose_steps(text: str) -> tuple[str, ...]:
    """Return the names as the least particular program takes them."""
    at_home = _HOME.match(text.strip())
    plain = _decode_percent(_HOME.sub("~", text.strip(), count=1) if at_home else text.strip()).partition(
        "\0"
    )[0]
    if plain[:5].casefold() == "file:":
        plain = "/" + plain[5:].lstrip("/")
    plain = (
        unicodedata.normalize("NFKC", plain).replace("\\", "/").replace("\u2215", "/").strip("\"'` \t\r\n")
    )
    rooted = plain.startswith("/")
    steps = [_loose_name(each) for each in plain.split("/")]
    if _DRIVE.match(plain) or _HOME.match(plain):
        rooted, steps = True, [_DRIVE.sub("", steps[0], count=1) if _DRIVE.match(plain) else "", *steps[1:]]
    names = tuple(each for each in steps if each not in ("", "."))
    return ("", *names) if rooted else names


def _loose_name(name: str) -> str:
    """Return one name without case, trailing dots and spaces, unseen characters and a stream's name."""
    plain = _fold(name)
    if plain in (".", ".."):
        return plain
    head, _, _ = plain.partition(":") if not _DRIVE.fullmatch(plain) else (plain, "", "")
    return (head or plain).strip(" ").rstrip(". ") or "."


def _join_steps(steps: tuple[str, ...]) -> str:
    if steps != ("",):
        return "/".join(steps)
    return "/"


def _is_near(
    found: tuple[str, ...], named: tuple[str, ...], wanted: NamedText, below: Referent | None
) -> bool:
    """Return whether a path may be what a rule names seen from another folder, is in it, or has it below."""
    if below and found[:1] == ("",) != named[:1] and "." not in found[-1]:
        return True  # it may be above the folder that the rule begins at
    for here, there in _place_in_one_folder(found, named):
        if wanted.fits(_join_steps(here), _join_steps(there)):
            return True
        if here and there and _is_inside(here, there, wanted):
            return True
        if _is_above(here, there, wanted, below):
            return True
    return False


def _place_in_one_folder(
    found: tuple[str, ...], named: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield both paths from each folder that both may begin at: one is absolute, the other is not."""
    roots = (found[:1] == ("",), named[:1] == ("",))
    if roots[0] == roots[1]:
        yield found, named
    elif roots[0]:
        yield from ((found[at:], named) for at in range(1, max(2, len(found))))
    else:
        yield from ((found, named[at:]) for at in range(1, len(named)))


def _is_inside(found: tuple[str, ...], named: tuple[str, ...], wanted: NamedText) -> bool:
    return any(wanted.fits(_join_steps(found[:at]), _join_steps(named)) for at in range(1, len(found)))


def _is_above(
    found: tuple[str, ...], named: tuple[str, ...], wanted: NamedText, below: Referent | None
) -> bool:
    """Tell if a path is the folder whose content a rule names, or a parent in a call that reaches below."""
    content = wanted.pattern and len(named) > 1 and set(named[-1]) == {"*"}
    if content and wanted.fits(_join_steps(found), _join_steps(named[:-1])):
        return True
    if below is None:
        return False
    if not found:
        return True  # the workspace
    parents = [named[:at] for at in range(1, len(named))]
    if (
        wanted.pattern and below is Referent.TREE
    ):  # what is about files anywhere stays true of them when they move
        parents = [each for each in parents if set(_join_steps(each)) - set("*/")]
    if any(wanted.fits(_join_steps(found), _join_steps(each)) for each in parents):
        return True
    return wanted.pattern and below is Referent.FOLDER and bool(named) and bool(_WILD.search(named[0]))


# Addresses


def _address(found: str, wanted: NamedText) -> Answer:
    """Compare addresses: as RFC 3986 writes them, and as the least particular program takes them."""
    if len(found) > _MAX_CHARS:
        return None
    strict = _write_address(found)
    loose, theirs = _loose_address(found), _loose_address(wanted.text)
    taken = wanted.fits(loose, theirs)
    inside = (
        bool(theirs) and not wanted.pattern and loose.startswith(tuple(f"{theirs}{mark}" for mark in "/?;!"))
    )
    if strict is None or (_UNCLEAR.search(found) and found != wanted.text):
        if taken or inside or _SCHEME.match(found.strip()):
            return None
        return False
    first = wanted.fits(strict, wanted.normal(_write_address))
    if wanted.pattern:  # which may have no path, or be written as the argument is
        first = first or any(fnmatchcase(each, wanted.text) for each in (strict.removesuffix("/"), found))
    if first != taken or (first and "@" in strict):
        return None  # programs disagree on where a user's name ends
    if first:
        return True
    return None if inside else False


def _split(text: str) -> tuple[SplitResult, str, int | None] | None:
    with contextlib.suppress(ValueError):
        parts = urlsplit(text if _SCHEME.match(text) else f"//{text}")
        return parts, parts.hostname or "", parts.port
    return None


def _write_address(text: str) -> str | None:
    """Return an address in its normal form, the fragment left out; None where it has none."""
    found = _split(text)
    if found is None or not found[1]:
        return None
    parts, host, port = found
    usual = _PORTS.get(parts.scheme.lower())
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    at = "" if port in (None, usual) else f":{port}"
    scheme = f"{parts.scheme.lower()}://" if parts.scheme else ""
    query = f"?{_escape_reserved(parts.query)}" if parts.query else ""
    return f"{scheme}{user}{_write_host(host)}{at}{_without_dots(_escape_reserved(parts.path)) or '/'}{query}"


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
def _loose_address(text: str) -> str:
    """Return an address without scheme, user, usual port, fragment, doubled slashes and case."""
    plain = _decode_percent(text.strip().strip("<>\"'"))
    plain = unicodedata.normalize("NFKC", "".join(plain.split())).replace("\\", "/")
    plain = re.sub(r"^(?:[A-Za-z*][A-Za-z0-9+.*-]*:){0,3}/{2,}", "", plain)
    plain = re.sub(r"^(?:https?|wss?|ftp):/?", "", plain, flags=re.IGNORECASE).partition("#")[0]
    cut = re.search(r"[/?]", plain)
    host, path = (plain[: cut.start()], plain[cut.start() :]) if cut else (plain, "")
    if not host.endswith("]"):
        host = re.sub(r":(?:80|443|21)?$", "", host.rpartition("@")[2])
    way, mark, query = path.partition("?")
    way = re.sub(r"/{2,}", "/", _without_dots(way)).rstrip("/")
    return f"{_loose_host(host)}{way.casefold()}{mark if query else ''}{query.casefold()}"


# Hosts


def _host(found: str, wanted: NamedText) -> Answer:
    strict = wanted.fits(_write_host(found), wanted.normal(_write_host))
    return _agree(strict, wanted.fits(_loose_host(found), _loose_host(wanted.text)))


def _host_or_address(found: str, wanted: NamedText) -> Answer:
    """Compare what may be a bare host, or an address that has one."""
    if "/" in found or "@" in found or "/" in wanted.text:
        return _address(found, wanted)
    port = re.compile(r":[0-9]{1,5}$")
    bare = found if ":" in port.sub("", found) else port.sub("", found)
    if bare != found and _host(bare, wanted) is not False:
        return None  # on a port of its own
    return _host(found, wanted)


def _write_host(text: str) -> str:
    plain = text.strip("[]").lower().removesuffix(".")
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(plain))
    return plain


@lru_cache(maxsize=1024)
def _loose_host(text: str) -> str:
    """Return a host in Unicode, an IPv4 address in any of its notations as four numbers."""
    plain = unicodedata.normalize("NFKC", _decode_percent(text.strip())).strip("[]").casefold()
    plain = re.sub(r"[\u3002\uff0e\uff61]", ".", plain).rstrip(".")
    if re.fullmatch(r"[0-9a-fx.]+", plain) and plain[:1].isdecimal():
        with contextlib.suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(plain))
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(plain)
        return str(getattr(address, "ipv4_mapped", None) or address)
    return ".".join(map(_unicode_label, plain.split(".")))


def _unicode_label(label: str) -> str:
    if label.startswith("xn--") and len(label) <= 63:  # noqa: PLR2004 - RFC 1035
        with contextlib.suppress(UnicodeError):
            label = label[4:].encode().decode("punycode")
    return _fold(label)


# Mail


def _email(found: str, wanted: NamedText) -> Answer:
    """Compare mail addresses; one text may have several, with names."""
    if len(found) > _MAX_CHARS:
        return None
    theirs, several = _loose_mail(wanted.text), _mails(found)
    mailbox = _TAG.sub("@", theirs)
    loose = [wanted.fits(each, theirs) or wanted.fits(each, mailbox) for each in several]
    strict = wanted.fits(_write_mail(found), wanted.normal(_write_mail))
    if not loose or all(loose) != any(loose):
        if any(loose) or strict:
            return None
        return False
    return _agree(strict, all(loose))


def _write_mail(text: str) -> str:
    user, mark, host = text.rpartition("@")
    return f"{user}{mark}{_write_host(host)}"


def _loose_mail(text: str) -> str:
    user, mark, host = text.strip().strip("'").rpartition("@")
    name, at = _fold(user).strip('"'), _loose_host(host)
    if at in _DOTLESS:
        name, at = name.replace(".", ""), "gmail.com"
    return f"{name}{mark}{at}"


def _mails(text: str) -> list[str]:
    """Return the addresses in a text, and each that has a tag without it: both reach one mailbox."""
    plain = _decode_percent(re.sub(r"^\s*mailto:", "", text, flags=re.IGNORECASE))
    if plain != text:  # an address with its form: who else is written to stands after the question mark
        plain = re.sub(r"[?&](?:to|cc|bcc)=", ",", plain, flags=re.IGNORECASE)
        plain = re.sub(r"[?&]\w+=[^,&]*", "", plain)
    plain = re.sub(r"\s+@|@\s+", "@", unicodedata.normalize("NFKC", plain)).replace(";", ",")
    read = [address for _, address in getaddresses([plain]) if address]
    # what the reader leaves out for a fault still has its addresses
    found = [_loose_mail(each) for each in dict.fromkeys([*read, *_LIKE_MAIL.findall(plain)])]
    return [*found, *(_TAG.sub("@", each) for each in found if _TAG.search(each))]


_COMPARISONS: Mapping[Referent, Callable[[str, NamedText], Answer]] = {
    Referent.PATH: _path,
    Referent.TREE: _tree,
    Referent.FOLDER: _folder,
    Referent.ADDRESS: _address,
    Referent.HOST: _host_or_address,
    Referent.EMAIL: _email,
    Referent.NAME: _text,
    Referent.NAME_OR_ID: _name_or_id,
}
