"""Addresses that a reading call would send to other servers, and those that are safe to send.

An address tells its server whatever stands in it. So it is sent unasked only where it cannot carry what the
agent has read: the requester wrote it letter for letter in this conversation, or it is a link that stands
letter for letter in a page which the same tool read from the same host.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from bot.domain.conversations import Line, LineRole, Transcript
from bot.domain.proposals import Level, Risk, State
from bot.domain.text import host_of

_NAMED = re.compile(
    r"(^|_)(url|uri|link|href|host|hostname|domain|site|website|webpage|endpoint)s?(_|$)", re.IGNORECASE
)
_ADDRESS = re.compile(r"(https?|wss?|ftps?)://|www\.", re.IGNORECASE)
_WORD = re.compile(r"""[^\s"'<>`|\\]{4,4000}""")
_UNCLEAR = re.compile(r"[\s\\\x00-\x1f\x7f]")
_BEFORE, _AFTER = "([{*_", ".,;:!?)]}*_…"
_MARKS = 8  # after an address: more of them belong to no sentence


def find_addresses(arguments: Any, key: str = "") -> Iterator[str]:
    """Yield every address in a call's arguments, found by the field's name or by its look."""
    if isinstance(arguments, str):
        own = "://" in arguments  # in a scheme of its server's own it names a thing there
        if _ADDRESS.match(arguments) or (arguments and _NAMED.search(key) and not own):
            yield arguments
    elif isinstance(arguments, Mapping):
        for name, value in arguments.items():
            yield from find_addresses(value, str(name))
    elif isinstance(arguments, list | tuple):
        for value in arguments:
            yield from find_addresses(value, key)


def judge_addresses(
    risk: Risk, addresses: Collection[str], known: Collection[str], hosts: Collection[str]
) -> Risk:
    """Return the risk of a reading call by the addresses that it sends.

    It becomes a write, which people are asked for, where an address is neither in ``known`` (see
    `find_known`) nor at one of ``hosts``, which rules allow; they may hold * and ?.
    """
    for address in addresses:
        host = host_of(address)
        # programs disagree on where an address with a backslash or white space leads
        plain = not _UNCLEAR.search(address)
        allowed = plain and any(fnmatchcase(host, each) for each in hosts)
        if not allowed and _plain(address) not in known:
            where = host or "a server outside"
            return Risk(
                Level.WRITE, f"the address goes to {where} and may carry what Nod has read", vouched=False
            )
    return risk


def find_known(
    transcript: Transcript, accounts: Collection[str], tool_name: str, addresses: Collection[str]
) -> set[str]:
    """Return those addresses that a call of this tool may send, for the Person with these accounts."""
    wanted = {_plain(each): host_of(each) for each in addresses}
    found: set[str] = set()
    for line in transcript.lines:
        if line.role is LineRole.USER and line.actor and str(line.actor) in accounts:
            found.update(_find_words(line.text))
        for host, text in _read(transcript, line, tool_name):
            found.update(each for each in _find_words(text) if wanted.get(each) == host)
    return found & wanted.keys()


def _read(transcript: Transcript, line: Line, tool_name: str) -> Iterator[tuple[str, str]]:
    """Yield the answers of earlier calls of the tool that went to one host, with that host."""
    for call in line.calls:
        if call.tool_name != tool_name:
            continue
        proposal = transcript.proposals.get((line.id, call.id))
        if proposal is not None and proposal.state is State.SUCCEEDED:
            arguments, answer = proposal.arguments, proposal.result or ""
        elif call.id in line.results and line.results[call.id].ok:
            arguments, answer = json.loads(call.arguments), line.results[call.id].text
        else:
            continue
        hosts = {host_of(each) for each in find_addresses(arguments)}
        if len(hosts) == 1:
            host = hosts.pop()
            yield from ((host, text) for text in _texts(answer))


def _texts(answer: str) -> Iterator[str]:
    try:
        return _strings(json.loads(answer))
    except (ValueError, RecursionError):
        return iter([answer.replace("\\n", "\n")])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def _find_words(text: str) -> Iterator[str]:
    """Yield each word that may be an address, without the marks around it. Quoted lines are skipped."""
    for line in text.splitlines():
        if line.lstrip().startswith(">"):
            continue
        for word in _WORD.findall(line):
            each = word.lstrip(_BEFORE)
            yield _plain(each)
            for _ in range(_MARKS):
                if each[-1:] not in _AFTER:
                    break
                each = each[:-1]
                yield _plain(each)


def _plain(address: str) -> str:
    """Return an address without its fragment, its scheme, and the slash of an empty path."""
    bare = address.partition("#")[0]
    scheme, mark, rest = bare.partition("://")
    rest = rest if mark and scheme.lower() in ("http", "https") else bare
    if rest.count("/") == 1 and "?" not in rest:
        return rest.removesuffix("/")
    return rest
