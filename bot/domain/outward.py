"""Addresses that a reading call would send to other servers, and the addresses that are safe to send.

Whatever is in an address reaches its server. So an address is sent unasked only if it can't carry what the
agent has read: the requester wrote the address letter for letter in this conversation, or it is a link in a
page that the same tool read from the same host.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from bot.domain.conversations import Line, LineRole, Transcript
from bot.domain.proposals import Level, Risk, State
from bot.domain.text import host_of

_ADDRESS_FIELD = re.compile(
    r"(^|_)(url|uri|link|href|host|hostname|domain|site|website|webpage|endpoint)s?(_|$)", re.IGNORECASE
)
_ADDRESS = re.compile(r"(https?|wss?|ftps?)://|www\.", re.IGNORECASE)
_WORD = re.compile(r"""[^\s"'<>`|\\]{4,4000}""")
_UNCLEAR = re.compile(r"[\s\\\x00-\x1f\x7f]")  # with these in it, programs disagree where an address leads
_MARKS_BEFORE = "([{*_"  # the marks of a sentence in front of an address
_MARKS_AFTER = ".,;:!?)]}*_…"  # the marks of a sentence behind an address
_MAX_MARKS = 8  # more marks after an address belong to no sentence


def find_addresses(arguments: Any, key: str = "") -> Iterator[str]:
    """Yield every address in a call's arguments, found by the field's name or by its look."""
    if isinstance(arguments, str):
        # an address in a scheme of the server's own only names a thing there
        has_other_scheme = "://" in arguments and not _ADDRESS.match(arguments)
        is_in_field = bool(arguments) and _ADDRESS_FIELD.search(key) is not None
        if _ADDRESS.match(arguments) or (is_in_field and not has_other_scheme):
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

    The call counts as a write, so that people are asked, unless each address is in ``known`` (see
    `find_known`) or at one of ``hosts``, which rules allow. Hosts may hold * and ?.
    """
    for address in addresses:
        host = host_of(address)
        is_allowed = not _UNCLEAR.search(address) and any(fnmatchcase(host, allowed) for allowed in hosts)
        if not is_allowed and _shorten_address(address) not in known:
            where = host or "a server outside"
            return Risk(
                Level.WRITE, f"the address goes to {where} and may carry what Nod has read", vouched=False
            )
    return risk


def find_known(
    transcript: Transcript, accounts: Collection[str], tool_name: str, addresses: Collection[str]
) -> set[str]:
    """Return the addresses that a call of this tool may send unasked, for the Person of these accounts."""
    host_by_address = {_shorten_address(address): host_of(address) for address in addresses}
    known: set[str] = set()
    for line in transcript.lines:
        if line.role is LineRole.USER and line.actor and str(line.actor) in accounts:
            known.update(_find_words(line.text))
        for host, text in _list_answers(transcript, line, tool_name):
            known.update(word for word in _find_words(text) if host_by_address.get(word) == host)
    return known & host_by_address.keys()


def _list_answers(transcript: Transcript, line: Line, tool_name: str) -> Iterator[tuple[str, str]]:
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
        hosts = {host_of(address) for address in find_addresses(arguments)}
        if len(hosts) == 1:
            host = hosts.pop()
            for text in _split_answer(answer):
                yield host, text


def _split_answer(answer: str) -> Iterator[str]:
    """Return the texts in an answer that is JSON; any other answer as one text."""
    try:
        return _list_texts(json.loads(answer))
    except (ValueError, RecursionError):
        return iter([answer.replace("\\n", "\n")])  # a cut part of JSON, which has line breaks as escapes


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _list_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner)


def _find_words(text: str) -> Iterator[str]:
    """Yield each word that may be an address, without the marks around it. Quoted lines are skipped."""
    for line in text.splitlines():
        if line.lstrip().startswith(">"):
            continue
        for word in _WORD.findall(line):
            address = word.lstrip(_MARKS_BEFORE)
            yield _shorten_address(address)
            for _ in range(_MAX_MARKS):
                if address[-1:] not in _MARKS_AFTER:
                    break
                address = address[:-1]
                yield _shorten_address(address)


def _shorten_address(address: str) -> str:
    """Return an address without its fragment, its scheme, and the slash of an empty path."""
    bare = address.partition("#")[0]
    scheme, mark, rest = bare.partition("://")
    rest = rest if mark and scheme.lower() in ("http", "https") else bare
    if rest.count("/") == 1 and "?" not in rest:
        return rest.removesuffix("/")
    return rest
