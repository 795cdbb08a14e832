"""Addresses that a call would send to servers outside, and those that may be sent without asking people.

The server of an address gets everything in it, so an address can carry away what the agent has read. People
are therefore asked about a reading call as about a write (`judge_addresses`), unless all its addresses are
allowed (`find_allowed_addresses`). An address is allowed if the requester wrote it letter for letter in this
conversation, or if it is a link in a page that the same tool read from the same host. Rules may allow further
hosts.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from bot.domain.conversations import Line, LineRole, Transcript
from bot.domain.proposal_states import State
from bot.domain.risks import Level, Risk
from bot.domain.text import host_of

# the name of a field that holds an address: "url", "image_urls", "callback_host"
_ADDRESS_FIELD = re.compile(
    r"(^|_)(url|uri|link|href|host|hostname|domain|site|website|webpage|endpoint)s?(_|$)", re.IGNORECASE
)
_ADDRESS = re.compile(r"(https?|wss?|ftps?)://|www\.", re.IGNORECASE)
# what may be an address in a text: a run of characters other than white space, quotes and brackets like <
_WORD = re.compile(r"""[^\s"'<>`|\\]{4,4000}""")
_UNCLEAR = re.compile(r"[\s\\\x00-\x1f\x7f]")  # with these in it, programs disagree where an address leads
_MARKS_BEFORE = "([{*_"  # the marks of a sentence in front of an address
_MARKS_AFTER = ".,;:!?)]}*_…"  # the marks of a sentence behind an address
_MAX_MARKS = 8  # more marks after an address belong to no sentence


def find_addresses(arguments: Any, key: str = "") -> Iterator[str]:
    """Yield every address in a call's arguments, found by the name of its field or by its beginning.

    ``key``: if ``arguments`` is the value of one field, the name of that field.
    """
    if isinstance(arguments, str):
        # an address such as "drive://a/b" has a scheme of the tool's own: it only names a thing there
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
    risk: Risk,
    addresses: Collection[str],
    allowed_addresses: Collection[str],
    allowed_hosts: Collection[str],
) -> Risk:
    """Return the risk of a reading call: ``risk`` if it may send its addresses, else the risk of a write.

    It may send an address that is among ``allowed_addresses``, as `find_allowed_addresses` returns them, and
    any address at one of ``allowed_hosts``. These are patterns with * and ?, which rules have.
    """
    for address in addresses:
        host = host_of(address)
        is_at_allowed_host = any(fnmatchcase(host, pattern) for pattern in allowed_hosts)
        is_allowed_by_rule = is_at_allowed_host and not _UNCLEAR.search(address)
        if not is_allowed_by_rule and _shorten_address(address) not in allowed_addresses:
            where = host or "a server outside"
            return Risk(
                Level.WRITE, f"the address goes to {where} and may carry what Nod has read", vouched=False
            )
    return risk


def find_allowed_addresses(
    transcript: Transcript, accounts: Collection[str], tool_name: str, addresses: Collection[str]
) -> set[str]:
    """Return the addresses, shortened, that a call of this tool may send without asking people.

    They are a part of ``addresses``. ``accounts``: the linked accounts of the requester.
    """
    host_by_short_address = {_shorten_address(address): host_of(address) for address in addresses}
    allowed_words: set[str] = set()  # shortened words that a call may send, addresses among them
    for line in transcript.lines:
        if line.role is LineRole.USER and line.actor and str(line.actor) in accounts:
            allowed_words.update(_find_words(line.text))
        for host, text in _list_results(transcript, line, tool_name):
            # a link counts only if it leads to the host that the page is from
            allowed_words.update(
                word for word in _find_words(text) if host_by_short_address.get(word) == host
            )
    return allowed_words & host_by_short_address.keys()


def _list_results(transcript: Transcript, line: Line, tool_name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in the results of the tool's calls in a line, each with the only host of its call."""
    for call in line.calls:
        if call.tool_name != tool_name:
            continue
        proposal = transcript.proposals.get((line.id, call.id))
        if proposal is not None and proposal.state is State.SUCCEEDED:
            arguments, result = proposal.arguments, proposal.result or ""
        elif call.id in line.results and line.results[call.id].ok:
            arguments, result = json.loads(call.arguments), line.results[call.id].text
        else:
            continue
        hosts = {host_of(address) for address in find_addresses(arguments)}
        if len(hosts) == 1:
            host = hosts.pop()
            for text in _split_result(result):
                yield host, text


def _split_result(result: str) -> Iterator[str]:
    """Return the texts in a result that is JSON; any other result as one text."""
    try:
        return _list_texts(json.loads(result))
    except (ValueError, RecursionError):
        return iter([result.replace("\\n", "\n")])  # JSON that was cut has its line breaks as escapes


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
    """Yield each word that may be an address, shortened, with and without each mark behind it.

    The lines that a person quotes (``> …``) are skipped.
    """
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
    """Return an address in the form in which two are compared: ``https://a.example/#x`` -> ``a.example``."""
    bare = address.partition("#")[0]
    scheme, mark, rest = bare.partition("://")
    rest = rest if mark and scheme.lower() in ("http", "https") else bare
    if rest.count("/") == 1 and "?" not in rest:
        return rest.removesuffix("/")
    return rest
